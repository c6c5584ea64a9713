"""Chance: the one room that rolls dice and makes ids out of nothing.

Promises: `uuid7` is a version 7 UUID of RFC 9562 as 36 characters, and within one object each is greater than the one
before, even when the clock stands still or goes back. `SeededChance` gives the same things in the same order for the
same seed, and is for simulation only: its bytes are no secret.
"""

import random
import secrets
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TAIL_BITS = 74
STEP_BITS = 32


class _Sequence:
    """The ids of one process in rising order: 48 bits of milliseconds, then a random tail that is counted up."""

    def __init__(self, random_bits: Callable[[int], int]) -> None:
        self._random_bits = random_bits
        self._milliseconds = -1
        self._tail = 0
        self._turn = threading.Lock()

    def next(self, now: datetime) -> str:
        with self._turn:
            milliseconds = max(0, (now - EPOCH) // timedelta(milliseconds=1))
            tail = self._tail + 1 + self._random_bits(STEP_BITS)
            if milliseconds <= self._milliseconds and tail >> TAIL_BITS == 0:
                self._tail = tail
            else:
                self._milliseconds = max(milliseconds, self._milliseconds + 1)
                # One bit short, so that there is room to count up within the millisecond.
                self._tail = self._random_bits(TAIL_BITS - 1)
            return _uuid7(self._milliseconds, self._tail)


def _uuid7(milliseconds: int, tail: int) -> str:
    high, low = tail >> 62, tail & ((1 << 62) - 1)
    digits = f"{milliseconds << 80 | 7 << 76 | high << 64 | 2 << 62 | low:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


class SystemChance:
    """Chance from the operating system: good enough for keys."""

    def __init__(self) -> None:
        self._sequence = _Sequence(secrets.randbits)
        self._dice = random.SystemRandom()

    def random(self) -> float:
        """A number from 0 up to, not including, 1."""
        return self._dice.random()

    def token_bytes(self, count: int) -> bytes:
        """Bytes that nobody can guess."""
        return secrets.token_bytes(count)

    def uuid7(self, now: datetime) -> str:
        """A new id, greater than all that this object gave before."""
        return self._sequence.next(now)


class SeededChance:
    """Chance that repeats itself: the same seed, the same calls, the same answers."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)  # noqa: S311 - to repeat itself is what it is for
        self._sequence = _Sequence(self._dice.getrandbits)

    def random(self) -> float:
        """A number from 0 up to, not including, 1."""
        return self._dice.random()

    def token_bytes(self, count: int) -> bytes:
        """Bytes that look random."""
        return self._dice.randbytes(count)

    def uuid7(self, now: datetime) -> str:
        """A new id, greater than all that this object gave before."""
        return self._sequence.next(now)
