"""Taking turns: of all processes that would do the same every so often, one does it, and the others save the work.

    take ── ours ─▶ do it, and go on doing it: for a few periods nobody is asked, then the lock is prolonged
      ├── the engine of the locks is away ─▶ do it: done twice is better than not done
      └── another's ─▶ not now, nor until half of a turn is over; passed over `patience` times running ─▶ do it all the same

So a lock that always says yes costs what it would have saved, and one that always says no makes what is done by turns
rarer, `patience` + 1 times; neither makes it wrong. A holder that dies is followed when its time has run out, one that
fails or stops passes its turn on. To ask costs about as much as a sweep that finds nothing, which is why it is seldom.
"""

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

from sellerwatch.domain.errors import Unavailable
from sellerwatch.ports.locks import Locks
from sellerwatch.ports.time import Clock

PATIENCE = 9
PERIODS, LONGEST_SECONDS = 4, 60.0
"""A turn is so many periods long, but a holder that was killed is not missed for longer than that and one more period."""
SPARE_SECONDS = 2.0
"""So much later than its period may the next time come."""


@dataclass(slots=True)
class Turns:
    locks: Locks
    clock: Clock
    patience: int = PATIENCE
    _ours: dict[str, float] = field(default_factory=dict)
    """Until when, by our own time."""
    _others: dict[str, float] = field(default_factory=dict)
    """Until when nobody is asked whose it is."""
    _passed_over: Counter[str] = field(default_factory=Counter)

    async def is_ours(self, name: str, every: float) -> bool:
        """Whether to do now what is to be done `every` so many seconds."""
        now = self.clock.monotonic()
        if self._ours.get(name, now) >= now + every + SPARE_SECONDS:
            return True
        if self._others.get(name, now) <= now:
            seconds = min(every * PERIODS, LONGEST_SECONDS) + SPARE_SECONDS
            try:
                is_ours = await self.locks.take(name, seconds)
            except Unavailable:
                return True
            if is_ours:
                self._ours[name] = now + seconds
                self._forget(name)
                return True
            self._ours.pop(name, None)
            self._others[name] = now + seconds / 2
        self._passed_over[name] += 1
        if self._passed_over[name] <= self.patience:
            return False
        self._forget(name)
        return True

    async def pass_on(self, *names: str) -> None:
        """These, or all that are ours, are anybody's turn at once."""
        passed = sorted(self._ours.keys() & set(names) if names else self._ours)
        for name in passed:
            del self._ours[name]
        if passed:
            # What can't be given back runs out.
            with suppress(Unavailable):
                await self.locks.give_back(passed)

    def _forget(self, name: str) -> None:
        self._others.pop(name, None)
        self._passed_over.pop(name, None)
