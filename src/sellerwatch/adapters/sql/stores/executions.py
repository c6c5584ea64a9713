"""Executions.

Promises what the port says. `open_key` is the seller's id while an execution is open and NULL afterwards: the unique
index on it keeps a seller's executions to one at a time, however many triggers meet. The rates are written with the
counters they follow from.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import bindparam, func, insert, literal_column, or_, select, update

from sellerwatch.adapters.sql.dialect import skip_locked
from sellerwatch.adapters.sql.prepared import Prepared, PreparedIn, Row
from sellerwatch.adapters.sql.session import Session, cut, said
from sellerwatch.adapters.sql.shelves import EXECUTIONS
from sellerwatch.adapters.sql.tables import (
    crawler_tasks,
    crawling_schedule_executions,
    product_raw_data,
    quarantines,
    sellers,
)
from sellerwatch.domain.executions import Balance, Counted, Execution, ExecutionStatus, ListState
from sellerwatch.domain.quarantines import QuarantineStatus
from sellerwatch.domain.raws import RawStatus
from sellerwatch.domain.sellers import INTERVAL_DAYS_MIN
from sellerwatch.domain.tasks import TaskStatus
from sellerwatch.ports.store import Claim

_E = crawling_schedule_executions.c
_T = crawler_tasks.c
_SEEN = ("same_lists", "same_details", "same_options", "full_pages", "full_page_entries")
_COLUMNS = (
    "execution_id",
    "schedule_id",
    "seller_id",
    "trigger_key",
    "status",
    "started_at",
    "total_tasks_created",
    "completed_tasks",
    "failed_tasks",
    "completed_at",
    "error_message",
    "plan_attempts",
    "next_attempt_at",
    "expected_items",
    "list_state",
    *_SEEN,
)
_CHANGING = (
    "status",
    "total_tasks_created",
    "completed_tasks",
    "failed_tasks",
    "progress_rate",
    "success_rate",
    "completed_at",
    "error_message",
    "open_key",
    "plan_attempts",
    "next_attempt_at",
    "expected_items",
    "list_state",
    *_SEEN,
)
_IDENTITY = ("execution_id", "schedule_id", "seller_id", "trigger_key", "started_at")
_whole = select(*(_E[name] for name in _COLUMNS))
_by_key = _E.execution_id == bindparam("key")
_written: dict[str, Any] = {name: bindparam(name) for name in _CHANGING}
_unclaimed = {"claimed_by": None, "claimed_until": None}

_ADD = Prepared(insert(crawling_schedule_executions), (*_IDENTITY, *_CHANGING))
_GET = Prepared(_whole.where(_by_key), ("key",))
_OF_TRIGGER = Prepared(
    _whole.where(_E.schedule_id == bindparam("schedule"), _E.trigger_key == bindparam("trigger")),
    ("schedule", "trigger"),
)
_OPEN_OF = Prepared(_whole.where(_E.open_key == bindparam("seller")), ("seller",))
_LOCK = PreparedIn(lambda ids: _whole.where(_E.execution_id.in_(ids)).with_for_update())
_SAVE_OPEN = Prepared(update(crawling_schedule_executions).where(_by_key).values(_written), (*_CHANGING, "key"))
_SAVE_ENDED = Prepared(
    update(crawling_schedule_executions).where(_by_key).values(_written | _unclaimed), (*_CHANGING, "key")
)
_STARTED = Prepared(
    skip_locked(
        _whole.where(
            _E.status == said(ExecutionStatus.STARTED),
            or_(_E.next_attempt_at.is_(None), _E.next_attempt_at <= bindparam("at")),
            or_(_E.claimed_until.is_(None), _E.claimed_until <= bindparam("at")),
        )
        # In the order of the index: whoever sorts locks all there are first.
        .order_by(_E.id)
        .limit(bindparam("count"))
    ),
    ("at", "count"),
)
_CLAIM = PreparedIn(
    lambda ids: (
        update(crawling_schedule_executions)
        .where(_E.execution_id.in_(ids))
        .values(claimed_by=bindparam("owner"), claimed_until=bindparam("until"))
    ),
    ("owner", "until"),
)
_RELEASE = Prepared(
    update(crawling_schedule_executions)
    .where(_by_key, _E.claimed_by == bindparam("owner"))
    .values(_written | _unclaimed),
    (*_CHANGING, "key", "owner"),
)
# The counters change in the transaction that ends tasks: an execution whose counters are full has no open task.
_LOCK_IDLE = Prepared(
    skip_locked(
        _whole.where(
            _E.status == said(ExecutionStatus.IN_PROGRESS),
            _E.completed_tasks + _E.failed_tasks >= _E.total_tasks_created,
        ).limit(bindparam("count"))
    ),
    ("count",),
)
_OPEN_WITH_INTERVAL = Prepared(
    _whole.add_columns(sellers.c.crawling_interval_days)
    .join_from(crawling_schedule_executions, sellers, sellers.c.seller_id == _E.seller_id)
    .where(
        _E.status.in_((said(ExecutionStatus.STARTED), said(ExecutionStatus.IN_PROGRESS))),
        _E.started_at < bindparam("before"),
    )
    .order_by(_E.started_at, _E.id),
    ("before",),
)
_pending = (
    select(product_raw_data.c.id)
    .where(
        product_raw_data.c.execution_id == _E.execution_id,
        or_(product_raw_data.c.status == said(RawStatus.PENDING), product_raw_data.c.status == said(RawStatus.HELD)),
    )
    .correlate(crawling_schedule_executions)
)
_quarantined = (
    select(quarantines.c.id)
    .where(quarantines.c.execution_id == _E.execution_id, quarantines.c.status == said(QuarantineStatus.OPEN))
    .correlate(crawling_schedule_executions)
)
_WAITS = {ListState.UNCONFIRMED, ListState.SETTLED}
_LOCK_UNCONFIRMED = Prepared(
    _whole.where(
        _E.seller_id == bindparam("seller"),
        or_(_E.status == said(ExecutionStatus.COMPLETED), _E.status == said(ExecutionStatus.FAILED)),
        _E.list_state == said(ListState.UNCONFIRMED),
    ).with_for_update(),
    ("seller",),
)
_LOCK_UNSETTLED = Prepared(
    skip_locked(
        _whole.where(
            _E.status.in_((said(ExecutionStatus.COMPLETED), said(ExecutionStatus.FAILED))),
            _E.list_state.in_([said(state) for state in ListState if state not in _WAITS]),
            ~_pending.exists(),
            ~_quarantined.exists(),
        ).limit(bindparam("count"))
    ),
    ("count",),
)


# The newest by their number; those before may have lost their tasks to retention.
LEDGER_WINDOW, LEDGER_BATCH = 1000, 50
_WINDOW = Prepared(
    select(_E.id)
    .where(_E.id > literal_column("0"))
    .order_by(_E.id.desc())
    .limit(literal_column("1"))
    .offset(literal_column(str(LEDGER_WINDOW - 1)))
)
_SAID = Prepared(
    select(_E.id, _E.execution_id, _E.seller_id, _E.total_tasks_created, _E.completed_tasks, _E.failed_tasks)
    .where(_E.id > bindparam("after"), _E.started_at >= bindparam("since"))
    .order_by(_E.id)
    .limit(literal_column(str(LEDGER_BATCH))),
    ("after", "since"),
)
_FOUND = PreparedIn(
    lambda ids: (
        select(_T.execution_id, _T.status, func.count())
        .where(_T.execution_id.in_(ids))
        .group_by(_T.execution_id, _T.status)
    )
)


class Executions:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, execution: Execution) -> bool:
        row = (
            execution.execution_id,
            execution.schedule_id,
            execution.seller_id,
            execution.trigger_key,
            self._session.to_db(execution.started_at),
            *self._changing(execution),
        )
        return self._session.insert(_ADD, [row])

    def get(self, execution_id: str) -> Execution | None:
        return self._one(_GET, (execution_id,))

    def of_trigger(self, schedule_id: str, trigger_key: str) -> Execution | None:
        return self._one(_OF_TRIGGER, (schedule_id, trigger_key))

    def open_of(self, seller_id: str) -> Execution | None:
        return self._one(_OPEN_OF, (seller_id,))

    def lock(self, execution_ids: Iterable[str]) -> dict[str, Execution]:
        return self._session.by_key(EXECUTIONS, self._session.rows_in(_LOCK, execution_ids), self._execution)

    def save(self, executions: Iterable[Execution]) -> None:
        opened: list[Row] = []
        ended: list[Row] = []
        for execution in executions:
            rows = opened if execution.is_open else ended
            rows.append((*self._changing(execution), execution.execution_id))
        self._session.many(_SAVE_OPEN, opened)
        self._session.many(_SAVE_ENDED, ended)

    def claim_started(self, claim: Claim, count: int) -> list[Execution]:
        to_db = self._session.to_db
        due = self._all(self._session.rows(_STARTED, (to_db(claim.at), count)))
        ids = [execution.execution_id for execution in due]
        self._session.run_in(_CLAIM, ids, (claim.owner, to_db(claim.until)))
        return due

    def release(self, execution: Execution, owner: str) -> bool:
        row = (*self._changing(execution), execution.execution_id, owner)
        return self._session.run(_RELEASE, row) == 1

    def lock_idle(self, count: int) -> list[Execution]:
        return self._all(self._session.rows(_LOCK_IDLE, (count,)))

    def overdue(self, at: datetime, count: int) -> list[Execution]:
        # Dialects add days to a moment each in their own way; open executions are few, so it is done here.
        rows = self._session.rows(_OPEN_WITH_INTERVAL, (self._session.to_db(at - timedelta(days=INTERVAL_DAYS_MIN)),))
        aged = self._session.each(EXECUTIONS, rows, lambda row: (self._execution(row[:-1]), timedelta(days=row[-1])))
        return [execution for execution, interval in aged if execution.started_at + interval < at][:count]

    def balances(self, after: int, since: datetime, tasks_max: int) -> tuple[list[Balance], int]:
        window = self._session.first(_WINDOW)
        after = max(after, window[0] - 1 if window else 0)
        rows: list[Row] = []
        for row in self._session.rows(_SAID, (after, self._session.to_db(since))):
            if rows and sum(each[3] for each in rows) + row[3] > tasks_max:
                break
            rows.append(row)
        found: dict[str, dict[str, int]] = {row[1]: {} for row in rows}
        for execution_id, status, count in self._session.rows_in(_FOUND, found):
            found[execution_id][status] = count
        return [_balance(row, found[row[1]]) for row in rows], rows[-1][0] if rows else 0

    def lock_unsettled(self, count: int) -> list[Execution]:
        return self._all(self._session.rows(_LOCK_UNSETTLED, (count,)))

    def lock_unconfirmed(self, seller_id: str) -> list[Execution]:
        return self._all(self._session.rows(_LOCK_UNCONFIRMED, (seller_id,)))

    def _changing(self, execution: Execution) -> Row:
        to_db = self._session.to_db
        return (
            execution.status.value,
            execution.total_tasks,
            execution.completed_tasks,
            execution.failed_tasks,
            execution.progress_rate,
            execution.success_rate,
            to_db(execution.completed_at),
            cut(execution.error_message, _E.error_message),
            execution.seller_id if execution.is_open else None,
            execution.plan_attempts,
            to_db(execution.next_attempt_at),
            execution.expected_items,
            execution.list_state.value,
            execution.same_lists,
            execution.same_details,
            execution.same_options,
            execution.full_pages,
            execution.full_page_entries,
        )

    def _one(self, statement: Prepared, params: Row) -> Execution | None:
        row = self._session.first(statement, params)
        return None if row is None else self._session.one(EXECUTIONS, row, self._execution)

    def _all(self, rows: Sequence[Row]) -> list[Execution]:
        return self._session.each(EXECUTIONS, rows, self._execution)

    def _execution(self, row: Row) -> Execution:
        session = self._session
        execution_id, schedule_id, seller_id, trigger_key, status, started_at, total, completed, failed = row[:9]
        completed_at, error, plan_attempts, next_attempt_at, expected_items, list_state = row[9:15]
        return Execution(
            execution_id=execution_id,
            schedule_id=schedule_id,
            seller_id=seller_id,
            trigger_key=trigger_key,
            status=ExecutionStatus(status),
            started_at=session.from_db(started_at),
            total_tasks=total,
            completed_tasks=completed,
            failed_tasks=failed,
            completed_at=session.from_db_or_none(completed_at),
            error_message=error,
            plan_attempts=plan_attempts,
            next_attempt_at=session.from_db_or_none(next_attempt_at),
            expected_items=expected_items,
            list_state=ListState(list_state),
            **dict(zip(_SEEN, row[15:], strict=True)),
        )


def _balance(row: Row, tasks: dict[str, int]) -> Balance:
    _, execution_id, seller_id, total, completed, failed = row
    succeeded, lost = tasks.get(TaskStatus.SUCCESS, 0), tasks.get(TaskStatus.FAILED, 0)
    return Balance(
        execution_id,
        seller_id,
        said=Counted(completed, failed, total - completed - failed),
        found=Counted(succeeded, lost, sum(tasks.values()) - succeeded - lost),
    )
