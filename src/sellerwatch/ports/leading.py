"""The engines of the pool as whoever decides which one leads sees them.

Each keeps a ledger. Whose ledger counts is one row of the record, `Leaderships`; the database's engine looks at that
row in the step in which it lends, Redis at what it was told last. An engine that does not lead lends nothing (AWAY),
but ends the leases that it gave.

A ledger begins anew under an epoch: `clear`, `remember` as often as it takes, `complete`, then it may lead. All three
answer False, and change nothing, when a later epoch has begun: who was held up finds that it was overtaken.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from sellerwatch.domain.breakers import Breaker
from sellerwatch.domain.leadership import Leadership, Pulse
from sellerwatch.domain.recollection import Above, Bucket, Memory, Plea
from sellerwatch.ports.pool import Pool


class Ledger(Pool, Protocol):
    async def clear(self, epoch: int) -> bool:
        """Forget everything, and lend nothing. Numbers of revisions and events go on above all earlier ones."""

    async def remember(self, epoch: int, memories: Sequence[Memory]) -> bool:
        """Make these its members, with all that must not be forgotten of them. Twice is once."""

    async def complete(self, epoch: int, above: Above) -> bool:
        """That was everything."""


class Kept(Ledger, Protocol):
    """The ledger in the database, which nothing loses."""

    async def recall(self, after: int, count: int) -> list[Memory]:
        """Its members behind this number, by number: exactly what it knows."""

    async def above(self) -> Above: ...


class Lendable(Ledger, Protocol):
    """A ledger elsewhere, which may be lost: it lends for as long as it was told, and no longer.

    What was lost is never taken for what is so. Where no complete ledger is held that was told to lend (it was flushed,
    began anew, or resigned), nobody joins, nothing is said of anybody and no report is accepted: `load`, the operators'
    words, `standings` and `events` are Unavailable and change nothing, until a ledger that was told the last hour leads.
    """

    async def pulse(self) -> Pulse:
        """Unavailable when it can't be reached."""

    async def renew(self, epoch: int, until: datetime) -> bool:
        """Lend until then, by its own time. False: it does not hold the complete ledger of that epoch."""

    async def resign(self) -> None:
        """Lend nothing any more until it has begun anew."""


class Leading(Protocol):
    """The pool that everybody uses: whichever engine leads."""

    @property
    def epoch(self) -> int | None:
        """Under which it was asked last; None: it does not know."""


@dataclass(frozen=True, slots=True)
class Trace:
    """What the record knows of an identity's last hour; see `domain.recollection`."""

    logged: tuple[datetime, ...]
    bucket: Bucket | None
    pleas: tuple[Plea, ...]
    breaker: Breaker | None
    """None: CLOSED."""


class Leaderships(Protocol):
    """The row that says who leads, and the traces that the last hour left in the record."""

    def get(self) -> Leadership: ...
    def lock(self) -> Leadership: ...
    def save(self, leadership: Leadership) -> None: ...
    def note_books(self, epoch: int, at: datetime) -> bool:
        """The record knows all that the leader of this epoch did up to then; False: it leads no more."""

    def traces(self, agent_ids: Sequence[int], since: datetime, patient_since: datetime) -> dict[int, Trace]:
        """Of each of them: requests since, and pleas for patience since a moment further back."""
