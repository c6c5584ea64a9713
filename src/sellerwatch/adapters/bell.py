"""The bell of one process: saves waiting time between those who write and those who look.

Promises: a ring before anyone waits is kept and counts once; a ring wakes all who wait for its name. Knows nothing of
other processes, and is rung on the event loop's own thread.
"""

from asyncio import Event

from sellerwatch.ports.time import Clock


class AsyncBell:
    """One event per name; names are few and stay."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._events: dict[str, Event] = {}

    def ring(self, name: str) -> None:
        """Wake who waits for this name, or the next to come."""
        self._event(name).set()

    async def wait(self, name: str, seconds: float) -> bool:
        """Whether it rang within so long; what rang before counts."""
        event = self._event(name)
        try:
            await self._clock.within(seconds, event.wait())
        except TimeoutError:
            return False
        event.clear()
        return True

    def _event(self, name: str) -> Event:
        return self._events.setdefault(name, Event())
