"""Who leads the pool, and what the record knows of the last hour, for whoever leads next.

Promises what the port says. Where nobody ever said who leads: the database does, if its pool was ever loaded.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import bindparam, insert, select, true, update

from sellerwatch.adapters.sql.dialect import upsert
from sellerwatch.adapters.sql.prepared import Prepared, PreparedIn
from sellerwatch.adapters.sql.session import PerDialect, Session, said
from sellerwatch.adapters.sql.tables import (
    circuit_breaker_state,
    pool_leader,
    pool_site,
    rate_limit_bucket,
    token_usage_log,
)
from sellerwatch.domain.breakers import Breaker, BreakerScope, BreakerState
from sellerwatch.domain.leadership import Engine, Leadership, Phase
from sellerwatch.domain.recollection import Bucket, Plea
from sellerwatch.ports.leading import Trace

_P, _L, _R, _B = pool_leader.c, token_usage_log.c, rate_limit_bucket.c, circuit_breaker_state.c
_COLUMNS = ("epoch", "engine", "phase", "until", "past", "ended_at", "books_at")
_row = select(*(_P[name] for name in _COLUMNS)).where(_P.name == bindparam("key"))
_GET = Prepared(_row, ("key",))
_LOCK = Prepared(_row.with_for_update(), ("key",))
_EVER_LOADED = Prepared(select(pool_site.c.name).where(pool_site.c.name == bindparam("key")), ("key",))
_SAVE = PerDialect(lambda dialect: upsert(dialect, pool_leader, ["name"], _COLUMNS), ("name", *_COLUMNS))
_FIRST = Prepared(insert(pool_leader), ("name", *_COLUMNS))
_BOOKS = Prepared(
    update(pool_leader)
    .where(_P.name == bindparam("key"), _P.epoch == bindparam("of"), _P.phase == said(Phase.LEADING))
    .values(books_at=bindparam("at")),
    ("key", "of", "at"),
)
_LOGGED = PreparedIn(
    lambda ids: select(_L.agent_id, _L.request_timestamp).where(
        _L.agent_id.in_(ids), _L.request_timestamp > bindparam("since")
    ),
    ("since",),
)
_PLEAS = PreparedIn(
    lambda ids: (
        select(_L.agent_id, _L.request_timestamp, _L.response_time_ms, _L.http_status_code, _L.retry_after_seconds)
        .where(_L.agent_id.in_(ids), _L.request_timestamp > bindparam("since"), _L.is_rate_limited == true())
        .order_by(_L.request_timestamp)
    ),
    ("since",),
)
_BUCKETS = PreparedIn(
    lambda ids: select(_R.agent_id, _R.max_tokens, _R.current_tokens, _R.last_refill_at).where(_R.agent_id.in_(ids))
)
_BREAKERS = PreparedIn(
    lambda ids: select(
        _B.agent_id,
        _B.circuit_state,
        _B.failure_count,
        _B.opened_at,
        _B.half_open_at,
        _B.closed_at,
        _B.timeout_duration_seconds,
        _B.failure_threshold,
    ).where(_B.scope == said(BreakerScope.IDENTITY), _B.agent_id.in_(ids), _B.circuit_state != said("CLOSED"))
)


class Leaderships:
    __slots__ = ("_is_missed", "_name", "_session")

    def __init__(self, session: Session, pool_name: str) -> None:
        self._session = session
        self._name = pool_name
        self._is_missed = False

    def get(self) -> Leadership:
        return self._found(_GET) or self._of_old()

    def lock(self) -> Leadership:
        found = self._found(_LOCK)
        self._is_missed = found is None
        return found or self._of_old()

    def save(self, leadership: Leadership) -> None:
        if leadership.engine is None or leadership.phase is None:
            raise AssertionError("nobody's leadership has no row")
        to_db = self._session.to_db
        past = leadership.past.value if leadership.past else None
        states = (leadership.epoch, leadership.engine.value, leadership.phase.value, to_db(leadership.until), past)
        row = (self._name, *states, to_db(leadership.ended_at), to_db(leadership.books_at))
        if self._is_missed:
            # Two that see nobody lead must not both begin.
            self._session.insert_new(_FIRST, [row])
            self._is_missed = False
        else:
            self._session.run(_SAVE, row)

    def note_books(self, epoch: int, at: datetime) -> bool:
        return bool(self._session.run(_BOOKS, (self._name, epoch, self._session.to_db(at))))

    def traces(self, agent_ids: Sequence[int], since: datetime, patient_since: datetime) -> dict[int, Trace]:
        session = self._session
        moment, from_db = session.from_db_or_none, session.from_db
        logged: dict[int, list[datetime]] = {}
        for agent_id, at in session.rows_in(_LOGGED, agent_ids, (session.to_db(since),)):
            logged.setdefault(agent_id, []).append(from_db(at))
        pleas: dict[int, list[Plea]] = {}
        for agent_id, at, took_ms, status, seconds in session.rows_in(
            _PLEAS, agent_ids, (session.to_db(patient_since),)
        ):
            asked_at = from_db(at)
            until = None if seconds is None else asked_at + timedelta(milliseconds=took_ms or 0, seconds=seconds)
            pleas.setdefault(agent_id, []).append(Plea(agent_id, asked_at, status, until))
        buckets = {
            agent_id: Bucket(max(0, round(float(most) - float(left))), from_db(at))
            for agent_id, most, left, at in session.rows_in(_BUCKETS, agent_ids)
        }
        breakers = {
            agent_id: Breaker(
                BreakerScope.IDENTITY,
                threshold,
                timedelta(seconds=timeout),
                agent_id,
                BreakerState(state),
                failures,
                moment(opened_at),
                moment(half_open_at),
                moment(closed_at),
            )
            for agent_id, state, failures, opened_at, half_open_at, closed_at, timeout, threshold in session.rows_in(
                _BREAKERS, agent_ids
            )
        }
        return {
            agent_id: Trace(
                tuple(logged.get(agent_id, ())),
                buckets.get(agent_id),
                tuple(pleas.get(agent_id, ())),
                breakers.get(agent_id),
            )
            for agent_id in agent_ids
        }

    def _of_old(self) -> Leadership:
        is_old = self._session.first(_EVER_LOADED, (self._name,)) is not None
        return Leadership.of_the_database() if is_old else Leadership()

    def _found(self, statement: Prepared) -> Leadership | None:
        row = self._session.first(statement, (self._name,))
        if row is None:
            return None
        epoch, engine, phase, until, past, ended_at, books_at = row
        moment = self._session.from_db_or_none
        return Leadership(
            epoch,
            Engine(engine),
            Phase(phase),
            moment(until),
            Engine(past) if past else None,
            moment(ended_at),
            moment(books_at),
        )
