"""Every sweep of 03 §9: a story in which it saves the day, what it finds stays stuck without it, and twice at once is once.

All sweeps are off in these villages; the one that the story is about is run by hand, twice at the same time.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from sellerwatch.domain.executions import Execution
from sellerwatch.domain.identities import Verdict
from sellerwatch.ports.pool import Report
from sellerwatch.sandbox.faults import Fault
from simulation.village import NEVER, Village, a_village, on_file
from simulation.virtual import run_virtually

QUIET = {"sweep_seconds": NEVER, "site_requests_per_second": 2, "identities": 20}
LONG = 3600


async def begun(village: Village) -> Execution:
    """A crawl of shop "a" that has its item tasks."""
    await village.register("a")
    execution = await village.house.trigger.crawl_now("a")
    await village.until(lambda: is_there(village, "task_type = 'OPTION'"), 60, "no item tasks", 0.05)
    return execution


async def is_there(village: Village, which: str) -> bool:
    return bool(await village.column(f"SELECT task_id FROM crawler_tasks WHERE {which} LIMIT 1"))


async def stays_open(village: Village, execution: Execution, patience: float = LONG) -> None:
    """Without the sweep nothing ends it."""
    await village.clock.sleep(patience)
    assert (await village.execution(execution.execution_id)).is_open


async def swept(sweep: Callable[[], Awaitable[int]]) -> int:
    """Run by two processes at once, it finds everything once."""
    found = sum(await asyncio.gather(sweep(), sweep()))
    assert found > 0
    return found


async def ends_well(village: Village, execution: Execution) -> None:
    await village.ended(execution)
    await village.settled()
    await village.check()


def test_lesson_4_a_task_whose_worker_vanished_is_on_its_way_again_after_the_sweep() -> None:
    async def story() -> None:
        async with a_village(41, {"shops": {"a": 6}, "latency_ms": 300}, **QUIET) as village:
            execution = await begun(village)
            await village.until(
                lambda: is_there(village, "status = 'RUNNING' AND item_no > 0"), 60, "nothing runs", 0.05
            )
            # The worker vanished with its message: claim and message are nobody's.
            [task_id] = await village.column(
                "SELECT task_id FROM crawler_tasks WHERE status = 'RUNNING' AND item_no > 0 LIMIT 1"
            )
            await village.change("UPDATE crawler_tasks SET attempt_id = 'vanished' WHERE task_id = ?", task_id)
            await stays_open(village, execution)
            assert await village.column("SELECT status FROM crawler_tasks WHERE task_id = ?", task_id) == ["RUNNING"]
            assert await swept(village.outside.heal.stuck_tasks) == 1
            await village.change("UPDATE crawl_executions SET status = 'ABANDONED' WHERE status = 'RUNNING'")
            await ends_well(village, execution)
            assert await village.rows(
                "SELECT retry_count, abandon_count FROM crawler_tasks WHERE task_id = ?", task_id
            ) == [(0, 1)]

    run_virtually(story())


def test_a_published_task_whose_message_was_lost_is_published_again_under_a_new_id() -> None:
    async def story() -> None:
        async with a_village(42, {"shops": {"a": 10}, "latency_ms": 200}, **QUIET) as village:
            execution = await begun(village)
            await village.until(lambda: is_there(village, "status = 'PUBLISHED'"), 60, "nothing is published", 0.05)
            lost = await village.change("DELETE FROM queue_messages WHERE state = 'READY' AND receipt IS NULL")
            assert lost > 0
            await stays_open(village, execution)
            assert await swept(village.outside.heal.published_orphans) == lost
            await ends_well(village, execution)

    run_virtually(story())


def test_orphans_are_not_looked_for_while_receiving_pauses() -> None:
    async def story() -> None:
        async with a_village(43, {"shops": {"a": 10}, "latency_ms": 200}, **QUIET) as village:
            execution = await begun(village)
            for agent_id in range(1, 21):
                await village.house.identities.suspend(agent_id)
            await village.clock.sleep(LONG)
            assert await village.outside.heal.published_orphans() == 0
            for agent_id in range(1, 21):
                await village.house.identities.recover(agent_id)
            await village.clock.sleep(900)
            await ends_well(village, execution)

    run_virtually(story())


def test_what_waits_for_robots_txt_is_no_orphan_even_where_the_queue_cannot_be_asked() -> None:
    async def story() -> None:
        async with a_village(43, {"shops": {"a": 10}, "latency_ms": 200}, **QUIET) as village:
            knows_nothing(village)
            execution = await begun(village)
            await village.until(lambda: is_there(village, "status = 'PUBLISHED'"), 60, "nothing is published", 0.05)
            village.sandbox.stage("/robots.txt", Fault(name="error"), times=1000)
            await village.change(
                "UPDATE robots SET told_at = '2026-01-01 00:00:00.000000', next_at = '2026-01-03 00:00:00.000000'"
            )
            robots: Any = village.outside.asking.robots
            robots._again = 0.0
            await village.clock.sleep(LONG)
            assert await is_there(village, "status = 'PUBLISHED'")
            assert await village.outside.heal.published_orphans() == 0
            # What waited may be received now; a while goes by before it is missed.
            village.sandbox.market.faults.clear()
            await village.until(lambda: is_told(robots), 900, "robots.txt is not told")
            assert await village.outside.heal.published_orphans() == 0
            await ends_well(village, execution)
            assert await village.column("SELECT max(abandon_count) FROM crawler_tasks") == [0]

    run_virtually(story())


async def is_told(robots: Any) -> bool:
    return not robots.is_missed


def knows_nothing(village: Village) -> None:
    """As SQS: which messages it holds the queue does not say."""

    async def all_of_them(task_ids: Sequence[str]) -> list[str]:
        return list(task_ids)

    village.house.queue.missing = all_of_them  # type: ignore[method-assign, assignment]


def test_orphans_are_looked_for_900_seconds_after_a_breaker_closed_and_not_before() -> None:
    async def story() -> None:
        async with a_village(42, {"shops": {"a": 10}, "latency_ms": 200}, is_running=False, **QUIET) as village:
            await village.house.load_pool()
            await village.register("a")
            await village.house.trigger.crawl_now("a")
            await village.outside.plan.run()
            await village.outside.relay.run()
            await village.change("DELETE FROM queue_messages")
            await village.clock.sleep(LONG)
            for agent_id in range(1, 21):
                await village.house.pool.suspend(agent_id)
            for agent_id in range(1, 21):
                await village.house.pool.recover(agent_id)
            # No sweep and no worker saw it open.
            await village.clock.sleep(600)
            lease = (await village.house.pool.lease(1)).leases[0]
            assert await village.house.pool.report([Report(lease.lease_id, lease.agent_id, Verdict.SUCCESS)]) == [True]
            assert (await village.house.pool.figures()).pool_breaker.closed_at == village.clock.now()
            await village.clock.sleep(899)
            assert await village.outside.heal.published_orphans() == 0
            await village.clock.sleep(2)
            assert await village.outside.heal.published_orphans() == 1

    run_virtually(story())


def test_a_dead_letter_of_an_open_task_is_no_proof_of_poison() -> None:
    async def story() -> None:
        async with a_village(44, {"shops": {"a": 6}, "latency_ms": 200}, **QUIET) as village:
            execution = await begun(village)
            await village.until(lambda: is_there(village, "status = 'PUBLISHED'"), 60, "nothing is published", 0.05)
            dead = await village.change(
                "UPDATE queue_messages SET state = 'DEAD' WHERE state = 'READY' AND receipt IS NULL"
            )
            assert dead > 0
            await stays_open(village, execution)
            assert await swept(village.outside.heal.dead_letters) == dead
            await ends_well(village, execution)

    run_virtually(story())


def test_a_dead_letter_of_a_closed_task_is_dropped_and_nothing_is_asked_again() -> None:
    async def story() -> None:
        async with a_village(45, {"shops": {"a": 4}}, **QUIET) as village:
            execution = await begun(village)
            await village.ended(execution)
            await village.settled()
            await village.change("UPDATE queue_messages SET state = 'DEAD' WHERE state = 'DONE'")
            asked = len(village.transport.trace)
            assert await village.outside.heal.dead_letters() == 0
            await village.clock.sleep(60)
            assert len(village.transport.trace) == asked
            await village.check()

    run_virtually(story())


def test_rows_that_a_dead_relay_and_a_dead_delivery_claimed_are_sent_by_others() -> None:
    async def story() -> None:
        async with a_village(46, {"shops": {"a": 6}}, **QUIET) as village:
            await village.register("a")
            execution = await village.house.trigger.crawl_now("a")
            await village.ended(execution)
            await village.settled()
            village.sandbox.mutate(1.0)
            died = "claimed_by = 'dead', claimed_until = '2026-03-02 09:00:01.000000'"
            again = await village.house.trigger.crawl_now("a")
            await village.until(lambda: is_there(village, "status != 'SUCCESS'"), 60, "no task", 0.05)
            await village.change(
                f"UPDATE crawler_task_outbox SET status = 'PROCESSING', {died} WHERE status = 'PENDING'"
            )
            claimed = await village.column("SELECT count(*) FROM crawler_task_outbox WHERE status = 'PROCESSING'")
            await stays_open(village, again) if claimed != [0] else None
            await village.outside.heal.outbox_zombies()
            await village.ended(again)
            await village.change(f"UPDATE product_outbox SET status = 'SENDING', {died} WHERE status = 'WAITING'")
            await village.clock.sleep(LONG)
            await village.outside.heal.outbox_zombies()
            await village.settled()
            await village.check()

    run_virtually(story())


def test_a_publication_that_failed_gets_another_chance_while_its_task_is_open() -> None:
    async def story() -> None:
        async with a_village(47, {"shops": {"a": 6}, "latency_ms": 300}, **QUIET) as village:
            execution = await begun(village)
            failed = await village.change(
                "UPDATE crawler_task_outbox SET status = 'FAILED', retry_count = 1 WHERE status IN ('PENDING', 'SENT') "
                "AND task_id IN (SELECT task_id FROM crawler_tasks WHERE status IN ('WAITING', 'PUBLISHED'))"
            )
            assert failed > 0
            await village.change("DELETE FROM queue_messages WHERE state = 'READY' AND receipt IS NULL")
            await stays_open(village, execution)
            assert await swept(village.outside.heal.failed_task_outbox) == failed
            await ends_well(village, execution)

    run_virtually(story())


def test_a_publication_that_used_up_its_retries_takes_its_task_and_the_execution_to_their_end() -> None:
    async def story() -> None:
        async with a_village(48, {"shops": {"a": 6}, "latency_ms": 300}, **QUIET) as village:
            execution = await begun(village)
            failed = await village.change(
                "UPDATE crawler_task_outbox SET status = 'FAILED', retry_count = 3 WHERE status IN ('PENDING', 'SENT') "
                "AND task_id IN (SELECT task_id FROM crawler_tasks WHERE status IN ('WAITING', 'PUBLISHED'))"
            )
            await village.change("DELETE FROM queue_messages WHERE state = 'READY' AND receipt IS NULL")
            await stays_open(village, execution)
            assert await swept(village.outside.heal.failed_task_outbox) == failed
            await village.ended(execution)
            assert (await village.execution(execution.execution_id)).failed_tasks == failed

    run_virtually(story())


def test_a_raw_that_could_not_be_processed_is_tried_again_three_times_and_then_waits_for_a_person() -> None:
    async def story() -> None:
        async with a_village(49, {"shops": {"a": 3}}, **QUIET) as village:
            await village.register("a")
            item_no = next(village.sandbox.truths("a"))[0]
            detail = f"/mustit-api/facade-api/v1/item/{item_no}/detail/top"
            village.sandbox.stage(detail, Fault(name="bad_price"))
            await village.crawl("a")
            for _ in range(3):
                await village.clock.sleep(LONG)
                assert await swept(village.outside.heal.failed_raws) == 1
                await village.settled()
            await village.clock.sleep(LONG)
            assert await village.outside.heal.failed_raws() == 0
            assert await village.rows(
                "SELECT status, retry_count FROM product_raw_data WHERE item_no = ? AND data_type = 'DETAIL'", item_no
            ) == [("FAILED", 3)]

    run_virtually(story())


def test_lesson_5_an_execution_without_an_open_task_ends() -> None:
    async def story() -> None:
        async with a_village(50, {"shops": {"a": 4}}, **QUIET) as village:
            await village.register("a")
            ended = await village.crawl("a")
            await village.change(
                "UPDATE crawling_schedule_executions SET status = 'IN_PROGRESS', completed_at = NULL, open_key = seller_id"
            )
            await stays_open(village, ended)
            assert await swept(village.outside.heal.executions) == 1
            await village.crawl("a")
            await village.check()

    run_virtually(story())


def test_lesson_5_a_crawl_open_for_longer_than_its_interval_is_told_and_an_operator_can_end_it() -> None:
    async def story() -> None:
        async with a_village(51, {"shops": {"a": 6}, "latency_ms": 300}, **QUIET) as village:
            execution = await begun(village)
            await village.change("UPDATE crawler_tasks SET attempt_id = 'x' WHERE status = 'RUNNING'")
            await village.change("UPDATE crawl_executions SET status = 'ABANDONED' WHERE status = 'RUNNING'")
            await village.change("DELETE FROM queue_messages")
            await village.clock.sleep(2 * 86400)
            await village.outside.heal.executions()
            assert "execution_overdue:a" in await village.column("SELECT name FROM alerts WHERE cleared_at IS NULL")
            assert await village.house.repair.cancel_execution(execution.execution_id) > 0
            assert not (await village.execution(execution.execution_id)).is_open
            # Nobody is told of it for ever.
            await village.outside.heal.executions()
            assert await village.column("SELECT name FROM alerts WHERE cleared_at IS NULL") == []
            await village.crawl("a")
            await village.check()

    run_virtually(story())


def test_an_execution_whose_trigger_died_before_its_tasks_is_asked_for_again() -> None:
    async def story() -> None:
        async with a_village(52, {"shops": {"a": 4}}, is_running=False, **QUIET) as village:
            await village.house.identities.load()
            await village.register("a")
            execution = await village.house.trigger.crawl_now("a")
            await village.change(
                "UPDATE crawling_schedule_executions SET claimed_by = 'dead', claimed_until = ?",
                "2026-03-02 09:02:30.000000",
            )
            move_out = village.move_in(village.house)
            await village.clock.sleep(100)
            assert (await village.execution(execution.execution_id)).total_tasks == 0
            await ends_well(village, execution)
            await move_out()

    run_virtually(story())


def test_the_figures_of_a_day_are_written_once_it_has_ended_and_of_days_slept_through_too() -> None:
    async def story() -> None:
        async with a_village(53, {"shops": {"a": 4}}, **QUIET) as village:
            await village.register("a")
            await village.crawl("a")
            await village.clock.sleep(3 * 86400)
            await swept(village.outside.heal.daily_figures)
            assert await village.outside.heal.daily_figures() == 0
            days = await village.rows(
                "SELECT date, total, completed, failed FROM crawling_metrics_daily WHERE seller_id = 'a' ORDER BY date"
            )
            assert ("2026-03-02", 9, 9, 0) in [tuple(map(_plain, row)) for row in days]

    run_virtually(story())


def test_the_figures_of_a_day_are_written_again_until_its_last_task_has_ended() -> None:
    async def story() -> None:
        async with a_village(57, {"shops": {"a": 120}, "latency_ms": 4000}, **QUIET) as village:
            await village.register("a")
            # The operators' day ends at 15:00 UTC.
            midnight = village.clock.now().replace(hour=15, minute=0, second=0, microsecond=0)
            await village.clock.sleep((midnight - village.clock.now()).total_seconds() - 30)
            execution = await village.house.trigger.crawl_now("a")
            await village.clock.sleep(30.5)
            figured = "SELECT completed, in_progress FROM crawling_metrics_daily WHERE seller_id = 'a' AND total > 0"
            await swept(village.outside.heal.daily_figures)
            [(completed, in_progress)] = await village.rows(figured)
            assert in_progress > 0
            await village.ended(execution)
            await swept(village.outside.heal.daily_figures)
            assert await village.rows(figured) == [(completed + in_progress, 0)]
            assert await village.outside.heal.daily_figures() == 0

    run_virtually(story())


def _plain(value: object) -> object:
    return str(value) if not isinstance(value, int) else value


def test_identities_leases_and_tokens_come_back_by_their_sweeps() -> None:
    async def story() -> None:
        async with a_village(54, {"shops": {"a": 6}}, **QUIET | {"identities": 4}) as village:
            await village.register("a")
            village.sandbox.stage("DETAIL", Fault(name="throttle"), times=4)
            execution = await village.house.trigger.crawl_now("a")
            await stays_open(village, execution, 4000)
            # All four are suspended, and nobody but the sweep brings them back.
            assert await swept(village.house.identities.recover_due) == 4
            await ends_well(village, execution)
            lease = (await village.house.pool.lease(1)).leases[0]
            await village.clock.sleep(60)
            assert await swept(village.house.identities.expire_leases) == 1
            assert await village.house.pool.cancel([(lease.lease_id, lease.agent_id)]) == 0
            await village.clock.sleep(3 * 3600)
            # Two a second, as the site may be asked; the rest is found by the next one.
            while await village.house.pool.refreshable(village.clock.now(), 10):
                await village.clock.sleep(1)
                await swept(village.house.identities.refresh_tokens)
            assert (await village.house.pool.refreshable(village.clock.now(), 10)) == []

    run_virtually(story())


def test_what_is_old_goes_in_the_operators_night_however_much_it_is_and_by_day_only_what_cant_wait() -> None:
    async def story() -> None:
        async with a_village(58, {"shops": {"a": 2}}, **QUIET) as village:
            await village.register("a")
            await village.crawl("a")
            await village.change(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) "
                "INSERT INTO crawl_executions (attempt_id, task_id, seller_id, status, started_at) "
                "SELECT printf('%036d', i), 't', 'a', 'SUCCESS', '2025-01-01 00:00:00.000000' FROM n"
            )
            old = "SELECT count(*) FROM crawl_executions WHERE started_at < '2025-06-01'"
            # Six in the evening in Seoul.
            await village.clock.sleep(900)
            assert await swept(village.house.forget.retention) > 0
            assert await village.column(old) == [5000]
            assert await village.column("SELECT count(*) FROM queue_messages") == [0]
            await village.clock.sleep(9 * 3600)
            assert await swept(village.house.forget.retention) == 5000
            assert await village.column(old) == [0]

    run_virtually(story())


def test_retention_forgets_what_is_old_and_closed_and_nothing_that_is_needed(tmp_path: Path) -> None:
    async def story() -> None:
        away = QUIET | {"database_url": on_file(tmp_path)}
        async with a_village(55, {"shops": {"a": 4}}, is_running=False, **away) as village:
            await village.register("a")
            for _ in range(3):
                move_out = village.move_in(village.raise_house())
                await village.crawl("a")
                await move_out()
                village.sandbox.mutate(1.0)
                await village.clock.sleep(100 * 86400)
            while await village.house.forget.prune():
                pass
            for table in ("crawler_tasks", "crawler_task_outbox", "crawl_executions", "product_outbox"):
                assert await village.column(f"SELECT count(*) FROM {table}") == [0], table
            # The newest of each item and kind stays for ever, and so do executions and changes.
            newest = await village.rows("SELECT item_no, data_type FROM product_raw_data GROUP BY 1, 2")
            assert len(newest) == 4 * 3
            assert await village.column("SELECT count(*) FROM crawling_schedule_executions") == [3]
            move_out = village.move_in(village.raise_house())
            await village.crawl("a")
            assert (await village.wrong_products("a"), await village.wrong_copies()) == ({}, {})
            await move_out()

    run_virtually(story())
