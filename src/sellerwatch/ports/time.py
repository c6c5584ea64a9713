"""Time, chance and waking up, as they are handed in."""

from collections.abc import Awaitable
from datetime import datetime
from typing import Protocol, TypeVar

T = TypeVar("T")


class Clock(Protocol):
    """The only way to know the time and to wait. On a virtual clock a month passes in seconds."""

    def now(self) -> datetime:
        """The moment, aware, UTC."""

    def monotonic(self) -> float:
        """Seconds that never go back; for durations only."""

    async def sleep(self, seconds: float) -> None: ...

    async def within(self, seconds: float, awaitable: Awaitable[T]) -> T:
        """What it gives, or TimeoutError: then it has been cancelled."""


class Chance(Protocol):
    """The only source of randomness and of ids that begin something."""

    def random(self) -> float:
        """0 ≤ x < 1."""

    def token_bytes(self, count: int) -> bytes: ...

    def uuid7(self, at: datetime) -> str: ...


class Bell(Protocol):
    """Wakes who waits in this process. Saves waiting time only: whoever misses a ring looks again by himself."""

    def ring(self, name: str) -> None:
        """Something of this name may be there to do. Rings before anyone waits are not lost, and count once."""

    async def wait(self, name: str, seconds: float) -> bool:
        """Until it rings, at most so long; whether it rang."""
