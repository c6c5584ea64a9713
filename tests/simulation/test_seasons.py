"""Schedules, sources and modes: when a seller is crawled, by which list, and which of its items."""

from datetime import timedelta

import pytest

from sellerwatch.domain.errors import Conflict
from sellerwatch.domain.executions import ExecutionStatus
from sellerwatch.domain.sellers import CrawlSource
from sellerwatch.sandbox.faults import Fault
from simulation.village import NEVER, Village, a_village
from simulation.virtual import run_virtually

QUICK = {"sweep_seconds": NEVER, "site_requests_per_second": 100, "identities": 40}
DAY = 86400
LIST_ONLY = {"appPrice", "appDiscountRate"}
"""What a search does not tell."""


async def next_run(village: Village, seller_id: str = "a") -> object:
    schedule = await village.house.store.read(lambda unit: unit.schedules.of_seller(seller_id))
    assert schedule is not None
    return schedule.next_run_at


async def crawls(village: Village) -> list[tuple[object, ...]]:
    return await village.rows("SELECT status, started_at FROM crawling_schedule_executions ORDER BY started_at")


def test_a_manual_crawl_does_not_move_the_next_run() -> None:
    async def story() -> None:
        async with a_village(71, {"shops": {"a": 3}}, **QUICK) as village:
            await village.register("a")
            due = await next_run(village)
            await village.clock.sleep(3600)
            await village.crawl("a")
            assert await next_run(village) == due

    run_virtually(story())


def test_runs_that_were_missed_are_caught_up_once() -> None:
    async def story() -> None:
        async with a_village(72, {"shops": {"a": 3}}, is_running=False, **QUICK) as village:
            await village.register("a")
            due = await next_run(village)
            await village.clock.sleep(5 * DAY + 3600)
            move_out = village.move_in(village.house)
            await village.clock.sleep(3600)
            assert len(await crawls(village)) == 1
            # And the hour of the day stays what it was.
            assert await next_run(village) == due + timedelta(days=5)  # type: ignore[operator]
            await village.check()
            await move_out()

    run_virtually(story())


def test_while_a_seller_is_being_crawled_another_trigger_is_answered_with_that_crawl() -> None:
    async def story() -> None:
        async with a_village(73, {"shops": {"a": 6}, "latency_ms": 500}, **QUICK) as village:
            await village.register("a")
            first = await village.house.trigger.crawl_now("a")
            again = await village.house.trigger.open("a", "another moment")
            assert (again.is_new, again.execution and again.execution.execution_id) == (False, first.execution_id)
            with pytest.raises(Conflict, match=first.execution_id):
                await village.house.trigger.crawl_now("a")
            await village.ended(first)
            await village.settled()
            assert len(await crawls(village)) == 1

    run_virtually(story())


def test_the_same_trigger_delivered_twice_is_one_crawl_also_when_the_first_has_ended() -> None:
    async def story() -> None:
        async with a_village(74, {"shops": {"a": 3}}, **QUICK) as village:
            await village.register("a")
            first = await village.house.trigger.open("a", "rule-1")
            assert first.execution is not None
            await village.ended(first.execution)
            again = await village.house.trigger.open("a", "rule-1")
            assert (again.is_new, again.execution and again.execution.execution_id) == (
                False,
                first.execution.execution_id,
            )

    run_virtually(story())


def test_an_inactive_seller_is_not_crawled_and_what_is_queued_of_it_is_dropped() -> None:
    async def story() -> None:
        conditions = {"shops": {"a": 30, "b": 3}}
        async with a_village(75, conditions, **QUICK | {"site_requests_per_second": 5}) as village:
            await village.register("a", "b")
            execution = await village.house.trigger.crawl_now("a")
            await village.clock.sleep(12)
            await village.house.sellers.deactivate("a")
            await village.ended(execution)
            await village.settled()
            dropped = await village.column("SELECT DISTINCT error_message FROM crawler_tasks WHERE status = 'FAILED'")
            assert dropped == ["seller inactive"]
            asked = len([line for line in village.transport.trace if "/item/" in line])
            assert asked < 30
            with pytest.raises(Conflict):
                await village.house.trigger.crawl_now("a")
            assert (await village.house.trigger.open("a", "rule")).execution is None
            await village.clock.sleep(2 * DAY)
            assert len([line for line in village.transport.trace if "sellerId=a" in line]) == 2
            # Nothing was delisted by it, and active again it is crawled as ever.
            await village.house.sellers.activate("a")
            await village.crawl("a")
            await village.check()

    run_virtually(story())


def test_a_cancelled_crawl_ends_at_once_and_the_next_one_is_whole() -> None:
    async def story() -> None:
        async with a_village(76, {"shops": {"a": 30}}, **QUICK | {"site_requests_per_second": 5}) as village:
            await village.register("a")
            execution = await village.house.trigger.crawl_now("a")
            await village.clock.sleep(9)
            assert await village.house.repair.cancel_execution(execution.execution_id) > 10
            cancelled = await village.execution(execution.execution_id)
            assert (cancelled.status, cancelled.error_message) == (ExecutionStatus.FAILED, "cancelled")
            await village.settled()
            await village.crawl("a")
            await village.check()
            assert await village.column("SELECT DISTINCT status FROM products") == ["ACTIVE"]

    run_virtually(story())


@pytest.mark.parametrize("size", [1, 40, 41, 100])
def test_a_search_is_followed_to_its_end_and_foreign_items_are_left_out(size: int) -> None:
    """Lessons 44 and 45: ownership is the detail page's word; the next link is taken as it was written."""

    async def story() -> None:
        async with a_village(77, {"shops": {"Nord.Shop": size}}, **QUICK) as village:
            # Registered in another case than the marketplace writes it.
            await village.register("nord.shop", crawl_source=CrawlSource.SEARCH)
            execution = await village.crawl("nord.shop")
            assert (execution.status, execution.failed_tasks) == (ExecutionStatus.COMPLETED, 0)
            await village.check("Nord.Shop", but=LIST_ONLY)
            assert await village.column("SELECT count(*) FROM products") == [size]
            for _ in range(2):
                await village.crawl("nord.shop")
            assert await village.column("SELECT DISTINCT version || status FROM products") == ["1ACTIVE"]

    run_virtually(story())


def test_a_shop_found_by_search_is_delisted_from_by_whole_searches_only() -> None:
    async def story() -> None:
        async with a_village(78, {"shops": {"a": 90}}, **QUICK) as village:
            await village.register("a", crawl_source=CrawlSource.SEARCH)
            await village.crawl("a")
            [gone] = village.sandbox.remove_products("a", 1)
            for _ in range(2):
                village.sandbox.stage("/mustit-api/facade-api/v1/search/items", Fault(name="html"), times=3)
                await village.crawl("a")
            assert await village.column("SELECT status FROM products WHERE item_no = ?", gone) == ["ACTIVE"]
            for _ in range(2):
                await village.crawl("a")
            assert await village.column("SELECT status FROM products WHERE item_no = ?", gone) == ["DELISTED"]
            await village.check(but=LIST_ONLY)

    run_virtually(story())


def test_a_delta_crawl_asks_only_for_what_is_new_changed_in_the_list_or_old() -> None:
    async def story() -> None:
        async with a_village(79, {"shops": {"a": 20}}, **QUICK, crawl_mode="delta") as village:
            await village.register("a")
            await village.crawl("a")
            items = [item_no for item_no, _ in village.sandbox.truths("a")]
            village.sandbox.change(items[3], "price")
            village.sandbox.change(items[5], "stock")
            [new] = village.sandbox.add_products("a", 1)
            execution = await village.crawl("a")
            # The price is in the list, the stock is not: that waits until its document is old.
            assert execution.total_tasks == 1 + 2 * 2
            assert sorted(await village.wrong_products("a")) == [items[5]]
            assert await village.column("SELECT version FROM products WHERE item_no = ?", new) == [1]
            await village.clock.sleep(DAY + 3600)
            await village.crawl("a")
            await village.check()

    run_virtually(story())


def test_lesson_56_a_daily_crawl_is_a_day_after_the_last_whatever_the_zone() -> None:
    async def story() -> None:
        async with a_village(80, {"shops": {"a": 2}}, **QUICK, metrics_timezone="America/New_York") as village:
            await village.register("a")
            # The second of these nights is 23 hours long in New York.
            await village.clock.sleep(8 * DAY + 3600)
            started = [str(at)[11:16] for _, at in await crawls(village)]
            assert len(started) == 8
            assert all("09:00" <= at < "09:20" for at in started)

    run_virtually(story())
