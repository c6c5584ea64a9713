"""The record of the identities, their tokens and breakers; what happens to them the pool decides.

Promises what the port says. Of an identity at most one token is active, and the refresh schedule names that one. What
follows from a status (`is_blocked`, `blocked_until`) is written by the statement that writes the status.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Insert, bindparam, case, delete, false, func, insert, select, true, update

from sellerwatch.adapters.sql.dialect import NewValue, upsert, upsert_by
from sellerwatch.adapters.sql.prepared import Prepared, PreparedIn, Row
from sellerwatch.adapters.sql.session import Additions, PerDialect, Session, cut, said
from sellerwatch.adapters.sql.shelves import IDENTITIES
from sellerwatch.adapters.sql.tables import (
    circuit_breaker_event,
    circuit_breaker_state,
    rate_limit_bucket,
    token_refresh_schedule,
    user_agent_pool,
    user_agent_token,
)
from sellerwatch.domain.breakers import Breaker, BreakerScope, BreakerState, Transition
from sellerwatch.domain.identities import Identity, IdentityStatus, SealedToken
from sellerwatch.domain.ids import derived

_U, _T, _S = user_agent_pool.c, user_agent_token.c, token_refresh_schedule.c
_STATUSES = {status.value: status for status in IdentityStatus}
_STATES = {state.value: state for state in BreakerState}
REFRESH_SECONDS = 3600
_EVER = datetime(9999, 1, 1, tzinfo=UTC)

_STANDING = (
    "status",
    "health_score",
    "is_blocked_by_hand",
    "token_failures",
    "suspended_at",
    "last_used_at",
    "usage_count",
    "success_count",
    "failure_count",
    "requests_per_day",
)
_SEALED = ("token_value", "token_fingerprint", "issued_at", "expires_at", "cookies")
_sealed = [_T[name] for name in _SEALED]
_active = (_T.agent_id == _U.agent_id) & (_T.is_active == true())

_ALL = Prepared(
    select(_U.agent_id, _U.user_agent_id, _U.user_agent, *(_U[name] for name in _STANDING), *_sealed)
    .select_from(user_agent_pool.outerjoin(user_agent_token, _active))
    .where(_U.is_active == true())
    .order_by(_U.agent_id)
)
_ADD = Additions(
    user_agent_pool, ("user_agent_id", "user_agent", "status", "created_at", "updated_at"), "user_agent_id"
)
_BRING_BACK = PreparedIn(
    lambda ids: (
        update(user_agent_pool)
        .where(_U.user_agent_id.in_(ids), _U.is_active == false())
        .values(is_active=True, updated_at=bindparam("at"))
    ),
    ("at",),
)
_RETIRE = PreparedIn(
    lambda ids: (
        update(user_agent_pool)
        .where(_U.agent_id.in_(ids), _U.is_active == true())
        .values(is_active=False, updated_at=bindparam("at"))
    ),
    ("at",),
)
_NO_REFRESH = PreparedIn(
    lambda ids: (
        update(token_refresh_schedule)
        .where(_S.agent_id.in_(ids), _S.is_enabled == true())
        .values(is_enabled=False, updated_at=bindparam("at"))
    ),
    ("at",),
)
_SAVE = Prepared(
    update(user_agent_pool).where(_U.agent_id == bindparam("key")),
    (*_STANDING, "is_blocked", "blocked_until", "updated_at", "key"),
)
_BUCKET = ("agent_id", "max_tokens", "current_tokens", "refill_rate", "last_refill_at", "created_at", "updated_at")
_FILL = PerDialect(
    lambda dialect: upsert(
        dialect,
        rate_limit_bucket,
        ["agent_id"],
        ["max_tokens", "current_tokens", "refill_rate", "last_refill_at", "updated_at"],
    ),
    _BUCKET,
)


def _keep(dialect: str) -> Insert:
    def renewed(new: NewValue) -> list[tuple[str, Any]]:
        # Under another key it is the same token, not a fresh one.
        is_fresh = new("issued_at") > _T.issued_at
        return [
            ("refresh_count", _T.refresh_count + case((is_fresh, 1), else_=0)),
            ("last_refreshed_at", case((is_fresh, new("updated_at")), else_=_T.last_refreshed_at)),
            *((name, new(name)) for name in ("agent_id", *_SEALED, "is_active", "updated_at")),
        ]

    return upsert_by(dialect, user_agent_token, ["token_fingerprint"], renewed)


_KEEP = PerDialect(_keep, ("agent_id", *_SEALED, "is_active", "created_at", "updated_at"))
_END_TOKENS = Prepared(
    update(user_agent_token)
    .where(_T.agent_id == bindparam("agent"), _T.is_active == true(), _T.token_fingerprint != bindparam("but"))
    .values(is_active=False, updated_at=bindparam("at")),
    ("agent", "but", "at"),
)
_TOKEN_ID = Prepared(select(_T.token_id).where(_T.token_fingerprint == bindparam("fingerprint")), ("fingerprint",))
_REFRESH = PerDialect(
    lambda dialect: upsert(
        dialect, token_refresh_schedule, ["agent_id", "token_id"], ["next_refresh_time", "is_enabled", "updated_at"]
    ),
    (
        "agent_id",
        "token_id",
        "next_refresh_time",
        "refresh_interval_seconds",
        "is_enabled",
        "consecutive_failures",
        "created_at",
        "updated_at",
    ),
)
_INTERVAL = Prepared(
    select(_S.refresh_interval_seconds)
    .where(_S.agent_id == bindparam("agent"))
    .order_by(_S.schedule_id.desc())
    .limit(1),
    ("agent",),
)
_REFRESHED = Prepared(
    update(token_refresh_schedule)
    .where(_S.agent_id == bindparam("agent"), _S.is_enabled == true())
    .values(
        last_refresh_attempt_at=bindparam("at"),
        last_refresh_success_at=func.coalesce(bindparam("success_at"), _S.last_refresh_success_at),
        consecutive_failures=case((bindparam("succeeded_at").is_not(None), 0), else_=_S.consecutive_failures + 1),
        next_refresh_time=bindparam("next_at"),
        updated_at=bindparam("at"),
    ),
    ("agent", "at", "success_at", "succeeded_at", "next_at"),
)
_REFRESH_DUE = Prepared(
    select(_S.agent_id)
    .join_from(token_refresh_schedule, user_agent_pool, _U.agent_id == _S.agent_id)
    .where(
        _S.is_enabled == true(),
        _S.next_refresh_time <= bindparam("at"),
        _U.is_active == true(),
        _U.status == said(IdentityStatus.AVAILABLE),
    )
    .order_by(_S.next_refresh_time, _S.agent_id)
    .limit(bindparam("count")),
    ("at", "count"),
)
_RESEAL = Prepared(
    update(user_agent_token)
    .where(_T.agent_id == bindparam("agent"), _T.token_fingerprint == bindparam("its"))
    .values(token_value=bindparam("sealed"), cookies=bindparam("jar"), updated_at=bindparam("at")),
    ("sealed", "jar", "at", "agent", "its"),
)
_DROP_REPLACED = Prepared(
    # By the index of when they end: all that there are end some time.
    delete(user_agent_token).where(_T.expires_at < bindparam("ever"), _T.is_active == false()),
    ("ever",),
)
_TOKENS = Prepared(select(_T.agent_id, *_sealed).where(_T.is_active == true()).order_by(_T.token_id))


class Identities:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def all(self) -> list[Identity]:
        return self._session.each(IDENTITIES, self._session.rows(_ALL), self._identity)

    def add(self, user_agents: Sequence[str], at: datetime) -> int:
        """A retired one that is added again comes back."""
        moment = self._session.to_db(at)
        texts = [text for text in (cut(each, _U.user_agent) for each in user_agents) if text]
        rows = [(derived(text, "user-agent"), text, IdentityStatus.AVAILABLE.value, moment, moment) for text in texts]
        back = self._session.run_in(_BRING_BACK, [row[0] for row in rows], (moment,))
        return back + _ADD.put(self._session, rows)

    def retire(self, agent_ids: Sequence[int], at: datetime) -> int:
        moment = self._session.to_db(at)
        self._session.run_in(_NO_REFRESH, agent_ids, (moment,))
        return self._session.run_in(_RETIRE, agent_ids, (moment,))

    def save(
        self, identities: Sequence[Identity], remaining: Mapping[int, int], hourly_limit: int, at: datetime
    ) -> None:
        to_db = self._session.to_db
        moment = to_db(at)
        rows = [
            (
                one.status.value,
                one.health_score,
                int(one.is_blocked_by_hand),
                one.token_failures,
                to_db(one.suspended_at),
                to_db(one.last_used_at),
                one.usage_count,
                one.success_count,
                one.failure_count,
                one.requests_per_day,
                int(one.status is not IdentityStatus.AVAILABLE),
                to_db(one.recovers_at()),
                moment,
                one.agent_id,
            )
            for one in sorted(identities, key=lambda one: one.agent_id)
        ]
        self._session.many(_SAVE, rows)
        rate = round(hourly_limit / 3600, 6)
        self._session.many(
            _FILL,
            [
                (agent_id, hourly_limit, left, rate, moment, moment, moment)
                for agent_id, left in sorted(remaining.items())
            ],
        )

    def keep_token(self, agent_id: int, token: SealedToken | None, at: datetime) -> None:
        session, moment = self._session, self._session.to_db(at)
        session.run(_END_TOKENS, (agent_id, token.fingerprint if token else "", moment))
        session.run_in(_NO_REFRESH, [agent_id], (moment,))
        if token is None:
            return
        issued_at, expires_at = session.to_db(token.issued_at), session.to_db(token.expires_at)
        sealed = (token.sealed, token.fingerprint, issued_at, expires_at, token.cookies)
        session.run(_KEEP, (agent_id, *sealed, 1, moment, moment))
        [(token_id,)] = session.rows(_TOKEN_ID, (token.fingerprint,))
        seconds = self._refresh_seconds(agent_id)
        due_at = session.to_db(min(token.issued_at + timedelta(seconds=seconds), token.expires_at))
        session.run(_REFRESH, (agent_id, token_id, due_at, seconds, 1, 0, moment, moment))

    def refresh_due(self, at: datetime, count: int) -> list[int]:
        return [row[0] for row in self._session.rows(_REFRESH_DUE, (self._session.to_db(at), count))]

    def note_refresh(self, agent_id: int, at: datetime, *, is_success: bool) -> None:
        next_at = self._session.to_db(at + timedelta(seconds=self._refresh_seconds(agent_id)))
        moment = self._session.to_db(at)
        success_at = moment if is_success else None
        self._session.run(_REFRESHED, (agent_id, moment, success_at, success_at, next_at))

    def _refresh_seconds(self, agent_id: int) -> int:
        """As its newest schedule says, whoever wrote it there."""
        row = self._session.first(_INTERVAL, (agent_id,))
        return row[0] if row else REFRESH_SECONDS

    def tokens(self) -> list[tuple[int, SealedToken]]:
        return self._session.each(IDENTITIES, self._session.rows(_TOKENS), lambda row: (row[0], self._token(row[1:])))

    def reseal(self, tokens: Sequence[tuple[int, SealedToken]], at: datetime) -> int:
        moment = self._session.to_db(at)
        ordered = sorted(tokens, key=lambda each: each[0])
        rows = [(token.sealed, token.cookies, moment, agent_id, token.fingerprint) for agent_id, token in ordered]
        return self._session.many(_RESEAL, rows)

    def drop_replaced_tokens(self) -> int:
        return self._session.run(_DROP_REPLACED, (self._session.to_db(_EVER),))

    def _identity(self, row: Row) -> Identity:
        from_db_or_none = self._session.from_db_or_none
        agent_id, user_agent_id, user_agent, status, health, is_by_hand, token_failures, suspended_at = row[:8]
        last_used_at, *counts = row[8:13]
        token = None if row[13] is None else self._token(row[13:])
        return Identity(
            agent_id,
            user_agent_id,
            user_agent,
            _STATUSES[status],
            health,
            bool(is_by_hand),
            token,
            token_failures,
            from_db_or_none(suspended_at),
            from_db_or_none(last_used_at),
            *counts,
        )

    def _token(self, row: Row) -> SealedToken:
        sealed, fingerprint, issued_at, expires_at, cookies = row
        from_db = self._session.from_db
        return SealedToken(sealed, fingerprint, from_db(issued_at), from_db(expires_at), cookies)


_B = circuit_breaker_state.c
_MOMENTS = {BreakerState.OPEN: "opened_at", BreakerState.HALF_OPEN: "half_open_at", BreakerState.CLOSED: "closed_at"}
_NOTE = Prepared(
    insert(circuit_breaker_event),
    (
        "agent_id",
        "scope",
        "event_type",
        "from_state",
        "to_state",
        "failure_count",
        "error_message",
        "event_timestamp",
    ),
)
_LED_TO = ("opened_at", "half_open_at", "closed_at", "last_failure_time")


def _lead(dialect: str) -> Insert:
    def reached(new: NewValue) -> list[tuple[str, Any]]:
        moments = [(name, func.coalesce(new(name), _B[name])) for name in _LED_TO]
        return [*((name, new(name)) for name in ("circuit_state", "failure_count", "updated_at")), *moments]

    return upsert_by(dialect, circuit_breaker_state, ["scope", "agent_id"], reached)


_LEAD = PerDialect(_lead, ("scope", "agent_id", "circuit_state", "failure_count", *_LED_TO, "created_at", "updated_at"))
_KNOWN = (
    "circuit_state",
    "failure_count",
    "opened_at",
    "half_open_at",
    "closed_at",
    "timeout_duration_seconds",
    "failure_threshold",
)
_LOAD = Prepared(select(*(_B[name] for name in _KNOWN)).where(_B.scope == bindparam("of"), _B.agent_id == 0), ("of",))
_SAVE_BREAKER = PerDialect(
    lambda dialect: upsert(dialect, circuit_breaker_state, ["scope", "agent_id"], [*_KNOWN, "updated_at"]),
    ("scope", "agent_id", *_KNOWN, "created_at", "updated_at"),
)


class Breakers:
    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def record(self, transitions: Sequence[Transition]) -> None:
        to_db = self._session.to_db
        events, states = [], []
        for each in transitions:
            at = to_db(each.at)
            reason = cut(each.reason, circuit_breaker_event.c.error_message)
            scope, was, now = each.scope.value, each.from_state.value, each.to_state.value
            events.append((each.agent_id, scope, "STATE_CHANGE", was, now, each.failure_count, reason, at))
            moments = [at if name == _MOMENTS[each.to_state] else None for name in _LED_TO]
            if each.to_state is BreakerState.OPEN:
                moments[-1] = at
            states.append((scope, each.agent_id or 0, now, each.failure_count, *moments, at, at))
        self._session.many(_NOTE, events)
        self._session.many(_LEAD, states)

    def load(self, scope: BreakerScope) -> Breaker | None:
        row = self._session.first(_LOAD, (scope.value,))
        if row is None:
            return None
        state, failure_count, opened_at, half_open_at, closed_at, timeout, threshold = row
        moment = self._session.from_db_or_none
        return Breaker(
            scope,
            threshold,
            timedelta(seconds=timeout),
            state=_STATES[state],
            failure_count=failure_count,
            opened_at=moment(opened_at),
            half_open_at=moment(half_open_at),
            closed_at=moment(closed_at),
        )

    def save(self, breaker: Breaker, at: datetime) -> None:
        to_db = self._session.to_db
        row = (
            breaker.scope.value,
            breaker.agent_id or 0,
            breaker.state.value,
            breaker.failure_count,
            to_db(breaker.opened_at),
            to_db(breaker.half_open_at),
            to_db(breaker.closed_at),
            round(breaker.timeout.total_seconds()),
            breaker.threshold,
            to_db(at),
            to_db(at),
        )
        self._session.run(_SAVE_BREAKER, row)
