"""The ledger as a whole: forgotten, told anew, and told to whoever leads next.

Promises what `ports.leading` says of a ledger that is kept. Whether an epoch is still the latest is looked at in the
same transaction that writes under it, so that nothing is written for one that is over.
"""

from collections.abc import Sequence

from sqlalchemy import bindparam, delete, select

from sellerwatch.adapters.sql.pool.identities import (
    COLUMNS,
    FACE_COLUMNS,
    INSERT_FACE,
    Member,
    joining,
    token_columns,
)
from sellerwatch.adapters.sql.pool.lend import take_back
from sellerwatch.adapters.sql.pool.moments import moment, us
from sellerwatch.adapters.sql.pool.site import Site
from sellerwatch.adapters.sql.pool.turn import Turn
from sellerwatch.adapters.sql.pool.window import ADD, next_free, reach
from sellerwatch.adapters.sql.prepared import Prepared, PreparedIn, Row
from sellerwatch.adapters.sql.tables.pool import (
    pool_faces,
    pool_health,
    pool_identities,
    pool_leader,
    pool_tally,
    pool_window,
)
from sellerwatch.domain.breakers import Breaker, BreakerState
from sellerwatch.domain.recollection import Above, Memory
from sellerwatch.ports.pool import Limits

EPOCH_BITS = 32
"""Numbers of revisions and events begin at the epoch's multiple of 2^32: above all that went before, in any engine."""
_WIDTH = len(COLUMNS)

_EPOCH = Prepared(select(pool_leader.c.epoch).where(pool_leader.c.name == bindparam("its")).with_for_update(), ("its",))
_FORGET = tuple(Prepared(delete(each)) for each in (pool_identities, pool_faces, pool_window, pool_health, pool_tally))
_MEMBERS = Prepared(
    select(*pool_identities.c, *pool_faces.c)
    .join_from(pool_identities, pool_faces, pool_identities.c.agent_id == pool_faces.c.agent_id)
    .where(pool_identities.c.agent_id > bindparam("after"))
    .order_by(pool_identities.c.agent_id)
    .limit(bindparam("count")),
    ("after", "count"),
)
_WINDOWS = PreparedIn(
    lambda ids: (
        select(pool_window.c.agent_id, pool_window.c.at_us)
        .where(pool_window.c.agent_id.in_(ids), pool_window.c.at_us > bindparam("since"))
        .order_by(pool_window.c.agent_id, pool_window.c.entry)
    ),
    ("since",),
)


def clear(turn: Turn, epoch: int) -> bool:
    if not _is_latest(turn, epoch):
        return False
    for statement in _FORGET:
        statement.run(turn.connection)
    was, begin = turn.site, epoch << EPOCH_BITS
    turn.site = Site.empty(turn.limits)
    turn.site.last_us, turn.site.leads = was.last_us, False
    turn.site.revision, turn.site.event = max(was.revision, begin), max(was.event, begin)
    return True


def remember(turn: Turn, epoch: int, memories: Sequence[Memory]) -> bool:
    if not _is_latest(turn, epoch):
        return False
    known = turn.members(memory.identity.agent_id for memory in memories)
    faces, entries = [], []
    for memory in memories:
        identity = memory.identity
        if identity.agent_id in known:
            continue
        member = _joining(memory, turn.limits)
        member.place(turn.limits)
        turn.join(member)
        faces.append((identity.agent_id, identity.user_agent_id, identity.user_agent, *token_columns(identity.token)))
        entries += [(identity.agent_id, number, us(at)) for number, at in enumerate(memory.leased_at)]
    INSERT_FACE.many(turn.connection, faces)
    ADD.many(turn.connection, entries)
    return True


def complete(turn: Turn, epoch: int, above: Above) -> bool:
    if not _is_latest(turn, epoch):
        return False
    for ours, known in ((turn.site.pool, above.pool), (turn.site.site, above.site)):
        if known is not None:
            _follow(ours, known)
    turn.site.paused_until_us = us(above.paused_until) or 0
    if turn.site.available + turn.site.suspended + turn.site.blocked:
        # One without members is judged when they come.
        turn.look_at_rate()
    return True


def recall(turn: Turn, after: int, count: int) -> list[Memory]:
    take_back(turn)
    rows = _MEMBERS.rows(turn.connection, (after, count))
    windows: dict[int, list[int]] = {}
    since = turn.now_us - reach(turn.limits)
    for agent_id, at_us in _WINDOWS.rows(turn.connection, [row[0] for row in rows], (since,)):
        windows.setdefault(agent_id, []).append(at_us)
    return [_memory(turn, row, windows.get(row[0], [])) for row in rows if Member(*row[:_WIDTH]).is_counted]


def above(turn: Turn) -> Above:
    return Above(turn.site.pool, turn.site.site, moment(turn.site.paused_until_us or None))


def _is_latest(turn: Turn, epoch: int) -> bool:
    rows = _EPOCH.rows(turn.connection, (turn.name,))
    return bool(rows) and rows[0][0] == epoch


def _joining(memory: Memory, limits: Limits) -> Member:
    member = joining(memory.identity)
    moments = [us(at) for at in memory.leased_at]
    member.uses = len(moments)
    member.paused_until_us = us(memory.paused_until) or 0
    if moments:
        is_full = 0 < limits.hourly_limit <= len(moments)
        member.next_free_us = next_free(moments[-1], moments[-limits.hourly_limit] if is_full else None, 0, limits)
    if memory.breaker is not None:
        member.take_breaker(memory.breaker)
    return member


def _memory(turn: Turn, row: Row, window: list[int]) -> Memory:
    member, face = Member(*row[:_WIDTH]), row[_WIDTH : _WIDTH + len(FACE_COLUMNS)]
    is_news = member.breaker_state != BreakerState.CLOSED.value or member.failures_in_row > 0
    return Memory(
        member.identity(face),
        tuple(moment(at_us) for at_us in window),
        moment(member.paused_until_us) if member.paused_until_us > turn.now_us else None,
        member.breaker(turn.limits) if is_news else None,
    )


def _follow(ours: Breaker, known: Breaker) -> None:
    """Whose trial was under way is not known any more: the next request is one."""
    ours.state, ours.failure_count = known.state, known.failure_count
    ours.opened_at, ours.half_open_at, ours.closed_at = known.opened_at, known.half_open_at, known.closed_at
