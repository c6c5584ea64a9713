"""Bounds that nothing else would miss: each setting where it bites, and what is kept because nobody goes beyond."""

from datetime import timedelta

import pytest

from sellerwatch.domain.executions import ExecutionStatus
from sellerwatch.domain.identities import Verdict
from sellerwatch.ports.pool import Report
from sellerwatch.ports.queue import Delivery, Outgoing
from sellerwatch.sandbox.faults import Fault
from simulation.village import NEVER, Village, a_village
from simulation.virtual import run_virtually

QUIET = {"sweep_seconds": NEVER, "site_requests_per_second": 20, "identities": 10}


async def published(village: Village, items: int = 0) -> None:
    """A crawl with messages in the queue, and nobody at work."""
    await village.house.load_pool()
    await village.register("a")
    await village.house.trigger.crawl_now("a")
    await village.outside.plan.run()
    await village.outside.relay.run()
    # Whoever asked for the count rests.
    await village.clock.sleep(2)
    if items:
        [job] = await village.outside.crawl.take(1)
        await village.outside.crawl.work(job)
        await village.outside.relay.run()


def test_a_worker_receives_no_more_than_there_are_identities_free() -> None:
    async def story() -> None:
        async with a_village(71, {"shops": {"a": 9}}, is_running=False, **QUIET | {"identities": 2}) as village:
            await published(village, 9)
            await village.clock.sleep(5)
            queue, asked_for = village.house.queue, []
            receive = queue.receive

            async def counted(count: int, wait_seconds: float) -> list[Delivery]:
                asked_for.append(count)
                return await receive(count, wait_seconds)

            queue.receive = counted  # type: ignore[method-assign]
            assert len(await village.outside.crawl.take(100)) == 2
            assert asked_for == [2]

    run_virtually(story())


@pytest.mark.parametrize("ahead", [10, 30])
def test_the_relay_keeps_no_more_in_the_queue_than_can_be_leased_soon(ahead: float) -> None:
    async def story() -> None:
        settings = QUIET | {"identities": 2, "queue_ahead_seconds": ahead}
        async with a_village(72, {"shops": {"a": 60}}, is_running=False, **settings) as village:
            await published(village, 60)
            for _ in range(3):
                await village.outside.relay.run()
            depth = await village.house.queue.depth()
            # Two identities, a request of each per second, the first of them at once.
            assert ahead < depth.waiting + depth.out <= 2 * (ahead + 1)
            assert not (await village.outside.relay.run()).has_room

    run_virtually(story())


@pytest.mark.parametrize(("seconds", "found"), [(100, 1), (110, 0)])
def test_a_task_that_runs_for_longer_than_the_setting_is_stuck_although_its_claim_lives(
    seconds: float, found: int
) -> None:
    async def story() -> None:
        settings = QUIET | {"task_stuck_seconds": seconds}
        async with a_village(73, {"shops": {"a": 1}}, is_running=False, **settings) as village:
            await published(village)
            [job] = await village.outside.crawl.take(1)
            held = [(job.task.task_id, job.attempt.attempt_id)]
            await village.clock.sleep(105)
            until = village.clock.now() + timedelta(seconds=30)
            await village.house.store.transact(lambda unit: unit.tasks.extend(held, until))
            assert await village.outside.heal.stuck_tasks() == found

    run_virtually(story())


def test_a_message_of_a_task_that_runs_elsewhere_comes_again_when_that_claim_ends() -> None:
    async def story() -> None:
        async with a_village(74, {"shops": {"a": 1}}, is_running=False, **QUIET | {"claim_seconds": 40}) as village:
            await published(village)
            [job] = await village.outside.crawl.take(5)
            claimed_until = village.clock.now() + timedelta(seconds=40)
            await village.house.queue.send([Outgoing(job.delivery.body, "elsewhere", "another")])
            before = (await village.house.pool.figures()).remaining_requests
            assert await village.outside.crawl.take(5) == []
            assert (await village.house.pool.figures()).remaining_requests == before
            hidden = await village.rows("SELECT visible_at FROM queue_messages WHERE dedup_id = 'another'")
            assert hidden == [(claimed_until.strftime("%Y-%m-%d %H:%M:%S.%f"),)]
            assert await village.column("SELECT status FROM crawl_executions") == ["RUNNING"]

    run_virtually(story())


@pytest.mark.parametrize("retries", [0, 2])
def test_an_execution_whose_count_cannot_be_had_is_given_up_after_as_many_retries_as_the_setting_says(
    retries: int,
) -> None:
    async def story() -> None:
        async with a_village(75, {"shops": {"a": 1}}, **QUIET | {"trigger_retries": retries}) as village:
            village.sandbox.stage("MINI_SHOP", Fault(name="error"), times=50)
            await village.register("a")
            execution = await village.house.trigger.crawl_now("a")
            await village.ended(execution)
            assert (await village.execution(execution.execution_id)).status is ExecutionStatus.FAILED
            asked = await village.column("SELECT count(*) FROM token_usage_log WHERE http_status_code = 503")
            assert asked == [retries + 1]

    run_virtually(story())


def test_somebody_is_told_of_an_identity_that_only_a_person_recovers_until_it_is() -> None:
    async def story() -> None:
        async with a_village(76, {"shops": {"a": 1}}, is_running=False, **QUIET) as village:
            await village.house.load_pool()
            await fail(village, 15)
            await village.house.identities.keep_books()
            told = "SELECT name FROM alerts WHERE cleared_at IS NULL AND name LIKE 'identity_stranded%'"
            assert await village.column("SELECT count(*) FROM user_agent_pool WHERE status = 'SUSPENDED'") == [1]
            [name] = await village.column(told)
            await village.house.identities.recover(int(name.partition(":")[2]))
            await village.house.identities.keep_books()
            assert await village.column(told) == []

    run_virtually(story())


async def fail(village: Village, times: int) -> None:
    """The first identity answers for itself: 400, until it may no more."""
    for _ in range(times):
        await village.clock.sleep(700)
        lease = await village.house.pool.lease_of(1)
        if lease is not None:
            await village.house.pool.report([Report(lease.lease_id, lease.agent_id, Verdict.REJECTED, 403)])


def test_retention_forgets_old_raws_that_newer_ones_have_followed() -> None:
    async def story() -> None:
        settings = QUIET | {"raw_retention_days": 5}
        async with a_village(77, {"shops": {"a": 2}}, **settings) as village:
            await village.register("a")
            await village.crawl("a")
            first = await village.column("SELECT raw_id FROM product_raw_data")
            await village.clock.sleep(86400)
            village.sandbox.mutate(1.0)
            await village.crawl("a")
            assert len(await village.column("SELECT raw_id FROM product_raw_data")) > len(first)
            await village.clock.sleep(3 * 86400)
            await forgotten(village)
            assert set(first) <= set(await village.column("SELECT raw_id FROM product_raw_data"))
            await village.clock.sleep(3 * 86400)
            await forgotten(village)
            left = await village.rows("SELECT item_no, data_type, count(*) FROM product_raw_data GROUP BY 1, 2")
            assert [count for *_, count in left] == [1] * 6

    run_virtually(story())


async def forgotten(village: Village) -> None:
    while await village.house.forget.prune():
        pass
