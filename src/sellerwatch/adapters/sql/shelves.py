"""Shelves: what becomes of a row that can't be read, table by table.

One bad row holds up no other: whoever reads many rows leaves it out, whoever names it is told, and either way it is
noted. After the transaction, committed or not, noted rows are set aside: what has a state for it is FAILED with what
was wrong, so that nobody takes it up again; what has none is left as it is. A row that had ended stays as it ended.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sqlalchemy import BindParameter, Table, Update, bindparam, case, null, select, update

from sellerwatch.adapters.sql.tables import (
    alerts,
    crawler_task_outbox,
    crawler_tasks,
    crawling_schedule_executions,
    crawling_schedules,
    product_outbox,
    product_raw_data,
    products,
    quarantines,
    scheduler_outbox,
    sellers,
    user_agent_pool,
)
from sellerwatch.domain.executions import ExecutionStatus, ListState
from sellerwatch.domain.outbox import OutboxStatus, TaskOutboxStatus
from sellerwatch.domain.raws import RawStatus
from sellerwatch.domain.schedules import ScheduleStatus
from sellerwatch.domain.tasks import OPEN, TaskStatus

UNREADABLE = "unreadable: "
"""How the error of a row begins that was set aside."""
SPOILT = (ValueError, TypeError, KeyError, AttributeError, IndexError)
"""What reading a row raises when a value in it is not what it should be."""
_ended: dict[str, Any] = {"claimed_by": None, "claimed_until": None}
_KEY: BindParameter[Any] = bindparam("of")
_NOTE: BindParameter[Any] = bindparam("note")
_AT: BindParameter[Any] = bindparam("at")
_LATER: BindParameter[Any] = bindparam("later")


@dataclass(frozen=True, slots=True)
class Shelf:
    """The rows of a table, and how one of them is set aside: statements given `of`, `note`, `at` and `later`."""

    table: Table
    key: str
    aside: tuple[Update, ...] = ()

    @property
    def name(self) -> str:
        return self.table.name


@dataclass(slots=True)
class Spoilt:
    """What one transaction could not read: by shelf and key, what was wrong with it."""

    rows: dict[tuple[str, str], tuple[Shelf, str]] = field(default_factory=dict)

    def note(self, shelf: Shelf, key: object, error: Exception) -> str:
        """In words."""
        problem = " ".join(str(error).split()) or type(error).__name__
        self.rows[shelf.name, str(key)] = (shelf, problem)
        return problem


def _put(table: Table, key: str, stays: Iterable[StrEnum], **values: Any) -> Update:
    return (
        update(table)
        .where(table.c[key] == _KEY, table.c.status.not_in([str(status.value) for status in stays]))
        .values(values)
    )


_E, _T, _O = crawling_schedule_executions.c, crawler_tasks.c, crawler_task_outbox.c
_OVER = [ExecutionStatus.COMPLETED.value, ExecutionStatus.FAILED.value]
_open_tasks = sorted(status.value for status in OPEN)
_closed = [status.value for status in TaskStatus if status not in OPEN]
_its_execution = select(_T.execution_id).where(_T.task_id == _KEY).scalar_subquery()
_its_task_is_open = select(_T.id).where(_T.task_id == _KEY, _T.status.not_in(_closed)).exists()

SELLERS = Shelf(sellers, "seller_id")
PRODUCTS = Shelf(products, "item_no")
IDENTITIES = Shelf(user_agent_pool, "agent_id")
QUARANTINES = Shelf(quarantines, "quarantine_id")
ALERTS = Shelf(alerts, "name", (update(alerts).where(alerts.c.name == _KEY).values(cleared_at=_AT),))
# It is looked at again later, when it may have been mended: a schedule that is FAILED still has its turns.
SCHEDULES = Shelf(
    crawling_schedules,
    "schedule_id",
    (
        _put(
            crawling_schedules,
            "schedule_id",
            [ScheduleStatus.INACTIVE],
            status=ScheduleStatus.FAILED.value,
            next_run_at=_LATER,
            updated_at=_AT,
        ),
    ),
)
NOTICES = Shelf(
    scheduler_outbox,
    "outbox_id",
    (
        _put(
            scheduler_outbox,
            "outbox_id",
            [OutboxStatus.COMPLETED],
            status=OutboxStatus.FAILED.value,
            error_message=_NOTE,
            **_ended,
        ),
    ),
)
EVENTS = Shelf(
    product_outbox,
    "outbox_id",
    (
        _put(
            product_outbox,
            "outbox_id",
            [OutboxStatus.COMPLETED],
            status=OutboxStatus.FAILED.value,
            error_message=_NOTE,
            **_ended,
        ),
    ),
)
PUBLICATIONS = Shelf(
    crawler_task_outbox,
    "outbox_id",
    (
        _put(
            crawler_task_outbox,
            "outbox_id",
            [TaskOutboxStatus.SENT],
            status=TaskOutboxStatus.FAILED.value,
            error_message=_NOTE,
            **_ended,
        ),
    ),
)
RAWS = Shelf(
    product_raw_data,
    "raw_id",
    (
        _put(
            product_raw_data,
            "raw_id",
            [RawStatus.PROCESSED],
            status=RawStatus.FAILED.value,
            error_message=_NOTE,
            next_attempt_at=_LATER,
        ),
    ),
)
# Its crawl counts it, and knows that its list is not whole: what it did not show is not gone.
TASKS = Shelf(
    crawler_tasks,
    "task_id",
    (
        update(crawling_schedule_executions)
        .where(_E.execution_id == _its_execution, _E.status.not_in(_OVER), _its_task_is_open)
        .values(failed_tasks=_E.failed_tasks + 1, list_state=ListState.INCOMPLETE.value),
        _put(
            crawler_tasks,
            "task_id",
            [status for status in TaskStatus if status not in OPEN],
            status=TaskStatus.FAILED.value,
            error_message=_NOTE,
            completed_at=_AT,
            **_ended,
        ),
        update(crawler_task_outbox)
        .where(_O.task_id == _KEY, _O.status != TaskOutboxStatus.PROCESSING.value)
        .values(status=TaskOutboxStatus.SENT.value, error_message=_NOTE),
    ),
)
# Nothing is made for it any more, and its list proves nothing.
EXECUTIONS = Shelf(
    crawling_schedule_executions,
    "execution_id",
    (
        update(crawler_task_outbox)
        .where(
            _O.task_id.in_(select(_T.task_id).where(_T.execution_id == _KEY)),
            _O.status.in_([TaskOutboxStatus.PENDING.value, TaskOutboxStatus.FAILED.value]),
        )
        .values(status=TaskOutboxStatus.SENT.value, error_message=_NOTE),
        update(crawler_tasks)
        .where(_T.execution_id == _KEY, _T.status.in_(_open_tasks))
        .values(status=TaskStatus.FAILED.value, error_message=_NOTE, completed_at=_AT, **_ended),
        update(crawling_schedule_executions)
        .where(_E.execution_id == _KEY)
        .values(
            failed_tasks=case(
                (_E.status.in_(_OVER), _E.failed_tasks), else_=_E.total_tasks_created - _E.completed_tasks
            ),
            error_message=case((_E.status.in_(_OVER), _E.error_message), else_=_NOTE),
            completed_at=case((_E.status.in_(_OVER), _E.completed_at), else_=_AT),
            list_state=ListState.SETTLED.value,
            open_key=null(),
            **_ended,
        ),
        _put(
            crawling_schedule_executions,
            "execution_id",
            [ExecutionStatus.COMPLETED],
            status=ExecutionStatus.FAILED.value,
        ),
    ),
)
