"""What keeps the house: usage, drift, alerts, who is alive, the sweeps' record, daily figures, and forgetting.

Promises what the port says. To be told once more adds up, it makes no second row; figures written twice are the same
figures. What may be forgotten is the business of `prune`.
"""

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from math import ceil
from operator import itemgetter
from typing import Any, TypeAlias

from sqlalchemy import (
    ColumnElement,
    Insert,
    and_,
    bindparam,
    case,
    delete,
    func,
    insert,
    literal_column,
    null,
    or_,
    select,
    update,
)

from sellerwatch.adapters.sql.dialect import NewValue, upsert, upsert_by
from sellerwatch.adapters.sql.overview import complete_in_shop
from sellerwatch.adapters.sql.prepared import Prepared, Row
from sellerwatch.adapters.sql.session import PerDialect, Session, cut, dumps
from sellerwatch.adapters.sql.shelves import ALERTS
from sellerwatch.adapters.sql.shown import opened
from sellerwatch.adapters.sql.stores.prune import prune
from sellerwatch.adapters.sql.tables import (
    alerts,
    crawler_tasks,
    crawling_metrics_daily,
    field_drift,
    pauses,
    processes,
    sellers,
    suppressed_changes,
    sweeps,
    token_usage_log,
)
from sellerwatch.domain.documents import DocumentKind
from sellerwatch.domain.identities import TOO_MANY_REQUESTS
from sellerwatch.domain.tasks import TaskStatus
from sellerwatch.ports.outside import Severity
from sellerwatch.ports.store import Usage
from sellerwatch.ports.store.keeping import OTHER_NAMES, UNKNOWN_NAMES_MAX, UNREADABLE_ROW

_A = alerts.c
_M = crawling_metrics_daily.c
_T = crawler_tasks.c
ALL_SELLERS = ""

_LOG = Prepared(
    insert(token_usage_log),
    (
        "agent_id",
        "task_id",
        "request_url",
        "http_status_code",
        "response_time_ms",
        "is_success",
        "is_rate_limited",
        "is_429_error",
        "retry_after_seconds",
        "error_message",
        "request_timestamp",
    ),
)
Finding: TypeAlias = tuple[DocumentKind, str, str, str]
UNKNOWN = "unknown"
_NAMES = Prepared(
    select(field_drift.c.field).where(
        field_drift.c.data_type == bindparam("kind"),
        field_drift.c.problem == bindparam("problem"),
        field_drift.c.day == bindparam("day"),
    ),
    ("kind", "problem", "day"),
)
_earlier = field_drift.alias("earlier")
_NEW_NAMES = Prepared(
    select(field_drift.c.field)
    .where(
        field_drift.c.data_type == bindparam("kind"),
        field_drift.c.problem == bindparam("problem"),
        field_drift.c.day == bindparam("day"),
        field_drift.c.times >= bindparam("least"),
        ~select(_earlier.c.field)
        .where(
            _earlier.c.data_type == field_drift.c.data_type,
            _earlier.c.field == field_drift.c.field,
            _earlier.c.problem == field_drift.c.problem,
            _earlier.c.day < field_drift.c.day,
        )
        .exists(),
    )
    .order_by(field_drift.c.field),
    ("kind", "problem", "day", "least"),
)
_SUPPRESSED = PerDialect(
    lambda dialect: upsert(dialect, suppressed_changes, ["rule", "day"], ["last_at"], ["times"]),
    ("rule", "day", "times", "last_at"),
)
_DRIFT_KEY = ("data_type", "field", "problem", "day")
_DRIFT = PerDialect(
    lambda dialect: upsert(dialect, field_drift, _DRIFT_KEY, ["sample", "last_seen_at"], ["times"]),
    (*_DRIFT_KEY, "times", "sample", "last_seen_at"),
)


def _raise(dialect: str) -> Insert:
    def still(new: NewValue) -> list[tuple[str, Any]]:
        is_open = _A.cleared_at.is_(None)
        return [
            ("since", case((is_open, _A.since), else_=new("since"))),
            ("times", case((is_open, _A.times + 1), else_=1)),
            ("severity", new("severity")),
            ("details", new("details")),
            ("cleared_at", null()),
        ]

    return upsert_by(dialect, alerts, ["name"], still)


_RAISE = PerDialect(_raise, ("name", "severity", "since", "times", "details"))
_CLEAR = Prepared(
    update(alerts).where(_A.name == bindparam("key"), _A.cleared_at.is_(None)).values(cleared_at=bindparam("at")),
    ("key", "at"),
)
_TO_TELL = Prepared(
    select(_A.name, _A.severity, _A.since, _A.details)
    .where(_A.cleared_at.is_(None), or_(_A.last_sent_at.is_(None), _A.last_sent_at <= bindparam("before")))
    .order_by(_A.since, _A.name),
    ("before",),
)
_OF_ROWS = Prepared(
    select(_A.name, _A.severity, _A.since, _A.details).where(
        _A.cleared_at.is_(None), _A.name.startswith(literal_column(f"'{UNREADABLE_ROW}:'"))
    )
)
_TOLD = Prepared(update(alerts).where(_A.name == bindparam("key")).values(last_sent_at=bindparam("at")), ("key", "at"))
_LIFE = ("role", "host", "pid", "version", "seen_at")
_SHOW_LIFE = PerDialect(lambda dialect: upsert(dialect, processes, ["owner"], _LIFE), ("owner", *_LIFE, "started_at"))
_SWEPT = ("last_run_at", "last_found", "last_error")
_NOTE_SWEEP = PerDialect(lambda dialect: upsert(dialect, sweeps, ["name"], _SWEPT), ("name", *_SWEPT))
_PAUSED = ("name", "last_at", "reason")
_NOTE_PAUSE = PerDialect(lambda dialect: upsert(dialect, pauses, ["name"], ["last_at", "reason"]), _PAUSED)
_LAST_PAUSE = Prepared(select(pauses.c.last_at).where(pauses.c.name == bindparam("key")), ("key",))
RECEIVING = "receiving"
_FIGURES = ("success_rate", "progress_rate", "total", "completed", "failed", "in_progress")
_FIGURE = PerDialect(
    lambda dialect: upsert(dialect, crawling_metrics_daily, ["seller_id", "date"], _FIGURES),
    ("seller_id", "date", *_FIGURES),
)


class Chores:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def log_usage(self, rows: Sequence[Usage]) -> None:
        url, error = token_usage_log.c.request_url, token_usage_log.c.error_message
        self._session.many(
            _LOG,
            [
                (
                    usage.agent_id,
                    usage.task_id,
                    cut(usage.request_url, url),
                    usage.http_status,
                    usage.duration_ms,
                    int(usage.is_success),
                    int(usage.http_status == TOO_MANY_REQUESTS or usage.retry_after is not None),
                    int(usage.http_status == TOO_MANY_REQUESTS),
                    ceil(usage.retry_after.total_seconds()) if usage.retry_after else None,
                    cut(usage.error_message, error),
                    self._session.to_db(usage.at),
                )
                for usage in rows
            ],
        )

    def note_drift(self, rows: Sequence[tuple[DocumentKind, str, str, str]], at: datetime) -> None:
        columns, day, moment = field_drift.c, at.date().isoformat(), self._session.to_db(at)
        counted: dict[tuple[Any, ...], tuple[int, str | None]] = {}
        for kind, field, problem, sample in self._bounded(rows, day):
            key = (kind.value, cut(field, columns.field), cut(problem, columns.problem), day)
            counted[key] = counted.get(key, (0, None))[0] + 1, cut(sample, columns.sample)
        self._session.many(_DRIFT, [(*key, times, sample, moment) for key, (times, sample) in sorted(counted.items())])

    def new_names(self, kind: DocumentKind, times: int, at: datetime) -> list[str]:
        return [row[0] for row in self._session.rows(_NEW_NAMES, (kind.value, UNKNOWN, at.date().isoformat(), times))]

    def note_suppressed(self, rule: str, times: int, at: datetime) -> None:
        row = (cut(rule, suppressed_changes.c.rule), at.date().isoformat(), times, self._session.to_db(at))
        self._session.run(_SUPPRESSED, row)

    def raise_alert(self, name: str, severity: str, text: str, details: Mapping[str, Any], at: datetime) -> None:
        told = dumps({"text": text, "details": dict(details)})
        row = (cut(name, _A.name), cut(severity, _A.severity), self._session.to_db(at), 1, told)
        self._session.run(_RAISE, row)

    def clear_alert(self, name: str, at: datetime) -> None:
        self._session.run(_CLEAR, (cut(name, _A.name), self._session.to_db(at)))

    def clear_unmet(self, at: datetime, quiet: timedelta) -> None:
        for name, _, _, _, details in self._session.each(ALERTS, self._session.rows(_OF_ROWS), self._alert):
            last_at = details.get("lastAt")
            if last_at is None or datetime.fromisoformat(last_at) + quiet <= at:
                self.clear_alert(name, at)

    def alerts_to_tell(
        self, at: datetime, repeat_seconds: float
    ) -> list[tuple[str, str, str, datetime, dict[str, Any]]]:
        before = self._session.to_db(at - timedelta(seconds=repeat_seconds))
        return self._session.each(ALERTS, self._session.rows(_TO_TELL, (before,)), self._alert)

    def told(self, name: str, at: datetime) -> None:
        self._session.run(_TOLD, (cut(name, _A.name), self._session.to_db(at)))

    def show_life(self, owner: str, role: str, host: str, pid: int, version: str, at: datetime) -> None:
        columns, moment = processes.c, self._session.to_db(at)
        about = (cut(role, columns.role), cut(host, columns.host), pid, cut(version, columns.version))
        self._session.run(_SHOW_LIFE, (cut(owner, columns.owner), *about, moment, moment))

    def leave(self, owner: str) -> None:
        self._session.execute(delete(processes).where(processes.c.owner == cut(owner, processes.c.owner)))

    def note_sweeps(self, rows: Sequence[tuple[str, int, str | None, datetime]]) -> None:
        columns, to_db = sweeps.c, self._session.to_db
        noted = [(cut(row[0], columns.name), to_db(row[3]), row[1], cut(row[2], columns.last_error)) for row in rows]
        self._session.many(_NOTE_SWEEP, sorted(noted, key=itemgetter(0)))

    def note_pause(self, reason: str, at: datetime) -> None:
        self._session.run(_NOTE_PAUSE, (RECEIVING, self._session.to_db(at), cut(reason, pauses.c.reason)))

    def paused_at(self) -> datetime | None:
        row = self._session.first(_LAST_PAUSE, (RECEIVING,))
        return self._session.from_db(row[0]) if row else None

    def write_daily_figures(self, day: date, start: datetime, end: datetime) -> int:
        """Of every seller that is known, and of all: tasks of sellers that were removed since count there too."""
        on_the_day = (_T.created_at >= start, _T.created_at < end)
        per_seller = (
            select(sellers.c.seller_id, _T.status, func.count())
            .select_from(sellers.join(crawler_tasks, and_(_T.seller_id == sellers.c.seller_id, *on_the_day)))
            .group_by(sellers.c.seller_id, _T.status)
        )
        tasks: dict[str, dict[str, int]] = {}
        found: list[Any] = list(self._session.execute(per_seller))
        for seller_id, status, count in found:
            tasks.setdefault(seller_id, {})[status] = count
        tasks[ALL_SELLERS] = {
            status.value: self._count(crawler_tasks.c.id, _T.status == status.value, *on_the_day)
            for status in TaskStatus
        }
        stock = self._stock()
        stock[ALL_SELLERS] = (sum(known for known, _ in stock.values()), sum(total for _, total in stock.values()))
        rows = [
            (seller_id, day.isoformat(), *_figures(tasks.get(seller_id, {}), *known))
            for seller_id, known in sorted(stock.items())
        ]
        self._session.many(_FIGURE, rows)
        return len(rows)

    def unsettled_days(self, since: date) -> list[date]:
        of_all = (_M.seller_id == ALL_SELLERS, _M.date >= since, _M.in_progress > 0)
        found: list[Any] = list(self._session.execute(select(_M.date).where(*of_all).order_by(_M.date)))
        return [row[0] for row in found]

    def figured_days(self, day: date) -> bool:
        """The row of all sellers is there on every day that was figured."""
        found = select(_M.id).where(_M.seller_id == ALL_SELLERS, _M.date == day)
        return self._session.execute(found).first() is not None

    def prune(self, what: str, before: datetime, count: int) -> int:
        return prune(self._session, what, before, count)

    def _bounded(self, rows: Sequence[Finding], day: str) -> Sequence[Finding]:
        """The rows, with unknown names beyond the day's bound counted as one."""
        kinds = {kind for kind, _, problem, _ in rows if problem == UNKNOWN}
        if not kinds:
            return rows
        known = {kind: {row[0] for row in self._session.rows(_NAMES, (kind.value, UNKNOWN, day))} for kind in kinds}
        bounded: list[Finding] = []
        for row in rows:
            kind, field, problem, _ = row
            if problem != UNKNOWN or field in known[kind]:
                bounded.append(row)
            elif len(known[kind]) < UNKNOWN_NAMES_MAX:
                known[kind].add(field)
                bounded.append(row)
            else:
                bounded.append((kind, OTHER_NAMES, problem, field))
        return bounded

    def _stock(self) -> dict[str, tuple[int, int]]:
        """By seller: complete products, and how many the marketplace counts."""
        counted = select(sellers.c.seller_id, complete_in_shop(), sellers.c.total_product_count)
        found: list[Any] = list(self._session.execute(counted))
        return {seller_id: (known, total) for seller_id, known, total in found}

    def _alert(self, row: Row) -> tuple[str, str, str, datetime, dict[str, Any]]:
        name, severity, since, details = row
        told = opened(details, dict[str, Any]())
        # Somebody must be told in any case.
        severity = severity if severity in set(Severity) else Severity.CRITICAL
        return name, severity, str(told.get("text", name)), self._session.from_db(since), dict(told.get("details", {}))

    def _count(self, column: ColumnElement[Any], *which: ColumnElement[bool]) -> int:
        counted: int = self._session.execute(select(func.count(column)).where(*which)).scalar_one()
        return counted


def _figures(tasks: Mapping[str, int], complete: int, counted: int) -> tuple[float, float, int, int, int, int]:
    total, done = sum(tasks.values()), tasks.get(TaskStatus.SUCCESS.value, 0)
    failed = tasks.get(TaskStatus.FAILED.value, 0)
    return (_percent(done, total), _percent(complete, counted), total, done, failed, total - done - failed)


def _percent(part: int, whole: int) -> float:
    return round(part * 100 / whole, 2) if whole else 0.0
