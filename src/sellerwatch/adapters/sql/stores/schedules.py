"""Schedules, and the outbox of what happened to them.

Promises what the port says. A schedule's interval is kept in its expression and nowhere else. Of one schedule at
most one notice is out at a time, the oldest that has neither arrived nor been given up.
"""

import re
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import bindparam, insert, or_, select, update

from sellerwatch.adapters.sql.dialect import skip_locked
from sellerwatch.adapters.sql.prepared import Prepared, PreparedIn, Row
from sellerwatch.adapters.sql.session import Additions, Session, also, cut, dumps, loads_object, said
from sellerwatch.adapters.sql.shelves import NOTICES, SCHEDULES
from sellerwatch.adapters.sql.tables import crawling_schedules, scheduler_outbox
from sellerwatch.domain.outbox import OutboxStatus, ScheduleNotice
from sellerwatch.domain.schedules import Schedule, ScheduleEvent, ScheduleStatus
from sellerwatch.ports.store import Claim

_S = crawling_schedules.c
_COLUMNS = (
    "schedule_id",
    "seller_id",
    "schedule_rule",
    "schedule_expression",
    "status",
    "next_run_at",
    "last_triggered_at",
    "created_at",
    "updated_at",
)
_CHANGING = ("schedule_rule", "schedule_expression", "status", "next_run_at", "last_triggered_at", "updated_at")
_DAYS = re.compile(r"rate\(([0-9]+) days?\)")
_whole = select(*(_S[name] for name in _COLUMNS))
_of_seller = _whole.where(_S.seller_id == bindparam("key"))

_ADD = Prepared(insert(crawling_schedules), _COLUMNS)
_OF_SELLER = Prepared(_of_seller, ("key",))
_LOCK = Prepared(_of_seller.with_for_update(), ("key",))
_LOCK_BY_ID = Prepared(_whole.where(_S.schedule_id == bindparam("key")).with_for_update(), ("key",))
_SAVE = Prepared(update(crawling_schedules).where(_S.schedule_id == bindparam("key")), (*_CHANGING, "key"))
_runs = _S.status.in_((said(ScheduleStatus.ACTIVE), said(ScheduleStatus.FAILED)))
_ACTIVE = Prepared(
    _whole.where(_runs, _S.seller_id > bindparam("after")).order_by(_S.seller_id).limit(bindparam("count")),
    ("after", "count"),
)
# One each, in the order of the index: over both, a database sorts, and locks all there are before it does.
_LOCK_DUE = [
    Prepared(
        skip_locked(
            _whole.where(_S.status == said(status), _S.next_run_at <= bindparam("at"))
            .order_by(_S.next_run_at, _S.id)
            .limit(bindparam("count"))
        ),
        ("at", "count"),
    )
    for status in (ScheduleStatus.ACTIVE, ScheduleStatus.FAILED)
]


class SchedulesKept:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, schedule: Schedule) -> None:
        to_db = self._session.to_db
        row = (
            schedule.schedule_id,
            schedule.seller_id,
            schedule.rule_name,
            schedule.expression,
            schedule.status.value,
            to_db(schedule.next_run_at),
            to_db(schedule.last_triggered_at),
            to_db(schedule.created_at),
            to_db(schedule.updated_at),
        )
        self._session.run(_ADD, row)

    def of_seller(self, seller_id: str) -> Schedule | None:
        return self._one(_OF_SELLER, seller_id)

    def lock(self, seller_id: str) -> Schedule | None:
        return self._one(_LOCK, seller_id)

    def lock_by_id(self, schedule_id: str) -> Schedule | None:
        return self._one(_LOCK_BY_ID, schedule_id)

    def save(self, schedule: Schedule) -> None:
        to_db = self._session.to_db
        row = (
            schedule.rule_name,
            schedule.expression,
            schedule.status.value,
            to_db(schedule.next_run_at),
            to_db(schedule.last_triggered_at),
            to_db(schedule.updated_at),
            schedule.schedule_id,
        )
        self._session.run(_SAVE, row)

    def active(self, after: str, count: int) -> list[Schedule]:
        return self._session.each(SCHEDULES, self._session.rows(_ACTIVE, (after, count)), self._schedule)

    def lock_due(self, at: datetime, count: int) -> list[Schedule]:
        params = (self._session.to_db(at), count)
        rows = [row for statement in _LOCK_DUE for row in self._session.rows(statement, params)]
        due = self._session.each(SCHEDULES, rows, self._schedule)
        return sorted(due, key=lambda schedule: schedule.next_run_at)[:count]

    def _one(self, statement: Prepared, key: str) -> Schedule | None:
        row = self._session.first(statement, (key,))
        return None if row is None else self._session.one(SCHEDULES, row, self._schedule)

    def _schedule(self, row: Row) -> Schedule:
        session = self._session
        schedule_id, seller_id, rule, expression, status, next_run_at, last_triggered_at, created_at, updated_at = row
        return Schedule(
            schedule_id=schedule_id,
            seller_id=seller_id,
            interval_days=_days(expression),
            rule_name=rule,
            status=ScheduleStatus(status),
            next_run_at=session.from_db(next_run_at),
            last_triggered_at=session.from_db_or_none(last_triggered_at),
            created_at=session.from_db(created_at),
            updated_at=session.from_db(updated_at),
        )


def _days(expression: str) -> int:
    found = _DAYS.fullmatch(expression)
    if found is None:
        raise ValueError(f"its expression {expression!r} is no rate of days")
    return int(found[1])


_N = scheduler_outbox.c
_NOTICE = (
    "outbox_id",
    "schedule_id",
    "event_type",
    "payload",
    "status",
    "retry_count",
    "next_attempt_at",
    "error_message",
    "created_at",
    "sent_at",
)
_NOTICE_CHANGING = ("payload", "status", "retry_count", "next_attempt_at", "error_message", "sent_at")
_unclaimed = {"claimed_by": None, "claimed_until": None}
_notice = select(*(_N[name] for name in _NOTICE))
_older = scheduler_outbox.alias("older")
_waits_for_older = (
    select(_older.c.id)
    .where(
        _older.c.schedule_id == _N.schedule_id,
        _older.c.status.in_((said(OutboxStatus.WAITING), said(OutboxStatus.SENDING), said(OutboxStatus.HELD))),
        _older.c.id < _N.id,
    )
    .correlate(scheduler_outbox)
)

_ADD_NOTICE = Additions(scheduler_outbox, _NOTICE, "outbox_id")
_DUE_NOTICES = Prepared(
    skip_locked(
        _notice.where(
            _N.status == said(OutboxStatus.WAITING),
            _N.next_attempt_at <= bindparam("at"),
            ~_waits_for_older.exists(),
        )
        .order_by(_N.next_attempt_at, _N.id)
        .limit(bindparam("count"))
    ),
    ("at", "count"),
)
_CLAIM_NOTICES = PreparedIn(
    lambda ids: (
        update(scheduler_outbox)
        .where(_N.outbox_id.in_(ids))
        .values(status=said(OutboxStatus.SENDING), claimed_by=bindparam("owner"), claimed_until=bindparam("until"))
    ),
    ("owner", "until"),
)
_SAVE_NOTICES = Prepared(
    update(scheduler_outbox)
    .where(
        _N.outbox_id == bindparam("key"),
        _N.status == said(OutboxStatus.SENDING),
        _N.claimed_by == bindparam("owner"),
    )
    .values({name: bindparam(name) for name in _NOTICE_CHANGING} | _unclaimed),
    (*_NOTICE_CHANGING, "key", "owner"),
)
_PUT_NOTICES = Prepared(
    update(scheduler_outbox)
    .where(_N.outbox_id == bindparam("key"))
    .values({name: bindparam(name) for name in _NOTICE_CHANGING} | _unclaimed),
    (*_NOTICE_CHANGING, "key"),
)
_NOTICE_ZOMBIES = Prepared(
    skip_locked(
        select(_N.outbox_id)
        .where(
            _N.status == said(OutboxStatus.SENDING),
            or_(_N.claimed_until.is_(None), _N.claimed_until <= bindparam("at")),
        )
        .limit(bindparam("count"))
    ),
    ("at", "count"),
)
_FREE_NOTICES = PreparedIn(
    lambda ids: (
        update(scheduler_outbox)
        .where(_N.outbox_id.in_(ids), also(_N.status) == said(OutboxStatus.SENDING))
        .values({"status": said(OutboxStatus.WAITING)} | _unclaimed)
    )
)
_LOCK_NOTICES = PreparedIn(lambda ids: _notice.where(_N.outbox_id.in_(ids)).with_for_update())


class Notices:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, notice: ScheduleNotice) -> None:
        payload, status, retry_count, next_attempt_at, error, sent_at = self._changing(notice)
        row = (notice.outbox_id, notice.schedule_id, notice.event_type.value, payload, status, retry_count)
        created_at = self._session.to_db(notice.created_at)
        _ADD_NOTICE.put(self._session, [(*row, next_attempt_at, error, created_at, sent_at)])

    def claim(self, claim: Claim, count: int) -> list[ScheduleNotice]:
        to_db = self._session.to_db
        rows = self._session.rows(_DUE_NOTICES, (to_db(claim.at), count))
        notices = self._session.each(NOTICES, rows, self._notice)
        ids = [notice.outbox_id for notice in notices]
        self._session.run_in(_CLAIM_NOTICES, ids, (claim.owner, to_db(claim.until)))
        for notice in notices:
            notice.status = OutboxStatus.SENDING
        return notices

    def save(self, notices: Sequence[ScheduleNotice], owner: str) -> int:
        rows = [(*self._changing(notice), notice.outbox_id, owner) for notice in notices]
        return self._session.many(_SAVE_NOTICES, rows)

    def free_zombies(self, at: datetime, count: int) -> int:
        rows = self._session.rows(_NOTICE_ZOMBIES, (self._session.to_db(at), count))
        return self._session.run_in(_FREE_NOTICES, [row[0] for row in rows])

    def lock(self, outbox_ids: Sequence[str]) -> list[ScheduleNotice]:
        return self._session.each(NOTICES, self._session.rows_in(_LOCK_NOTICES, outbox_ids), self._notice)

    def put(self, notices: Sequence[ScheduleNotice]) -> None:
        self._session.many(_PUT_NOTICES, [(*self._changing(notice), notice.outbox_id) for notice in notices])

    def _changing(self, notice: ScheduleNotice) -> Row:
        return (
            dumps(notice.payload),
            notice.status.value,
            notice.retry_count,
            self._session.to_db(notice.next_attempt_at or notice.created_at),
            cut(notice.error_message, _N.error_message),
            self._session.to_db(notice.sent_at),
        )

    def _notice(self, row: Row) -> ScheduleNotice:
        session = self._session
        outbox_id, schedule_id, event, payload, status, retry_count, next_at, error, created_at, sent_at = row
        return ScheduleNotice(
            outbox_id=outbox_id,
            payload=loads_object(payload, "ruleName"),
            created_at=session.from_db(created_at),
            status=OutboxStatus(status),
            retry_count=retry_count,
            next_attempt_at=session.from_db(next_at),
            error_message=error,
            sent_at=session.from_db_or_none(sent_at),
            schedule_id=schedule_id,
            event_type=ScheduleEvent(event),
        )
