"""Quarantines and drift, drawn and as JSON."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from sellerwatch.entry.console.shapes import time
from sellerwatch.entry.console.tables import right, table
from sellerwatch.entry.console.text import grouped, moment
from sellerwatch.ports.reports import DriftReport, QuarantineRow

if TYPE_CHECKING:
    from rich.table import Table


def quarantine_table(rows: Iterable[QuarantineRow]) -> "Table":
    drawn = [
        (
            row.quarantine_id,
            row.seller_id,
            row.status,
            row.reason,
            grouped(row.documents),
            grouped(row.events),
            moment(row.opened_at),
        )
        for row in rows
    ]
    return table(["quarantine", "seller", "status", "why", right("documents"), right("events"), "since"], drawn)


def drift_tables(report: DriftReport) -> "list[Table]":
    tables = []
    if report.quarantines:
        tables.append(quarantine_table(report.quarantines))
    if report.fields:
        rows = [
            (one.kind, one.field, one.problem, grouped(one.times), one.sample, moment(one.last_seen_at))
            for one in report.fields
        ]
        tables.append(table(["document", "field", "is", right("times"), "for example", "last seen"], rows))
    if report.suppressed:
        told = [(one.rule, grouped(one.times), moment(one.last_at)) for one in report.suppressed]
        tables.append(table(["changes not told", right("times"), "last"], told))
    return tables


def quarantine_shape(row: QuarantineRow) -> dict[str, Any]:
    return {
        "quarantineId": row.quarantine_id,
        "sellerId": row.seller_id,
        "executionId": row.execution_id,
        "status": row.status.value,
        "measure": row.measure,
        "field": row.field,
        "reason": row.reason,
        "documents": row.documents,
        "events": row.events,
        "openedAt": time(row.opened_at),
        "endedAt": time(row.ended_at),
    }


def drift_shape(report: DriftReport) -> dict[str, Any]:
    return {
        "since": report.since.isoformat(),
        "quarantines": [quarantine_shape(row) for row in report.quarantines],
        "fields": [
            {
                "document": one.kind.value,
                "field": one.field,
                "problem": one.problem,
                "times": one.times,
                "sample": one.sample,
                "lastSeenAt": time(one.last_seen_at),
            }
            for one in report.fields
        ],
        "suppressed": [
            {"rule": one.rule, "times": one.times, "lastAt": time(one.last_at)} for one in report.suppressed
        ],
    }
