"""The product outbox: what is to be told to the product server, in order per product.

Promises what the port says, and one thing more: of one product nothing is handed out while any row of it is being
sent, so that two sends never overtake each other. A claim walks over what is due, in the index of claims, and asks
`idx_open` whether a row is the first of its product: it never meets what was sent long ago.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import takewhile
from operator import itemgetter
from typing import Any

from sqlalchemy import bindparam, case, delete, func, or_, select, update

from sellerwatch.adapters.sql.dialect import SQLITE, skip_locked
from sellerwatch.adapters.sql.prepared import Prepared, PreparedIn, Row
from sellerwatch.adapters.sql.session import Additions, Session, cut, dumps, loads_object, said
from sellerwatch.adapters.sql.shelves import EVENTS
from sellerwatch.adapters.sql.tables import product_outbox
from sellerwatch.domain.outbox import EventType, OutboxStatus, ProductEvent
from sellerwatch.ports.store import Claim

_O = product_outbox.c
_EVENTS = {event.value: event for event in EventType}
_STATUSES = {status.value: status for status in OutboxStatus}
_WAITING, _SENDING, _HELD = said(OutboxStatus.WAITING), said(OutboxStatus.SENDING), said(OutboxStatus.HELD)
_COMPLETED, _FAILED = said(OutboxStatus.COMPLETED), said(OutboxStatus.FAILED)

_COLUMNS = (
    "outbox_id",
    "payload",
    "created_at",
    "status",
    "retry_count",
    "next_attempt_at",
    "error_message",
    "sent_at",
    "product_id",
    "event_type",
    "version",
    "seen_at",
    "quarantine_id",
)
_STATUS, _RETRIES, _DUE, _ERROR, _PRODUCT, _VERSION = map(
    _COLUMNS.index, ("status", "retry_count", "next_attempt_at", "error_message", "product_id", "version")
)
_STATE = ("status", "retry_count", "next_attempt_at", "error_message", "sent_at")
_whole = select(*(_O[name] for name in _COLUMNS))
INTERRUPTED = "INTERRUPTED"
_unclaimed = {"claimed_by": None, "claimed_until": None}
_other = product_outbox.alias("other")
_same = _other.c.product_id == _O.product_id
_is_under_way = select(_other.c.id).where(_same, _other.c.status == _SENDING).correlate(product_outbox).exists()
_is_older = _other.c.version < _O.version
# Two questions: the first is answered by the index alone, and there is seldom anything for the second.
_has_older = select(_other.c.id).where(_same, _other.c.status == _WAITING, _is_older).correlate(product_outbox).exists()
_has_held = (
    select(_other.c.id)
    # What is only foretold stands in nobody's way.
    .where(_same, _other.c.status == _HELD, _is_older, _other.c.quarantine_id.is_(None))
    .correlate(product_outbox)
    .exists()
)

_ADD = Additions(product_outbox, _COLUMNS, "outbox_id")
_FIRSTS = Prepared(
    skip_locked(
        select(_O.product_id)
        .where(
            _O.status == _WAITING,
            _O.next_attempt_at <= bindparam("at"),
            ~_is_under_way,
            ~_has_older,
            ~_has_held,
        )
        .order_by(_O.next_attempt_at, _O.id)
        .limit(bindparam("count"))
    ),
    ("at", "count"),
)
_OPEN_OF = PreparedIn(
    lambda products: _whole.where(
        _O.product_id.in_(products),
        or_(_O.status == _WAITING, _O.status == _HELD),
        _O.quarantine_id.is_(None),
    ).with_for_update()
)
_UNDER_WAY = PreparedIn(
    lambda products: select(_O.product_id).distinct().where(_O.product_id.in_(products), _O.status == _SENDING)
)
_CLAIM = PreparedIn(
    lambda ids: (
        update(product_outbox)
        .where(_O.outbox_id.in_(ids))
        .values(status=_SENDING, claimed_by=bindparam("owner"), claimed_until=bindparam("until"))
    ),
    ("owner", "until"),
)
_is_sent_on = bindparam("status_again") == _SENDING
_put = update(product_outbox).values(
    claimed_by=case((_is_sent_on, _O.claimed_by)), claimed_until=case((_is_sent_on, _O.claimed_until))
)
_SAVE = Prepared(
    _put.where(_O.outbox_id == bindparam("key"), _O.status == _SENDING, _O.claimed_by == bindparam("owner")),
    ("status_again", *_STATE, "key", "owner"),
)
_PUT = Prepared(_put.where(_O.outbox_id == bindparam("key")), ("status_again", *_STATE, "seen_at", "key"))
_RESTATE = Prepared(update(product_outbox).where(_O.outbox_id == bindparam("key")), ("payload", "event_type", "key"))
_ANY_FAILED = Prepared(select(_O.id).where(_O.status == _FAILED).limit(1))
_ZOMBIES = Prepared(
    skip_locked(
        select(_O.id)
        .where(_O.status == _SENDING, or_(_O.claimed_until.is_(None), _O.claimed_until <= bindparam("at")))
        .limit(bindparam("count"))
    ),
    ("at", "count"),
)
_FREE = PreparedIn(
    lambda ids: (
        update(product_outbox)
        .where(_O.id.in_(ids), _O.status == _SENDING)
        # It may have arrived: from now on it is not one that was never tried.
        .values({"status": _WAITING, "error_message": func.coalesce(_O.error_message, said(INTERRUPTED))} | _unclaimed)
    )
)
_TAKE_BACK = PreparedIn(lambda ids: delete(product_outbox).where(_O.outbox_id.in_(ids), _O.quarantine_id.is_not(None)))
_LOCK_FORETOLD = Prepared(
    _whole.where(_O.status == _HELD, _O.quarantine_id == bindparam("quarantine"))
    .limit(bindparam("count"))
    .with_for_update(),
    ("quarantine", "count"),
)
_LOCK = PreparedIn(lambda ids: _whole.where(_O.outbox_id.in_(ids)).with_for_update())
_LOCK_FAILED = Prepared(
    _whole.where(_O.status == _FAILED, _O.created_at >= bindparam("since"))
    .order_by(_O.created_at, _O.id)
    .limit(bindparam("count"))
    .with_for_update(),
    ("since", "count"),
)
# What was superseded or discarded is COMPLETED with a note, and was not sent.
_NEWER_SENT = Prepared(
    select(func.max(_O.version)).where(
        _O.product_id == bindparam("product"),
        _O.version > bindparam("version"),
        _O.status == _COMPLETED,
        _O.error_message.is_(None),
    ),
    ("product", "version"),
)


class Events:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, events: Sequence[ProductEvent]) -> None:
        to_db = self._session.to_db
        rows = [
            (
                event.outbox_id,
                dumps(event.payload),
                to_db(event.created_at),
                event.status.value,
                event.retry_count,
                to_db(event.next_attempt_at or event.created_at),
                cut(event.error_message, _O.error_message),
                to_db(event.sent_at),
                event.product_id,
                event.event_type.value,
                event.version,
                to_db(event.seen_at),
                event.quarantine_id,
            )
            for event in events
        ]
        _ADD.put(self._session, rows)

    def lock_waiting(self, product_ids: Iterable[str]) -> list[ProductEvent]:
        events = self._events(self._session.rows_in(_OPEN_OF, product_ids))
        return [event for event in events if event.status is OutboxStatus.WAITING]

    def foretell(self, events: Sequence[ProductEvent]) -> None:
        self._session.run_in(_TAKE_BACK, [event.outbox_id for event in events])
        self.add(events)

    def lock_foretold(self, quarantine_id: str, count: int) -> list[ProductEvent]:
        return self._events(self._session.rows(_LOCK_FORETOLD, (quarantine_id, count)))

    def claim(self, claim: Claim, count: int) -> list[list[ProductEvent]]:
        firsts = [row[0] for row in self._session.rows(_FIRSTS, (self._session.to_db(claim.at), count))]
        groups: dict[str, list[Row]] = {product_id: [] for product_id in firsts}
        for row in self._session.rows_in(_OPEN_OF, firsts):
            groups[row[_PRODUCT]].append(row)
        if firsts and self._session.dialect != SQLITE:
            # Now that theirs are locked: others may have begun to send one since the question of the firsts began.
            for row in self._session.rows_in(_UNDER_WAY, firsts):
                groups[row[0]] = []
        # Only what is sent, or folded into it, is unpacked: a product may have a long way to catch up.
        chosen = (_told_as_one(groups[product_id], self._session.to_db(claim.at)) for product_id in firsts)
        claimed = [events for rows in chosen if rows and (events := self._events(rows))]
        ids = [event.outbox_id for rows in claimed for event in rows]
        self._session.run_in(_CLAIM, ids, (claim.owner, self._session.to_db(claim.until)))
        for rows in claimed:
            for event in rows:
                event.status = OutboxStatus.SENDING
        return claimed

    def save(self, events: Sequence[ProductEvent], owner: str) -> int:
        return self._session.many(_SAVE, [(*self._changing(event), owner) for event in events])

    def free_zombies(self, at: datetime, count: int) -> int:
        rows = self._session.rows(_ZOMBIES, (self._session.to_db(at), count))
        return self._session.run_in(_FREE, [row[0] for row in rows])

    def lock(self, outbox_ids: Sequence[str]) -> list[ProductEvent]:
        return self._events(self._session.rows_in(_LOCK, outbox_ids))

    def lock_failed_since(self, since: datetime, count: int) -> list[ProductEvent]:
        return self._events(self._session.rows(_LOCK_FAILED, (self._session.to_db(since), count)))

    def has_failed(self) -> bool:
        return self._session.first(_ANY_FAILED, ()) is not None

    def newer_sent(self, event: ProductEvent) -> int | None:
        row = self._session.first(_NEWER_SENT, (event.product_id, event.version))
        return row[0] if row else None

    def restate(self, events: Sequence[ProductEvent]) -> None:
        rows = [(dumps(event.payload), event.event_type.value, event.outbox_id) for event in events]
        self._session.many(_RESTATE, rows)

    def put(self, events: Sequence[ProductEvent]) -> None:
        to_db = self._session.to_db
        rows = [(*self._changing(event)[:-1], to_db(event.seen_at), event.outbox_id) for event in events]
        self._session.many(_PUT, rows)

    def _changing(self, event: ProductEvent) -> Row:
        to_db, status = self._session.to_db, event.status.value
        return (
            status,
            status,
            event.retry_count,
            to_db(event.next_attempt_at or event.created_at),
            cut(event.error_message, _O.error_message),
            to_db(event.sent_at),
            event.outbox_id,
        )

    def _events(self, rows: Sequence[Row]) -> list[ProductEvent]:
        return self._session.each(EVENTS, rows, self._event)

    def _event(self, row: Row) -> ProductEvent:
        session = self._session
        outbox_id, payload, created_at, status, retry_count, next_attempt_at, error_message, sent_at = row[:8]
        product_id, event_type, version, seen_at, quarantine_id = row[8:]
        return ProductEvent(
            outbox_id,
            loads_object(payload, "changes"),
            session.from_db(created_at),
            _STATUSES[status],
            retry_count,
            session.from_db(next_attempt_at),
            error_message,
            session.from_db_or_none(sent_at),
            product_id,
            _EVENTS[event_type],
            version,
            session.from_db_or_none(seen_at),
            quarantine_id,
        )


def _told_as_one(rows: list[Row], at: Any) -> list[Row]:
    """By version the first and, of those right behind it, the ones that are due and were never tried, if it wasn't
    either. What is held is not passed by."""
    rows.sort(key=itemgetter(_VERSION))
    first, untried = next(iter(rows), None), list(takewhile(lambda row: _is_untried(row, at), rows))
    if first is None or first[_STATUS] != OutboxStatus.WAITING:
        return []
    return untried or [first]


def _is_untried(row: Row, at: Any) -> bool:
    """See ProductEvent.is_untried; and it is due."""
    return row[_STATUS] == OutboxStatus.WAITING and row[_RETRIES] == 0 and row[_ERROR] is None and row[_DUE] <= at
