"""Telling real changes from drift: what crawls show, what is usual for a seller, what is quarantined.

Promises what the port says. What was counted is one row per execution, read and written once per batch; it is locked
before a quarantine is read, so that two processes at one crawl come to their verdicts one after the other.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

from sqlalchemy import bindparam, delete, select

from sellerwatch.adapters.sql.dialect import skip_locked, upsert
from sellerwatch.adapters.sql.prepared import Prepared, PreparedIn, Row
from sellerwatch.adapters.sql.session import PerDialect, Session, among, cut, dumps, loads, said
from sellerwatch.adapters.sql.shelves import QUARANTINES
from sellerwatch.adapters.sql.tables import crawling_schedule_executions, drift_baselines, drift_tallies, quarantines
from sellerwatch.domain.documents import DocumentKind
from sellerwatch.domain.drift import Progress, Tally, Watch
from sellerwatch.domain.executions import ListState
from sellerwatch.domain.quarantines import Quarantine, QuarantineStatus

_E, _B, _T, _Q = crawling_schedule_executions.c, drift_baselines.c, drift_tallies.c, quarantines.c
_STATUSES = {status.value: status for status in QuarantineStatus}
_OPEN = said(QuarantineStatus.OPEN)

_TALLIES = PreparedIn(
    lambda ids: select(_T.execution_id, _T.crawl, _T.recent).where(_T.execution_id.in_(ids)).with_for_update()
)
_WATCHED = PreparedIn(
    lambda ids: (
        select(
            _E.execution_id,
            _E.seller_id,
            _E.same_lists,
            _E.same_details,
            _E.same_options,
            _E.full_pages,
            _E.full_page_entries,
            _B.usual,
        )
        .outerjoin(drift_baselines, _B.seller_id == _E.seller_id)
        .where(_E.execution_id.in_(ids), _E.list_state != said(ListState.SETTLED))
    )
)
_TALLY = ("execution_id", "seller_id", "crawl", "recent", "updated_at")
_COUNT = PerDialect(
    lambda dialect: upsert(dialect, drift_tallies, ["execution_id"], ["crawl", "recent", "updated_at"]), _TALLY
)
_FORGET = PreparedIn(lambda ids: delete(drift_tallies).where(_T.execution_id.in_(ids)))
_LEARN = PerDialect(
    lambda dialect: upsert(dialect, drift_baselines, ["seller_id"], ["usual", "updated_at"], ["crawls"]),
    ("seller_id", "usual", "crawls", "updated_at"),
)

_IDENTITY = ("quarantine_id", "seller_id", "execution_id")
_CHANGING = (
    "status",
    "measure",
    "field",
    "reason",
    "documents",
    "events",
    "opened_at",
    "ended_at",
    "settled_at",
)
_quarantine = select(*(_Q[name] for name in (*_IDENTITY, *_CHANGING)))
_SAVE = PerDialect(lambda dialect: upsert(dialect, quarantines, ["quarantine_id"], _CHANGING), (*_IDENTITY, *_CHANGING))
_OF = PreparedIn(lambda ids: _quarantine.where(_Q.execution_id.in_(ids)).with_for_update())
_LOCK = PreparedIn(lambda ids: _quarantine.where(_Q.quarantine_id.in_(ids)).with_for_update())
_LOCK_OPEN = Prepared(
    _quarantine.where(_Q.seller_id == bindparam("seller"), _Q.status == _OPEN).with_for_update(), ("seller",)
)
_LOCK_ALL_OPEN = Prepared(_quarantine.where(_Q.status == _OPEN).order_by(_Q.id).with_for_update())
_LOCK_ENDED = Prepared(
    skip_locked(
        _quarantine.where(
            among(_Q.status, [status.value for status in QuarantineStatus if status is not QuarantineStatus.OPEN]),
            _Q.settled_at.is_(None),
        ).limit(bindparam("count"))
    ),
    ("count",),
)


class Drift:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def watch(self, execution_ids: Iterable[str]) -> dict[str, Watch]:
        ids = set(execution_ids)
        counted = {row[0]: row for row in self._session.rows_in(_TALLIES, ids)}
        return {row[0]: _watch(row, counted.get(row[0])) for row in self._session.rows_in(_WATCHED, ids)}

    def save(self, watches: Iterable[Watch], at: datetime) -> None:
        moment = self._session.to_db(at)
        rows = [
            (one.execution_id, one.seller_id, dumps(one.crawl.sections), dumps(one.recent.sections), moment)
            for one in sorted(watches, key=lambda one: one.execution_id)
        ]
        self._session.many(_COUNT, rows)

    def learn(self, seller_id: str, usual: Tally, at: datetime) -> None:
        self._session.run(_LEARN, (seller_id, dumps(usual.sections), 1, self._session.to_db(at)))

    def forget(self, execution_ids: Iterable[str]) -> None:
        self._session.run_in(_FORGET, execution_ids)


class Quarantines:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def of(self, execution_ids: Iterable[str]) -> dict[str, Quarantine]:
        found = self._all(self._session.rows_in(_OF, execution_ids))
        return {quarantine.execution_id: quarantine for quarantine in found}

    def lock(self, quarantine_ids: Iterable[str]) -> list[Quarantine]:
        return self._all(self._session.rows_in(_LOCK, quarantine_ids))

    def lock_open(self, seller_id: str | None = None) -> list[Quarantine]:
        if seller_id is None:
            return self._all(self._session.rows(_LOCK_ALL_OPEN))
        return self._all(self._session.rows(_LOCK_OPEN, (seller_id,)))

    def lock_ended(self, count: int) -> list[Quarantine]:
        return self._all(self._session.rows(_LOCK_ENDED, (count,)))

    def save(self, quarantines: Iterable[Quarantine]) -> None:
        to_db = self._session.to_db
        rows = [
            (
                one.quarantine_id,
                one.seller_id,
                one.execution_id,
                one.status.value,
                cut(one.measure, _Q.measure),
                cut(one.field, _Q.field),
                cut(one.reason, _Q.reason),
                one.documents,
                one.events,
                to_db(one.opened_at),
                to_db(one.ended_at),
                to_db(one.settled_at),
            )
            for one in sorted(quarantines, key=lambda one: one.quarantine_id)
        ]
        self._session.many(_SAVE, rows)

    def _all(self, rows: Sequence[Row]) -> list[Quarantine]:
        return self._session.each(QUARANTINES, rows, self._quarantine)

    def _quarantine(self, row: Row) -> Quarantine:
        quarantine_id, seller_id, execution_id, status, measure, field, reason, documents, events = row[:9]
        opened_at, ended_at, settled_at = row[9:]
        return Quarantine(
            quarantine_id,
            seller_id,
            execution_id,
            measure,
            field,
            reason,
            self._session.from_db(opened_at),
            _STATUSES[status],
            documents,
            events,
            self._session.from_db_or_none(ended_at),
            self._session.from_db_or_none(settled_at),
        )


def _watch(row: Row, counted: Row | None) -> Watch:
    execution_id, seller_id, same_lists, same_details, same_options, full_pages, full_page_entries, usual = row
    same = {
        DocumentKind.MINI_SHOP: same_lists,
        DocumentKind.DETAIL: same_details,
        DocumentKind.OPTION: same_options,
    }
    progress = Progress(same, full_pages, full_page_entries)
    watch = Watch(execution_id, seller_id, None if usual is None else Tally(loads(usual)), progress)
    if counted is not None:
        watch.crawl, watch.recent = Tally(loads(counted[1])), Tally(loads(counted[2]))
    return watch
