"""What can be seen of the pool without changing it: figures, standings, events, and a guess at what it can give.

Figures cost the same however large the pool is: counts are kept, health is a histogram, and what remains of the
budgets is summed over at most SAMPLE identities and scaled up beyond that.
"""

from sqlalchemy import bindparam, delete, func, select

from sellerwatch.adapters.sql.pool.identities import BARE, COLUMNS, LEASED, READY, Member
from sellerwatch.adapters.sql.pool.lend import outlook, what_holds
from sellerwatch.adapters.sql.pool.moments import NEVER, SECOND, moment, span
from sellerwatch.adapters.sql.pool.turn import Turn
from sellerwatch.adapters.sql.pool.window import pace, reach
from sellerwatch.adapters.sql.prepared import Prepared, Row
from sellerwatch.adapters.sql.tables.pool import pool_events, pool_faces, pool_health, pool_identities, pool_window
from sellerwatch.domain.breakers import BreakerScope, BreakerState, Transition
from sellerwatch.ports.pool import Limits, PoolEvent, PoolEventKind, PoolFigures, Standing

SAMPLE = 250
REQUEST_SECONDS = 0.1
"""What a request takes at the least, for guessing what the concurrency allows."""
_WIDTH = len(COLUMNS)

_members = pool_identities.c
# The first entry inside the window: from there on, all entries are.
_first_inside = (
    select(pool_window.c.entry)
    .where(pool_window.c.agent_id == _members.agent_id, pool_window.c.at_us > bindparam("since"))
    .order_by(pool_window.c.entry)
    .limit(1)
    .scalar_subquery()
)
_BUDGETS = Prepared(
    select(_members.due_us, _members.uses, _first_inside)
    .where(_members.standing == bindparam("its"), _members.due_us <= bindparam("until"))
    .order_by(_members.due_us, _members.agent_id)
    .limit(bindparam("count")),
    ("since", "its", "until", "count"),
)
_STANDINGS = Prepared(
    select(*_members, *pool_faces.c, _first_inside)
    .select_from(pool_identities)
    .join(pool_faces, pool_faces.c.agent_id == _members.agent_id)
    .where(_members.revision > bindparam("after"), _members.standing != "GONE")
    .order_by(_members.revision)
    .limit(bindparam("count")),
    ("since", "after", "count"),
)


_held = pool_health.c
_HEALTH = Prepared(
    select(
        func.min(_held.health),
        func.sum(_held.health * _held.identities),
        func.sum(_held.identities),
        func.max(_held.health),
    ).where(_held.identities > 0)
)
_EVENTS = Prepared(
    select(pool_events)
    .where(pool_events.c.event > bindparam("after"))
    .order_by(pool_events.c.event)
    .limit(bindparam("count")),
    ("after", "count"),
)
_FORGET = Prepared(delete(pool_events).where(pool_events.c.event <= bindparam("upto")), ("upto",))


def figures(turn: Turn) -> PoolFigures:
    site = turn.site
    low, weighed, identities, high = _HEALTH.rows(turn.connection)[0]
    why, next_at = what_holds(turn)
    return PoolFigures(
        total=site.available + site.suspended + site.blocked,
        available=site.available,
        suspended=site.suspended,
        blocked=site.blocked,
        health_min=low or 0,
        health_avg=round(float(weighed) / float(identities), 2) if identities else 0.0,
        health_max=high or 0,
        remaining_requests=sum(_budgets(turn, turn.now_us, NEVER - 1, None)),
        leased=site.in_flight,
        pool_breaker=site.pool,
        site_breaker=site.site,
        next_available_at=turn.now if why is None else next_at,
        why=why,
    )


def capacity(turn: Turn, seconds: float) -> int:
    """At most what the site's rate allows, what fits through its concurrency, and what the identities have left."""
    site, limits = turn.site, turn.limits
    if not turn.is_loaded or not site.leads or limits.hourly_limit <= 0 or seconds <= 0:
        return 0
    until_us = turn.now_us + span(seconds)
    begin_us = max(turn.now_us, site.paused_until_us)
    if begin_us > until_us:
        return 0
    if any(breaker.state is not BreakerState.CLOSED for breaker in site.breakers):
        # One at a time, until the trial has shown more.
        return min(1, outlook(turn).free)
    left = (until_us - begin_us) / SECOND
    rate = max(0, int(limits.site_requests_per_second * left))
    through = max(0, int(limits.concurrency * max(1.0, left / REQUEST_SECONDS)))
    return min(rate, through, sum(_budgets(turn, begin_us, until_us, _interval(limits))))


def standings(turn: Turn, after: int, count: int) -> list[Standing]:
    since = turn.now_us - reach(turn.limits)
    return [_standing(turn, row) for row in _STANDINGS.rows(turn.connection, (since, after, count))]


def events(turn: Turn, after: int, count: int) -> list[PoolEvent]:
    return [_event(row) for row in _EVENTS.rows(turn.connection, (after, count))]


def forget_events(turn: Turn, upto: int) -> None:
    _FORGET.run(turn.connection, (upto,))


def _interval(limits: Limits) -> int:
    least = max(1, span(limits.min_interval_seconds))
    return max(least, pace(limits)) if limits.is_paced_evenly else least


def _budgets(turn: Turn, begin_us: int, until_us: int, interval_us: int | None) -> list[int]:
    """What each identity that is free before `until_us` can still do; without an interval, what it may do now."""
    limit = turn.limits.hourly_limit
    since = (turn.now_us if interval_us is None else until_us) - reach(turn.limits)
    given: list[int] = []
    for standing in (READY, BARE, LEASED):
        for due_us, uses, first in _BUDGETS.rows(turn.connection, (since, standing, until_us, SAMPLE - len(given))):
            left = max(0, limit - (0 if first is None else uses - first))
            if interval_us is not None:
                left = min(left, 1 + max(0, until_us - max(begin_us, due_us)) // interval_us)
            given.append(left)
    if len(given) == SAMPLE and turn.site.available > SAMPLE:
        return [sum(given) * turn.site.available // SAMPLE]
    return given


def _standing(turn: Turn, row: Row) -> Standing:
    member, face, first = Member(*row[:_WIDTH]), row[_WIDTH:-1], row[-1]
    spent = 0 if first is None else member.uses - first
    breaker = member.breaker(turn.limits)
    is_out = member.lease_id is not None
    next_free_us = member.free_from(turn.limits) if is_out else member.due_us
    return Standing(
        identity=member.identity(face),
        remaining=max(0, turn.limits.hourly_limit - spent),
        next_free_at=None if next_free_us >= NEVER or member.status == "BLOCKED" else moment(next_free_us),
        leased_until=moment(member.due_us) if is_out else None,
        paused_until=moment(member.paused_until_us) if member.paused_until_us > turn.now_us else None,
        breaker=breaker,
        revision=member.revision,
    )


def _event(row: Row) -> PoolEvent:
    number, kind, at_us, agent_id, reason, scope, was, became, failures = row
    at = moment(at_us)
    transition = None
    if scope is not None:
        states = (BreakerState(was), BreakerState(became))
        transition = Transition(BreakerScope(scope), agent_id, *states, failures, at, reason)
    return PoolEvent(number, PoolEventKind(kind), at, agent_id, reason, transition)
