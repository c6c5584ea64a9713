"""Virtual time: an event loop whose clock goes to the next timer as soon as nothing is left to do.

No selector, no threads, no wall clock: a month of waiting costs as long as what is done in it. With a seed, timers come by
moment and then by age, and which of the ready callbacks runs next is the seed's choice; without one all is as asyncio
orders it. Either way it is the same each time. Whoever tries to leave by a thread or a socket is told so.
"""

import asyncio
import heapq
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from contextvars import Context
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn, TypeVar

from sellerwatch.sandbox.chance import Chance

T = TypeVar("T")
BEGINNING = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


class Standstill(Exception):
    """Nothing is ready and nothing will ever be: everybody waits for somebody."""


class SimulatedLoop(asyncio.BaseEventLoop):
    _ready: deque[asyncio.Handle]

    def __init__(self, choice: Chance | None = None) -> None:
        super().__init__()
        self._choice = choice
        self._now = 0.0
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._timers_made = 0
        self.steps = 0

    def time(self) -> float:
        return self._now

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        # Without a choice, those of one moment come in the order that asyncio's own heap gives them.
        self._timers_made += self._choice is not None
        heapq.heappush(self._timers, (when, self._timers_made, timer))
        return timer

    def _timer_handle_cancelled(self, timer: asyncio.TimerHandle) -> None:
        """It is left out when its time has come."""

    def _run_once(self) -> None:
        ready, timers = self._ready, self._timers
        if not ready:
            while timers and timers[0][2]._cancelled:  # noqa: SLF001 - a loop owns its handles
                heapq.heappop(timers)
            if not timers:
                raise Standstill
            self._now = max(self._now, timers[0][0])
        while timers and timers[0][0] <= self._now:
            ready.append(heapq.heappop(timers)[2])
        # Without a choice as asyncio does it: what is ready now, then what has become ready meanwhile.
        for _ in range(len(ready) if self._choice is None else 1):
            if self._choice is not None:
                ready.rotate(-self._choice.below(len(ready)))
            handle = ready.popleft()
            if not handle._cancelled:  # noqa: SLF001
                self.steps += 1
                handle._run()  # noqa: SLF001

    def run_in_executor(self, *_: Any) -> NoReturn:  # type: ignore[override]
        raise AssertionError("a thread has a time of its own")

    def add_reader(self, *_: Any) -> NoReturn:  # type: ignore[override]
        raise AssertionError("a socket has a time of its own")

    def add_writer(self, *_: Any) -> NoReturn:  # type: ignore[override]
        raise AssertionError("a socket has a time of its own")

    def call_soon_threadsafe(self, *_: Any, **__: Any) -> NoReturn:  # type: ignore[override]
        raise AssertionError("a thread has a time of its own")

    def _process_events(self, _: Any) -> None:
        """There is no selector."""

    def _write_to_self(self) -> None:
        """Nor anyone to wake."""


class VirtualClock:
    """`ports.time.Clock` over the running loop. One process' may be `ahead` of the others', or be set meanwhile."""

    def __init__(self, beginning: datetime = BEGINNING, ahead: timedelta = timedelta(0)) -> None:
        self._beginning = beginning
        self.ahead = ahead

    def now(self) -> datetime:
        return self._beginning + self.ahead + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))  # noqa: TID251 - virtual time

    async def within(self, seconds: float, awaitable: Awaitable[T]) -> T:
        async with asyncio.timeout(max(0.0, seconds)):
            return await awaitable


def run_virtually(story: Coroutine[Any, Any, T], choice: Chance | None = None) -> T:
    """Run a story to its end on a loop of its own."""
    loop = SimulatedLoop(choice)
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
