"""Rows of a product's past: its versions, what proved each, which delivery carried it, and what two moments differ in."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sellerwatch.domain.changes import FieldChange
from sellerwatch.domain.documents import DocumentKind
from sellerwatch.ports.reports.rows import ChangeRow

LAGS_MAX = 10_000
"""So many deliveries, at most, are measured for one answer."""


@dataclass(frozen=True, slots=True)
class ProofRow:
    """The document that a version rests on."""

    kind: DocumentKind
    raw_id: str
    fetched_at: datetime
    is_kept: bool
    """False: its raw has been forgotten since."""


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """The event that told the product server of a version: its own, or the newer one that took its place."""

    outbox_id: str
    version: int
    """Of the event; newer than the change's own when that was folded into it."""
    status: str
    confirmed_at: datetime | None
    """When the product server said that it has it."""
    note: str | None
    """What came of it otherwise: the last error, or why it was never sent."""


@dataclass(frozen=True, slots=True)
class VersionRow:
    change: ChangeRow
    proofs: tuple[ProofRow, ...]
    """None where no document told, but a list: by what it showed, or did not show."""
    execution_id: str | None
    """The crawl in which it was found."""
    delivery: DeliveryRow | None
    """None: its row has been forgotten, which happens to delivered ones only."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What a product became between two moments, whatever it was in between."""

    item_no: int
    from_version: int
    """0: it was not complete yet, and nothing was known of it."""
    to_version: int
    fields: tuple[FieldChange, ...]


@dataclass(frozen=True, slots=True)
class Lags:
    """How long deliveries took, from the answer that told of a change to the product server's confirmation."""

    count: int
    median: timedelta | None = None
    slow: timedelta | None = None
    """Nineteen in twenty were quicker."""
    longest: timedelta | None = None
