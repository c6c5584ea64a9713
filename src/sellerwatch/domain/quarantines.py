"""Quarantines: a crawl that looks like drift, kept from the products until somebody or something decides.

    (a limit is met) ─▶ OPEN ── release ────▶ RELEASED      it is how things are: its documents are absorbed
                         ▲ ├─── discard ────▶ DISCARDED     it is nonsense: its documents are done with
                         │ ├─── supersede ──▶ SUPERSEDED    a later crawl of the seller says it anew
                         │ └─── reprocess ──▶ REPROCESSED   read once more, under the guard's eyes
                         '───── (a limit is met again) ─────────'

While it is OPEN products keep their state, versions and history. The documents wait (raws HELD), what they would make
the product server hear stands in the outbox as HELD rows that block nothing, and no absence is drawn from the crawl.
Of one seller at most one is OPEN: a later crawl that trips too takes the place of the earlier one, one that passes
ends it. Ending is one row; what waited follows in batches (`settle`), by whoever finds it, also after a crash.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sellerwatch.domain.drift import Breach
from sellerwatch.domain.errors import WrongVerb
from sellerwatch.domain.ids import derived


class QuarantineStatus(StrEnum):
    OPEN = "OPEN"
    RELEASED = "RELEASED"
    DISCARDED = "DISCARDED"
    SUPERSEDED = "SUPERSEDED"
    REPROCESSED = "REPROCESSED"


@dataclass(slots=True)
class Quarantine:
    quarantine_id: str
    seller_id: str
    execution_id: str
    measure: str
    field: str
    reason: str
    """In words, with an example."""
    opened_at: datetime
    status: QuarantineStatus = QuarantineStatus.OPEN
    documents: int = 0
    """Held so far."""
    events: int = 0
    """Held so far: what would be told."""
    ended_at: datetime | None = None
    settled_at: datetime | None = None
    """Nothing waits in it any more."""

    @classmethod
    def open(cls, execution_id: str, seller_id: str, breach: Breach, at: datetime) -> "Quarantine":
        quarantine_id = derived(execution_id, "quarantine")
        return cls(quarantine_id, seller_id, execution_id, breach.measure.value, breach.field, breach.text, at)

    @property
    def is_open(self) -> bool:
        return self.status is QuarantineStatus.OPEN

    @property
    def lets_pass(self) -> bool:
        """Its documents are absorbed without being judged."""
        return self.status is QuarantineStatus.RELEASED

    @property
    def drops(self) -> bool:
        """Its documents are done with, and prove nothing."""
        return self.status in {QuarantineStatus.DISCARDED, QuarantineStatus.SUPERSEDED}

    def hold(self, documents: int, events: int) -> None:
        """So many more wait."""
        self._only("hold")
        self.documents, self.events = self.documents + documents, self.events + events

    def release(self, at: datetime) -> None:
        self._end("release", QuarantineStatus.RELEASED, at)

    def discard(self, at: datetime) -> None:
        self._end("discard", QuarantineStatus.DISCARDED, at)

    def supersede(self, at: datetime) -> None:
        """A later crawl of the seller has come to its own verdict."""
        self._end("supersede", QuarantineStatus.SUPERSEDED, at)

    def reprocess(self, at: datetime) -> None:
        """What waits is to be read once more, and judged anew."""
        self._end("reprocess", QuarantineStatus.REPROCESSED, at)

    def reopen(self, breach: Breach, at: datetime) -> None:
        """Read once more, it is still drift."""
        if self.status is not QuarantineStatus.REPROCESSED:
            raise WrongVerb("quarantine", self.quarantine_id, self.status, "reopen")
        self.measure, self.field, self.reason = breach.measure.value, breach.field, breach.text
        self.status, self.opened_at, self.ended_at, self.settled_at = QuarantineStatus.OPEN, at, None, None
        self.documents = self.events = 0

    def settle(self, at: datetime) -> None:
        """All that waited has gone where its end sends it."""
        if self.is_open:
            raise WrongVerb("quarantine", self.quarantine_id, self.status, "settle")
        self.settled_at = at

    def _end(self, verb: str, status: QuarantineStatus, at: datetime) -> None:
        self._only(verb)
        self.status, self.ended_at = status, at

    def _only(self, verb: str) -> None:
        if not self.is_open:
            raise WrongVerb("quarantine", self.quarantine_id, self.status, verb)
