"""The three outboxes, told alike: whom a row is about, what it says, how it stands. Payloads are not opened."""

from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import ColumnElement, Select, func, null, select

from sellerwatch.adapters.sql.tables import (
    crawler_task_outbox,
    crawler_tasks,
    crawling_schedules,
    product_outbox,
    products,
    scheduler_outbox,
)
from sellerwatch.ports.reports import Box, OutboxRow


def outbox_row(box: Box) -> Callable[[Mapping[Any, Any]], OutboxRow]:
    return lambda row: OutboxRow(
        **{**row, "box": box, "subject": str(row["subject"] or "–"), "event": row["event"] or "–"}
    )


def _box(table: Any, about: ColumnElement[str], event: ColumnElement[str], join: Any = None) -> Any:
    """How the rows of an outbox are told: without their payloads."""
    columns = table.c
    version = columns.version if "version" in columns else func.nullif(0, 0)
    rows = select(
        columns.id.label("number"),
        columns.outbox_id,
        about.label("subject"),
        event.label("event"),
        version.label("version"),
        columns.status,
        columns.retry_count,
        columns.next_attempt_at,
        columns.error_message,
        columns.created_at,
        columns.sent_at,
        (columns.quarantine_id if "quarantine_id" in columns else null()).label("quarantine_id"),
    )
    return (rows.outerjoin(*join) if join else rows), columns.id, columns


_O, _N, _K = product_outbox.c, scheduler_outbox.c, crawler_task_outbox.c
OUTBOXES: Mapping[Box, tuple[Select[Any], ColumnElement[int], Mapping[Any, Any]]] = {
    Box.PRODUCT: _box(
        product_outbox, products.c.item_no, _O.event_type, (products, products.c.product_id == _O.product_id)
    ),
    Box.SCHEDULER: _box(
        scheduler_outbox,
        crawling_schedules.c.seller_id,
        _N.event_type,
        (crawling_schedules, crawling_schedules.c.schedule_id == _N.schedule_id),
    ),
    Box.TASK: _box(
        crawler_task_outbox,
        _K.task_id,
        crawler_tasks.c.task_type,
        (crawler_tasks, crawler_tasks.c.task_id == _K.task_id),
    ),
}
