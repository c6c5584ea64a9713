"""Pausing: whoever finds that nothing may be received says so, for whoever looks for messages that were lost.

A breaker, an empty pool, a robots.txt that can't be had, an engine or a queue that is away: what waits meanwhile has
not been lost. Said at most every few seconds by each process; what was said last holds for all.
"""

from dataclasses import dataclass

from sellerwatch.ports.store import Store
from sellerwatch.ports.time import Clock

SAID_EVERY_SECONDS = 10.0


@dataclass(slots=True)
class Pausing:
    store: Store
    clock: Clock
    _said: float | None = None

    async def note(self, reason: str) -> None:
        now = self.clock.monotonic()
        if self._said is not None and now - self._said < SAID_EVERY_SECONDS:
            return
        at = self.clock.now()
        await self.store.transact(lambda unit: unit.chores.note_pause(reason, at))
        self._said = now
