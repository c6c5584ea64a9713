"""Lessons of 08 that the flows show, each named after its number. Others are with the lists, sweeps and deliveries in
tests/simulation, with the pool and the queue in tests/contracts, and with the documents in tests/domain and adapters.
"""

from collections.abc import Callable
from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest

from sellerwatch.adapters.chance import SeededChance
from sellerwatch.domain.documents import Document, DocumentKind
from sellerwatch.domain.errors import Trouble, Unavailable
from sellerwatch.domain.executions import ExecutionStatus
from sellerwatch.domain.outbox import ScheduleNotice
from sellerwatch.ports.marketplace import Reader
from sellerwatch.ports.queue import Outgoing
from sellerwatch.ports.store import Store
from sellerwatch.sandbox.faults import Fault
from simulation.village import NEVER, Village, a_village
from simulation.virtual import run_virtually

QUICK = {"sweep_seconds": 60, "site_requests_per_second": 100, "identities": 40}
QUIET = QUICK | {"sweep_seconds": NEVER}
LIST = "/mustit-api/facade-api/v1/searchmini-shop-search?sellerId=a&pageNo=0&pageSize=500&order=LATEST"


class Failing:
    """A store that fails one time in so many: before its commit, or, with `after`, after it, when the answer is lost.

    By chance and not by count: else a loop whose transactions are a multiple of that would fail at the same one for
    ever, and no house could live with that.
    """

    def __init__(self, store: Store, every: int, *, after: bool) -> None:
        self._transact, self._every, self._after = store.transact, every, after
        self._chance = SeededChance(every)
        self.is_failing = True
        store.transact = self  # type: ignore[method-assign, assignment]

    async def __call__(self, work: Callable[..., Any]) -> Any:
        if not self.is_failing or self._chance.random() * self._every >= 1:
            return await self._transact(work)
        if self._after:
            await self._transact(work)
            raise Unavailable("the connection was lost before the answer came")

        def broken_off(unit: object) -> None:
            work(unit)
            raise Unavailable("the disk is full")

        return await self._transact(broken_off)


@pytest.mark.parametrize("every", [3, 5, 7])
def test_lesson_1_documents_follow_ups_and_success_are_one_commit(every: int) -> None:
    crawled_while_commits_fail(every, after=True)


@pytest.mark.parametrize("every", [3, 5, 7])
def test_lesson_19_no_state_needs_a_write_that_a_failing_database_refused(every: int) -> None:
    crawled_while_commits_fail(every, after=False)


def crawled_while_commits_fail(every: int, *, after: bool) -> None:
    """Every so often one fails, having happened or not."""

    async def story() -> None:
        async with a_village(91, {"shops": {"a": 12}}, is_running=False, **QUICK | {"sweep_seconds": 20}) as village:
            await village.register("a")
            await village.house.identities.load()
            execution = await village.house.trigger.crawl_now("a")
            failing = Failing(village.house.store, every, after=after)
            move_out = village.move_in(village.house)
            await village.ended(execution, 20_000)
            failing.is_failing = False
            await village.settled()
            village.log.clear()
            await village.check()
            await move_out()

    run_virtually(story())


def test_lesson_3_a_bad_item_is_kept_with_its_error_and_the_rest_goes_on() -> None:
    async def story() -> None:
        async with a_village(92, {"shops": {"a": 8}}, **QUIET) as village:
            await village.register("a")
            village.sandbox.stage(LIST, Fault(name="bad_item"))
            execution = await village.crawl("a")
            # The one that could not be read was found when the list, one short, was looked at again.
            assert execution.total_tasks == 2 + 16
            await village.check()
            [(status, error)] = await village.rows(
                "SELECT status, error_message FROM product_raw_data WHERE item_no = 0"
            )
            assert status == "FAILED"
            assert error

    run_virtually(story())


def test_lesson_8_a_message_that_comes_before_its_mark_is_worked_on() -> None:
    async def story() -> None:
        async with a_village(93, {"shops": {"a": 3}}, **QUIET) as village:
            await village.register("a")
            queue, send = village.house.queue, village.house.queue.send

            async def slowly_told(messages: Any) -> list[str | None]:
                """The worker has the message long before the relay hears that it was accepted."""
                outcomes = await send(messages)
                await village.clock.sleep(3)
                return outcomes

            queue.send = slowly_told  # type: ignore[method-assign]
            execution = await village.crawl("a")
            assert execution.failed_tasks == 0
            await village.check()
            assert await village.column("SELECT max(abandon_count + retry_count) FROM crawler_tasks") == [0]
            assert await village.column("SELECT count(*) FROM crawl_executions") == [7]

    run_virtually(story())


@pytest.mark.parametrize(
    "body",
    [{}, {"taskId": "x"}, {"taskId": 7, "sellerId": "a", "taskType": "DETAIL", "requestUrl": "https://elsewhere.test"}],
)
def test_lesson_16_a_message_that_cannot_be_understood_is_a_dead_letter_and_holds_up_nobody(
    body: dict[str, Any],
) -> None:
    async def story() -> None:
        async with a_village(94, {"shops": {"a": 3}}, **QUIET) as village:
            await village.register("a")
            await village.house.queue.send([Outgoing(body, "a", "strange")])
            await village.house.trigger.crawl_now("a")
            await village.clock.sleep(120)
            assert await village.wrong_products("a") == {}
            [letter] = await village.house.queue.dead_letters(10)
            assert (letter.receives, letter.error is not None) == (1, True)

    run_virtually(story())


def test_lesson_16_a_message_of_an_unknown_task_is_done_with() -> None:
    async def story() -> None:
        async with a_village(95, {"shops": {"a": 3}}, **QUIET) as village:
            body = {"taskId": "nobody", "sellerId": "a", "taskType": "DETAIL", "requestUrl": "https://elsewhere.test"}
            await village.house.queue.send([Outgoing(body, "a", "stranger")])
            await village.clock.sleep(120)
            assert await village.open_things() == {}
            assert village.transport.trace == []

    run_virtually(story())


def test_lesson_17_a_quote_in_a_name_breaks_no_payload() -> None:
    async def story() -> None:
        async with a_village(96, {"shops": {"a": 3}}, **QUIET) as village:
            name = 'O\'Hara "the \\ shop" </script> {"a": 1} 한국\u2028'
            await village.house.sellers.register("a", name)
            product = next(village.sandbox.world.products("a"))
            village.sandbox.change(product.item_no, "name")
            await village.crawl("a")
            await village.check()
            assert await village.column("SELECT name FROM sellers") == [name]

    run_virtually(story())


def test_lesson_18_an_error_longer_than_its_column_does_not_make_the_handler_fail() -> None:
    async def story() -> None:
        async with a_village(97, {"shops": {"a": 2}}, **QUIET) as village:
            await village.register("a")
            item_no = next(village.sandbox.truths("a"))[0]
            body = ("<html>" + "점검 '\"" * 5000).encode()
            path = f"/mustit-api/facade-api/v1/item/{item_no}/detail/top"
            village.sandbox.stage(path, Fault(name="answer", body=body), times=3)
            execution = await village.crawl("a")
            assert execution.failed_tasks == 1
            summaries = await village.column("SELECT response_summary FROM crawl_executions WHERE status = 'FAILED'")
            assert len(summaries) == 3
            assert all(0 < len(summary) <= 2048 for summary in summaries)

    run_virtually(story())


def test_lesson_14_a_bad_row_is_reported_and_the_others_run() -> None:
    """A schedule whose seller is gone, and one whose seller was paused behind its back."""

    async def story() -> None:
        async with a_village(98, {"shops": {"a": 2, "b": 2, "c": 2}}, is_running=False, **QUIET) as village:
            await village.register("a", "b", "c")
            await village.change("DELETE FROM sellers WHERE seller_id = 'a'")
            await village.change("UPDATE sellers SET status = 'INACTIVE' WHERE seller_id = 'b'")
            await village.clock.sleep(90_000)
            move_out = village.move_in(village.house)
            await village.clock.sleep(3600)
            assert await village.wrong_products("c") == {}
            assert await village.rows(
                "SELECT seller_id, status, error_message FROM crawling_schedule_executions WHERE seller_id != 'c' ORDER BY 1"
            ) == [("a", "FAILED", "seller inactive"), ("b", "FAILED", "seller inactive")]
            await move_out()

    run_virtually(story())


def test_lesson_15_a_shop_whose_count_does_not_come_holds_up_no_other() -> None:
    async def story() -> None:
        shops = {f"shop-{number}": 2 for number in range(6)}
        async with a_village(99, {"shops": shops}, **QUIET) as village:
            await village.register(*shops)
            slow = "/mustit-api/facade-api/v1/searchmini-shop-search?sellerId=shop-0&pageNo=0&pageSize=1&order=LATEST"
            village.sandbox.stage(slow, Fault(name="slow", seconds=300), times=3)
            for seller_id in shops:
                await village.house.trigger.crawl_now(seller_id)
            await village.clock.sleep(8)
            for seller_id in list(shops)[1:]:
                assert await village.wrong_products(seller_id) == {}
            await village.settled()
            await village.check()

    run_virtually(story())


def test_lesson_13_what_waits_for_hours_is_still_there() -> None:
    async def story() -> None:
        async with a_village(100, {"shops": {"a": 3}}, **QUICK | {"sweep_seconds": 3600}) as village:
            await village.register("a")
            await village.clock.sleep(1)
            for agent_id in range(1, 41):
                await village.house.identities.block(agent_id)
            execution = await village.house.trigger.crawl_now("a")
            await village.clock.sleep(6 * 3600)
            assert (await village.execution(execution.execution_id)).status is ExecutionStatus.STARTED
            for agent_id in range(1, 41):
                await village.house.identities.unblock(agent_id)
            await village.ended(execution)
            await village.settled()
            await village.check()

    run_virtually(story())


def test_lessons_25_and_26_a_refused_token_is_never_used_again_and_nobody_asks_without_one() -> None:
    async def story() -> None:
        async with a_village(101, {"shops": {"a": 20}}, **QUIET) as village:
            await village.register("a")
            execution = await village.house.trigger.crawl_now("a")
            await village.clock.sleep(1.2)
            refused = village.sandbox.market.gate.revoke()
            assert refused > 0
            await village.ended(execution)
            await village.settled()
            await village.check()
            seen = village.sandbox.stats()["identities"]
            assert isinstance(seen, dict)
            # One refusal for each token that was taken back, at most: it was discarded at once.
            assert max(one["unauthorized"] for one in seen.values()) <= 1
            assert sum(one["unauthorized"] for one in seen.values()) > 0

    run_virtually(story())


def test_lesson_27_what_is_the_sites_or_our_parsers_fault_costs_no_identity_its_health() -> None:
    async def story() -> None:
        async with a_village(
            102, {"shops": {"a": 10}, "rates": {"html": 20, "truncate": 20, "gone": 10}}, **QUIET
        ) as village:
            await village.register("a")
            await village.crawl("a")
            assert (await village.house.pool.figures()).health_min == 100

    run_virtually(story())


def test_lesson_32_retry_after_is_honoured_for_hours_and_zero_does_not_shorten_our_own_wait() -> None:
    async def story(told: float) -> float:
        async with a_village(103, {"shops": {"a": 1}}, **QUICK | {"identities": 1}) as village:
            await village.register("a")
            throttle = Fault(name="throttle", retry_after="seconds", retry_after_seconds=told)
            village.sandbox.stage("DETAIL", throttle)
            execution = await village.house.trigger.crawl_now("a")
            await village.ended(execution, 30_000)
            assert village.sandbox.stats()["violations"] == 0
            moments = await village.column("SELECT request_timestamp FROM token_usage_log ORDER BY request_timestamp")
            gaps = [
                datetime.fromisoformat(later) - datetime.fromisoformat(sooner) for sooner, later in pairwise(moments)
            ]
            return max(gaps).total_seconds()

    assert run_virtually(story(2 * 3600)) >= 2 * 3600
    assert run_virtually(story(0)) >= 3600


def test_lesson_49_in_an_outage_nothing_counts_as_success() -> None:
    async def story() -> None:
        async with a_village(104, {"shops": {"a": 6}}, **QUIET) as village:
            await village.register("a")
            execution = await village.house.trigger.crawl_now("a")
            await village.until(lambda: _is_begun(village), 60, "no item task", 0.01)
            village.sandbox.market.faults.set_rates({"html": 100})
            await village.ended(execution)
            ended = await village.execution(execution.execution_id)
            assert ended.success_rate < 50
            attempts = dict(await village.rows("SELECT status, count(*) FROM crawl_executions GROUP BY 1"))
            assert attempts["FAILED"] > attempts["SUCCESS"]

    run_virtually(story())


async def _is_begun(village: Village) -> bool:
    return bool(await village.column("SELECT task_id FROM crawler_tasks WHERE item_no > 0 LIMIT 1"))


def test_lesson_57_a_schedule_that_cannot_be_announced_is_told_and_heals_with_the_next_one() -> None:
    async def story() -> None:
        async with a_village(105, {"shops": {"a": 2}}, is_running=False, **QUIET) as village:

            class Away:
                fires_itself = False

                async def announce(self, notice: ScheduleNotice) -> None:
                    raise Trouble("no such bus")

            announce = village.house.announce
            working = announce.schedules
            object.__setattr__(announce, "schedules", Away())
            move_out = village.move_in(village.house)
            await village.register("a")
            await village.clock.sleep(3600)
            assert await village.rows("SELECT status, retry_count FROM scheduler_outbox") == [("FAILED", 3)]
            assert await village.column("SELECT status FROM crawling_schedules") == ["FAILED"]
            assert "schedule_failed:a" in await village.column("SELECT name FROM alerts WHERE cleared_at IS NULL")
            object.__setattr__(announce, "schedules", working)
            await village.house.sellers.change_interval("a", 2)
            await village.clock.sleep(60)
            assert await village.column("SELECT status FROM crawling_schedules") == ["ACTIVE"]
            assert await village.column("SELECT name FROM alerts WHERE cleared_at IS NULL") == []
            await move_out()

    run_virtually(story())


class Stumbling:
    """A reader that fails at one item in a way nobody foresaw."""

    def __init__(self, reader: Reader, item_no: int) -> None:
        self._reader, self._item_no = reader, item_no

    def document(self, kind: DocumentKind, item_no: int, body: bytes) -> Document:
        if item_no == self._item_no:
            raise KeyError("sellingPrice")
        return self._reader.document(kind, item_no, body)


def test_a_document_at_which_the_parser_stumbles_stops_no_other_however_often_it_is_tried() -> None:
    async def story() -> None:
        async with a_village(106, {"shops": {"a": 6}}, is_running=False, **QUIET) as village:
            item_no = next(village.sandbox.truths("a"))[0]
            absorb = village.house.absorb
            reader = absorb.reader
            object.__setattr__(absorb, "reader", Stumbling(reader, item_no))
            move_out = village.move_in(village.house)
            await village.register("a")
            await village.crawl("a")
            assert list(await village.wrong_products("a")) == [item_no]
            # A person tries it again and again, for years.
            await village.change("UPDATE product_raw_data SET retry_count = 400 WHERE status = 'FAILED'")
            assert (await village.house.repair.retry_raws()).done == 3
            await village.settled()
            assert await village.column(
                "SELECT DISTINCT retry_count FROM product_raw_data WHERE status = 'FAILED'"
            ) == [401]
            # The parser is mended.
            object.__setattr__(absorb, "reader", reader)
            await village.house.repair.retry_raws()
            await village.settled()
            await village.check()
            await move_out()

    run_virtually(story())
