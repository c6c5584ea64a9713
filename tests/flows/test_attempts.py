"""One attempt at a task: how long it lasts, how often it asks, on whose lease, and what it is blamed for."""

from datetime import timedelta
from typing import Any

import pytest

from sellerwatch.domain.addresses import Addresses
from sellerwatch.domain.errors import Unavailable
from sellerwatch.domain.tasks import TaskKind
from sellerwatch.ports.pool import Lease, Outlook, WhyNot
from sellerwatch.sandbox.faults import Fault
from sellerwatch.simulation.ends import ORIGIN
from simulation.village import NEVER, Village, a_village
from simulation.virtual import run_virtually

QUIET = {"sweep_seconds": NEVER, "site_requests_per_second": 20, "identities": 10}
OPTION_ATTEMPTS = (
    "SELECT e.status, e.error_message FROM crawl_executions e JOIN crawler_tasks t ON t.task_id = e.task_id "
    "WHERE t.task_type = 'OPTION' ORDER BY e.id"
)
OPTION_TASKS = "SELECT status, retry_count FROM crawler_tasks WHERE task_type = 'OPTION'"
LASTED = "SELECT max((julianday(completed_at) - julianday(started_at)) * 86400) FROM crawl_executions"


async def crawled(village: Village, *faults: Fault) -> None:
    """A shop of one item, whose options meet these faults."""
    for fault in faults:
        village.sandbox.stage("OPTION", fault)
    await village.register("a")
    await village.crawl("a")


async def option_requests(village: Village) -> list[int]:
    """Which identities asked for the options, one after the other."""
    like = "SELECT agent_id FROM token_usage_log WHERE request_url LIKE '%/options%' ORDER BY request_timestamp"
    return await village.column(like)


def test_a_request_ends_with_its_attempt_and_nobody_is_blamed_for_that() -> None:
    async def story() -> None:
        async with a_village(5, {"shops": {"a": 1}}, **QUIET | {"task_attempt_seconds": 6}) as village:
            await crawled(village, Fault(name="slow", seconds=20))
            assert [status for status, _ in await village.rows(OPTION_ATTEMPTS)] == ["FAILED", "SUCCESS"]
            assert (await village.column(LASTED))[0] <= 6
            assert await village.rows(OPTION_TASKS) == [("SUCCESS", 0)]
            assert (await village.house.pool.figures()).health_min == 100

    run_virtually(story())


@pytest.mark.parametrize(("lost", "requests", "attempts"), [(2, 3, 1), (3, 4, 2)])
def test_network_errors_are_tried_three_times_inside_an_attempt(lost: int, requests: int, attempts: int) -> None:
    async def story() -> None:
        async with a_village(6, {"shops": {"a": 1}}, **QUIET) as village:
            await crawled(village, *[Fault(name="drop")] * lost)
            assert len(await option_requests(village)) == requests
            assert len(await village.rows(OPTION_ATTEMPTS)) == attempts
            assert await village.rows(OPTION_TASKS) == [("SUCCESS", attempts - 1)]

    run_virtually(story())


def test_who_waited_for_an_answer_as_long_as_one_may_take_does_not_wait_again_within_the_attempt() -> None:
    async def story() -> None:
        async with a_village(7, {"shops": {"a": 1}}, **QUIET) as village:
            await crawled(village, *[Fault(name="slow", seconds=40)] * 2)
            assert len(await village.rows(OPTION_ATTEMPTS)) == 3
            assert (await village.column(LASTED))[0] < 15
            assert await village.rows(OPTION_TASKS) == [("SUCCESS", 2)]

    run_virtually(story())


@pytest.mark.parametrize(("switches", "refused", "attempts"), [(3, 3, 1), (3, 4, 2), (1, 2, 2)])
def test_a_429_is_tried_with_so_many_other_identities_as_the_setting_says(
    switches: int, refused: int, attempts: int
) -> None:
    async def story() -> None:
        async with a_village(8, {"shops": {"a": 1}}, **QUIET | {"task_identity_switches": switches}) as village:
            await crawled(village, *[Fault(name="throttle")] * refused)
            assert len(await village.rows(OPTION_ATTEMPTS)) == attempts
            who = await option_requests(village)
            assert len(who) == len(set(who)) == refused + 1

    run_virtually(story())


def test_an_attempt_that_gets_no_lease_in_its_time_costs_the_task_no_retry() -> None:
    async def story() -> None:
        settings = QUIET | {"identities": 1, "sweep_seconds": 15}
        async with a_village(9, {"shops": {"a": 1}}, **settings) as village:
            await crawled(village, Fault(name="throttle"))
            attempts = await village.rows(OPTION_ATTEMPTS)
            assert attempts[0] == ("FAILED", "no identity free: CIRCUIT_OPEN")
            assert attempts[-1] == ("SUCCESS", None)
            assert await village.rows(OPTION_TASKS) == [("SUCCESS", 0)]
            assert (await village.column(LASTED))[0] <= 120

    run_virtually(story())


@pytest.mark.parametrize(
    ("settings", "age", "is_used"),
    [
        ({"identity_window_guard": 8, "lease_seconds": 30}, 3.9, True),
        ({"identity_window_guard": 8, "lease_seconds": 30}, 4.1, False),
        ({"identity_window_guard": 30, "lease_seconds": 12}, 2.9, True),
        ({"identity_window_guard": 30, "lease_seconds": 12}, 3.1, False),
    ],
)
def test_a_lease_older_than_half_the_guard_or_a_quarter_of_itself_is_given_back_unused(
    settings: dict[str, float], age: float, is_used: bool
) -> None:
    async def story() -> None:
        quiet = QUIET | {"identities": 2} | settings
        async with a_village(10, {"shops": {"a": 1}}, is_running=False, **quiet) as village:
            await village.house.load_pool()
            # So that both hold a token, and robots.txt is known.
            for _ in range(2):
                await asked(village)
            await village.clock.sleep(5)
            lease = (await village.house.pool.lease(1)).leases[0]
            await village.clock.sleep(age)
            before = (await village.house.pool.figures()).remaining_requests
            sent_on: list[str] = []
            asking: Any = village.outside.asking
            fetch = asking.fetch

            async def noted(url: str, on: Lease) -> Any:
                sent_on.append(on.lease_id)
                return await fetch(url, on)

            asking.fetch = noted
            assert (await asked(village, lease=lease)).answer
            assert (sent_on == [lease.lease_id]) is is_used
            # What was given back is whole again, the fresh one is spent.
            assert (await village.house.pool.figures()).remaining_requests == before

    run_virtually(story())


async def asked(village: Village, **other: Any) -> Any:
    addresses = Addresses(ORIGIN, village.house.settings.mini_shop_path)
    url = addresses.mini_shop("a", 0, 1)
    return await village.outside.asking.ask(TaskKind.MINI_SHOP, url, **other)


def test_every_hop_of_a_redirect_takes_a_lease_of_its_own() -> None:
    async def story() -> None:
        async with a_village(11, {"shops": {"a": 1}}, **QUIET) as village:
            await crawled(village, *[Fault(name="redirect")] * 2)
            assert await village.rows(OPTION_TASKS) == [("SUCCESS", 0)]
            requests: dict[str, Any] = village.sandbox.stats()["requests"]  # type: ignore[assignment]
            assert requests["byStatus"]["302"] == 2
            assert (await village.house.pool.figures()).remaining_requests == 10 * 80 - requests["total"]

    run_virtually(story())


NEAR, FAR = timedelta(seconds=30), timedelta(minutes=20)


@pytest.mark.parametrize(
    ("why", "wait", "is_pause"),
    [
        (WhyNot.AWAY, NEAR, True),
        (WhyNot.EMPTY, None, True),
        (WhyNot.CIRCUIT_OPEN, NEAR, True),
        (WhyNot.SUSPENDED, NEAR, True),
        (WhyNot.PAUSED, NEAR, True),
        (WhyNot.SPENT, FAR, False),
        (WhyNot.BUSY, NEAR, False),
        (WhyNot.SITE_RATE, NEAR, False),
    ],
)
def test_a_worker_that_may_not_receive_says_so_and_one_that_only_waits_its_turn_does_not(
    why: WhyNot, wait: timedelta | None, is_pause: bool
) -> None:
    async def story() -> None:
        async with a_village(12, {"shops": {"a": 1}}, is_running=False, **QUIET) as village:
            pool: Any = village.house.pool

            async def none_free() -> Outlook:
                return Outlook(0, why, wait and village.clock.now() + wait)

            pool.outlook = none_free
            began = village.clock.now()
            assert await village.outside.crawl.take(5) == []
            paused_at = await village.house.store.read(lambda unit: unit.chores.paused_at())
            assert paused_at == (began if is_pause else None)

    run_virtually(story())


def test_a_worker_whose_queue_is_away_says_that_it_may_not_receive() -> None:
    async def story() -> None:
        async with a_village(13, {"shops": {"a": 1}}, is_running=False, **QUIET) as village:
            await village.house.load_pool()
            queue: Any = village.house.queue

            async def away(*_: object) -> None:
                raise Unavailable("the queue is away")

            queue.receive = away
            with pytest.raises(Unavailable):
                await village.outside.crawl.take(5)
            assert await village.house.store.read(lambda unit: unit.chores.paused_at()) == village.clock.now()

    run_virtually(story())
