"""Clues from the database: the first row of each kind that is not done with, by the indexes of claims.

Promises what ports/clues.py says; counts only the tasks of one open execution. Refuses nothing of its own.
"""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any, TypeVar

from sqlalchemy import Connection, RowMapping, Select, select

from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.overview import counts
from sellerwatch.adapters.sql.shown import word
from sellerwatch.adapters.sql.tables import (
    crawler_task_outbox,
    crawler_tasks,
    crawling_schedule_executions,
    crawling_schedules,
    processes,
    product_outbox,
    product_raw_data,
    products,
    sellers,
    user_agent_pool,
)
from sellerwatch.domain.clues import EventClue, ExecutionClue, OutboxClue, SellerClue, TaskClue, Trail
from sellerwatch.domain.executions import ExecutionStatus
from sellerwatch.domain.outbox import OutboxStatus, TaskOutboxStatus
from sellerwatch.domain.raws import RawStatus
from sellerwatch.domain.schedules import ScheduleStatus
from sellerwatch.domain.sellers import SellerStatus
from sellerwatch.domain.tasks import ITEM_PRIORITY, LIST_PRIORITY, OPEN, TaskKind, TaskStatus
from sellerwatch.ports.reports import LIFE_SECONDS

T = TypeVar("T")
_S = sellers.c
_D = crawling_schedules.c
_E = crawling_schedule_executions.c
_T = crawler_tasks.c
_O = crawler_task_outbox.c
_R = product_raw_data.c
_U = user_agent_pool.c
_V = product_outbox.c
_UNSENT = (TaskOutboxStatus.PENDING, TaskOutboxStatus.PROCESSING, TaskOutboxStatus.FAILED)
_NOT_DONE = (OutboxStatus.WAITING, OutboxStatus.SENDING, OutboxStatus.HELD, OutboxStatus.FAILED)
_OUTBOX = select(_O.status, _O.next_attempt_at, _O.claimed_until, _O.error_message)


class SqlClues:
    """`ports.clues.Clues` on a Database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def seller(self, seller_id: str, at: datetime) -> Trail | None:
        return await self._read(lambda connection: _trail(connection, seller_id, at))

    async def task(self, task_id: str, at: datetime) -> tuple[TaskClue, Trail] | None:
        def work(connection: Connection) -> tuple[TaskClue, Trail] | None:
            row = _first(connection, select(crawler_tasks).where(_T.task_id == task_id))
            trail = _trail(connection, row["seller_id"], at) if row else None
            return (_task(connection, row), trail) if row and trail else None

        return await self._read(work)

    async def identity(self, agent: str) -> tuple[int, bool] | None:
        is_it = (
            _U.agent_id == int(agent)
            if agent.isascii() and agent.isdigit() and len(agent) < 19
            else _U.user_agent_id == agent
        )
        row = await self._read(lambda connection: _first(connection, select(_U.agent_id, _U.is_active).where(is_it)))
        return (row["agent_id"], not row["is_active"]) if row else None

    async def roles(self, at: datetime) -> frozenset[str]:
        alive = select(processes.c.role).where(processes.c.seen_at >= at - timedelta(seconds=LIFE_SECONDS))
        rows = await self._read(lambda connection: connection.execute(alive).scalars().all())
        return frozenset(role for row in rows for role in row.split("+"))

    async def _read(self, work: Callable[[Connection], T]) -> T:
        return await self._database.read(work)


def _first(connection: Connection, statement: Select[Any]) -> RowMapping | None:
    return connection.execute(statement.limit(1)).mappings().first()


def _trail(connection: Connection, seller_id: str, at: datetime) -> Trail | None:
    seller = _first(connection, select(_S.status, _S.updated_at).where(_S.seller_id == seller_id))
    if seller is None:
        return None
    schedule = _first(connection, select(_D.status, _D.next_run_at).where(_D.seller_id == seller_id))
    return Trail(
        SellerClue(
            seller_id,
            seller["status"] == SellerStatus.ACTIVE,
            seller["updated_at"],
            word(ScheduleStatus, schedule["status"]) if schedule else None,
            schedule["next_run_at"] if schedule else None,
        ),
        _execution(connection, seller_id, at),
        min(_unsent(connection, seller_id), key=lambda row: row.due_at, default=None),
        tuple(_events(connection, seller_id)),
    )


def _execution(connection: Connection, seller_id: str, at: datetime) -> ExecutionClue | None:
    mine = select(crawling_schedule_executions)
    row = _first(connection, mine.where(_E.open_key == seller_id))
    row = row or _first(connection, mine.where(_E.seller_id == seller_id).order_by(_E.started_at.desc(), _E.id.desc()))
    if row is None:
        return None
    execution_id, is_open = row["execution_id"], row["open_key"] is not None
    tasks = counts(connection, _T.status, _T.execution_id == execution_id) if is_open else {}
    stuck = select(_T.claimed_until).where(
        _T.execution_id == execution_id, _T.status == TaskStatus.RUNNING.value, _T.claimed_until <= at
    )
    raw = select(_R.next_attempt_at).where(_R.execution_id == execution_id, _R.status == RawStatus.PENDING.value)
    return ExecutionClue(
        execution_id=execution_id,
        status=word(ExecutionStatus, row["status"]),
        started_at=row["started_at"],
        next_attempt_at=row["next_attempt_at"],
        error=row["error_message"],
        total=row["total_tasks_created"],
        ended=row["completed_tasks"] + row["failed_tasks"],
        tasks={status: tasks.get(status, 0) for status in OPEN},
        stuck_since=_moment(connection, stuck.order_by(_T.claimed_until)) if tasks.get(TaskStatus.RUNNING) else None,
        raws_due_at=_moment(connection, raw.order_by(_R.next_attempt_at)),
    )


def _moment(connection: Connection, statement: Select[Any]) -> datetime | None:
    found: datetime | None = connection.execute(statement.limit(1)).scalar()
    return found


def _unsent(connection: Connection, seller_id: str) -> Iterator[OutboxClue]:
    """The first of each status and priority: one step into the index of claims."""
    for status in _UNSENT:
        for priority in (LIST_PRIORITY, ITEM_PRIORITY):
            mine = _OUTBOX.where(_O.status == status.value, _O.seller_id == seller_id, _O.priority == priority)
            if row := _first(connection, mine.order_by(_O.next_attempt_at)):
                yield _outbox(row)


def _outbox(row: RowMapping) -> OutboxClue:
    status = word(TaskOutboxStatus, row["status"])
    return OutboxClue(status, row["next_attempt_at"], row["claimed_until"], row["error_message"])


def _events(connection: Connection, seller_id: str) -> Iterator[EventClue]:
    """The oldest of each status, of products that are the seller's now."""
    rows = select(_V.created_at, _V.next_attempt_at, _V.error_message).join(
        products, products.c.product_id == _V.product_id
    )
    for status in _NOT_DONE:
        mine = rows.where(_V.status == status.value, products.c.seller_id == seller_id)
        if row := _first(connection, mine.order_by(_V.created_at)):
            yield EventClue(status, row["created_at"], row["next_attempt_at"], row["error_message"])


def _task(connection: Connection, row: RowMapping) -> TaskClue:
    outbox = _first(connection, _OUTBOX.where(_O.task_id == row["task_id"]))
    return TaskClue(
        row["task_id"],
        word(TaskKind, row["task_type"]),
        word(TaskStatus, row["status"]),
        row["created_at"],
        row["published_at"],
        row["started_at"],
        row["completed_at"],
        row["claimed_until"],
        row["error_message"],
        row["retry_count"],
        _outbox(outbox) if outbox else None,
    )
