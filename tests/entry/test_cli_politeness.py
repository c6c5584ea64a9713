"""`agents report` and `agents status`: how polite a day was and how the identities stand, as an operator types it."""

from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from builders import an_id
from desk import Desk
from sellerwatch.adapters.clock import SystemClock
from sellerwatch.domain.breakers import Breaker, BreakerScope
from sellerwatch.domain.identities import Identity
from sellerwatch.domain.leadership import Engine, Leadership, Phase
from sellerwatch.entry.console.standings import Look, drawn
from sellerwatch.ports.pool import Outlook, PoolFigures, Standing
from sellerwatch.ports.store import Unit, Usage
from servers import a_free_port

SEOUL = datetime(2026, 11, 18, 3, 0, tzinfo=UTC)
"""Noon in Seoul."""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def usage(seconds: float, agent_id: int = 1, status: int | None = 200, retry_after: float | None = None) -> Usage:
    at = SEOUL + timedelta(seconds=seconds)
    patience = None if retry_after is None else timedelta(seconds=retry_after)
    is_success = status is not None and status < 400
    return Usage(agent_id, "https://market.test/x", at, None, status, 100, is_success, None, patience)


def plant(desk: Desk, *usages: Usage) -> None:
    def work(unit: Unit) -> None:
        unit.chores.log_usage(usages)

    desk.plant(work)


def test_a_day_without_a_request_is_said_to_be_one(desk: Desk) -> None:
    plant(desk)
    assert desk.type("agents", "report", "--date", "2026-11-18").out == "2026-11-18 (Asia/Seoul): no request went out\n"
    assert desk.type("agents", "report").out.endswith("(Asia/Seoul): no request went out\n")
    found = desk.type("agents", "report", "--date", "2026-11-18", "--json").json
    assert (found["site"]["requests"], found["identities"], found["patience"]) == (0, [], [])


@pytest.mark.parametrize("day", ["yesterday", "2026-13-01", "2026-11-18T00:00", "9999-12-31", "0001-01-01", ""])
def test_what_is_no_day_is_refused(desk: Desk, day: str) -> None:
    plant(desk)
    said = desk.type("agents", "report", "--date", day)
    assert (said.exit_code, said.out) == (2, "")
    assert "is not a day like 2026-11-18" in said.err


def test_requests_peaks_gaps_and_what_followed_each_429_are_told(desk: Desk) -> None:
    plant(
        desk,
        *(usage(number, 1 + number % 3) for number in range(9)),
        usage(9, 1, 429, 120),
        usage(10, 2, 503, 30),
        usage(4000, 1),
        usage(20, 2),
        usage(30, 3, None),
    )
    found = desk.type("agents", "report", "--date", "2026-11-18", "--json").json
    assert (found["timeZone"], found["allowed"]["requestsInAnHour"]) == ("Asia/Seoul", 80)
    site, identities = found["site"], {one["agentId"]: one for one in found["identities"]}
    assert (site["requests"], site["failed"], site["askedForPatience"]) == (14, 3, 2)
    assert site["peakHour"] == {"requests": 13, "at": "2026-11-18T03:00:30.000Z"}
    assert (identities[1]["requests"], identities[1]["smallestGapSeconds"]) == (5, 3)
    first, second = found["patience"]
    assert (first["agentId"], first["status"], first["retryAfterSeconds"], first["heeded"]) == (1, 429, 120, True)
    assert (first["restedSeconds"], first["nextRequestAt"]) == (3990.9, "2026-11-18T04:06:40.000Z")
    assert (second["restedSeconds"], second["heeded"]) == (9.9, False)
    assert found["broken"] == ["identity 2 asked again before Retry-After was over"]
    drawn = desk.type("agents", "report", "--date", "2026-11-18").out
    assert "2026-11-18 (Asia/Seoul): 14 requests, 3 identities" in drawn
    assert "too soon" in drawn
    assert "12:00:09" in drawn


def test_more_than_the_limit_in_any_hour_is_named(desk: Desk) -> None:
    plant(desk, *(usage(-1800 + number * 22.5, 4) for number in range(160)), usage(1801, 4))
    found = desk.type("agents", "report", "--date", "2026-11-18", "--json").json
    assert found["identities"][0]["peakHour"]["requests"] == 160
    assert found["broken"] == ["identity 4 went out more than 80 times in an hour"]


def test_who_went_out_again_too_soon_is_named_and_a_full_second_explained(desk: Desk) -> None:
    plant(desk, *(usage(number / 20, 10 + number) for number in range(14)), usage(100, 5), usage(100.989, 5))
    found = desk.type("agents", "report", "--date", "2026-11-18", "--json").json
    assert found["broken"] == ["identity 5 went out again after 0.989 s, 1 s is the minimum"]
    assert found["remarks"] == [
        "14 requests left in one second, where leases for 10 are given: a request may leave a moment after its lease"
    ]
    drawn = desk.type("agents", "report", "--date", "2026-11-18", COLUMNS="200").out
    assert "every limit was kept" not in drawn
    assert found["remarks"][0] in drawn


def test_a_day_begins_at_midnight_where_its_figures_are_read_and_its_first_hour_looks_back(desk: Desk) -> None:
    midnight = -12 * 3600
    plant(desk, *(usage(midnight + at) for at in (-3500, -10, 0, 86_399, 86_400)))
    asked: dict[str, Any] = {}
    for zone, day in (("Asia/Seoul", "2026-11-18"), ("UTC", "2026-11-17")):
        asked[zone] = desk.type("agents", "report", "--date", day, "--json", SELLERWATCH_METRICS_TIMEZONE=zone).json[
            "site"
        ]
    assert asked["Asia/Seoul"]["requests"] == 2
    assert asked["Asia/Seoul"]["peakHour"] == {"requests": 3, "at": "2026-11-17T15:00:00.000Z"}
    assert asked["Asia/Seoul"]["smallestGapSeconds"] == 10
    assert asked["UTC"]["requests"] == 3


def test_who_came_back_the_day_after_is_told_and_long_lists_are_cut(desk: Desk) -> None:
    plant(desk, *(usage(number * 2, number + 1, 429) for number in range(60)), usage(2 * 86_400, 7))
    found = desk.type("agents", "report", "--date", "2026-11-18", "--json").json
    back = {one["agentId"]: one["nextRequestAt"] for one in found["patience"]}
    assert (back[7], back[8]) == ("2026-11-20T03:00:00.000Z", None)
    drawn = desk.type("agents", "report", "--date", "2026-11-18").out
    assert "40 identities more: --all" in drawn
    assert "40 more (--all)" in drawn
    assert "11-20 12:00:00" in drawn or "not yet" in drawn
    assert "--all" not in desk.type("agents", "report", "--date", "2026-11-18", "--all").out


def test_the_identities_stay_on_the_screen_until_it_is_interrupted(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[float] = []

    async def sleep(_: SystemClock, seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(SystemClock, "sleep", sleep)
    plant(desk)
    said = desk.type("agents", "status", "--watch", "--every", "5")
    assert (said.exit_code, looks) == (0, [5, 5, 5])
    assert "10 identities can be leased now" in said.out


def test_where_the_engine_is_away_the_record_is_shown_and_said_to_be_away(desk: Desk) -> None:
    plant(desk)
    desk.type("agents", "block", "3")
    desk.plant(lambda unit: unit.leaderships.save(Leadership(2, Engine.REDIS, Phase.LEADING)))
    redis = f"redis://127.0.0.1:{a_free_port()}/0"
    found = desk.type("agents", "status", "--json", SELLERWATCH_REDIS_URL=redis).json
    assert found["why"] == "AWAY"
    assert found["headline"].startswith("nobody is free (AWAY): no engine of the pool can be reached")
    assert len(found["identities"]) == 100
    assert (found["identities"][0]["agentId"], found["identities"][0]["needs"]) == (3, "blocked by hand")


def test_a_narrow_terminal_leaves_out_who_they_say_they_are(desk: Desk) -> None:
    look = Look(
        SEOUL,
        FIGURES,
        Outlook(1),
        [Standing(Identity(1, an_id(1), "Browser/1.0"), 80, None, None, None, CLOSED, 1)],
        80,
    )
    wide, narrow = (shown(drawn(look, width), width) for width in (140, 90))
    assert "Browser/1.0" in wide
    assert "user agent" not in narrow
    assert all(len(line) <= 90 for line in narrow.splitlines())


CLOSED = Breaker(BreakerScope.IDENTITY, 3, timedelta(seconds=600), 1)
FIGURES = PoolFigures(1, 1, 0, 0, 100, 100.0, 100, 80, 0, CLOSED, CLOSED, SEOUL, None)


def shown(drawing: Any, width: int) -> str:
    console = Console(width=width, file=StringIO(), highlight=False)
    console.print(drawing)
    return console.file.getvalue()  # type: ignore[attr-defined]
