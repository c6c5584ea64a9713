"""Tasks and their attempts: the rows that every request writes several times.

Promises what the port says; a task's row is written whole but for what never changes in it (who, what, when made).
What ends an attempt meets RUNNING rows only: one that was abandoned stays so.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, or_, select, update

from sellerwatch.adapters.sql.dialect import insert_or_ignore, skip_locked
from sellerwatch.adapters.sql.prepared import Prepared, PreparedIn, Row
from sellerwatch.adapters.sql.session import Additions, PerDialect, Session, also, among, cut, said
from sellerwatch.adapters.sql.shelves import TASKS
from sellerwatch.adapters.sql.tables import crawl_executions, crawler_task_outbox, crawler_tasks
from sellerwatch.domain.outbox import TaskOutboxStatus
from sellerwatch.domain.tasks import OPEN, Attempt, AttemptStatus, Task, TaskKind, TaskStatus

_T = crawler_tasks.c
_A = crawl_executions.c
_O = crawler_task_outbox.c
# Looked up once: a column of a table is found by name at every mention, and that costs as much as writing it.
_ERROR, _ATTEMPT_ERROR, _SUMMARY = _T.error_message, _A.error_message, _A.response_summary
_KINDS = {kind.value: kind for kind in TaskKind}
_STATUSES = {status.value: status for status in TaskStatus}

_COLUMNS = (
    "task_id",
    "execution_id",
    "seller_id",
    "task_type",
    "request_url",
    "item_no",
    "page_no",
    "status",
    "created_at",
    "retry_count",
    "abandon_count",
    "attempt_id",
    "claimed_by",
    "claimed_until",
    "error_message",
    "published_at",
    "started_at",
    "completed_at",
)
_CHANGING = (
    "status",
    "retry_count",
    "abandon_count",
    "attempt_id",
    "claimed_by",
    "claimed_until",
    "error_message",
    "published_at",
    "started_at",
    "completed_at",
)
_is_open = among(_T.status, OPEN)
_whole = select(*(_T[name] for name in _COLUMNS))

_ADD = Additions(crawler_tasks, _COLUMNS, "task_id")
_SAVE = Prepared(update(crawler_tasks).where(_T.task_id == bindparam("key")), (*_CHANGING, "key"))
_GET = Prepared(_whole.where(_T.task_id == bindparam("key")), ("key",))
_LOCK = PreparedIn(lambda ids: _whole.where(_T.task_id.in_(ids)).with_for_update())
_MARK_PUBLISHED = PreparedIn(
    lambda ids: (
        update(crawler_tasks)
        .where(_T.task_id.in_(ids), among(also(_T.status), (TaskStatus.WAITING, TaskStatus.RETRY)))
        .values(status=said(TaskStatus.PUBLISHED), published_at=bindparam("at"))
    ),
    ("at",),
)
_EXTEND = Prepared(
    update(crawler_tasks).where(
        _T.task_id == bindparam("key"), _T.attempt_id == bindparam("attempt"), _T.status == said(TaskStatus.RUNNING)
    ),
    ("claimed_until", "key", "attempt"),
)
_OPEN_ITEMS = PreparedIn(
    lambda items: (
        select(_T.item_no)
        .distinct()
        .where(
            _T.execution_id == bindparam("execution"),
            _T.task_type.in_((said(TaskKind.DETAIL), said(TaskKind.OPTION))),
            _T.item_no.in_(items),
            _is_open,
        )
    ),
    ("execution",),
)
_LIST_PAGES = Prepared(
    _whole.where(
        _T.execution_id == bindparam("execution"), _T.task_type.in_((said(TaskKind.MINI_SHOP), said(TaskKind.SEARCH)))
    ).order_by(_T.page_no),
    ("execution",),
)
# Waits for what others hold: a cancelled execution leaves no task open.
_LOCK_OPEN = Prepared(
    _whole.where(_T.execution_id == bindparam("execution"), _is_open).limit(bindparam("count")).with_for_update(),
    ("execution", "count"),
)
_LOCK_STUCK = Prepared(
    skip_locked(
        _whole.where(
            _T.status == said(TaskStatus.RUNNING),
            or_(
                _T.claimed_until.is_(None),
                _T.claimed_until <= bindparam("at"),
                _T.started_at < bindparam("started_before"),
            ),
        ).limit(bindparam("count"))
    ),
    ("at", "started_before", "count"),
)
_sent = select(_O.id).where(_O.task_id == _T.task_id, _O.status == said(TaskOutboxStatus.SENT)).correlate(crawler_tasks)
_ORPHANS = Prepared(
    _whole.where(
        _T.status == said(TaskStatus.PUBLISHED),
        _T.published_at < bindparam("before"),
        or_(_T.checked_at.is_(None), _T.checked_at < bindparam("before")),
        _sent.exists(),
    ).limit(bindparam("count")),
    ("before", "count"),
)
_NOTE_ORPHANS = PreparedIn(
    lambda ids: update(crawler_tasks).where(_T.task_id.in_(ids)).values(checked_at=bindparam("at")), ("at",)
)


class Tasks:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, tasks: Sequence[Task]) -> int:
        to_db = self._session.to_db
        rows = [
            (
                task.task_id,
                task.execution_id,
                task.seller_id,
                task.kind._value_,
                task.request_url,
                task.item_no,
                task.page_no,
                task.status._value_,
                to_db(task.created_at),
                task.retry_count,
                task.abandon_count,
                task.attempt_id,
                task.claimed_by,
                to_db(task.claimed_until),
                cut(task.error_message, _ERROR),
                to_db(task.published_at),
                to_db(task.started_at),
                to_db(task.completed_at),
            )
            for task in tasks
        ]
        return _ADD.put(self._session, rows)

    def get(self, task_id: str) -> Task | None:
        row = self._session.first(_GET, (task_id,))
        return None if row is None else self._session.one(TASKS, row, self._task)

    def lock(self, task_ids: Iterable[str]) -> dict[str, Task]:
        return self._session.by_key(TASKS, self._session.rows_in(_LOCK, task_ids), self._task)

    def save(self, tasks: Iterable[Task]) -> None:
        to_db = self._session.to_db
        rows = [
            (
                task.status._value_,
                task.retry_count,
                task.abandon_count,
                task.attempt_id,
                task.claimed_by,
                to_db(task.claimed_until),
                cut(task.error_message, _ERROR),
                to_db(task.published_at),
                to_db(task.started_at),
                to_db(task.completed_at),
                task.task_id,
            )
            for task in tasks
        ]
        self._session.many(_SAVE, rows)

    def mark_published(self, task_ids: Sequence[str], at: datetime) -> None:
        self._session.run_in(_MARK_PUBLISHED, task_ids, (self._session.to_db(at),))

    def extend(self, held: Sequence[tuple[str, str]], until: datetime) -> None:
        last = self._session.to_db(until)
        self._session.many(_EXTEND, [(last, task_id, attempt_id) for task_id, attempt_id in held])

    def open_items(self, pairs: Sequence[tuple[str, int]]) -> set[tuple[str, int]]:
        items: dict[str, list[int]] = {}
        for execution_id, item_no in pairs:
            items.setdefault(execution_id, []).append(item_no)
        return {
            (execution_id, row[0])
            for execution_id, wanted in items.items()
            for row in self._session.rows_in(_OPEN_ITEMS, wanted, (execution_id,))
        }

    def list_pages(self, execution_id: str) -> list[Task]:
        return self._tasks(self._session.rows(_LIST_PAGES, (execution_id,)))

    def lock_open(self, execution_id: str, count: int) -> list[Task]:
        return self._tasks(self._session.rows(_LOCK_OPEN, (execution_id, count)))

    def lock_stuck(self, at: datetime, started_before: datetime, count: int) -> list[Task]:
        to_db = self._session.to_db
        return self._tasks(self._session.rows(_LOCK_STUCK, (to_db(at), to_db(started_before), count)))

    def orphans(self, before: datetime, count: int) -> list[Task]:
        return self._tasks(self._session.rows(_ORPHANS, (self._session.to_db(before), count)))

    def note_orphans(self, task_ids: Sequence[str], at: datetime) -> None:
        self._session.run_in(_NOTE_ORPHANS, task_ids, (self._session.to_db(at),))

    def _tasks(self, rows: Sequence[Row]) -> list[Task]:
        return self._session.each(TASKS, rows, self._task)

    def _task(self, row: Row) -> Task:
        session = self._session
        (
            task_id,
            execution_id,
            seller_id,
            kind,
            request_url,
            item_no,
            page_no,
            status,
            created_at,
            retry_count,
            abandon_count,
            attempt_id,
            claimed_by,
            claimed_until,
            error_message,
            published_at,
            started_at,
            completed_at,
        ) = row
        return Task(
            task_id,
            execution_id,
            seller_id,
            _KINDS[kind],
            request_url,
            item_no,
            page_no,
            _STATUSES[status],
            session.from_db(created_at),
            retry_count,
            abandon_count,
            attempt_id,
            claimed_by,
            session.from_db_or_none(claimed_until),
            error_message,
            session.from_db_or_none(published_at),
            session.from_db_or_none(started_at),
            session.from_db_or_none(completed_at),
        )


_ATTEMPT = (
    "attempt_id",
    "task_id",
    "seller_id",
    "agent_id",
    "status",
    "started_at",
    "http_status",
    "duration_ms",
    "response_bytes",
    "response_summary",
    "error_message",
    "completed_at",
)
_FINISH = (
    "agent_id",
    "status",
    "http_status",
    "duration_ms",
    "response_bytes",
    "response_summary",
    "error_message",
    "completed_at",
)

_ADD_ATTEMPTS = PerDialect(lambda dialect: insert_or_ignore(dialect, crawl_executions), _ATTEMPT)
_FINISH_ATTEMPTS = Prepared(
    update(crawl_executions).where(_A.attempt_id == bindparam("key"), _A.status == said(AttemptStatus.RUNNING)),
    (*_FINISH, "key"),
)
_ABANDON = PreparedIn(
    lambda ids: (
        update(crawl_executions)
        .where(_A.attempt_id.in_(ids), also(_A.status) == said(AttemptStatus.RUNNING))
        .values(status=said(AttemptStatus.ABANDONED), completed_at=bindparam("at"))
    ),
    ("at",),
)


class Attempts:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, attempts: Sequence[Attempt]) -> None:
        rows = [
            (
                attempt.attempt_id,
                attempt.task_id,
                attempt.seller_id,
                attempt.agent_id,
                attempt.status._value_,
                self._session.to_db(attempt.started_at),
                *self._outcome(attempt),
            )
            for attempt in attempts
        ]
        self._session.many(_ADD_ATTEMPTS, rows)

    def finish(self, attempts: Sequence[Attempt]) -> None:
        rows = [
            (attempt.agent_id, attempt.status._value_, *self._outcome(attempt), attempt.attempt_id)
            for attempt in attempts
        ]
        self._session.many(_FINISH_ATTEMPTS, rows)

    def abandon(self, attempt_ids: Sequence[str], at: datetime) -> None:
        self._session.run_in(_ABANDON, attempt_ids, (self._session.to_db(at),))

    def _outcome(self, attempt: Attempt) -> tuple[Any, ...]:
        return (
            attempt.http_status,
            attempt.duration_ms,
            attempt.response_bytes,
            cut(attempt.response_summary, _SUMMARY),
            cut(attempt.error_message, _ATTEMPT_ERROR),
            self._session.to_db(attempt.completed_at),
        )
