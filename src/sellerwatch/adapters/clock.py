"""The real clock: the one room that reads the wall clock and really waits.

Promises: `now` is an aware UTC moment, `monotonic` never goes back, `sleep` and `within` wait on the running event
loop, so that a loop with a time of its own moves them along. Refuses nothing: a wait below zero is no wait.
"""

import asyncio
import time
from collections.abc import Awaitable
from datetime import UTC, datetime
from typing import TypeVar

Result = TypeVar("Result")


class SystemClock:
    """Time as the machine has it."""

    def now(self) -> datetime:
        """The moment, aware, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds since some fixed moment; only differences mean anything."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait; others run meanwhile, also when there is nothing to wait for."""
        await asyncio.sleep(max(0.0, seconds))

    async def within(self, seconds: float, awaitable: Awaitable[Result]) -> Result:
        """The awaitable's result, or TimeoutError when it takes longer; what was under way is then cancelled."""
        async with asyncio.timeout(max(0.0, seconds)):
            return await awaitable
