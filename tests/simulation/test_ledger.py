"""The ledger: planned = succeeded + failed + open, looked at all the time; broken on purpose, somebody is told."""

from observed import page_of
from sellerwatch.entry.metrics import Metrics
from sellerwatch.entry.metrics.looking import KEPT_SECONDS
from simulation.village import NEVER, a_village
from simulation.virtual import run_virtually

QUIET = {"sweep_seconds": NEVER, "site_requests_per_second": 100, "identities": 40}
_NAMES = "SELECT name FROM alerts WHERE cleared_at IS NULL AND name LIKE 'ledger%'"


def test_lesson_12_while_a_shop_is_crawled_badly_its_ledger_adds_up_at_every_look() -> None:
    async def story() -> None:
        conditions = {"shops": {"a": 25, "b": 10}, "rates": {"error": 20, "html": 10, "drop": 5}}
        async with a_village(241, conditions, **QUIET | {"sweep_seconds": 30}) as village:
            await village.register("a", "b")
            begun = [await village.house.trigger.crawl_now(seller) for seller in ("a", "b")]
            looks = 0
            while any([(await village.execution(one.execution_id)).is_open for one in begun]):
                looks += 1
                assert await village.house.ledger.run() == 0
                await village.clock.sleep(0.7)
                assert looks < 20_000
            assert looks > 10
            assert await village.column(_NAMES) == []

    run_virtually(story())


def test_a_ledger_that_is_broken_on_purpose_is_told_shown_and_counted_until_it_adds_up_again() -> None:
    async def story() -> None:
        metrics = Metrics()
        async with a_village(
            242, {"shops": {"a": 6}}, meter=metrics, **QUIET | {"sweep_ledger_seconds": 60}
        ) as village:
            await village.register("a")
            execution = await village.crawl("a")
            await village.clock.sleep(61)
            assert await village.column(_NAMES) == []
            for broken, mended in (
                ("completed_tasks = completed_tasks - 1", "completed_tasks = completed_tasks + 1"),
                ("total_tasks_created = total_tasks_created + 1", "total_tasks_created = total_tasks_created - 1"),
            ):
                await village.change(f"UPDATE crawling_schedule_executions SET {broken}")
                await village.clock.sleep(121)
                assert await village.column(_NAMES) == [f"ledger_broken:{execution.execution_id}"]
                assert (await page_of(village.house, metrics)).of("sellerwatch_ledger_breaks") == 1
                assert [alert["name"] for alert in village.log if alert["event"] == "alert"]
                overview = await village.house.reports.overview(village.clock.now())
                [alert] = overview.alerts
                assert "planned = succeeded + failed + open" in alert.text
                await village.change(f"UPDATE crawling_schedule_executions SET {mended}")
                await village.clock.sleep(121 + KEPT_SECONDS)
                assert await village.column(_NAMES) == []
                assert (await page_of(village.house, metrics)).of("sellerwatch_ledger_breaks") == 0

    run_virtually(story())


def test_a_task_that_vanished_breaks_the_ledger_of_its_execution_and_of_no_other() -> None:
    async def story() -> None:
        async with a_village(243, {"shops": {"a": 4, "b": 4}}, **QUIET) as village:
            await village.register("a", "b")
            execution = await village.crawl("a")
            await village.crawl("b")
            await village.change(
                "DELETE FROM crawler_tasks WHERE id = (SELECT max(id) FROM crawler_tasks WHERE seller_id = 'a')"
            )
            # Wherever it had come to, two looks are a whole round over so few.
            assert await village.house.ledger.run() + await village.house.ledger.run() == 1
            assert await village.column(_NAMES) == [f"ledger_broken:{execution.execution_id}"]

    run_virtually(story())
