"""Triggers that come as messages: whatever comes, however often, begins at most what it should."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from builders import NOON
from desk import new_house
from sellerwatch.adapters.bell import AsyncBell
from sellerwatch.adapters.chance import SeededChance
from sellerwatch.adapters.clock import SystemClock
from sellerwatch.adapters.sql.queue import SqlQueue
from sellerwatch.adapters.sql.store import SqlStore
from sellerwatch.domain.errors import Unavailable
from sellerwatch.domain.executions import ExecutionStatus
from sellerwatch.flows.sellers import Sellers
from sellerwatch.flows.trigger import Heed, Trigger
from sellerwatch.ports.queue import Outgoing


@dataclass
class Post:
    heed: Heed
    store: SqlStore
    sellers: Sellers
    sent: int = 0

    async def come(self, *bodies: dict[str, Any]) -> None:
        for body in bodies:
            self.sent += 1
            await self.heed.queue.send([Outgoing(body, f"g{self.sent}", f"d{self.sent}")])
        await self.heed.run()

    async def executions(self) -> list[tuple[str, str, str]]:
        def read(connection: Any) -> list[tuple[str, str, str]]:
            statement = "SELECT seller_id, trigger_key, status FROM crawling_schedule_executions ORDER BY seller_id, trigger_key"
            return [tuple(row) for row in connection.exec_driver_sql(statement)]

        queue: Any = self.heed.queue
        return await queue._database.read(read)

    async def left(self) -> tuple[int, int]:
        """Messages not done with, and dead letters."""
        depth = await self.heed.queue.depth()
        return depth.waiting + depth.out, depth.dead


@pytest.fixture
async def post(tmp_path: Path) -> AsyncIterator[Post]:
    with new_house(tmp_path) as database:
        clock, chance = SystemClock(), SeededChance(1)
        bell, store = AsyncBell(clock), SqlStore(database)
        queue = SqlQueue(database, clock, chance, "triggers", 30, 3)
        sellers = Sellers(store, clock, chance, bell)
        for seller_id in ("dmont", "asleep"):
            await sellers.register(seller_id, seller_id)
        await sellers.deactivate("asleep")
        yield Post(Heed(Trigger(store, clock, chance, bell), queue, wait_seconds=0), store, sellers)


CALL = {"sellerId": "dmont", "triggerKey": "k-1", "scheduledAt": "2026-11-18T00:00:00Z"}


async def test_a_trigger_begins_a_crawl_asks_nobody_and_its_message_is_done_with(post: Post) -> None:
    await post.come(CALL)
    assert await post.executions() == [("dmont", "k-1", ExecutionStatus.STARTED)]
    assert await post.left() == (0, 0)


async def test_duplicates_and_late_ones_begin_nothing_a_second_time(post: Post) -> None:
    await post.come(CALL, CALL, {**CALL, "triggerKey": "k-2"})
    assert await post.executions() == [("dmont", "k-1", ExecutionStatus.STARTED)]
    execution = await post.store.read(lambda unit: unit.executions.open_of("dmont"))
    assert execution
    execution.fail("over", NOON)
    await post.store.transact(lambda unit: unit.executions.save([execution]))
    # Days later, when that crawl has long ended.
    await post.come({**CALL, "scheduledAt": "2020-01-01T00:00:00Z"})
    assert [row[1] for row in await post.executions()] == ["k-1"]
    await post.come({**CALL, "triggerKey": "k-3"})
    assert [row[1] for row in await post.executions()] == ["k-1", "k-3"]
    assert await post.left() == (0, 0)


async def test_an_inactive_sellers_trigger_is_done_with_and_begins_nothing(post: Post) -> None:
    await post.come({"sellerId": "asleep", "triggerKey": "k"})
    assert await post.executions() == []
    assert await post.left() == (0, 0)


async def test_a_trigger_of_a_seller_that_was_removed_is_done_with_and_begins_nothing(post: Post) -> None:
    await post.come({"sellerId": "nobody", "triggerKey": "k"})
    assert await post.executions() == []
    assert await post.left() == (0, 0)


async def test_an_envelope_is_understood_and_its_id_is_the_key(post: Post) -> None:
    rule = "arn:aws:events:ap-northeast-2:1:rule/mustit-crawler-dmont"
    await post.come({"id": "e-1", "source": "aws.events", "detail": {}, "resources": [rule]})
    assert [row[1] for row in await post.executions()] == ["e-1"]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"sellerId": "'; DROP TABLE sellers; --"}, "sellerId: .* is not 1 to 64"),
        ({"triggerKey": "k"}, "sellerId: None is not a text"),
        ({"sellerId": "dmont", "triggerKey": ["k"]}, "triggerKey: .* is not a text"),
    ],
)
async def test_what_is_no_trigger_is_a_dead_letter_with_the_reason_and_holds_up_nobody(
    post: Post, body: dict[str, Any], why: str
) -> None:
    await post.come(body, CALL)
    [letter] = await post.heed.queue.dead_letters(5)
    assert re.search(why, letter.error or "")
    assert [row[1] for row in await post.executions()] == ["k-1"]
    assert await post.left() == (0, 1)


async def test_while_the_database_is_away_triggers_wait_and_none_is_lost(post: Post) -> None:
    store: Any = post.store

    async def away(_work: Any) -> None:
        raise Unavailable("away")

    store.transact = away
    with pytest.raises(Unavailable):
        await post.come(CALL, {"sellerId": "asleep"})
    for _ in range(5):
        with pytest.raises(Unavailable):
            await post.come()
    del store.transact
    assert await post.left() == (2, 0)
    await post.come()
    assert [row[1] for row in await post.executions()] == ["k-1"]
    assert await post.left() == (0, 0)
