"""Gauges from the database: what is open by the indexes of claims and statuses, what is oldest by one step into one.

Promises what ports/gauges.py says: no row is opened, only indexes are read. Refuses nothing of its own.
"""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any, Final, TypeVar

from sqlalchemy import Column, Connection, Select, Table, func, select

from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.overview import counts
from sellerwatch.adapters.sql.tables import (
    alerts,
    circuit_breaker_state,
    crawler_task_outbox,
    crawler_tasks,
    crawling_schedule_executions,
    product_outbox,
    product_raw_data,
    products,
    scheduler_outbox,
)
from sellerwatch.domain.breakers import BreakerScope, BreakerState
from sellerwatch.domain.outbox import OutboxStatus, TaskOutboxStatus
from sellerwatch.domain.products import ProductStatus
from sellerwatch.domain.raws import RawStatus
from sellerwatch.domain.tasks import ITEM_PRIORITY, LIST_PRIORITY, OPEN
from sellerwatch.ports.gauges import LEDGER_ALERT, Backlog, Stock
from sellerwatch.ports.reports import Box

T = TypeVar("T")
_T = crawler_tasks.c
_R = product_raw_data.c
_P = products.c
_O = crawler_task_outbox.c
_E = crawling_schedule_executions.c
_B = circuit_breaker_state.c
_BOXES: Final[Mapping[Box, Table]] = {
    Box.PRODUCT: product_outbox,
    Box.TASK: crawler_task_outbox,
    Box.SCHEDULER: scheduler_outbox,
}
_ENDED: Final[Mapping[Box, str]] = {
    Box.PRODUCT: OutboxStatus.COMPLETED,
    Box.TASK: TaskOutboxStatus.SENT,
    Box.SCHEDULER: OutboxStatus.COMPLETED,
}
_UNSENT: Final = (OutboxStatus.WAITING, OutboxStatus.SENDING, OutboxStatus.HELD)
_WORSE: Final = (BreakerState.OPEN, BreakerState.HALF_OPEN)


class SqlGauges:
    """`ports.gauges.Gauges` on a Database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def backlog(self) -> Backlog:
        return await self._read(_backlog)

    async def stock(self) -> Stock:
        return await self._read(_stock)

    async def _read(self, work: Callable[[Connection], T]) -> T:
        return await self._database.read(work)


def _backlog(connection: Connection) -> Backlog:
    return Backlog(
        tasks={status: found for status, found in _counted(connection, _T.status, OPEN).items() if status in OPEN},
        raws=_counted(connection, _R.status, set(RawStatus) - {RawStatus.PROCESSED}),
        outboxes={
            box: _counted(connection, table.c.status, _statuses(box) - {_ENDED[box]}) for box, table in _BOXES.items()
        },
        oldest_at={
            Box.PRODUCT: _oldest(connection, product_outbox.c.status, product_outbox.c.created_at, _UNSENT),
            Box.TASK: _longest_due(connection),
            Box.SCHEDULER: _oldest(connection, scheduler_outbox.c.status, scheduler_outbox.c.created_at, _UNSENT),
        },
        oldest_document_at=min(filter(None, map(_first_of(connection), _DOCUMENTS)), default=None),
        breakers=_breakers(connection),
        ledger_breaks=_ledger_breaks(connection),
    )


def _stock(connection: Connection) -> Stock:
    return Stock(
        products=_counted(connection, _P.status, set(ProductStatus)),
        raws=_counted(connection, _R.status, {RawStatus.PROCESSED}),
        outboxes={box: _counted(connection, table.c.status, {_ENDED[box]}) for box, table in _BOXES.items()},
    )


def _statuses(box: Box) -> set[str]:
    return set(TaskOutboxStatus) if box is Box.TASK else set(OutboxStatus)


def _counted(connection: Connection, column: "Column[str]", statuses: Collection[T]) -> dict[T, int]:
    wanted = sorted(str(status) for status in statuses)
    found = counts(connection, column, column.in_(wanted))
    return {status: found.get(str(status), 0) for status in statuses}


def _first_of(connection: Connection) -> Callable[[Select[Any]], datetime | None]:
    def first(statement: Select[Any]) -> datetime | None:
        found: datetime | None = connection.execute(statement).scalar()
        return found

    return first


def _oldest(
    connection: Connection, status: "Column[str]", at: "Column[datetime]", statuses: Collection[str]
) -> datetime | None:
    """One step into the index for each status: a minimum over several would walk over all of them."""
    ways = (select(at).where(status == each).order_by(at).limit(1) for each in statuses)
    return min(filter(None, map(_first_of(connection), ways)), default=None)


def _document(at: "Column[datetime]") -> Select[Any]:
    return select(at).where(_P.status == ProductStatus.ACTIVE.value, at.is_not(None)).order_by(at).limit(1)


_DOCUMENTS = tuple(_document(at) for at in (_P.minishop_at, _P.detail_at, _P.option_at))


def _due(priority: int) -> Any:
    """Of a seller's unsent rows of one priority the one that is due first: one step into the index of claims."""
    rows = select(_O.next_attempt_at).where(
        _O.status == TaskOutboxStatus.PENDING.value, _O.seller_id == _E.open_key, _O.priority == priority
    )
    return rows.correlate(crawling_schedule_executions).order_by(_O.next_attempt_at).limit(1).scalar_subquery()


_LONGEST_DUE = select(func.min(_due(LIST_PRIORITY)), func.min(_due(ITEM_PRIORITY))).where(_E.open_key.is_not(None))


def _longest_due(connection: Connection) -> datetime | None:
    return min(filter(None, connection.execute(_LONGEST_DUE).one()), default=None)


def _breakers(connection: Connection) -> dict[BreakerScope, BreakerState]:
    rows = connection.execute(select(_B.scope, _B.circuit_state).where(_B.circuit_state.in_(_WORSE)).distinct())
    found = {(scope, state) for scope, state in rows}
    return {
        scope: next((state for state in _WORSE if (scope, state) in found), BreakerState.CLOSED)
        for scope in (BreakerScope.IDENTITY, BreakerScope.PRODUCT_SERVER)
    }


def _ledger_breaks(connection: Connection) -> int:
    is_one = alerts.c.name.startswith(f"{LEDGER_ALERT}:", autoescape=True)
    found = select(func.count()).select_from(alerts).where(is_one, alerts.c.cleared_at.is_(None))
    return connection.execute(found).scalar_one()
