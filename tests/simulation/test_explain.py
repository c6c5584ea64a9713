"""Explaining: ten ways to stand still, staged, and who is named for each."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from sellerwatch.domain.errors import Unavailable, Unknown
from sellerwatch.domain.verdicts import Culprit, Stage, Verdict
from sellerwatch.ports.pool import Outlook, WhyNot
from simulation.village import NEVER, Village, a_village
from simulation.virtual import run_virtually

QUIET = {"sweep_seconds": NEVER, "site_requests_per_second": 100, "identities": 40, "respect_robots": False}
Staging = Callable[[Village], Awaitable[Any]]
STAGED: dict[str, tuple[dict[str, Any], Staging, Culprit, Stage]] = {}


def staged(culprit: Culprit, stage: Stage, *, shop: int = 6, **settings: Any) -> Callable[[Staging], Staging]:
    def kept(staging: Staging) -> Staging:
        STAGED[staging.__name__] = ({"shop": shop, **settings}, staging, culprit, stage)
        return staging

    return kept


async def show_life(village: Village, role: str = "ticker+worker") -> None:
    now = village.clock.now()
    await village.house.store.transact(lambda unit: unit.chores.show_life("somebody", role, "here", 1, "1", now))


async def planned(village: Village) -> None:
    """A crawl has begun and its first task waits to be sent."""
    await village.house.identities.load()
    await village.house.trigger.crawl_now("a")
    await village.outside.plan.run()


async def away(*_: object) -> Any:
    raise Unavailable("nobody answers")


@staged(Culprit.SELLER_INACTIVE, Stage.SELLER)
async def seller_inactive(village: Village) -> None:
    await village.house.sellers.deactivate("a")


@staged(Culprit.EXECUTION_OPEN, Stage.EXECUTION, shop=400, is_running=True)
async def execution_open(village: Village) -> None:
    await village.house.trigger.crawl_now("a")
    await village.clock.sleep(3)


@staged(Culprit.OUTBOX_BACKLOG, Stage.OUTBOX)
async def outbox_backlog(village: Village) -> None:
    await planned(village)
    await village.clock.sleep(300)


@staged(Culprit.OUTBOX_BACKLOG, Stage.OUTBOX, role="worker")
async def outbox_that_nobody_sends(village: Village) -> None:
    await planned(village)


@staged(Culprit.QUEUE_AWAY, Stage.QUEUE)
async def queue_away(village: Village) -> None:
    await planned(village)
    village.house.queue.depth = away  # type: ignore[method-assign]


@staged(Culprit.NO_IDENTITY, Stage.LEASE, pool_min_available_rate=0)
async def no_identity_free(village: Village) -> None:
    await planned(village)
    for agent_id in await village.column("SELECT agent_id FROM user_agent_pool WHERE is_active"):
        await village.house.identities.suspend(agent_id)


@staged(Culprit.NO_IDENTITY, Stage.LEASE, identities=0)
async def no_identity_at_all(village: Village) -> None:
    await village.house.identities.load()
    await village.house.trigger.crawl_now("a")


@staged(Culprit.BUDGET_SPENT, Stage.BUDGET, shop=60, identities=2, is_running=True, identity_hourly_limit=10)
async def budget_spent(village: Village) -> None:
    await village.house.trigger.crawl_now("a")
    await village.clock.sleep(120)


@staged(Culprit.BREAKER_OPEN, Stage.BREAKER, shop=200, is_running=True)
async def breaker_open(village: Village) -> None:
    await village.house.trigger.crawl_now("a")
    await village.until(lambda: begun(village), 60, "no item task", 0.01)
    village.sandbox.market.faults.set_rates({"drop": 100})
    await village.clock.sleep(30)


@staged(Culprit.NO_IDENTITY, Stage.LEASE, shop=200, is_running=True, identities=4)
async def identities_that_rest_each_for_itself(village: Village) -> None:
    await village.house.trigger.crawl_now("a")
    await village.clock.sleep(3)
    village.sandbox.market.faults.set_rates({"drop": 100})
    await village.clock.sleep(60)


async def begun(village: Village) -> bool:
    return bool(await village.column("SELECT task_id FROM crawler_tasks WHERE item_no > 0 LIMIT 1"))


@staged(Culprit.TASK_STUCK, Stage.TASK)
async def task_stuck(village: Village) -> None:
    await planned(village)
    await village.outside.relay.run()
    assert len(await village.outside.crawl.take(10)) == 1
    await village.clock.sleep(31)


@staged(Culprit.NO_WORKER, Stage.QUEUE, role="ticker")
async def no_worker(village: Village) -> None:
    await planned(village)
    await village.outside.relay.run()


@staged(Culprit.EVENTS_HELD, Stage.DELIVERY, is_running=True)
async def drift_hold(village: Village) -> None:
    await village.crawl("a")
    await village.change("UPDATE product_outbox SET status = 'HELD', error_message = 'half of the shop changed'")


@staged(Culprit.PRODUCT_SERVER_AWAY, Stage.DELIVERY, is_running=True)
async def product_server_down(village: Village) -> None:
    village.sandbox.receiver.faults.set_rates({"drop": 100})
    execution = await village.house.trigger.crawl_now("a")
    await village.ended(execution)
    await village.clock.sleep(1200)


@staged(Culprit.DELIVERY_FAILED, Stage.DELIVERY, is_running=True)
async def delivery_given_up(village: Village) -> None:
    await village.crawl("a")
    await village.change(
        "UPDATE product_outbox SET status = 'FAILED', error_message = 'answered 413' WHERE version = 1"
    )


@staged(Culprit.ABSORB_LATE, Stage.ABSORB, is_running=True)
async def documents_that_nobody_absorbs(village: Village) -> None:
    await village.crawl("a")
    due_at = (village.clock.now() - timedelta(minutes=10)).strftime("%F %T.%f")
    await village.change("UPDATE product_raw_data SET status = 'PENDING', next_attempt_at = ?", due_at)


@staged(Culprit.SCHEDULE_LATE, Stage.SCHEDULE, role="worker")
async def schedule_that_nobody_keeps(village: Village) -> None:
    await village.clock.sleep(86_400 + 120)


@staged(Culprit.SCHEDULE_FAILED, Stage.SCHEDULE)
async def schedule_that_could_not_be_told(village: Village) -> None:
    await village.change("UPDATE crawling_schedules SET status = 'FAILED'")


@staged(Culprit.COUNT_MISSING, Stage.EXECUTION, is_running=True)
async def count_that_does_not_come(village: Village) -> None:
    village.sandbox.market.faults.set_rates({"html": 100})
    await village.house.trigger.crawl_now("a")
    await village.clock.sleep(5)


@staged(Culprit.COUNT_MISSING, Stage.EXECUTION, role="worker")
async def count_that_nobody_asks_for(village: Village) -> None:
    await village.house.trigger.crawl_now("a")


@staged(Culprit.POOL_AWAY, Stage.LEASE)
async def pool_without_a_leader(village: Village) -> None:
    await planned(village)

    async def nobody() -> Outlook:
        return Outlook(0, WhyNot.AWAY)

    village.house.pool.outlook = nobody  # type: ignore[method-assign]


@staged(Culprit.NOTHING, Stage.DELIVERY, is_running=True)
async def all_is_well(village: Village) -> None:
    await village.crawl("a")


def verdict_on(name: str) -> tuple[Verdict, Any]:
    settings, staging, _, _ = STAGED[name]
    settings = dict(settings)
    shop, role, is_running = (
        settings.pop("shop"),
        settings.pop("role", "ticker+worker"),
        settings.pop("is_running", False),
    )

    async def story() -> tuple[Verdict, Any]:
        async with a_village(251, {"shops": {"a": shop}}, is_running=is_running, **QUIET | settings) as village:
            await village.register("a")
            await staging(village)
            await village.change("DELETE FROM processes")
            await show_life(village, role)
            return await village.house.explain.seller("a"), village.clock.now()

    return run_virtually(story())


@pytest.mark.parametrize("name", STAGED)
def test_of_a_blockage_that_is_staged_the_right_culprit_is_named(name: str) -> None:
    _, _, culprit, stage = STAGED[name]
    verdict, at = verdict_on(name)
    assert (verdict.culprit, verdict.found.stage) == (culprit, stage), verdict
    assert verdict.found.text
    if culprit is Culprit.NOTHING:
        return
    assert verdict.found.advice
    assert verdict.walked[-1] == verdict.found
    assert [finding for finding in verdict.walked[:-1] if finding.culprit] == []
    since, clears_at = verdict.found.since, verdict.found.clears_at
    assert since is None or since <= at
    assert clears_at is None or at <= clears_at <= at + timedelta(days=1)


def test_it_says_when_a_spent_budget_and_an_open_breaker_will_clear() -> None:
    for name, most in (("budget_spent", 3700), ("breaker_open", 600), ("product_server_down", 61)):
        verdict, at = verdict_on(name)
        assert verdict.found.clears_at is not None, name
        assert timedelta(0) < verdict.found.clears_at - at <= timedelta(seconds=most)


@pytest.mark.parametrize(
    ("staging", "culprit"),
    [
        (seller_inactive, Culprit.SELLER_INACTIVE),
        (outbox_that_nobody_sends, Culprit.OUTBOX_BACKLOG),
        (queue_away, Culprit.QUEUE_AWAY),
        (no_identity_free, Culprit.NO_IDENTITY),
        (task_stuck, Culprit.TASK_STUCK),
        (no_worker, Culprit.NO_WORKER),
    ],
)
def test_of_a_task_too_the_right_culprit_is_named(staging: Staging, culprit: Culprit) -> None:
    role = STAGED[staging.__name__][0].get("role", "ticker+worker")

    async def story() -> None:
        async with a_village(252, {"shops": {"a": 6}}, is_running=False, pool_min_available_rate=0, **QUIET) as village:
            await village.register("a")
            if staging is seller_inactive:
                await planned(village)
            await staging(village)
            await show_life(village, role)
            [task_id] = await village.column("SELECT task_id FROM crawler_tasks")
            verdict = await village.house.explain.task(task_id)
            assert verdict.culprit is culprit, verdict

    run_virtually(story())


def test_a_task_that_has_ended_and_one_that_is_put_off_say_so() -> None:
    async def story() -> None:
        async with a_village(253, {"shops": {"a": 3}}, **QUIET) as village:
            await village.register("a")
            await village.crawl("a")
            [done, *_] = await village.column("SELECT task_id FROM crawler_tasks WHERE item_no > 0")
            assert (await village.house.explain.task(done)).culprit is Culprit.NOTHING
            await village.change(
                "UPDATE crawler_tasks SET status = 'FAILED', error_message = 'HTTP 404' WHERE item_no > 0"
            )
            failed = await village.house.explain.task(done)
            assert (failed.culprit, "HTTP 404" in failed.found.text) == (Culprit.TASK_FAILED, True)
            await village.change(
                "UPDATE crawler_tasks SET status = 'RETRY', error_message = 'HTTP 500' WHERE item_no > 0"
            )
            later = (village.clock.now() + timedelta(seconds=40)).strftime("%F %T.%f")
            await village.change("UPDATE crawler_task_outbox SET status = 'PENDING', next_attempt_at = ?", later)
            waits = await village.house.explain.task(done)
            assert waits.culprit is Culprit.TASK_WAITS
            assert waits.found.clears_at == village.clock.now() + timedelta(seconds=40)
            with pytest.raises(Unknown):
                await village.house.explain.task("00000000-0000-5000-8000-000000000000")

    run_virtually(story())


def test_of_an_identity_it_says_why_it_rests() -> None:
    async def story() -> None:
        async with a_village(254, {"shops": {"a": 3}}, is_running=False, **QUIET | {"identities": 10}) as village:
            explain, identities = village.house.explain, village.house.identities
            assert (await explain.identity("1")).culprit is Culprit.POOL_AWAY
            await identities.load()
            assert (await explain.identity("1")).culprit is Culprit.NOTHING
            await identities.suspend(1)
            suspended = await explain.identity("1")
            assert suspended.culprit is Culprit.IDENTITY_SUSPENDED
            assert suspended.found.clears_at == village.clock.now() + timedelta(hours=1)
            await identities.block(2)
            assert (await explain.identity("2")).culprit is Culprit.IDENTITY_BLOCKED
            [lent] = (await village.house.pool.lease(1)).leases
            assert (await explain.identity(str(lent.agent_id))).culprit is Culprit.IDENTITY_LENT
            [uuid] = await village.column("SELECT user_agent_id FROM user_agent_pool WHERE agent_id = 2")
            assert (await explain.identity(uuid)).culprit is Culprit.IDENTITY_BLOCKED
            assert (await explain.identity("50")).culprit is Culprit.IDENTITY_RETIRED
            for nobody in ("999", "no-such", "9" * 40, "-1"):
                with pytest.raises(Unknown):
                    await explain.identity(nobody)

    run_virtually(story())


def test_nobody_is_asked_anything_outside_and_nothing_is_changed() -> None:
    async def story() -> None:
        async with a_village(255, {"shops": {"a": 6}}, is_running=False, **QUIET) as village:
            await village.register("a")
            await planned(village)
            before, changes = list(village.transport.trace), await village.rows("SELECT total_changes()")
            await village.house.explain.seller("a")
            await village.house.explain.identity("1")
            assert village.transport.trace == before
            assert await village.rows("SELECT total_changes()") == changes

    run_virtually(story())
