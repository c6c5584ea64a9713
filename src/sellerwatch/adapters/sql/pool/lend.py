"""Lending: who goes out next, and what holds up the rest.

The step reads as many identities as may go out and no others, however large the pool and however spent: those that
can be lent are the beginning of an index. What holds up the rest is looked at after giving, so it is true then.
"""

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import bindparam, func, select

from sellerwatch.adapters.sql.pool.identities import (
    BARE,
    COLUMNS,
    DUE,
    FIRST,
    LEASED,
    LENDABLE,
    LENDABLE_ONE,
    READY,
    SUSPENDED,
    Member,
    sealed_token,
)
from sellerwatch.adapters.sql.pool.moments import NEVER, SECOND, moment, span, us
from sellerwatch.adapters.sql.pool.turn import Turn
from sellerwatch.adapters.sql.pool.window import Ceiling, even_after, next_free, write
from sellerwatch.adapters.sql.prepared import Prepared, Row
from sellerwatch.adapters.sql.tables.pool import pool_identities
from sellerwatch.domain.breakers import BreakerState
from sellerwatch.ports.pool import Grant, Lease, Outlook, PoolEventKind, WhyNot
from sellerwatch.ports.time import Chance

EXPIRED_AT_ONCE = 1000
_DAY_US = 86400 * SECOND
_RANK = {why: number for number, why in enumerate(WhyNot)}
_WIDTH = len(COLUMNS)

_free = (
    select(pool_identities.c.agent_id)
    .where(pool_identities.c.standing == bindparam("its"), pool_identities.c.due_us <= bindparam("now"))
    .limit(bindparam("count"))
    .subquery()
)
_FREE = Prepared(select(func.count()).select_from(_free), ("its", "now", "count"))


class Hold(NamedTuple):
    why: WhyNot
    until_us: int | None
    """None: only a person can help."""


def lease(turn: Turn, count: int, chance: Chance) -> Grant:
    if count <= 0:
        return Grant(())
    take_back(turn)
    room = _room(turn, count)
    rows: list[Row] = []
    for standing in (READY, BARE):
        if len(rows) < room:
            params = (standing, turn.now_us, turn.limits.hourly_limit, room - len(rows))
            rows += LENDABLE.rows(turn.connection, params)
    leases = _give(turn, rows, chance)
    if len(leases) == count:
        return Grant(leases)
    why, next_at = what_holds(turn)
    return Grant(leases, why, next_at)


def lease_of(turn: Turn, agent_id: int, chance: Chance) -> Lease | None:
    take_back(turn)
    if not _room(turn, 1):
        return None
    given = _give(
        turn, LENDABLE_ONE.rows(turn.connection, (agent_id, turn.now_us, turn.limits.hourly_limit, 1)), chance
    )
    return given[0] if given else None


def take_back(turn: Turn) -> int:
    """End the leases that are past their deadline; what they spent stays spent."""
    rows = DUE.rows(turn.connection, (LEASED, turn.now_us, EXPIRED_AT_ONCE))
    for row in rows:
        member = turn.member(row)
        turn.tell(PoolEventKind.LEASE_EXPIRED, f"lease {member.lease_id} was neither reported nor given back", row[0])
        assert member.lease_id is not None
        forget_trials(turn, member.lease_id)
        end(turn, member, is_used=True)
    turn.flush()
    return len(rows)


def forget_trials(turn: Turn, lease_id: str) -> None:
    for breaker in turn.site.breakers:
        breaker.forget_trial(lease_id)


def end(turn: Turn, member: Member, *, is_used: bool) -> None:
    """The lease is over; the caller has what it needs of it."""
    if is_used and member.leased_us is not None:
        is_same_day = (member.last_used_us or 0) // _DAY_US == member.leased_us // _DAY_US
        member.requests_per_day = (member.requests_per_day if is_same_day else 0) + 1
        member.usage_count += 1
        member.last_used_us = member.leased_us
    member.lease_id = member.leased_us = None
    turn.site.in_flight -= 1
    member.place(turn.limits)
    turn.change(member)


def what_holds(turn: Turn) -> tuple[WhyNot | None, datetime | None]:
    """Why not one more can be lent now, the most lasting reason, and when that may be over; no reason: one can."""
    site, limits, now_us = turn.site, turn.limits, turn.now_us
    if not site.leads:
        return WhyNot.AWAY, moment(now_us + SECOND)
    if limits.hourly_limit <= 0 or site.available + site.suspended == 0:
        return WhyNot.EMPTY, None
    holds = [
        Hold(WhyNot.CIRCUIT_OPEN, us(breaker.retry_at())) for breaker in site.breakers if not breaker.admits(turn.now)
    ]
    if site.paused_until_us > now_us:
        holds.append(Hold(WhyNot.PAUSED, site.paused_until_us))
    ceiling = Ceiling.of(limits)
    if not ceiling.room(turn.connection, site.uses, now_us):
        holds.append(Hold(WhyNot.SITE_RATE, ceiling.wait_until(turn.connection, site.uses)))
    holds += _held_by_identities(turn)
    if not holds:
        return None, None
    why = min((hold.why for hold in holds), key=_RANK.__getitem__)
    moments = [hold.until_us for hold in holds]
    if None in moments:
        return why, None
    return why, moment(max(at_us for at_us in moments if at_us is not None))


def overdue(turn: Turn) -> bool:
    """Whether a lease is past its deadline and not taken back yet."""
    first = FIRST.rows(turn.connection, (LEASED,))
    return bool(first) and bool(first[0][0] <= turn.now_us)


def outlook(turn: Turn) -> Outlook:
    why, next_at = what_holds(turn)
    if why is not None:
        return Outlook(0, why, next_at)
    room = _room(turn, turn.limits.concurrency)
    free = 0
    for standing in (READY, BARE):
        free += _FREE.rows(turn.connection, (standing, turn.now_us, room - free))[0][0]
    return Outlook(free)


def _room(turn: Turn, count: int) -> int:
    """How many the site lets out now."""
    site, limits = turn.site, turn.limits
    if not site.leads or limits.hourly_limit <= 0 or site.paused_until_us > turn.now_us:
        return 0
    for breaker in site.breakers:
        if not breaker.admits(turn.now):
            return 0
        if breaker.state is not BreakerState.CLOSED:
            count = min(count, 1)
    count = min(count, limits.concurrency - site.in_flight)
    return min(count, Ceiling.of(limits).room(turn.connection, site.uses, turn.now_us)) if count > 0 else 0


def _give(turn: Turn, rows: list[Row], chance: Chance) -> tuple[Lease, ...]:
    if not rows:
        return ()
    limits, now_us = turn.limits, turn.now_us
    deadline_us = now_us + span(limits.lease_seconds)
    deadline = moment(deadline_us)
    leases, entries = [], []
    for row in rows:
        member = turn.member(row[:_WIDTH])
        entries.append((member.agent_id, member.uses, now_us))
        _spend(member, now_us, now_us if limits.hourly_limit == 1 else row[-1], turn)
        lease_id = chance.uuid7(turn.now)
        is_trial = _begin_trials(turn, member, lease_id, deadline)
        member.lease_id, member.leased_us = lease_id, now_us
        member.standing, member.due_us = LEASED, deadline_us
        turn.change_place(member)
        token = sealed_token(row[_WIDTH + 3 : _WIDTH + 8]) if member.has_token else None
        leases.append(Lease(lease_id, member.agent_id, row[_WIDTH + 2], token, turn.now, deadline, is_trial))
    write(turn.connection, entries, limits, now_us)
    turn.site.uses = Ceiling.of(limits).write(turn.connection, turn.site.uses, len(leases), now_us)
    turn.site.in_flight += len(leases)
    turn.flush()
    return tuple(leases)


def _spend(member: Member, now_us: int, oldest_us: int | None, turn: Turn) -> None:
    member.uses += 1
    member.before_us = member.next_free_us
    if turn.limits.is_paced_evenly:
        member.even_us = even_after(now_us, member.even_us, turn.limits)
    member.next_free_us = next_free(now_us, oldest_us, member.even_us, turn.limits)


def _begin_trials(turn: Turn, member: Member, lease_id: str, deadline: datetime) -> bool:
    is_trial = member.breaker_state != "CLOSED"
    if is_trial:
        breaker = member.breaker(turn.limits)
        turn.tell_of(breaker.begin_trial(lease_id, deadline, turn.now))
        member.take_breaker(breaker)
    for above in turn.site.breakers:
        if above.state is not BreakerState.CLOSED:
            turn.tell_of(above.begin_trial(lease_id, deadline, turn.now))
            is_trial = True
    return is_trial


def _held_by_identities(turn: Turn) -> list[Hold]:
    site, now_us = turn.site, turn.now_us
    firsts = {its: FIRST.rows(turn.connection, (its,)) for its in (READY, BARE, LEASED, SUSPENDED)}
    first = {its: rows[0] for its, rows in firsts.items() if rows and rows[0][0] < NEVER}
    holds = []
    if site.in_flight >= turn.limits.concurrency:
        holds.append(Hold(WhyNot.SITE_BUSY, first[LEASED][0] if LEASED in first else None))
    free = min((first[its] for its in (READY, BARE) if its in first), default=None)
    if free is not None and free[0] <= now_us:
        return holds
    if site.available == 0:
        why = WhyNot.SUSPENDED
    elif free is not None:
        why = WhyNot.PAUSED if free[1] >= free[0] else WhyNot.SPENT
    else:
        why = WhyNot.BUSY
    if why is WhyNot.SUSPENDED and SUSPENDED in first:
        first = {SUSPENDED: first[SUSPENDED]}
    # Recovering is the sweep's: who is due by now may be back any moment, not at a moment that has passed.
    moments = [max(due_us, now_us + SECOND) if its == SUSPENDED else due_us for its, (due_us, _) in first.items()]
    return [*holds, Hold(why, min(moments, default=None))]
