"""Politeness from end to end: what the marketplace sees of several processes, and what our own report says of it."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from sellerwatch.domain.errors import Unavailable
from sellerwatch.domain.identities import Verdict
from sellerwatch.domain.leadership import Engine
from sellerwatch.ports.pool import Report
from sellerwatch.ports.wire import RawReply
from sellerwatch.sandbox.faults import Fault
from sellerwatch.simulation.ends import InProcessTransport
from sellerwatch.steps.leading import LeadingPool
from simulation.village import NEVER, Village, a_village, on_file
from simulation.virtual import run_virtually

QUIET = {"sweep_seconds": NEVER, "site_requests_per_second": 100, "identities": 40}
DAY = timedelta(days=1)


class Crowd:
    """How many requests of all houses are under way at once."""

    def __init__(self) -> None:
        self.now = self.most = 0

    def watch(self, transport: InProcessTransport) -> None:
        send = transport.send

        async def counted(url: str, headers: Mapping[str, str], **limits: Any) -> RawReply:
            self.now += 1
            self.most = max(self.most, self.now)
            try:
                return await send(url, headers, **limits)
            finally:
                self.now -= 1

        transport.send = counted  # type: ignore[method-assign]


def test_lesson_33_two_processes_keep_one_ceiling_and_one_concurrency_before_the_marketplace(tmp_path: Path) -> None:
    async def story() -> None:
        settings = QUIET | {"database_url": on_file(tmp_path), "site_requests_per_second": 6, "concurrency": 8}
        async with a_village(501, {"shops": {"a": 25, "b": 25}, "latency_ms": 1300}, **settings) as village:
            crowd = Crowd()
            other = village.raise_house(1.0)
            for house in (village.house, other):
                assert isinstance(house.transport, InProcessTransport)
                crowd.watch(house.transport)
            village.move_in(other)
            await village.register("a", "b")
            for seller_id in ("a", "b"):
                await village.house.trigger.crawl_now(seller_id)
            await village.clock.sleep(60)
            await village.settled()
            await village.check()
            seen = village.sandbox.stats()
            # Both were at work.
            assert all(house.transport.trace for house in (village.house, other))  # type: ignore[union-attr]
            assert crowd.most == 8
            # A request goes out at most a moment after its lease.
            assert seen["peakSecond"] <= 2 * 6  # type: ignore[operator]
            report = await village.house.reports.politeness(village.clock.now() - DAY, village.clock.now())
            assert report.site.in_a_second.requests <= 2 * 6

    run_virtually(story())


def test_requests_of_one_identity_arrive_an_interval_apart_however_long_each_was_on_its_way() -> None:
    async def story() -> None:
        async with a_village(506, {"shops": {"a": 12}}, **QUIET | {"identities": 3}) as village:
            transport = village.house.transport
            assert isinstance(transport, InProcessTransport)
            send, ways = transport.send, cycle((0.9, 0.0, 0.0, 0.6, 0.3, 0.0, 0.8))

            async def held_up(url: str, headers: Mapping[str, str], **limits: Any) -> RawReply:
                await village.clock.sleep(next(ways))
                return await send(url, headers, **limits)

            transport.send = held_up  # type: ignore[method-assign]
            await village.register("a")
            await village.crawl("a", 1000)
            seen = village.sandbox.stats()
            assert (seen["requests"]["total"] > 24, seen["tooClose"]) == (True, 0)  # type: ignore[index]
            assert seen["smallestGap"] >= 1  # type: ignore[operator]

    run_virtually(story())


def test_the_report_says_what_the_marketplace_saw() -> None:
    async def story() -> None:
        conditions = {"shops": {"a": 60}, "rates": {"throttle": 1, "error": 3}, "latency_ms": 200}
        async with a_village(502, conditions, **QUIET | {"identities": 8, "sweep_seconds": 60}) as village:
            await village.register("a")
            await village.crawl("a", 40_000)
            seen, stats = await report_of(village), village.sandbox.stats()
            requests: dict[str, Any] = stats["requests"]  # type: ignore[assignment]
            assert seen.site.requests == requests["total"]
            assert seen.site.asked_for_patience >= requests["byStatus"]["429"] > 0
            assert seen.site.in_a_second.requests == stats["peakSecond"]
            visitors: dict[str, Any] = stats["identities"]  # type: ignore[assignment]
            names = dict(await village.rows("SELECT agent_id, user_agent FROM user_agent_pool"))
            for agent_id, its in seen.identities.items():
                theirs = visitors[names[agent_id]]
                assert its.requests == theirs["requests"]
                assert its.in_an_hour.requests == theirs["peakWindow"]
                if its.smallest_gap is not None:
                    assert abs(its.smallest_gap.total_seconds() - theirs["smallestGap"]) < 1e-5
            throttled = [plea for plea in seen.pleas if plea.status == 429]
            assert len(throttled) == requests["byStatus"]["429"]
            # Each rested for its hour at least.
            assert all(plea.rested is None or plea.rested >= timedelta(hours=1) for plea in throttled)
            assert all(plea.is_heeded for plea in seen.pleas)

    run_virtually(story())


@pytest.mark.parametrize("away_for", [5, 120], ids=["while the lease is out", "longer than that"])
def test_a_429_that_the_database_could_not_be_told_of_is_told_before_anything_is_asked_again(away_for: float) -> None:
    async def story() -> None:
        async with a_village(93, {"shops": {"a": 3}}, **QUIET | {"identities": 1}) as village:
            assert isinstance(village.house.pool, LeadingPool)
            ledger: Any = village.house.pool.engines[Engine.SQL]
            report, refused_at = ledger.report, []

            async def deaf_for_a_while(reports: Sequence[Report]) -> list[bool]:
                if not refused_at and any(each.verdict is Verdict.RATE_LIMITED for each in reports):
                    refused_at.append(village.clock.now())
                if refused_at and village.clock.now() < refused_at[0] + timedelta(seconds=away_for):
                    raise Unavailable("the database is away")
                return await report(reports)  # type: ignore[no-any-return]

            ledger.report = deaf_for_a_while
            village.sandbox.stage("DETAIL", Fault(name="throttle"), times=1)
            await village.register("a")
            await village.house.trigger.crawl_now("a")
            await village.clock.sleep(3000)
            known = await village.rows("SELECT status, has_token FROM pool_identities WHERE agent_id = 1")
            assert known == [("SUSPENDED", 0)]
            [last] = await village.column("SELECT max(request_timestamp) FROM token_usage_log")
            assert last <= refused_at[0].strftime("%Y-%m-%d %H:%M:%S.%f")

    run_virtually(story())


async def report_of(village: Village) -> Any:
    now = village.clock.now() + timedelta(microseconds=1)
    return await village.house.reports.politeness(now - 3 * DAY, now)


@pytest.mark.parametrize(
    ("header", "least"),
    [
        ("7200", 7200),
        ("Mon, 02 Mar 2026 13:00:00 GMT", 4 * 3600),
        ("0", 3600),
        ("-5", 3600),
        ("soon", 3600),
        ("", 3600),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 3600),
        ("99999999999999999999", 3600),
        # A day of virtual time takes seconds.
        pytest.param("999999999", 24 * 3600, marks=pytest.mark.slow),
        pytest.param("Fri, 31 Dec 9999 23:59:59 GMT", 24 * 3600, marks=pytest.mark.slow),
    ],
    ids=["hours", "a date", "zero", "negative", "a word", "empty", "the past", "no number", "years", "a far date"],
)
def test_lesson_32_retry_after_is_honoured_in_both_forms_for_up_to_a_day_and_never_instead_of_our_own(
    header: str, least: float
) -> None:
    async def story() -> None:
        async with a_village(503, {"shops": {"a": 1}}, **QUIET | {"identities": 1, "sweep_seconds": 60}) as village:
            await village.register("a")
            village.sandbox.stage("DETAIL", Fault(name="answer", status=429, headers=(("retry-after", header),)))
            execution = await village.house.trigger.crawl_now("a")
            await village.ended(execution, 2 * 86_400)
            [plea] = (await report_of(village)).pleas
            assert plea.rested is not None
            # Recovered by a sweep of four minutes, once it may.
            assert least <= plea.rested.total_seconds() + 30 <= least + 600
            assert plea.is_heeded

    run_virtually(story())


@pytest.mark.parametrize(
    "answer",
    [{"status": 401}, {"status": 403}, {"status": 302, "headers": (("location", "/elsewhere"),)}],
    ids=["401", "403", "a redirect"],
)
def test_lesson_32_retry_after_is_honoured_whatever_the_answer_is_that_bears_it(answer: dict[str, Any]) -> None:
    async def story() -> None:
        async with a_village(505, {"shops": {"a": 1}}, **QUIET | {"identities": 1, "sweep_seconds": 60}) as village:
            await village.register("a")
            headers = (*answer.get("headers", ()), ("retry-after", "7200"))
            village.sandbox.stage("DETAIL", Fault(name="answer", **answer | {"headers": headers}))
            execution = await village.house.trigger.crawl_now("a")
            await village.ended(execution, 86_400)
            [plea] = (await report_of(village)).pleas
            assert plea.rested is not None
            assert plea.rested.total_seconds() >= 7200 - 1
            assert plea.is_heeded

    run_virtually(story())


def test_until_a_date_an_identity_waits_to_its_last_second() -> None:
    async def story() -> None:
        conditions = {"shops": {"a": 2}, "latency_ms": 130, "jitter_ms": 20}
        async with a_village(507, conditions, **QUIET | {"identities": 1, "sweep_seconds": 60}) as village:
            await village.register("a")
            headers = (("retry-after", "Mon, 02 Mar 2026 11:00:00 GMT"),)
            village.sandbox.stage("DETAIL", Fault(name="answer", status=503, headers=headers))
            execution = await village.house.trigger.crawl_now("a")
            await village.ended(execution, 2 * 86_400)
            [plea] = (await report_of(village)).pleas
            assert (plea.is_heeded, plea.rested >= timedelta(seconds=7100)) == (True, True)

    run_virtually(story())


@pytest.mark.slow
def test_evenly_paced_a_budget_is_spread_over_the_hour_and_rest_is_caught_up_without_a_burst() -> None:
    async def story() -> None:
        settings = QUIET | {"identities": 2, "identity_pacing": "even"}
        async with a_village(504, {"shops": {"a": 90}}, **settings) as village:
            await village.register("a")
            await village.house.trigger.crawl_now("a")
            await village.clock.sleep(3600)
            first = await report_of(village)
            assert 80 <= sum(its.requests for its in first.identities.values()) <= 160
            await village.settled(20_000)
            await village.clock.sleep(1800)
            await village.crawl("a", 20_000)
            for its in (await report_of(village)).identities.values():
                # 80 an hour are 45 s apart; half of that while catching up.
                assert its.smallest_gap >= timedelta(seconds=3630 / 80 / 2 - 0.1)
                assert its.in_an_hour.requests <= 80
            await village.check()

    run_virtually(story())
