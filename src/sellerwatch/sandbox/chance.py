"""Seeded chance: the same names give the same draws, in every process and on every version of Python.

Each stream is named (`Chance(seed, "faults", path)`), so that drawing more from one never shifts another.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

T = TypeVar("T")
_WORD = (1 << 64) - 1


class Chance:
    """A splitmix64 stream that begins where its names say."""

    __slots__ = ("_state",)

    def __init__(self, *names: object) -> None:
        text = "\x1f".join(map(str, names)).encode()
        self._state = int.from_bytes(blake2b(text, digest_size=8).digest(), "big")

    def draw(self) -> int:
        """64 bits."""
        self._state = state = (self._state + 0x9E3779B97F4A7C15) & _WORD
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _WORD
        return state ^ (state >> 31)

    def below(self, end: int) -> int:
        """An integer from 0 to `end` - 1."""
        return (self.draw() * end) >> 64

    def between(self, first: int, last: int) -> int:
        """An integer from `first` to `last`, both included."""
        return first + ((self.draw() * (last - first + 1)) >> 64)

    def share(self) -> float:
        """A fraction from 0 up to, never reaching, 1."""
        return (self.draw() >> 11) * 2.0**-53

    def happens(self, percent: float) -> bool:
        """True in `percent` of a hundred cases."""
        return self.share() * 100 < percent

    def pick(self, choices: Sequence[T]) -> T:
        """One of them, each as likely."""
        return choices[self.below(len(choices))]

    def shuffled(self, things: Sequence[T]) -> list[T]:
        """All of them in another order (Fisher-Yates)."""
        rest = list(things)
        for place in range(len(rest) - 1, 0, -1):
            other = self.below(place + 1)
            rest[place], rest[other] = rest[other], rest[place]
        return rest

    def sample(self, things: Sequence[T], amount: int) -> list[T]:
        """`amount` different ones, in drawn order; all of them when there are fewer."""
        rest = list(things)
        amount = min(amount, len(rest))
        for place in range(amount):
            other = place + self.below(len(rest) - place)
            rest[place], rest[other] = rest[other], rest[place]
        return rest[:amount]
