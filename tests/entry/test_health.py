"""Health: honest about each engine, quick, back by itself, in every process; the marketplace is never asked."""

import asyncio
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from doors import Door, call, door
from sellerwatch.domain.errors import Unavailable
from sellerwatch.entry.api.health import KEPT_SECONDS, PATIENCE_SECONDS, Doctor
from sellerwatch.entry.api.metrics import watched
from sellerwatch.entry.metrics import Metrics
from sellerwatch.ports.pool import Outlook, WhyNot
from simulation.village import a_village
from simulation.virtual import run_virtually


async def nobody_leads() -> Outlook:
    return Outlook(0, WhyNot.AWAY)


async def nobody_answers() -> Any:
    raise Unavailable("mysql://root:swordfish@db:3306 does not answer")


async def stumbles() -> Any:
    raise ZeroDivisionError("swordfish")


@pytest.mark.parametrize("path", ["/actuator/health", "/actuator/health/ready", "/health/ready"])
@pytest.mark.parametrize(
    ("component", "engine", "verb", "broken"),
    [
        ("pool", "pool", "outlook", nobody_leads),
        ("pool", "pool", "outlook", nobody_answers),
        ("queue", "queue", "depth", nobody_answers),
        ("queue", "queue", "depth", stumbles),
    ],
    ids=["nobody leads the pool", "the pool is away", "the queue is away", "the queue stumbles"],
)
async def test_an_engine_that_is_away_is_down_alone_and_back_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, component: str, engine: str, verb: str, broken: Any
) -> None:
    async with door(tmp_path) as at:
        app = watched(at.house, Metrics())
        with monkeypatch.context() as change:
            change.setattr(getattr(at.house, engine), verb, broken)
            for one in (at.app, app):
                answer = await call(one, "GET", path)
                assert answer.status == 503
                told = answer.json()
                down = [name for name, its in told["components"].items() if its["status"] == "DOWN"]
                assert (told["status"], down) == ("DOWN", [component])
                assert "swordfish" not in json.dumps(told)
        assert (await call(app, "GET", "/health/live")).status == 200
        at.clock.ahead += timedelta(seconds=KEPT_SECONDS)
        for one in (at.app, app):
            assert (await call(one, "GET", path)).status == 200


async def test_a_database_that_is_gone_is_down(tmp_path: Path) -> None:
    async with door(tmp_path) as at:
        await at.house.database.write(lambda connection: connection.exec_driver_sql("DROP TABLE alembic_version"))
        answer = await at.call("GET", "/actuator/health", token="")
        assert answer.status == 503
        assert answer.json()["components"]["database"]["status"] == "DOWN"


def test_an_engine_that_never_answers_costs_two_seconds_however_many_ask() -> None:
    async def story() -> None:
        async with a_village(211, {"shops": {"a": 1}}, is_running=False) as village:
            village.house.queue.depth = lambda: village.clock.sleep(10_000)  # type: ignore[method-assign, assignment]
            doctor, began = Doctor(village.house), village.clock.monotonic()
            seen = await asyncio.gather(*(doctor.look() for _ in range(20)))
            assert village.clock.monotonic() - began == PATIENCE_SECONDS
            assert {one.components["queue"].detail for one in seen} == {"no answer in time"}
            assert village.transport.trace == [], "the marketplace is never asked"

    run_virtually(story())


async def test_lesson_60_health_is_answered_at_once_while_a_house_still_starts(tmp_path: Path) -> None:
    """Nothing has been asked of pool and queue yet, and they hang: alive is alive, and ready is no after two seconds."""

    async def hangs() -> Any:
        await asyncio.Event().wait()

    async with door(tmp_path) as at:
        at.house.pool.outlook = hangs  # type: ignore[method-assign]
        at.house.queue.depth = hangs  # type: ignore[method-assign]
        for app in (at.app, watched(at.house, Metrics())):
            alive = await at.house.clock.within(1.0, call(app, "GET", "/actuator/health/live"))
            assert (alive.status, alive.json()["status"]) == (200, "UP")


def test_lesson_60_readiness_is_told_in_two_seconds_while_a_house_still_starts() -> None:
    async def story() -> None:
        async with a_village(212, {"shops": {"a": 1}}, is_running=False) as village:
            for engine, verb in (("pool", "outlook"), ("queue", "depth")):
                setattr(getattr(village.house, engine), verb, lambda *_: village.clock.sleep(10_000))
            began = village.clock.monotonic()
            seen = await Doctor(village.house).look()
            assert village.clock.monotonic() - began <= PATIENCE_SECONDS
            assert {name for name, one in seen.components.items() if one.status == "DOWN"} == {"pool", "queue"}

    run_virtually(story())


async def test_a_small_door_shows_health_and_metrics_and_nothing_else(tmp_path: Path) -> None:
    async with door(tmp_path) as at:
        app = watched(at.house, Metrics())
        for path in ("/actuator/health", "/actuator/health/live", "/health/ready", "/metrics"):
            answer = await call(app, "GET", path)
            assert answer.status == 200
            assert answer.headers["x-content-type-options"] == "nosniff"
        for path in ("/api/v1/sellers", "/openapi.json", "/docs", "/"):
            assert (await call(app, "GET", path)).status == 404


async def test_the_two_spellings_of_health_say_the_same(tmp_path: Path) -> None:
    async with door(tmp_path) as at:
        for end in ("ready", "live"):
            assert await said(at, f"/health/{end}") == await said(at, f"/actuator/health/{end}")


async def said(at: Door, path: str) -> Any:
    return (await at.call("GET", path, token="")).json()
