"""Raws: what the marketplace answered, kept as it came, once per distinct content.

    PENDING ─▶ PROCESSED
       ▲ ├───▶ FAILED ─── retries left ─▶ PENDING
       │ └───▶ HELD ──┬── released, or read once more ─▶ PENDING
       │              └── discarded, or superseded ────▶ PROCESSED, with a note
       '── by hand, from any of them

A list's raw ripens when the crawl of its item has ended (or after a while): `next_attempt_at` says when it may be
processed. The same content seen again later is the same row, PENDING again with the new moment.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sellerwatch.domain.documents import DocumentKind
from sellerwatch.domain.errors import WrongVerb
from sellerwatch.domain.ids import derived


class RawStatus(StrEnum):
    PENDING = "PENDING"
    PROCESSED = "PROCESSED"
    FAILED = "FAILED"
    HELD = "HELD"
    """It could be read, and waits in the quarantine of its execution (domain/quarantines.py)."""


@dataclass(slots=True)
class Raw:
    raw_id: str
    item_no: int
    seller_id: str
    task_id: str
    execution_id: str
    kind: DocumentKind
    body: bytes
    raw_hash: str
    crawled_at: datetime
    next_attempt_at: datetime
    """PENDING: from when on it may be processed. FAILED: when the sweep tries it again; see `again`."""
    status: RawStatus = RawStatus.PENDING
    retry_count: int = 0
    product_id: str | None = None
    error_message: str | None = None
    processed_at: datetime | None = None

    def processed(self, product_id: str | None, at: datetime, note: str | None = None) -> None:
        self._only({RawStatus.PENDING}, "processed")
        self.status, self.product_id, self.processed_at, self.error_message = RawStatus.PROCESSED, product_id, at, note

    def hold(self) -> None:
        self._only({RawStatus.PENDING}, "hold")
        self.status = RawStatus.HELD

    def done_with(self, note: str, at: datetime) -> None:
        """Nothing came of it, by its quarantine's end."""
        self._only({RawStatus.PENDING, RawStatus.HELD}, "done_with")
        self.status, self.processed_at, self.error_message = RawStatus.PROCESSED, at, note

    def failed(self, error: str, next_at: datetime) -> None:
        """It can't be understood: kept with its error."""
        self._only({RawStatus.PENDING}, "failed")
        self.status, self.error_message, self.next_attempt_at = RawStatus.FAILED, error, next_at

    def again(self, at: datetime) -> None:
        """By the sweep while retries are left, by hand, or by its quarantine's end."""
        self._only({RawStatus.FAILED, RawStatus.PROCESSED, RawStatus.HELD}, "again")
        self.retry_count += self.status is RawStatus.FAILED
        self.status, self.next_attempt_at = RawStatus.PENDING, at

    def anew(self, at: datetime) -> None:
        """As if it had just come: what became of it so far says nothing any more."""
        self._only({RawStatus.FAILED, RawStatus.PROCESSED, RawStatus.HELD}, "anew")
        self.status, self.next_attempt_at, self.retry_count, self.error_message = RawStatus.PENDING, at, 0, None

    def _only(self, allowed: set[RawStatus], verb: str) -> None:
        if self.status not in allowed:
            raise WrongVerb("raw", self.raw_id, self.status, verb)


def raw_id(item_no: int, kind: DocumentKind, raw_hash: str) -> str:
    return derived(f"{item_no}/{kind}", raw_hash)
