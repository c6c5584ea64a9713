"""Who is in the pool, and what people and sweeps do to its members: load, the operator's verbs, recovery, tokens."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta

from sqlalchemy import bindparam, exists, select

from sellerwatch.adapters.sql.pool.identities import (
    ALL,
    COLUMNS,
    DUE,
    INSERT_FACE,
    LEASED,
    READY,
    REKEY,
    SAVE_NAME,
    SAVE_TOKEN,
    SUSPENDED,
    Member,
    joining,
    token_columns,
)
from sellerwatch.adapters.sql.pool.moments import span, us
from sellerwatch.adapters.sql.pool.turn import Turn
from sellerwatch.adapters.sql.pool.window import next_free, reach
from sellerwatch.adapters.sql.prepared import Prepared, Row
from sellerwatch.adapters.sql.tables.pool import pool_faces, pool_identities, pool_window
from sellerwatch.domain.identities import Identity, SealedToken
from sellerwatch.ports.pool import Limits, PoolEventKind

RECOVERED_AT_ONCE = 1000
_WIDTH = len(COLUMNS)

# Not a join: a planner without statistics begins it at the wrong end.
_is_ready = exists().where(pool_identities.c.agent_id == pool_faces.c.agent_id, pool_identities.c.standing == READY)
_refreshable = (
    select(pool_faces.c.agent_id)
    .where(pool_faces.c.expires_us < bindparam("before"), _is_ready)
    .order_by(pool_faces.c.expires_us, pool_faces.c.agent_id)
    .limit(bindparam("count"))
)
_REFRESHABLE = Prepared(_refreshable, ("before", "count"))
_last, _oldest = pool_window.alias("last"), pool_window.alias("oldest")
_BUDGETS = Prepared(
    select(pool_identities.c.agent_id, _last.c.at_us, _oldest.c.at_us)
    .join(_last, (_last.c.agent_id == pool_identities.c.agent_id) & (_last.c.entry == pool_identities.c.uses - 1))
    .outerjoin(
        _oldest,
        (_oldest.c.agent_id == pool_identities.c.agent_id)
        & (_oldest.c.entry == pool_identities.c.uses - bindparam("limit")),
    ),
    ("limit",),
)


def load(turn: Turn, identities: Sequence[Identity]) -> None:
    was_empty = turn.site.available + turn.site.suspended + turn.site.blocked == turn.site.by_hand
    there = {row[0]: row for row in ALL.rows(turn.connection)}
    wanted = {identity.agent_id: identity for identity in identities}
    names, faces, tokens = [], [], []
    for agent_id, identity in wanted.items():
        row = there.get(agent_id)
        if row is None:
            _join(turn, joining(identity))
            faces.append((agent_id, identity.user_agent_id, identity.user_agent, *token_columns(identity.token)))
            continue
        member = turn.member(row[:_WIDTH])
        if row[_WIDTH + 1 : _WIDTH + 3] != (identity.user_agent_id, identity.user_agent):
            names.append((agent_id, identity.user_agent_id, identity.user_agent))
            turn.change(member)
        if not member.is_counted and not member.is_leaving:
            _come_back(member, identity, turn.limits)
            tokens.append((agent_id, *token_columns(identity.token)))
            turn.change(member)
        elif member.is_leaving:
            member.is_leaving = False
            turn.change(member)
    INSERT_FACE.many(turn.connection, faces)
    SAVE_NAME.many(turn.connection, names)
    SAVE_TOKEN.many(turn.connection, tokens)
    _leave(turn, (turn.member(row[:_WIDTH]) for agent_id, row in there.items() if agent_id not in wanted))
    _follow_limits(turn, [turn.member(row[:_WIDTH]) for agent_id, row in there.items() if agent_id in wanted])
    turn.count()
    if was_empty and turn.site.is_above_minimum(turn.limits):
        turn.tell_of(turn.site.pool.close(turn.now, "the pool is no longer empty"))
    turn.look_at_rate()


def suspend(turn: Turn, agent_id: int, patience: timedelta) -> None:
    member = turn.known(agent_id)
    if patience > timedelta():
        member.paused_until_us = max(member.paused_until_us, turn.now_us + span(patience.total_seconds()))
    _by_hand(turn, agent_id, lambda identity: identity.suspend(turn.now), PoolEventKind.SUSPENDED)


def recover(turn: Turn, agent_id: int) -> None:
    _by_hand(turn, agent_id, Identity.recover, PoolEventKind.RECOVERED)


def block(turn: Turn, agent_id: int) -> None:
    _by_hand(turn, agent_id, Identity.block, PoolEventKind.BLOCKED)


def unblock(turn: Turn, agent_id: int) -> None:
    _by_hand(turn, agent_id, Identity.unblock, PoolEventKind.UNBLOCKED)


def discard_token(turn: Turn, agent_id: int) -> None:
    _by_hand(turn, agent_id, Identity.discard_token, None)


def recover_due(turn: Turn) -> list[int]:
    due = [turn.member(row) for row in DUE.rows(turn.connection, (SUSPENDED, turn.now_us, RECOVERED_AT_ONCE))]
    for member in due:
        _apply(turn, member, Identity.recover)
        turn.tell(PoolEventKind.RECOVERED, "its rest is over", member.agent_id)
    _look(turn)
    return [member.agent_id for member in due]


def refreshable(turn: Turn, before: datetime, count: int) -> list[int]:
    return [row[0] for row in _REFRESHABLE.rows(turn.connection, (us(before), count))]


def keep_token(turn: Turn, agent_id: int, token: SealedToken) -> None:
    member = turn.members([agent_id]).get(agent_id)
    if (
        member is not None
        and member.has_token
        and REKEY.run(turn.connection, (agent_id, token.fingerprint, token.sealed, token.cookies))
    ):
        turn.change(member)


def _by_hand(turn: Turn, agent_id: int, verb: Callable[[Identity], object], kind: PoolEventKind | None) -> None:
    member = turn.known(agent_id)
    was = (member.status, bool(member.is_blocked_by_hand))
    _apply(turn, member, verb)
    if kind is not None and was != (member.status, bool(member.is_blocked_by_hand)):
        turn.tell(kind, "by hand", agent_id)
    _look(turn)


def _apply(turn: Turn, member: Member, verb: Callable[[Identity], object]) -> None:
    had_token = member.has_token
    identity = member.identity()
    verb(identity)
    member.take(identity)
    if had_token and not member.has_token:
        SAVE_TOKEN.run(turn.connection, (member.agent_id, *token_columns(None)))
    member.place(turn.limits)
    turn.change(member)


def _look(turn: Turn) -> None:
    turn.count()
    turn.look_at_rate()


def _join(turn: Turn, member: Member) -> None:
    if member.last_used_us is not None:
        # What it asked for within the hour nobody here knows: it counts as spent.
        member.next_free_us = member.last_used_us + reach(turn.limits)
    member.place(turn.limits)
    turn.join(member)


def _come_back(member: Member, identity: Identity, limits: Limits) -> None:
    """As it is in the record now; but what it asked for within the hour it asked for."""
    member.standing = SUSPENDED
    member.take(identity)
    member.place(limits)


def _leave(turn: Turn, members: Iterable[Member]) -> None:
    for member in members:
        if member.is_counted:
            member.is_leaving = True
            member.place(turn.limits)
            turn.change(member)


def _follow_limits(turn: Turn, members: list[Member]) -> None:
    """Other limits than those it was last lent by, or another probation, move the moment it is free."""
    budgets = {row[0]: row[1:] for row in _BUDGETS.rows(turn.connection, (turn.limits.hourly_limit,))}
    for member in members:
        was = _placing(member)
        if member.agent_id in budgets:
            last_us, oldest_us = budgets[member.agent_id]
            free_us = next_free(last_us, oldest_us, member.even_us, turn.limits)
            if member.next_free_us <= turn.now_us + span(turn.limits.min_interval_seconds):
                # What was answered a moment ago is still known by that moment only.
                free_us = max(free_us, member.next_free_us)
            if max(free_us, member.next_free_us) > turn.now_us:
                member.next_free_us = free_us
        if member.standing != LEASED and member.is_counted:
            member.place(turn.limits)
        if _placing(member) != was:
            turn.change(member)


def _placing(member: Member) -> Row:
    return (member.standing, member.due_us, member.next_free_us)
