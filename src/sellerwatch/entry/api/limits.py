"""How often somebody may ask: a bucket for each, filled evenly, in this process.

Promises: the cost and the memory of a question do not grow with who asks; of very many, those who rested longest are
forgotten first, which gives them a full bucket.
"""

import math
from collections import OrderedDict
from typing import Final

from sellerwatch.domain.errors import Refused
from sellerwatch.ports.time import Clock

KNOWN_MAX: Final = 10_000
FOREVER_SECONDS: Final = 3600


class TooMany(Refused):
    """Asked too often: again after so many seconds."""

    def __init__(self, seconds: float) -> None:
        self.retry_after = max(1, math.ceil(seconds))
        super().__init__(f"too many requests: again after {self.retry_after} s")


class Allowance:
    """`per_second` on average for each name, `burst` of them at once. Nothing per second: nobody may at all."""

    def __init__(self, clock: Clock, per_second: float, burst: float) -> None:
        self._clock, self._per_second, self._burst = clock, per_second, max(1.0, burst)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> float:
        """0: go ahead. Else the seconds until it would be."""
        if self._per_second <= 0:
            return FOREVER_SECONDS
        now = self._clock.monotonic()
        level, at = self._buckets.pop(name, (self._burst, now))
        level = min(self._burst, level + (now - at) * self._per_second)
        is_free = level >= 1
        self._buckets[name] = (level - 1 if is_free else level, now)
        if len(self._buckets) > KNOWN_MAX:
            self._buckets.popitem(last=False)
        return 0.0 if is_free else (1 - level) / self._per_second
