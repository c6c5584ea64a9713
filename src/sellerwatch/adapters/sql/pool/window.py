"""Who asked when: the entries from which every budget follows.

An identity's lease number n is its entry n. The next one may go out when entry n - limit has left the window; entries
that are not there have. So no limit needs room before it is used, and another limit needs no other rows. The site's
entries (agent 0) stand for whole steps, each numbered by its first lease.
"""

from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, delete, insert, select

from sellerwatch.adapters.sql.pool.moments import NEVER, span
from sellerwatch.adapters.sql.prepared import Prepared
from sellerwatch.adapters.sql.tables.pool import pool_window
from sellerwatch.ports.pool import Limits

SITE = 0
PRUNE_EVERY, PRUNED = 64, 128
"""Every so many leases of an identity, at most so many old entries are dropped."""

_its, _entry, _at = pool_window.c.agent_id, pool_window.c.entry, pool_window.c.at_us
_FIRST_INSIDE = Prepared(
    select(_entry).where(_its == SITE, _at > bindparam("since")).order_by(_entry).limit(1), ("since",)
)
_HOLDING = Prepared(
    select(_at).where(_its == SITE, _entry <= bindparam("wanted")).order_by(_entry.desc()).limit(1), ("wanted",)
)
_SITE_ALL = Prepared(select(_entry, _at).where(_its == SITE).order_by(_entry))
_DROP_BEFORE = Prepared(
    delete(pool_window).where(_its == bindparam("its"), _entry < bindparam("first")), ("its", "first")
)
_DROP = Prepared(delete(pool_window).where(_its == bindparam("its"), _entry == bindparam("one")), ("its", "one"))
_OLDEST = Prepared(select(_entry, _at).where(_its == bindparam("its")).order_by(_entry).limit(PRUNED), ("its",))
ADD = Prepared(insert(pool_window), ("agent_id", "entry", "at_us"))


def reach(limits: Limits) -> int:
    """How long an entry counts."""
    return span(limits.window_seconds + limits.guard_seconds)


def pace(limits: Limits) -> int:
    return reach(limits) // max(1, limits.hourly_limit)


def next_free(last_us: int, oldest_us: int | None, even_us: int, limits: Limits) -> int:
    """When an identity may be lent again that was lent last at `last_us`, `oldest_us` being the entry in its way."""
    free = last_us + span(limits.min_interval_seconds)
    if oldest_us is not None:
        free = max(free, oldest_us + reach(limits))
    if limits.is_paced_evenly:
        # Behind its even pace it goes at twice that pace until it has caught up: no burst, nothing lost for good.
        free = max(free, even_us, last_us + pace(limits) // 2)
    return free


def even_after(now_us: int, even_us: int, limits: Limits) -> int:
    """How far an even pace has come after a lease; who rested longer than the window has that much to catch up."""
    begin = now_us if even_us == 0 else max(even_us, now_us - reach(limits))
    return begin + pace(limits)


def write(connection: Connection, entries: list[tuple[int, int, int]], limits: Limits, now_us: int) -> None:
    """(agent, number, moment) of each lease; now and then the old entries of an identity are dropped."""
    ADD.many(connection, entries)
    for agent_id, entry, _ in entries:
        if entry % PRUNE_EVERY == PRUNE_EVERY - 1:
            since = now_us - reach(limits)
            old = [number for number, at_us in _OLDEST.rows(connection, (agent_id,)) if at_us <= since]
            if old:
                _DROP_BEFORE.run(connection, (agent_id, old[-1] + 1))


def take_out(connection: Connection, entries: list[tuple[int, int]]) -> None:
    """(agent, number) of leases that were given back."""
    _DROP.many(connection, entries)


@dataclass(frozen=True, slots=True)
class Ceiling:
    """So many leases in so long over all identities; `wait_us` is when none is left."""

    limit: int
    window_us: int

    @classmethod
    def of(cls, limits: Limits) -> "Ceiling":
        rate = limits.site_requests_per_second
        if rate <= 0:
            return cls(0, 0)
        # Below one a second: one, in a longer window.
        limit = max(1, int(rate))
        return cls(limit, span(limit / rate))

    def room(self, connection: Connection, uses: int, now_us: int) -> int:
        """How many may go out now."""
        first = _FIRST_INSIDE.rows(connection, (now_us - self.window_us,))
        return max(0, first[0][0] + self.limit - uses) if first else self.limit

    def wait_until(self, connection: Connection, uses: int) -> int | None:
        """When one more may go out; None: never."""
        if self.limit == 0:
            return None
        held = _HOLDING.rows(connection, (uses - self.limit,))
        return held[0][0] + self.window_us if held else 0

    def write(self, connection: Connection, uses: int, count: int, now_us: int) -> int:
        """`count` leases went out in this step; how many there were in all."""
        first = _FIRST_INSIDE.rows(connection, (now_us - self.window_us,))
        _DROP_BEFORE.run(connection, (SITE, first[0][0] if first else NEVER))
        ADD.run(connection, (SITE, uses, now_us))
        return uses + count

    def take_out(self, connection: Connection, uses: int, moments: list[int]) -> int:
        """Leases of these moments were given back; how many remain in all. Leases of one moment are alike."""
        steps = _SITE_ALL.rows(connection)
        if not steps:
            return uses
        sizes = [
            after - before for (before, _), after in zip(steps, [*(step[0] for step in steps[1:]), uses], strict=True)
        ]
        given_back = 0
        for number, (_, at_us) in enumerate(steps):
            here = min(sizes[number], moments.count(at_us))
            moments = _without(moments, at_us, here)
            sizes[number] -= here
            given_back += here
        if not given_back:
            return uses
        _DROP_BEFORE.run(connection, (SITE, NEVER))
        entry, kept = steps[0][0], []
        for (_, at_us), size in zip(steps, sizes, strict=True):
            if size:
                kept.append((SITE, entry, at_us))
                entry += size
        ADD.many(connection, kept)
        return uses - given_back


def _without(moments: list[int], one: int, times: int) -> list[int]:
    for _ in range(times):
        moments.remove(one)
    return moments
