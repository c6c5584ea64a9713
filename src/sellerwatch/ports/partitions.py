"""The months of the log of requests, where the database keeps each in a partition of its own.

A month that is over is dropped in a moment, whatever it holds; rows would have to be deleted one by one. The months to
come are made long before they begin: what has none lies in the last partition, which is never dropped.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Partition:
    name: str
    """`pYYYYMM`, or `p_future`."""
    before: datetime | None
    """It holds what is earlier, from the end of the one before it on; None: the last one."""
    rows: int
    """About so many."""


@dataclass(frozen=True, slots=True)
class Kept:
    made: Sequence[str] = ()
    dropped: Sequence[str] = ()


class Partitions(Protocol):
    async def all(self) -> list[Partition]:
        """In the order of time; none where the database has no partitions: then rows are deleted."""

    async def keep(self, at: datetime, kept_since: datetime) -> Kept:
        """Make what is missing up to eleven months after `at`'s, drop what ends before `kept_since`; never `at`'s.

        Of two at once one does it, and the other does nothing. Unavailable while others hold the table for too long.
        """
