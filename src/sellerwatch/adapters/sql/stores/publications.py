"""The task outbox: what is to be sent to the queue, drawn fairly from a backlog that may be large.

Promises what the port says. A claim costs the same however long the backlog is: it asks per seller with an open
execution for the first due row, then takes ranges of the index of claims. The row that is claimed bears the moment
of its claim in `next_attempt_at`, so the index also tells whose turn it is when there are more sellers than rows to
give: his who was served longest ago.
"""

from collections.abc import Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, bindparam, case, func, literal_column, or_, select, update

from sellerwatch.adapters.sql.dialect import skip_locked
from sellerwatch.adapters.sql.prepared import Prepared, PreparedIn, Row
from sellerwatch.adapters.sql.session import Additions, Session, also, among, cut, dumps, loads_object, said
from sellerwatch.adapters.sql.shelves import PUBLICATIONS, UNREADABLE
from sellerwatch.adapters.sql.tables import crawler_task_outbox, crawler_tasks, crawling_schedule_executions
from sellerwatch.domain.outbox import Publication, TaskOutboxStatus
from sellerwatch.domain.tasks import ITEM_PRIORITY, LIST_PRIORITY, OPEN
from sellerwatch.ports.store import Claim, FailedRow

_O = crawler_task_outbox.c
_E = crawling_schedule_executions.c
_ERROR = _O.error_message
_STATUSES = {status.value: status for status in TaskOutboxStatus}
_PENDING, _PROCESSING = said(TaskOutboxStatus.PENDING), said(TaskOutboxStatus.PROCESSING)
_SENT, _FAILED = said(TaskOutboxStatus.SENT), said(TaskOutboxStatus.FAILED)
NEVER_SENT = "never sent: its task is closed"

_COLUMNS = (
    "outbox_id",
    "task_id",
    "seller_id",
    "priority",
    "message_group",
    "payload",
    "created_at",
    "status",
    "publish_count",
    "retry_count",
    "next_attempt_at",
    "claimed_by",
    "claimed_until",
    "error_message",
    "sent_at",
)
_CHANGING = (
    "publish_count",
    "status",
    "retry_count",
    "next_attempt_at",
    "claimed_by",
    "claimed_until",
    "error_message",
    "sent_at",
)
_whole = select(*(_O[name] for name in _COLUMNS))
_unclaimed = {"claimed_by": None, "claimed_until": None}

_ADD = Additions(crawler_task_outbox, (*_COLUMNS, "idempotency_key"), "outbox_id")
_STILL_MINE = PreparedIn(
    lambda ids: (
        select(_O.outbox_id)
        .where(_O.outbox_id.in_(ids), also(_O.status) == _PROCESSING, _O.claimed_by == bindparam("owner"))
        .with_for_update()
    ),
    ("owner",),
)
_SAVE = Prepared(update(crawler_task_outbox).where(_O.outbox_id == bindparam("key")), (*_CHANGING, "key"))
_ACCEPTED = PreparedIn(
    lambda ids: (
        update(crawler_task_outbox)
        .where(_O.task_id.in_(ids), also(_O.status) == _PROCESSING)
        .values({"status": _PENDING, "publish_count": _O.publish_count + 1} | _unclaimed)
    )
)
_AGAIN = Prepared(
    update(crawler_task_outbox).where(_O.task_id == bindparam("task")),
    ("status", "retry_count", "next_attempt_at", "task"),
)
_CANCEL = PreparedIn(
    lambda ids: (
        update(crawler_task_outbox)
        .where(_O.task_id.in_(ids), also(_O.status) == _PENDING)
        .values({"status": _SENT, "error_message": func.coalesce(_O.error_message, bindparam("note"))} | _unclaimed)
    ),
    ("note",),
)
_ARE_OUT = PreparedIn(
    lambda ids: select(_O.task_id).where(
        _O.task_id.in_(ids), among(also(_O.status), (TaskOutboxStatus.PROCESSING, TaskOutboxStatus.SENT))
    )
)
_ZOMBIES = Prepared(
    skip_locked(
        select(_O.id)
        .where(_O.status == _PROCESSING, or_(_O.claimed_until.is_(None), _O.claimed_until <= bindparam("at")))
        .limit(bindparam("count"))
    ),
    ("at", "count"),
)
_task_is_open = (
    select(crawler_tasks.c.id)
    .where(crawler_tasks.c.task_id == _O.task_id, among(crawler_tasks.c.status, OPEN))
    .correlate(crawler_task_outbox)
)
# A worker may have been quicker than the mark: what is closed by now needs no message any more.
_FREE = PreparedIn(
    lambda ids: (
        update(crawler_task_outbox)
        .where(_O.id.in_(ids), also(_O.status) == _PROCESSING)
        .values({"status": case((_task_is_open.exists(), _PENDING), else_=_SENT)} | _unclaimed)
    )
)
# Of sellers with an open execution: what failed for good is not looked at over and over until it is forgotten.
_LOCK_FAILED = Prepared(
    skip_locked(
        select(_O.outbox_id, _O.task_id, _O.retry_count, _O.error_message)
        .where(
            _O.status == _FAILED,
            _O.seller_id.in_(select(_E.open_key).where(_E.open_key.is_not(None))),
            _task_is_open.exists(),
        )
        .limit(bindparam("count"))
    ),
    ("count",),
)
_LOCK = PreparedIn(lambda ids: _whole.where(_O.outbox_id.in_(ids)).with_for_update())


def _nearest(status: ColumnElement[str], priority: int, *, last: bool = False) -> Any:
    """Of a seller's rows of one status and priority, the first (or last) moment: one step into the index."""
    moment = _O.next_attempt_at.desc() if last else _O.next_attempt_at
    rows = select(_O.next_attempt_at).where(
        _O.status == status, _O.seller_id == _E.open_key, _O.priority == literal_column(str(priority))
    )
    return rows.correlate(crawling_schedule_executions).order_by(moment).limit(1).scalar_subquery()


_open = select(_E.open_key).where(_E.open_key.is_not(None))
_FIRST_DUE = Prepared(_open.add_columns(_nearest(_PENDING, LIST_PRIORITY), _nearest(_PENDING, ITEM_PRIORITY)))
_LAST_SERVED = Prepared(
    _open.add_columns(
        *(
            _nearest(status, priority, last=True)
            for status in (_PROCESSING, _SENT)
            for priority in (LIST_PRIORITY, ITEM_PRIORITY)
        )
    )
)


def _due(of: Select[Any]) -> Select[Any]:
    return of.where(
        _O.status == _PENDING,
        _O.seller_id == bindparam("seller"),
        _O.priority == bindparam("priority"),
        _O.next_attempt_at <= bindparam("at"),
    )


_TAKE = Prepared(
    skip_locked(_due(_whole.add_columns(_O.id)).order_by(_O.next_attempt_at, _O.id).limit(bindparam("count"))),
    ("seller", "priority", "at", "count"),
)
_CLAIM = PreparedIn(
    lambda ids: (
        update(crawler_task_outbox)
        .where(_O.id.in_(ids))
        .values(
            status=_PROCESSING,
            claimed_by=bindparam("owner"),
            claimed_until=bindparam("until"),
            next_attempt_at=bindparam("at"),
        )
    ),
    ("owner", "until", "at"),
)


_PLACE = itemgetter(_COLUMNS.index("priority"), _COLUMNS.index("next_attempt_at"), -1)


class _Waiting(NamedTuple):
    """A seller with something due."""

    seller_id: str
    has_lists: bool
    has_items: bool
    due_at: Any
    """The first due row's moment as the driver writes it: it sorts as it is."""


class Publications:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, publications: Sequence[Publication]) -> int:
        to_db = self._session.to_db
        rows = [
            (
                row.outbox_id,
                row.task_id,
                row.seller_id,
                row.priority,
                row.message_group,
                dumps(row.payload),
                to_db(row.created_at),
                row.status._value_,
                row.publish_count,
                row.retry_count,
                to_db(row.next_attempt_at or row.created_at),
                row.claimed_by,
                to_db(row.claimed_until),
                cut(row.error_message, _ERROR),
                to_db(row.sent_at),
                row.idempotency_key,
            )
            for row in publications
        ]
        return _ADD.put(self._session, rows)

    def claim(self, claim: Claim, count: int) -> list[Publication]:
        at = self._session.to_db(claim.at)
        sellers = self._in_turn(at, count)
        marks = (claim.owner, self._session.to_db(claim.until), at)
        claimed: list[Row] = []
        while sellers and (left := count - len(claimed)) > 0:
            # What one seller does not use goes round again among those that may have more.
            rows, sellers = self._round(sellers, at, left)
            self._session.run_in(_CLAIM, [row[-1] for row in rows], marks)
            claimed += rows
        claimed.sort(key=_PLACE)
        return self._session.each(PUBLICATIONS, claimed, lambda row: self._claimed(row, claim))

    def save(self, publications: Sequence[Publication], owner: str) -> set[str]:
        to_db = self._session.to_db
        ids = [row.outbox_id for row in publications]
        mine = {row[0] for row in self._session.rows_in(_STILL_MINE, ids, (owner,))}
        saved = [row for row in publications if row.outbox_id in mine]
        rows = [
            (
                row.publish_count,
                row.status._value_,
                row.retry_count,
                to_db(row.next_attempt_at or row.created_at),
                row.claimed_by,
                to_db(row.claimed_until),
                cut(row.error_message, _ERROR),
                to_db(row.sent_at),
                row.outbox_id,
            )
            for row in saved
        ]
        self._session.many(_SAVE, rows)
        return {row.task_id for row in saved}

    def again(self, rows: Sequence[tuple[str, datetime]]) -> int:
        self._session.run_in(_ACCEPTED, [task_id for task_id, _ in rows])
        pending, to_db = TaskOutboxStatus.PENDING.value, self._session.to_db
        return self._session.many(_AGAIN, [(pending, 0, to_db(due_at), task_id) for task_id, due_at in rows])

    def cancel(self, task_ids: Sequence[str]) -> None:
        self._session.run_in(_CANCEL, task_ids, (NEVER_SENT,))

    def are_out(self, task_ids: Sequence[str]) -> set[str]:
        return {row[0] for row in self._session.rows_in(_ARE_OUT, task_ids)}

    def free_zombies(self, at: datetime, count: int) -> int:
        rows = self._session.rows(_ZOMBIES, (self._session.to_db(at), count))
        return self._session.run_in(_FREE, [row[0] for row in rows])

    def lock_failed(self, count: int) -> list[FailedRow]:
        rows = self._session.rows(_LOCK_FAILED, (count,))
        return [
            FailedRow(outbox_id, task_id, retry_count, is_spoilt=(error or "").startswith(UNREADABLE))
            for outbox_id, task_id, retry_count, error in rows
        ]

    def lock(self, outbox_ids: Sequence[str]) -> list[Publication]:
        return self._session.each(PUBLICATIONS, self._session.rows_in(_LOCK, outbox_ids), self._publication)

    def is_due(self, at: datetime) -> bool:
        return bool(self._waiting(self._session.to_db(at)))

    def _in_turn(self, at: object, count: int) -> list[_Waiting]:
        """At most `count` sellers with something due, the longest due first; of more, those whose turn it is."""
        sellers = self._waiting(at)
        if len(sellers) > count:
            rows = self._session.rows(_LAST_SERVED)
            served = {row[0]: max((str(moment) for moment in row[1:] if moment), default="") for row in rows}
            sellers.sort(key=lambda seller: served.get(seller.seller_id, ""))
        return sellers[:count]

    def _waiting(self, at: Any) -> list[_Waiting]:
        waiting = []
        for seller_id, first_list, first_item in self._session.rows(_FIRST_DUE):
            due = [moment for moment in (first_list, first_item) if moment is not None and moment <= at]
            if due:
                waiting.append(_Waiting(seller_id, first_list in due, first_item in due, min(due)))
        return sorted(waiting, key=lambda seller: (seller.due_at, seller.seller_id))

    def _round(self, sellers: list[_Waiting], at: object, count: int) -> tuple[list[Row], list[_Waiting]]:
        """An equal share of `count` for each, and who may have more than that."""
        share, extra = divmod(count, len(sellers))
        taken: list[Row] = []
        hungry = []
        for place, seller in enumerate(sellers):
            wanted = share + (place < extra)
            rows = self._take(seller, at, wanted) if wanted else []
            taken += rows
            if len(rows) == wanted:
                hungry.append(seller)
        return taken, hungry

    def _take(self, seller: _Waiting, at: object, count: int) -> list[Row]:
        rows: list[Row] = []
        for priority, has_any in ((LIST_PRIORITY, seller.has_lists), (ITEM_PRIORITY, seller.has_items)):
            if has_any and len(rows) < count:
                rows += self._session.rows(_TAKE, (seller.seller_id, priority, at, count - len(rows)))
        return rows

    def _claimed(self, row: Row, claim: Claim) -> Publication:
        publication = self._publication(row[:-1])
        publication.status, publication.next_attempt_at = TaskOutboxStatus.PROCESSING, claim.at
        publication.claimed_by, publication.claimed_until = claim.owner, claim.until
        return publication

    def _publication(self, row: Row) -> Publication:
        session = self._session
        outbox_id, task_id, seller_id, priority, group, payload, created_at, status = row[:8]
        publish_count, retry_count, next_attempt_at, claimed_by, claimed_until, error, sent_at = row[8:]
        return Publication(
            outbox_id,
            task_id,
            seller_id,
            priority,
            group,
            loads_object(payload, "taskType"),
            session.from_db(created_at),
            _STATUSES[status],
            publish_count,
            retry_count,
            session.from_db(next_attempt_at),
            claimed_by,
            session.from_db_or_none(claimed_until),
            error,
            session.from_db_or_none(sent_at),
        )
