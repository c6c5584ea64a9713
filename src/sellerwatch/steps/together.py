"""Group commit: what comes together within a few milliseconds is worked on in one call.

A database is fast by the batch, and so is the pool. Each item has its own outcome: when a group fails as a whole,
its items are tried one by one, so that one that can't be written doesn't take the others with it. Only when nobody
answered (Unavailable) they fail together. Whatever happens, nobody is left waiting.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from sellerwatch.domain.errors import Unavailable
from sellerwatch.ports.time import Clock

A = TypeVar("A")
R = TypeVar("R")


class Together(Generic[A, R]):
    """`await together(item)` gives the item's own result, or raises its own error."""

    def __init__(
        self, work: Callable[[Sequence[A]], Awaitable[Sequence[R]]], clock: Clock, wait_seconds: float, most: int = 500
    ) -> None:
        self._work, self._clock, self._wait_seconds, self._most = work, clock, wait_seconds, most
        self._waiting: list[tuple[A, asyncio.Future[R]]] = []
        self._turn: asyncio.Task[None] | None = None

    async def __call__(self, item: A) -> R:
        outcome: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, outcome))
        if self._turn is None or self._turn.done():
            self._turn = asyncio.create_task(self._run())
            self._turn.add_done_callback(self._is_over)
        return await outcome

    async def _run(self) -> None:
        while self._waiting:
            if len(self._waiting) < self._most:
                await self._clock.sleep(self._wait_seconds)
            group, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
            try:
                await self._settle(group)
            except BaseException:
                _fail(group, _broken_off())
                raise

    def _is_over(self, turn: asyncio.Task[None]) -> None:
        """A turn that was broken off, perhaps before it began, comes back to nobody: they must not wait for ever."""
        if turn is self._turn:
            left, self._waiting = self._waiting, []
            _fail(left, _broken_off())

    async def _settle(self, group: Sequence[tuple[A, asyncio.Future[R]]]) -> None:
        try:
            results = await self._work([item for item, _ in group])
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to the items, not to this loop
            if len(group) == 1 or isinstance(error, Unavailable):
                _fail(group, error)
                return
            for single in group:
                await self._settle([single])
            return
        if len(results) != len(group):
            # Not to be tried again: the work is done, only whose result is whose is not known.
            _fail(group, AssertionError(f"{len(results)} results for {len(group)} items"))
            return
        for (_, outcome), result in zip(group, results, strict=True):
            if not outcome.done():
                outcome.set_result(result)


def _fail(group: Sequence[tuple[A, asyncio.Future[R]]], error: Exception) -> None:
    for _, outcome in group:
        if not outcome.done():
            outcome.set_exception(error)


def _broken_off() -> Unavailable:
    return Unavailable("broken off before it was known what came of it")
