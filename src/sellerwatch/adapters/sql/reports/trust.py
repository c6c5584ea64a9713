"""What is quarantined, what drifts, and what was not told: small tables, each read whole for the days in question."""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from sqlalchemy import Connection, Select, func, or_, select

from sellerwatch.adapters.sql.reports.reading import every
from sellerwatch.adapters.sql.shown import word
from sellerwatch.adapters.sql.tables import field_drift, suppressed_changes
from sellerwatch.adapters.sql.tables import quarantines as table
from sellerwatch.domain.documents import DocumentKind
from sellerwatch.domain.quarantines import QuarantineStatus
from sellerwatch.ports.reports.figures import LISTED_MAX
from sellerwatch.ports.reports.trust import DriftReport, DriftRow, QuarantineRow, SuppressedRow

_Q, _D, _S = table.c, field_drift.c, suppressed_changes.c
_IS_OPEN = _Q.status == QuarantineStatus.OPEN.value
QUARANTINE = select(
    _Q.quarantine_id,
    _Q.seller_id,
    _Q.execution_id,
    _Q.status,
    _Q.measure,
    _Q.field,
    _Q.reason,
    _Q.documents,
    _Q.events,
    _Q.opened_at,
    _Q.ended_at,
).order_by(_Q.opened_at.desc(), _Q.id.desc())


def quarantines_of(status: QuarantineStatus | None) -> Select[Any]:
    return QUARANTINE if status is None else QUARANTINE.where(_Q.status == status.value)


def quarantine_of(quarantine_id: str) -> Select[Any]:
    return QUARANTINE.where(_Q.quarantine_id == quarantine_id)


def drift_since(connection: Connection, since: datetime) -> DriftReport:
    wanted = QUARANTINE.where(or_(_IS_OPEN, _Q.opened_at >= since)).limit(LISTED_MAX)
    day = since.date()
    return DriftReport(
        day,
        tuple(every(connection, wanted, quarantine_row)),
        tuple(_fields(connection, day)),
        _suppressed(connection, day),
    )


def _fields(connection: Connection, since: date) -> list[DriftRow]:
    rows = connection.execute(select(field_drift).where(_D.day >= since).order_by(_D.day)).mappings()
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in rows:
        key = (row["data_type"], row["field"], row["problem"])
        known = found.setdefault(key, {"times": 0})
        known["times"] += row["times"]
        known["sample"], known["last_seen_at"] = row["sample"], row["last_seen_at"]
    drift = [
        DriftRow(word(DocumentKind, kind), field, problem, **rest) for (kind, field, problem), rest in found.items()
    ]
    listed: dict[str, int] = {}
    shown = []
    for one in sorted(drift, key=lambda one: (-one.times, one.kind, one.field)):
        listed[one.problem] = listed.get(one.problem, 0) + 1
        if listed[one.problem] <= LISTED_MAX:
            shown.append(one)
    return shown


def _suppressed(connection: Connection, since: date) -> tuple[SuppressedRow, ...]:
    counted = (
        select(_S.rule, func.sum(_S.times).label("times"), func.max(_S.last_at).label("last_at"))
        .where(_S.day >= since)
        .group_by(_S.rule)
        .order_by(_S.rule)
    )
    rows = connection.execute(counted).mappings()
    return tuple(SuppressedRow(row["rule"], int(row["times"]), row["last_at"]) for row in rows)


def quarantine_row(row: Mapping[Any, Any]) -> QuarantineRow:
    return QuarantineRow(**{**row, "status": word(QuarantineStatus, row["status"])})
