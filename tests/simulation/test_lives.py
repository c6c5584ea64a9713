"""Lives: what is killed never resumes, and what stands still acts later on what it knew before."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from sellerwatch.sandbox.chance import Chance
from sellerwatch.simulation.lives import Life, death, driven_tasks, stillness
from sellerwatch.simulation.loop import SimulatedLoop, Standstill


def run(story: Coroutine[Any, Any, None], seed: int = 1) -> SimulatedLoop:
    loop = SimulatedLoop(Chance(seed, "schedule"))
    loop.set_task_factory(driven_tasks)
    try:
        loop.run_until_complete(story)
    finally:
        loop.close()
    return loop


def test_what_is_killed_runs_no_finally_and_neither_do_the_tasks_it_made() -> None:
    done = []

    async def child() -> None:
        try:
            await asyncio.sleep(1)
            done.append("child")
        finally:
            done.append("finally")

    async def process(life: Life) -> None:
        task = asyncio.create_task(child())
        try:
            await asyncio.sleep(0.5)
            await death(life)
            done.append("after death")
        finally:
            done.append("finally")
            task.cancel()

    async def story() -> None:
        life = Life("p1")
        root = life.begin(process(life))
        await life.died.wait()
        await asyncio.sleep(100)
        root.cancel()
        await asyncio.sleep(1)
        assert done == []
        assert not root.done()
        life.bury()

    run(story())


def test_a_process_that_stands_still_goes_on_where_it_was_and_holds_up_nobody_else() -> None:
    told = []

    async def process(life: Life | None, name: str) -> None:
        loop = asyncio.get_running_loop()
        if life:
            await stillness(life, 300)
        await asyncio.sleep(1)
        told.append((name, loop.time()))

    async def story() -> None:
        still, other = Life("still"), Life("other")
        await asyncio.gather(still.begin(process(still, "still")), other.begin(process(None, "other")))

    run(story())
    assert told == [("other", 1.0), ("still", 301.0)]


def test_who_is_cancelled_while_standing_still_hears_of_it_afterwards() -> None:
    async def process(life: Life) -> float:
        try:
            await stillness(life, 300)
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            return asyncio.get_running_loop().time()
        return 0.0

    async def story() -> None:
        life = Life("p1")
        root = life.begin(process(life))
        await asyncio.sleep(10)
        root.cancel()
        assert await root == 300.0

    run(story())


@pytest.mark.parametrize("seed", range(5))
def test_the_seed_chooses_among_what_is_ready_and_timers_come_by_moment(seed: int) -> None:
    def order(chosen: int) -> list[int]:
        told: list[int] = []

        async def one(number: int) -> None:
            told.append(number)
            await asyncio.sleep(10 - number)
            told.append(number)

        async def story() -> None:
            await asyncio.gather(*(one(number) for number in range(10)))

        run(story(), chosen)
        return told

    told = order(seed)
    assert told == order(seed)
    assert told[10:] == list(range(9, -1, -1))
    assert len({tuple(order(other)) for other in range(5)}) > 1


def test_threads_and_sockets_are_fenced_off_and_a_standstill_is_told() -> None:
    async def thread() -> None:
        await asyncio.to_thread(print)

    async def nothing() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(AssertionError, match="a thread has a time of its own"):
        run(thread())
    with pytest.raises(Standstill):
        run(nothing())
