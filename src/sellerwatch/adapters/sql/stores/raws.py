"""Raws: what the marketplace answered, once per distinct content.

Promises what the port says. What is ripe is found in the index of claims, kind by kind, so that a long backlog that
is not ripe yet costs nothing; an observation is handed out whole or not at all, also where several processes ask at
once. The content is written once and never again; bytes that are no text are kept as a person can read them.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import accumulate
from typing import Any

from sqlalchemy import Insert, bindparam, case, func, null, select, update

from sellerwatch.adapters.sql.dialect import SQLITE, NewValue, by_index, skip_locked, upsert_by
from sellerwatch.adapters.sql.prepared import Prepared, PreparedIn, Row
from sellerwatch.adapters.sql.session import PerDialect, Session, cut, said
from sellerwatch.adapters.sql.shelves import RAWS
from sellerwatch.adapters.sql.tables import product_raw_data
from sellerwatch.domain.documents import DocumentKind
from sellerwatch.domain.raws import Raw, RawStatus
from sellerwatch.ports.store import RawSign

_R = product_raw_data.c
_KINDS = {kind.value: kind for kind in DocumentKind}
_STATUSES = {status.value: status for status in RawStatus}
_PENDING, _FAILED = said(RawStatus.PENDING), said(RawStatus.FAILED)
CONTENDERS = 4
"""So many processes find something to claim at the same time."""

_NEW = (
    "raw_id",
    "item_no",
    "seller_id",
    "task_id",
    "execution_id",
    "data_type",
    "raw_json",
    "raw_hash",
    "crawled_at",
    "next_attempt_at",
    "status",
    "retry_count",
    "error_message",
    "created_at",
)
_WHOLE = (
    "raw_id",
    "item_no",
    "seller_id",
    "task_id",
    "execution_id",
    "data_type",
    "raw_json",
    "raw_hash",
    "crawled_at",
    "next_attempt_at",
    "status",
    "retry_count",
    "product_id",
    "error_message",
    "processed_at",
)
_RENEWED = ("seller_id", "task_id", "execution_id", "next_attempt_at", "status", "retry_count", "error_message")
_whole = select(*(_R[name] for name in _WHOLE))


def _put(dialect: str) -> Insert:
    def renewed(new: NewValue) -> list[tuple[str, Any]]:
        is_news = new("crawled_at") >= _R.crawled_at
        kept = [(name, case((is_news, new(name)), else_=_R[name])) for name in _RENEWED]
        processed = ("processed_at", case((is_news, null()), else_=_R.processed_at))
        return [*kept, processed, ("crawled_at", case((is_news, new("crawled_at")), else_=_R.crawled_at))]

    return upsert_by(dialect, product_raw_data, ["raw_id"], renewed)


_PUT = PerDialect(_put, _NEW)
_RIPEN = Prepared(
    update(product_raw_data)
    .where(
        _R.execution_id == bindparam("execution"),
        _R.item_no == bindparam("item"),
        _R.status == _PENDING,
        _R.next_attempt_at > bindparam("at"),
    )
    .values(next_attempt_at=bindparam("at")),
    ("at", "execution", "item"),
)
_RIPE = [
    Prepared(
        select(_R.next_attempt_at, _R.id, _R.execution_id, _R.item_no)
        .where(_R.status == _PENDING, _R.data_type == said(kind), _R.next_attempt_at <= bindparam("at"))
        .order_by(_R.next_attempt_at)
        .limit(bindparam("count")),
        ("at", "count"),
    )
    for kind in DocumentKind
]
_LEADERS = PreparedIn(
    lambda items: (
        select(func.min(_R.id), _R.execution_id, _R.item_no)
        .where(_R.execution_id == bindparam("execution"), _R.item_no.in_(items), _R.status == _PENDING)
        .group_by(_R.execution_id, _R.item_no)
    ),
    ("execution",),
)
# Not "and it is PENDING": a planner might then walk over all that are.
_LOCK_LEADERS = PreparedIn(lambda ids: skip_locked(select(_R.id, _R.status).where(_R.id.in_(ids))))
# By no other index: whoever walks over other processes' rows waits for them.
_LOCK_OBSERVED = PreparedIn(
    lambda items: by_index(
        _whole.where(_R.execution_id == bindparam("execution"), _R.item_no.in_(items), _R.status == _PENDING),
        product_raw_data,
        "idx_execution_id_status",
    ).with_for_update(),
    ("execution",),
)
_SAVE = Prepared(
    update(product_raw_data).where(_R.raw_id == bindparam("key")),
    ("status", "retry_count", "next_attempt_at", "product_id", "error_message", "processed_at", "key"),
)
_LOCK_FAILED = [
    Prepared(
        skip_locked(
            _whole.where(
                _R.status == _FAILED,
                _R.data_type == said(kind),
                _R.next_attempt_at <= bindparam("at"),
                _R.retry_count < bindparam("retries_max"),
            )
            .order_by(_R.next_attempt_at)
            .limit(bindparam("count"))
        ),
        ("at", "retries_max", "count"),
    )
    for kind in DocumentKind
]
_LOCK_BY_ID = PreparedIn(lambda ids: _whole.where(_R.raw_id.in_(ids)).with_for_update())
_LOCK_HELD = [
    Prepared(
        _whole.where(_R.execution_id == bindparam("execution"), _R.status == said(status))
        .limit(bindparam("count"))
        .with_for_update(),
        ("execution", "count"),
    )
    for status in (RawStatus.HELD, RawStatus.FAILED)
]
# In the index on item and moment: no row is opened for it.
_ITEMS_SINCE = Prepared(
    select(_R.item_no)
    .where(_R.item_no > bindparam("after"), _R.crawled_at >= bindparam("since"))
    .distinct()
    .order_by(_R.item_no)
    .limit(bindparam("count")),
    ("after", "since", "count"),
)
_COUNT_ITEMS_SINCE = Prepared(
    select(func.count(_R.item_no.distinct())).where(
        _R.item_no > bindparam("after"), _R.crawled_at >= bindparam("since")
    ),
    ("after", "since"),
)
_SIGNS_SINCE = PreparedIn(
    lambda items: select(_R.raw_id, _R.item_no, _R.data_type, _R.crawled_at).where(
        _R.item_no.in_(items), _R.crawled_at >= bindparam("since")
    ),
    ("since",),
)


class Raws:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def put(self, raws: Sequence[Raw]) -> None:
        to_db = self._session.to_db
        rows: list[Row] = []
        for raw in raws:
            crawled_at = to_db(raw.crawled_at)
            rows.append(
                (
                    raw.raw_id,
                    raw.item_no,
                    raw.seller_id,
                    raw.task_id,
                    raw.execution_id,
                    raw.kind.value,
                    _text(raw.body),
                    raw.raw_hash,
                    crawled_at,
                    to_db(raw.next_attempt_at),
                    raw.status.value,
                    raw.retry_count,
                    cut(raw.error_message, _R.error_message),
                    crawled_at,
                )
            )
        self._session.many(_PUT, rows)

    def ripen(self, pairs: Sequence[tuple[str, int]], at: datetime) -> None:
        moment = self._session.to_db(at)
        self._session.many(_RIPEN, [(moment, execution_id, item_no) for execution_id, item_no in pairs])

    def lock_ripe(self, at: datetime, count: int) -> list[Raw]:
        moment = self._session.to_db(at)
        is_alone = self._session.dialect == SQLITE
        most = count if is_alone else count * CONTENDERS
        ripe = sorted(row for statement in _RIPE for row in self._session.rows(statement, (moment, most)))[:most]
        pairs = ((execution_id, item_no) for _, _, execution_id, item_no in ripe)
        observed = pairs if is_alone else self._nobodys(pairs, count)
        return self._raws(
            [
                row
                for execution_id, items in _by_execution(observed).items()
                for row in self._session.rows_in(_LOCK_OBSERVED, items, (execution_id,))
            ]
        )

    def save(self, raws: Sequence[Raw]) -> None:
        to_db = self._session.to_db
        rows = [
            (
                raw.status.value,
                raw.retry_count,
                to_db(raw.next_attempt_at),
                raw.product_id,
                cut(raw.error_message, _R.error_message),
                to_db(raw.processed_at),
                raw.raw_id,
            )
            for raw in raws
        ]
        self._session.many(_SAVE, rows)

    def lock_failed(self, at: datetime, retries_max: int, count: int) -> list[Raw]:
        found: list[Row] = []
        for statement in _LOCK_FAILED:
            if len(found) < count:
                found += self._session.rows(statement, (self._session.to_db(at), retries_max, count - len(found)))
        return self._raws(found)

    def lock_by_id(self, raw_ids: Sequence[str]) -> list[Raw]:
        return self._raws(self._session.rows_in(_LOCK_BY_ID, raw_ids))

    def lock_held(self, execution_id: str, count: int, *, failed: bool = False) -> list[Raw]:
        found: list[Row] = []
        for statement in _LOCK_HELD if failed else _LOCK_HELD[:1]:
            found += self._session.rows(statement, (execution_id, count - len(found)))
        return self._raws(found)

    def items_since(self, since: datetime, after_item: int, count: int) -> list[int]:
        return [row[0] for row in self._session.rows(_ITEMS_SINCE, (after_item, self._session.to_db(since), count))]

    def count_items_since(self, since: datetime, after_item: int = 0) -> int:
        row = self._session.first(_COUNT_ITEMS_SINCE, (after_item, self._session.to_db(since)))
        return row[0] if row else 0

    def signs_since(self, item_nos: Iterable[int], since: datetime) -> list[RawSign]:
        rows = self._session.rows_in(_SIGNS_SINCE, item_nos, (self._session.to_db(since),))
        return self._session.each(
            RAWS, rows, lambda row: RawSign(row[0], row[1], _KINDS[row[2]], self._session.from_db(row[3]))
        )

    def _nobodys(self, pairs: Iterable[tuple[str, int]], count: int) -> list[tuple[str, int]]:
        """Those of which we get the first row, until they have `count` ripe ones: whoever holds it may have the rest,
        and nobody waits for two.
        """
        ripe = Counter(pairs)
        leaders = {
            row_id: (execution_id, item_no)
            for wanted, items in _by_execution(ripe).items()
            for row_id, execution_id, item_no in self._session.rows_in(_LEADERS, items, (wanted,))
        }
        row_of = {pair: row_id for row_id, pair in leaders.items()}
        asked = [pair for pair in ripe if pair in row_of]
        mine: list[tuple[str, int]] = []
        while asked and (missing := count - sum(ripe[pair] for pair in mine)) > 0:
            some, asked = _enough(asked, ripe, missing)
            rows = self._session.rows_in(_LOCK_LEADERS, [row_of[pair] for pair in some])
            mine += [leaders[row_id] for row_id, status in rows if status == RawStatus.PENDING]
        return mine

    def _raws(self, rows: Sequence[Row]) -> list[Raw]:
        return self._session.each(RAWS, rows, self._raw)

    def _raw(self, row: Row) -> Raw:
        session = self._session
        raw_id, item_no, seller_id, task_id, execution_id, kind, body, raw_hash = row[:8]
        crawled_at, next_attempt_at, status, retry_count, product_id, error_message, processed_at = row[8:]
        return Raw(
            raw_id,
            item_no,
            seller_id,
            task_id,
            execution_id,
            _KINDS[kind],
            body.encode(),
            raw_hash,
            session.from_db(crawled_at),
            session.from_db(next_attempt_at),
            _STATUSES[status],
            retry_count,
            product_id,
            error_message,
            session.from_db_or_none(processed_at),
        )


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError:
        # Only what was refused already comes here: it is kept for a person to look at.
        return body.decode(errors="backslashreplace")


def _enough(
    pairs: list[tuple[str, int]], ripe: Counter[tuple[str, int]], count: int
) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """The first of them that have `count` ripe rows together, and the others."""
    together = accumulate(ripe[pair] for pair in pairs)
    place = next((place for place, rows in enumerate(together, 1) if rows >= count), len(pairs))
    return pairs[:place], pairs[place:]


def _by_execution(pairs: Iterable[tuple[str, int]]) -> dict[str, set[int]]:
    items: dict[str, set[int]] = {}
    for execution_id, item_no in pairs:
        items.setdefault(execution_id, set()).add(item_no)
    return items
