"""Group commit: one call for what comes together, an outcome of its own for each, and nobody left waiting."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from sellerwatch.adapters.clock import SystemClock
from sellerwatch.domain.errors import Refused, Unavailable, Unreadable, WrongVerb
from sellerwatch.steps.together import Together

NOW = SystemClock()
"""To sleep for no time is to let the others have their turn."""


class TurnByTurn:
    """Waiting is giving the others their turn, a few times; how long was asked for is written down."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        for _ in range(3):
            await NOW.sleep(0)


class Work:
    """Doubles numbers; fails as it is told to, and writes down the groups it was given."""

    def __init__(self, fails: Callable[[Sequence[int]], BaseException | None] = lambda _: None) -> None:
        self.groups: list[list[int]] = []
        self.done: list[int] = []
        self.fails = fails
        self.is_running = False
        self.has_begun = asyncio.Event()

    async def __call__(self, items: Sequence[int]) -> Sequence[int]:
        assert not self.is_running, "two groups at once"
        self.is_running = True
        self.has_begun.set()
        self.groups.append(list(items))
        await NOW.sleep(0)
        self.is_running = False
        error = self.fails(items)
        if error is not None:
            raise error
        self.done += items
        return [item * 2 for item in items]


def a_together(work: Callable[[Sequence[int]], Awaitable[Sequence[int]]], most: int = 500) -> Together[int, int]:
    return Together(work, TurnByTurn(), 0.005, most)  # type: ignore[arg-type]


async def all_of(together: Together[int, int], items: Sequence[int]) -> list[int | BaseException]:
    async with asyncio.timeout(5):
        return list(await asyncio.gather(*(together(item) for item in items), return_exceptions=True))


async def test_what_comes_together_is_one_call_and_each_gets_its_own_result() -> None:
    work = Work()
    assert await all_of(a_together(work), range(100)) == [item * 2 for item in range(100)]
    assert work.groups == [list(range(100))]


async def test_one_alone_waits_a_moment_for_company_and_is_served() -> None:
    work, clock = Work(), TurnByTurn()
    together: Together[int, int] = Together(work, clock, 0.005)  # type: ignore[arg-type]
    assert await together(7) == 14
    assert clock.waits == [0.005]


async def test_a_group_is_never_larger_than_the_most_and_keeps_the_order() -> None:
    work = Work()
    await all_of(a_together(work, most=7), range(40))
    assert max(map(len, work.groups)) <= 7
    assert [item for group in work.groups for item in group] == list(range(40))


async def test_who_comes_while_a_group_is_under_way_is_in_the_next_one() -> None:
    work = Work()
    together = a_together(work)
    first = asyncio.create_task(together(1))
    await work.has_begun.wait()
    second = asyncio.create_task(together(2))
    assert await first == 2
    assert await second == 4
    assert work.groups == [[1], [2]]


async def test_after_a_pause_it_begins_again() -> None:
    work = Work()
    together = a_together(work)
    for item in range(5):
        assert await together(item) == item * 2
        await NOW.sleep(0)
    assert len(work.groups) == 5


@pytest.mark.parametrize(
    "error",
    [ValueError("broken"), Refused("no"), WrongVerb("task", "7", "FAILED", "succeed"), Unreadable("DETAIL", "x")],
)
async def test_one_that_cannot_be_written_does_not_take_the_others_with_it(error: Exception) -> None:
    work = Work(lambda items: error if 13 in items else None)
    results = await all_of(a_together(work), range(20))
    assert results.pop(13) is error
    assert results == [item * 2 for item in range(20) if item != 13]
    assert work.done == [item for item in range(20) if item != 13]


async def test_when_nobody_answers_all_fail_together_and_nobody_is_asked_again() -> None:
    error = Unavailable("the database is away")
    work = Work(lambda _: error)
    assert await all_of(a_together(work), range(50)) == [error] * 50
    assert len(work.groups) == 1


async def test_a_failure_ends_with_its_group() -> None:
    work = Work(lambda items: Unavailable("away") if 1 in items else None)
    together = a_together(work)
    with pytest.raises(Unavailable):
        await together(1)
    assert await together(2) == 4


@pytest.mark.parametrize("length", [0, 1, 4, 6])
async def test_results_that_do_not_fit_the_items_are_nobodys_and_are_not_worked_for_again(length: int) -> None:
    groups: list[Sequence[int]] = []

    async def work(items: Sequence[int]) -> Sequence[int]:
        groups.append(items)
        return [0] * length

    results = await all_of(a_together(work), range(5))
    assert [type(result) for result in results] == [AssertionError] * 5
    assert len(groups) == 1


async def test_who_stops_waiting_leaves_the_others_their_results() -> None:
    work = Work()
    together = a_together(work)
    tasks = [asyncio.create_task(together(item)) for item in range(5)]
    await NOW.sleep(0)
    tasks[2].cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results.pop(2), asyncio.CancelledError)
    assert results == [0, 2, 6, 8]
    assert await together(9) == 18


async def test_who_stops_waiting_while_the_group_fails_disturbs_nobody() -> None:
    tasks: list[asyncio.Task[int]] = []

    def fails(items: Sequence[int]) -> Exception | None:
        tasks[0].cancel()
        return ValueError("broken") if len(items) > 1 else None

    together = a_together(Work(fails))
    tasks += [asyncio.create_task(together(item)) for item in range(4)]
    async with asyncio.timeout(5):
        results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError)
    assert results[1:] == [2, 4, 6]


async def test_when_the_work_is_broken_off_nobody_is_left_waiting() -> None:
    """As when the thread that writes is closed: the call ends cancelled, and not by those who wait for it."""
    work = Work(lambda items: asyncio.CancelledError() if 1 in items else None)
    together = a_together(work, most=3)
    results = await all_of(together, range(1, 8))
    assert [type(result) for result in results] == [Unavailable] * 7
    assert await together(9) == 18


async def test_broken_off_among_those_tried_one_by_one_nobody_is_left_waiting() -> None:
    def fails(items: Sequence[int]) -> BaseException | None:
        if len(items) > 1:
            return ValueError("broken")
        return asyncio.CancelledError() if items[0] == 2 else None

    results = await all_of(a_together(Work(fails)), range(6))
    assert results[:2] == [0, 2]
    assert [type(result) for result in results[2:]] == [Unavailable] * 4


async def test_when_its_turn_is_cancelled_nobody_is_left_waiting() -> None:
    together = a_together(Work())
    tasks = [asyncio.create_task(together(item)) for item in range(3)]
    await NOW.sleep(0)
    assert together._turn is not None
    together._turn.cancel()
    async with asyncio.timeout(5):
        results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results] == [Unavailable] * 3
    assert await together(9) == 18
