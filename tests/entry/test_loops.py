"""Loops and the worker go on after whatever failed, and soon enough."""

import asyncio
from types import SimpleNamespace

from sellerwatch.adapters.bell import AsyncBell
from sellerwatch.entry.loops import Loop, run_loops
from sellerwatch.entry.up import REST_CEILING, keep_crawling
from simulation.virtual import VirtualClock, run_virtually


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
