"""Loops that are in no hurry: what a simulation on virtual time lives with."""

import asyncio

from sellerwatch.adapters.bell import AsyncBell
from sellerwatch.entry.loops import Loop, run_loops
from simulation.virtual import VirtualClock, run_virtually


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
