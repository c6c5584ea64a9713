"""Rows about trust: what is quarantined, how answers differ from what is declared, what was not told."""

from dataclasses import dataclass
from datetime import date, datetime

from sellerwatch.domain.documents import DocumentKind
from sellerwatch.domain.quarantines import QuarantineStatus


@dataclass(frozen=True, slots=True)
class QuarantineRow:
    quarantine_id: str
    seller_id: str
    execution_id: str
    status: QuarantineStatus
    measure: str
    field: str
    reason: str
    documents: int
    events: int
    opened_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class DriftRow:
    """A field that was not as declared, over some days."""

    kind: DocumentKind
    field: str
    problem: str
    """`missing`, `unknown`, `unreadable`, or why an entry of a list could not be read."""
    times: int
    sample: str | None
    """Of the last day: an item's number, or what could not be read."""
    last_seen_at: datetime


@dataclass(frozen=True, slots=True)
class SuppressedRow:
    """Changes that were not told, by the rule that kept them back."""

    rule: str
    times: int
    last_at: datetime


@dataclass(frozen=True, slots=True)
class DriftReport:
    since: date
    quarantines: tuple[QuarantineRow, ...]
    """Open ones, and those opened since; the newest first, at most `LISTED_MAX`."""
    fields: tuple[DriftRow, ...]
    """The most frequent first, at most `LISTED_MAX` of each problem."""
    suppressed: tuple[SuppressedRow, ...]
