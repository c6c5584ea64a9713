"""The overview: what runs, what waits, what failed, in one snapshot of the database.

Promises: a fixed number of statements, each on an index; of what has ended only the last day is counted, so that the
answer costs the same after years. Refuses nothing of its own.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, and_, func, or_, select

from sellerwatch.adapters.sql.shown import opened, word
from sellerwatch.adapters.sql.tables import (
    alerts,
    circuit_breaker_state,
    crawler_task_outbox,
    crawler_tasks,
    crawling_schedule_executions,
    processes,
    product_outbox,
    product_raw_data,
    products,
    scheduler_outbox,
    sellers,
    sweeps,
)
from sellerwatch.domain.breakers import BreakerScope, BreakerState
from sellerwatch.domain.executions import ExecutionStatus
from sellerwatch.domain.products import ProductStatus
from sellerwatch.domain.sellers import SellerStatus
from sellerwatch.domain.tasks import CLOSED, OPEN, TaskStatus
from sellerwatch.ports.reports import (
    LATE_ALERT,
    LIFE_SECONDS,
    LISTED_MAX,
    AlertRow,
    Box,
    BoxFigures,
    BreakerRow,
    ExecutionRow,
    Overview,
    ProcessRow,
    ProductCounts,
    Runs,
    SweepRow,
)

_DAY = timedelta(days=1)
_E = crawling_schedule_executions.c
_P = products.c
_T = crawler_tasks.c
_B = circuit_breaker_state.c

EXECUTION = select(
    _E.execution_id,
    _E.seller_id,
    _E.status,
    _E.total_tasks_created.label("total_tasks"),
    _E.completed_tasks,
    _E.failed_tasks,
    _E.started_at,
    _E.completed_at,
    _E.error_message,
    _E.expected_items,
)
_BOXES = {Box.PRODUCT: product_outbox, Box.TASK: crawler_task_outbox, Box.SCHEDULER: scheduler_outbox}
_UNSENT = {
    Box.PRODUCT: ("WAITING", "SENDING", "HELD"),
    Box.SCHEDULER: ("WAITING", "SENDING"),
    Box.TASK: ("PENDING", "PROCESSING"),
}


def overview(connection: Connection, at: datetime) -> Overview:
    found_sellers = counts(connection, sellers.c.status)
    return Overview(
        at=at,
        sellers={status: found_sellers.get(status, 0) for status in SellerStatus},
        processes=_processes(connection, at),
        executions_open=_executions_open(connection),
        tasks=_tasks(connection, at),
        outboxes={box: _box(connection, box) for box in Box},
        raws=counts(connection, product_raw_data.c.status),
        products=product_counts(connection, None),
        alerts=_alerts(connection),
        breakers=_breakers(connection),
        identity_breakers_open=_identity_breakers_open(connection),
        sweeps=_sweeps(connection),
    )


def runs(connection: Connection, at: datetime) -> Runs:
    late = select(alerts.c.name).where(alerts.c.cleared_at.is_(None), alerts.c.name.startswith(f"{LATE_ALERT}:"))
    told = frozenset(connection.execute(late).scalars())
    return Runs(at, _processes(connection, at), _sweeps(connection), told)


def counts(connection: Connection, column: Column[str], *wanted: ColumnElement[bool]) -> dict[str, int]:
    """How many rows of each value."""
    rows = connection.execute(select(column, func.count()).where(*wanted).group_by(column))
    return {value: count for value, count in rows}  # noqa: C416 - rows are no pairs to mypy


def product_counts(connection: Connection, seller_id: str | None) -> ProductCounts:
    # Two statements, each answered by an index alone: the rows are wide.
    mine = () if seller_id is None else (_P.seller_id == seller_id,)
    rows = connection.execute(select(_P.is_complete, func.count()).where(*mine).group_by(_P.is_complete))
    complete = {bool(is_complete): int(count) for is_complete, count in rows}
    delisted = counts(connection, _P.status, *mine).get(ProductStatus.DELISTED, 0)
    return ProductCounts(sum(complete.values()), complete.get(True, 0), delisted)


def complete_in_shop() -> Any:
    """Of a row of `sellers`: its complete products, without the delisted ones, which its shop doesn't count either."""

    def active(*wanted: ColumnElement[bool]) -> Any:
        mine = (_P.seller_id == sellers.c.seller_id, _P.status == ProductStatus.ACTIVE.value)
        return select(func.count()).select_from(products).where(*mine, *wanted).correlate(sellers).scalar_subquery()

    # All of them by an index alone, for the rows are wide; the incomplete ones are few.
    return active() - active(_P.is_complete.is_(False))


def execution_row(row: Mapping[Any, Any]) -> ExecutionRow:
    return ExecutionRow(**{**row, "status": word(ExecutionStatus, row["status"])})


def _sweeps(connection: Connection) -> tuple[SweepRow, ...]:
    return tuple(SweepRow(**row) for row in connection.execute(select(sweeps).order_by(sweeps.c.name)).mappings())


def _processes(connection: Connection, at: datetime) -> tuple[ProcessRow, ...]:
    since = at - timedelta(seconds=LIFE_SECONDS)
    alive = select(processes).where(processes.c.seen_at >= since).order_by(processes.c.started_at)
    return tuple(ProcessRow(**row) for row in connection.execute(alive).mappings())


def _executions_open(connection: Connection) -> tuple[ExecutionRow, ...]:
    is_open = or_(_E.status == ExecutionStatus.STARTED.value, _E.status == ExecutionStatus.IN_PROGRESS.value)
    rows = connection.execute(EXECUTION.where(is_open).order_by(_E.started_at).limit(LISTED_MAX))
    return tuple(execution_row(row) for row in rows.mappings())


def _tasks(connection: Connection, at: datetime) -> Mapping[TaskStatus, int]:
    waiting = counts(connection, _T.status, _T.status.in_(sorted(OPEN)))
    ended = counts(connection, _T.status, _T.status.in_(sorted(CLOSED)), _T.created_at >= at - _DAY)
    return {status: (waiting | ended).get(status, 0) for status in TaskStatus}


def _box(connection: Connection, box: Box) -> BoxFigures:
    columns = _BOXES[box].c
    unsent = and_(columns.status.in_(_UNSENT[box]))
    oldest: datetime | None = connection.execute(select(func.min(columns.created_at)).where(unsent)).scalar_one()
    return BoxFigures(counts(connection, columns.status), oldest)


def _alerts(connection: Connection) -> tuple[AlertRow, ...]:
    is_open = select(alerts).where(alerts.c.cleared_at.is_(None)).order_by(alerts.c.since, alerts.c.name)
    return tuple(_alert(row) for row in connection.execute(is_open.limit(LISTED_MAX)).mappings())


def _alert(row: Mapping[Any, Any]) -> AlertRow:
    details: dict[str, Any] = opened(row["details"], {})
    text = str(details.get("text") or row["name"])
    return AlertRow(row["name"], row["severity"], text, row["since"], row["times"], row["last_sent_at"])


def _breakers(connection: Connection) -> tuple[BreakerRow, ...]:
    rows = connection.execute(select(circuit_breaker_state).where(_B.agent_id == 0).order_by(_B.scope)).mappings()
    return tuple(_breaker(row) for row in rows if row["scope"] != BreakerScope.IDENTITY)


def _breaker(row: Mapping[Any, Any]) -> BreakerRow:
    opened_at: datetime | None = row["opened_at"]
    is_open = row["circuit_state"] == BreakerState.OPEN
    retry_at = opened_at + timedelta(seconds=row["timeout_duration_seconds"]) if is_open and opened_at else None
    return BreakerRow(row["scope"], row["circuit_state"], row["failure_count"], opened_at, retry_at)


def _identity_breakers_open(connection: Connection) -> int:
    is_open = and_(_B.scope == BreakerScope.IDENTITY.value, _B.circuit_state != BreakerState.CLOSED.value)
    found: int = connection.execute(select(func.count()).select_from(circuit_breaker_state).where(is_open)).scalar_one()
    return found
