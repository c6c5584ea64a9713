"""Virtual time: an event loop whose clock goes to the next timer as soon as nothing is left to do.

No selector, no threads, no wall clock: a month of waiting costs as long as what is done in it, and runs the same way
each time. Whoever tries to leave by a thread or a socket is told so.
"""

import asyncio
import heapq
from collections.abc import Awaitable, Coroutine
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")
BEGINNING = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


class Standstill(Exception):
    """Nothing is ready and nothing will ever be: everybody waits for somebody."""


class VirtualLoop(asyncio.BaseEventLoop):
    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self.steps = 0

    def time(self) -> float:
        return self._now

    def _run_once(self) -> None:
        while self._scheduled and self._scheduled[0]._cancelled:
            heapq.heappop(self._scheduled)._scheduled = False
        if not self._ready:
            if not self._scheduled:
                raise Standstill
            self._now = max(self._now, self._scheduled[0]._when)
        while self._scheduled and self._scheduled[0]._when <= self._now:
            timer = heapq.heappop(self._scheduled)
            timer._scheduled = False
            self._ready.append(timer)
        for _ in range(len(self._ready)):
            handle = self._ready.popleft()
            if not handle._cancelled:
                self.steps += 1
                handle._run()

    def run_in_executor(self, *_: Any) -> NoReturn:
        raise AssertionError("a thread has a time of its own")

    def _process_events(self, _: Any) -> None:
        """There is no selector."""

    def _write_to_self(self) -> None:
        """Nor anyone to wake."""


class VirtualClock:
    """`ports.time.Clock` over the running loop."""

    def __init__(self, beginning: datetime = BEGINNING) -> None:
        self._beginning = beginning

    def now(self) -> datetime:
        return self._beginning + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))

    async def within(self, seconds: float, awaitable: Awaitable[T]) -> T:
        async with asyncio.timeout(max(0.0, seconds)):
            return await awaitable


def run_virtually(story: Coroutine[Any, Any, T]) -> T:
    """Run a story to its end on a loop of its own."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(story)
    finally:
        leftover = asyncio.all_tasks(loop)
        for task in leftover:
            task.cancel()
        with suppress(Standstill):
            loop.run_until_complete(_ended(leftover))
        loop.close()


async def _ended(tasks: set[asyncio.Task[Any]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)
