"""The task outbox tells the truth, whatever fails between claim, send and mark; on both engines of the queue."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import servers
from aws_between import DROP, Between, between
from doors import new_database
from sellerwatch.adapters.clock import SystemClock
from sellerwatch.domain.errors import Unavailable
from sellerwatch.domain.outbox import Publication
from sellerwatch.domain.tasks import list_tasks
from sellerwatch.ports.pool import Grant
from sellerwatch.settings import load
from sellerwatch.wiring import House, Outside, build
from sellerwatch.wiring.engines import layouts_of

TASKS = 3


class Ahead(SystemClock):
    """Real time, and as much more as a test wants to have passed; for the stand-in as well."""

    def __init__(self, server: servers.Aws | None) -> None:
        self.server, self.seconds = server, 0.0

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return super().monotonic() + self.seconds

    def advance(self, seconds: float) -> None:
        self.seconds += seconds
        if self.server:
            self.server.advance(seconds)


@dataclass
class Post:
    """A house with tasks to publish."""

    house: House
    clock: Ahead
    wire: Between | None

    @property
    def outside(self) -> Outside:
        assert self.house.outside
        return self.house.outside

    async def rows(self) -> set[tuple[str, int, int, str]]:
        """Of each task: its outbox row's status, publications and retries, and its own status."""

        def read(connection: Any) -> set[tuple[str, int, int, str]]:
            statement = (
                "SELECT o.status, o.publish_count, o.retry_count, t.status FROM crawler_task_outbox o"
                " JOIN crawler_tasks t ON t.task_id = o.task_id"
            )
            return {tuple(row) for row in connection.exec_driver_sql(statement)}

        return await self.house.database.read(read)

    async def messages(self) -> list[int]:
        """The publication that each message in the queue is of; then there are none."""
        found = []
        while deliveries := await self.house.queue.receive(10, 0):
            found += [delivery.body["attempt"] for delivery in deliveries]
            await self.house.queue.ack([delivery.receipt for delivery in deliveries])
        return found

    async def sweep(self) -> None:
        await self.outside.heal.outbox_zombies()

    def fail(self) -> None:
        """The queue can't be reached."""
        if self.wire:
            self.wire.fault = lambda _operation, _asked: DROP
            return
        queue: Any = self.house.queue

        async def away(*_: object) -> None:
            raise Unavailable("away")

        queue.send = queue.depth = away

    def mend(self) -> None:
        if self.wire:
            self.wire.fault = None
            return
        queue: Any = self.house.queue
        del queue.send, queue.depth


@pytest.fixture(params=["database", "sqs"])
async def post(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Post]:
    if request.param == "database":
        yield await _opened(tmp_path, "database:", None, None)
        return
    server: servers.Aws = request.getfixturevalue("aws_server")
    async with between(server.url) as wire:
        address = f"sqs:///{tmp_path.name[-40:]}.fifo?endpoint={quote(wire.url, safe='')}"
        yield await _opened(tmp_path, address, server, wire)


async def _opened(folder: Path, queue_url: str, server: servers.Aws | None, wire: Between | None) -> Post:
    (folder / "sellerwatch.db").write_bytes(new_database())
    settings = load(
        overrides={
            "database_url": f"sqlite:///{folder}/sellerwatch.db",
            "queue_url": queue_url,
            "marketplace_url": "http://127.0.0.1:9",
        }
    )
    for layout in layouts_of(settings):
        for deviation in await layout.deviations():
            await layout.mend(deviation)
        await layout.close()
    clock = Ahead(server)
    house = build(settings, clock=clock)
    await house.load_pool()
    await house.sellers.register("dmont", "D. Mont")
    execution = (await house.trigger.open("dmont", "key")).execution
    assert execution
    assert house.outside
    at = clock.now()
    tasks = list_tasks(execution.execution_id, "dmont", TASKS * 500, 500, house.outside.addresses, at)
    execution.plan(len(tasks), TASKS * 500, at)

    def work(unit: Any) -> None:
        unit.executions.save([execution])
        unit.tasks.add(tasks)
        unit.publications.add([Publication.of(task, at) for task in tasks])

    await house.store.transact(work)
    return Post(house, clock, wire)


# Each time, SQS' client tries again and again before it says so.
@pytest.mark.parametrize("post", ["database", pytest.param("sqs", marks=pytest.mark.slow)], indirect=True)
async def test_a_send_that_fails_after_the_claim_publishes_nothing_and_costs_no_retry(post: Post) -> None:
    relay = post.outside.relay
    for _ in range(5):
        post.fail()
        with pytest.raises(Unavailable):
            await relay.run()
        assert {(row[1], row[2], row[3]) for row in await post.rows()} == {(0, 0, "WAITING")}
        post.mend()
        post.clock.advance(31)
        await post.sweep()
        assert await post.rows() == {("PENDING", 0, 0, "WAITING")}
    assert (await relay.run()).sent == TASKS
    assert await post.rows() == {("SENT", 1, 0, "PUBLISHED")}
    assert await post.messages() == [1] * TASKS
    await post.house.close()


@pytest.mark.parametrize("death", ["dies before the mark", "the mark is not committed", "the commit's answer is lost"])
async def test_lessons_8_and_9_what_was_sent_and_not_marked_is_sent_again_under_the_same_id_and_is_there_once(
    post: Post, death: str
) -> None:
    store: Any = post.house.store
    transact, calls = store.transact, 0

    async def dying(work: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls != 2:
            return await transact(work)
        if death == "the commit's answer is lost":
            await transact(work)
        raise asyncio.CancelledError if death.startswith("dies") else Unavailable("the database is away")

    store.transact = dying
    with suppress(asyncio.CancelledError, Unavailable):
        await post.outside.relay.run()
    del store.transact
    is_marked = death == "the commit's answer is lost"
    assert await post.rows() == {("SENT", 1, 0, "PUBLISHED") if is_marked else ("PROCESSING", 0, 0, "WAITING")}
    # Whoever receives it meanwhile works on it: a row on its way counts as published.
    early = await post.house.store.read(lambda unit: unit.publications.are_out([t.task_id for t in _tasks(unit)]))
    assert len(early) == TASKS
    post.clock.advance(31)
    await post.sweep()
    await post.outside.relay.run()
    assert await post.rows() == {("SENT", 1, 0, "PUBLISHED")}
    assert await post.messages() == [1] * TASKS
    await post.house.close()


async def test_lesson_9_two_relays_at_once_send_each_row_once(post: Post) -> None:
    other = build(post.house.settings, clock=post.clock)
    await other.load_pool()
    assert other.outside
    relayed = await asyncio.gather(post.outside.relay.run(), other.outside.relay.run())
    assert sum(one.sent for one in relayed) == TASKS
    assert await post.rows() == {("SENT", 1, 0, "PUBLISHED")}
    assert await post.messages() == [1] * TASKS
    await other.close()
    await post.house.close()


async def test_what_is_published_and_has_no_message_is_found_as_an_orphan_and_published_anew(post: Post) -> None:
    await post.outside.relay.run()
    assert await post.messages() == [1] * TASKS
    post.clock.advance(899)
    assert await post.outside.heal.published_orphans() == 0
    post.clock.advance(2)
    assert await post.outside.heal.published_orphans() == TASKS
    assert await post.outside.heal.published_orphans() == 0
    assert {row[0] for row in await post.rows()} == {"PENDING"}
    await post.outside.relay.run()
    assert await post.messages() == [2] * TASKS
    await post.house.close()


async def test_lesson_6_a_message_that_waits_for_an_identity_never_becomes_a_dead_letter_nor_loses_a_retry(
    post: Post,
) -> None:
    await post.outside.relay.run()
    pool: Any = post.house.pool
    outlook = await pool.outlook()

    async def promised() -> Any:
        return outlook

    async def none_left(_count: int) -> Grant:
        return Grant((), None)

    pool.outlook, pool.lease = promised, none_left
    for _ in range(20):
        assert await post.outside.crawl.take(5) == []
    assert (await post.house.queue.depth()).dead == 0
    assert await post.rows() == {("SENT", 1, 0, "PUBLISHED")}
    assert sorted(await post.messages()) == [1] * TASKS
    await post.house.close()


async def test_what_was_received_goes_back_when_the_database_is_away(post: Post) -> None:
    await post.outside.relay.run()
    store: Any = post.house.store

    async def away(_work: Any) -> None:
        raise Unavailable("the database is away")

    store.transact = away
    before = (await post.house.pool.figures()).remaining_requests
    for _ in range(5):
        with pytest.raises(Unavailable, match="database is away"):
            await post.outside.crawl.take(5)
    assert (await post.house.pool.figures()).remaining_requests == before
    del store.transact
    assert (await post.house.queue.depth()).dead == 0
    assert await post.messages() == [1] * TASKS
    await post.house.close()


def _tasks(unit: Any) -> list[Any]:
    execution = unit.executions.open_of("dmont")
    return unit.tasks.lock_open(execution.execution_id, 100)
