"""Loops and the worker go on after whatever failed, and soon enough."""

import asyncio
import io
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from structlog.testing import capture_logs

from observed import page_of
from sellerwatch.adapters.bell import AsyncBell
from sellerwatch.entry.console.status import status
from sellerwatch.entry.diagnosis import diagnose
from sellerwatch.entry.loops import COMPLAINT_SECONDS, Loop, Timesheet, run_loops
from sellerwatch.entry.metrics import Metrics
from sellerwatch.entry.ticker import late_after, ticker_loops
from sellerwatch.entry.up import REST_CEILING, keep_crawling
from sellerwatch.flows.punctuality import late
from simulation.village import Village, a_village, on_file
from simulation.virtual import VirtualClock, run_virtually


@pytest.fixture
def said() -> Iterator[list[Any]]:
    with capture_logs() as lines:
        yield lines


class Failing:
    """Fails, having run for so many seconds; the last of them ends the story."""

    def __init__(self, *runs: float) -> None:
        self.clock, self.stop = VirtualClock(), asyncio.Event()
        self.bell = AsyncBell(self.clock)
        self.runs, self.began, self.failed = list(runs), [], []

    async def run(self, *_: object) -> int:
        self.began.append(self.clock.monotonic())
        await self.clock.sleep(self.runs.pop(0))
        self.failed.append(self.clock.monotonic())
        if not self.runs:
            self.stop.set()
        raise OSError("away")

    @property
    def rests(self) -> list[int]:
        return [round(again - failed) for failed, again in zip(self.failed, self.began[1:], strict=False)]


def test_a_loop_that_fails_rests_longer_each_time_and_no_longer_than_it_may() -> None:
    async def story() -> None:
        ours, others = Failing(*[0] * 6), Failing(*[0] * 9)
        await run_loops([Loop("a", ours.run, 1.0, rest_ceiling=3.0)], ours.clock, ours.bell, ours.stop)
        assert ours.rests == [1, 2, 3, 3, 3]
        await run_loops([Loop("b", others.run, 1.0)], others.clock, others.bell, others.stop)
        assert others.rests == [1, 2, 4, 8, 16, 32, 60, 60]

    run_virtually(story())


def test_a_worker_that_was_well_in_between_rests_no_longer_than_after_its_first_failure() -> None:
    async def story() -> None:
        failing = Failing(*[0] * 7, REST_CEILING + 1, 0, 0)
        house = SimpleNamespace(clock=failing.clock, bell=failing.bell, outside=SimpleNamespace(crawl=failing))
        await keep_crawling(house, failing.stop)  # type: ignore[arg-type]
        assert failing.rests == [1, 2, 4, 8, 16, 30, 30, 1, 2]

    run_virtually(story())


def test_lesson_15_a_run_that_overruns_its_deadline_is_broken_off_told_and_begun_again_and_stops_no_other(
    said: list[Any],
) -> None:
    async def story() -> None:
        clock, stop, sheet = VirtualClock(), asyncio.Event(), Timesheet()
        begun: list[float] = []
        others: list[float] = []

        async def hangs() -> int:
            begun.append(clock.monotonic())
            await asyncio.Event().wait()
            return 0

        async def runs() -> int:
            others.append(clock.monotonic())
            return 0

        loops = [Loop("stuck", hangs, 1.0, deadline_seconds=20), Loop("fine", runs, 1.0)]
        running = asyncio.create_task(run_loops(loops, clock, AsyncBell(clock), stop, sheet))
        await clock.sleep(100)
        # Twenty seconds, and a rest that becomes longer.
        assert [round(after - before) for before, after in pairwise(begun)] == [21, 22, 24, 28]
        assert len(others) >= 99
        assert sheet.runs["stuck"][2] == said[0]["error"] == "not done within 20 s"
        assert sheet.runs["fine"][1:] == (0, None)
        stop.set()
        await running

    run_virtually(story())


def test_lesson_15_every_loop_of_the_house_has_a_deadline_and_a_time_after_which_it_is_late() -> None:
    async def story() -> None:
        async with a_village(150, {"shops": {"a": 1}}, is_running=False) as village:
            loops = ticker_loops(village.house)
            assert len(loops) > 20
            for loop in loops:
                assert 0 < loop.deadline_seconds < loop.late_seconds < 10 * 86_400
                # It may be passed over for its longest pause some times without being late.
                assert loop.late_seconds > 3 * max(loop.idle_seconds, loop.idle_ceiling) + loop.deadline_seconds

    run_virtually(story())


async def late_alerts(village: Village) -> list[str]:
    return await village.column("SELECT name FROM alerts WHERE cleared_at IS NULL AND name LIKE 'loop_late%'")


@pytest.mark.slow
def test_lesson_15_a_loop_that_hangs_is_seen_to_be_late_until_it_runs_again(tmp_path: Path) -> None:
    async def story() -> None:
        settings = {"database_url": on_file(tmp_path), "sweep_seconds": 15}
        async with a_village(151, {"shops": {"a": 1}}, is_running=False, **settings) as village:
            house = village.raise_house(5.0)
            village.move_in(house)
            after = late_after(house)
            await village.clock.sleep(after["absorb"] + 120)
            assert await late_alerts(village) == []
            # As a process that hangs would leave it, for nothing that runs here writes it any more.
            await village.change(
                "CREATE TRIGGER hangs BEFORE UPDATE ON sweeps WHEN old.name IN ('absorb', 'leases')"
                " BEGIN SELECT RAISE(IGNORE); END"
            )
            await village.clock.sleep(max(after["absorb"], after["leases"]) + 180)
            assert await late_alerts(village) == ["loop_late:absorb", "loop_late:leases"]
            seen = await house.reports.overview(village.clock.now())
            assert [one.name for one in late(seen, after)] == ["absorb", "leases"]
            assert (await page_of(house, Metrics())).of("sellerwatch_loops_late") == 2
            wrong = [found.said for found in await diagnose(house, is_online=False) if found.part == "sweep"]
            assert [text.split(" has not run")[0] for text in wrong] == ["absorb", "leases"]
            drawn = io.StringIO()
            Console(file=drawn, width=120).print(
                status(seen, await house.pool.figures(), await house.queue.depth(), late(seen, after))
            )
            assert "loop that is late" in drawn.getvalue()
            await village.change("DROP TRIGGER hangs")
            await village.clock.sleep(180)
            assert await late_alerts(village) == []

    run_virtually(story())


def test_lesson_15_nothing_is_late_that_nobody_could_have_run_yet() -> None:
    async def story() -> None:
        async with a_village(152, {"shops": {"a": 1}}, sweep_seconds=15) as village:
            await village.clock.sleep(60)
            await village.change("UPDATE sweeps SET last_run_at = '2020-01-01 00:00:00.000000'")
            seen = await village.house.reports.overview(village.clock.now())
            assert late(seen, late_after(village.house)) == []
            [old] = late(seen, {"absorb": 5.0})
            assert old.name == "absorb"
            assert old.seconds <= 61
            assert late(replace(seen, processes=()), {"absorb": 5.0}) == []

    run_virtually(story())


def test_an_error_is_told_whole_once_and_then_counted_once_a_minute(said: list[Any]) -> None:
    async def story() -> None:
        clock, stop = VirtualClock(), asyncio.Event()
        runs: list[int] = []

        async def fails() -> int:
            runs.append(1)
            if len(runs) > 300:
                raise OSError("another one")
            raise ValueError(f"row {len(runs)} is bad")

        loop = Loop("a", fails, 1.0, rest_ceiling=1.0)
        running = asyncio.create_task(run_loops([loop], clock, AsyncBell(clock), stop))
        await clock.sleep(310)
        stop.set()
        await running

    run_virtually(story())
    whole = [line for line in said if line["event"] == "loop failed"]
    assert [line["error"] for line in whole] == ["row 1 is bad", "another one"]
    assert all(line["exc_info"] for line in whole)
    again = [line for line in said if line["event"] == "loop still fails"]
    assert [line["times"] for line in again] == [COMPLAINT_SECONDS] * 4
    assert not any("exc_info" in line for line in again)


def looks_of(unhurried_seconds: float) -> list[float]:
    async def story() -> list[float]:
        clock, looks, stop = VirtualClock(), [], asyncio.Event()
        bell = AsyncBell(clock)

        async def look() -> int:
            looks.append(clock.monotonic())
            return 0

        loop = Loop("look", look, 1.0, "look")
        running = asyncio.create_task(run_loops([loop.unhurried(unhurried_seconds)], clock, bell, stop))
        await clock.sleep(2.5)
        for _ in range(3):
            bell.ring("look")
            await clock.sleep(0.5)
        await clock.sleep(20)
        stop.set()
        await running
        return looks

    return run_virtually(story())


def test_an_unhurried_loop_works_together_on_what_comes_within_its_time_and_looks_no_sooner_by_itself() -> None:
    assert looks_of(10.0)[:3] == [0.0, 12.5, 12.5 + 10]


def test_a_loop_in_a_hurry_looks_at_once() -> None:
    assert looks_of(0.0)[:5] == [0.0, 1.0, 2.0, 2.5, 3.0]
