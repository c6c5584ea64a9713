"""One step of the pool: what it read, what it moved, and what it writes back, all in the caller's transaction.

Promises: the site's row is locked first and written last, so steps come one after the other in any number of
processes; time never goes back; the counts follow the identities; whoever changed has a new revision. Refuses a pool
that nobody loaded, by having no `site`.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import Connection, insert

from sellerwatch.adapters.sql.dialect import upsert
from sellerwatch.adapters.sql.pool.identities import BY_ID, INSERT, SAVE, Member, row_of, saved
from sellerwatch.adapters.sql.pool.moments import moment, us
from sellerwatch.adapters.sql.pool.site import Site, forget_requests
from sellerwatch.adapters.sql.prepared import Prepared, Row
from sellerwatch.adapters.sql.session import PerDialect
from sellerwatch.adapters.sql.tables.pool import pool_events, pool_health
from sellerwatch.domain.breakers import BreakerScope, BreakerState, Transition
from sellerwatch.domain.errors import Unknown
from sellerwatch.ports.pool import Limits, PoolEventKind

_EVENT = Prepared(insert(pool_events), tuple(column.name for column in pool_events.columns))
_HEALTH = PerDialect(
    lambda dialect: upsert(dialect, pool_health, ["health"], add=["identities"]), ("health", "identities")
)
_COUNTS = {"AVAILABLE": "available", "SUSPENDED": "suspended", "BLOCKED": "blocked"}


class Turn:
    def __init__(self, connection: Connection, limits: Limits, name: str, at: datetime, *, writes: bool) -> None:
        self.connection = connection
        self.limits = limits
        self.name = name
        found = Site.read(connection, name, limits, locks=writes)
        self.is_loaded = found is not None
        self.site = found or Site.empty(limits)
        if writes and found is None:
            # At once: a row that is not there cannot be locked, and others may be about to make it too.
            self.site.appear(connection, name)
        self.now_us = self.site.last_us = max(us(at), self.site.last_us)
        self.now = moment(self.now_us)
        self._members: dict[int, Member] = {}
        self._counted: dict[int, tuple[str, bool, int] | None] = {}
        self._changed: dict[int, Member] = {}
        self._uncounted: dict[int, Member] = {}
        self._new: set[int] = set()
        self._events: list[Row] = []
        self._health: Counter[int] = Counter()

    def members(self, agent_ids: Iterable[int]) -> dict[int, Member]:
        """Those of them that the pool ever knew."""
        wanted = list(dict.fromkeys(agent_ids))
        missing = [agent_id for agent_id in wanted if agent_id not in self._members]
        for row in BY_ID.rows(self.connection, missing):
            self.member(row)
        return {agent_id: self._members[agent_id] for agent_id in wanted if agent_id in self._members}

    def member(self, row: Row) -> Member:
        """The one of this row; once read in a step, it is the step's that counts."""
        known = self._members.get(row[0])
        if known is None:
            known = self._members[row[0]] = Member(*row)
            self._counted[row[0]] = _counting(known)
        return known

    def known(self, agent_id: int) -> Member:
        member = self.members([agent_id]).get(agent_id)
        if member is None or not member.is_counted:
            raise Unknown("identity", agent_id)
        return member

    def join(self, member: Member) -> None:
        self._members[member.agent_id] = member
        self._counted[member.agent_id] = None
        self._new.add(member.agent_id)
        self.change(member)

    def change(self, member: Member) -> None:
        self._changed[member.agent_id] = self._uncounted[member.agent_id] = member

    def change_place(self, member: Member) -> None:
        """Nothing of it changed that is counted."""
        self._changed[member.agent_id] = member

    def tell(
        self, kind: PoolEventKind, reason: str, agent_id: int | None = None, transition: Transition | None = None
    ) -> None:
        self.site.event += 1
        states: Row = (None, None, None, 0)
        if transition is not None:
            scope, was, now = transition.scope.value, transition.from_state.value, transition.to_state.value
            states = (scope, was, now, transition.failure_count)
        self._events.append((self.site.event, kind.value, self.now_us, agent_id, reason[:200], *states))

    def tell_of(self, transition: Transition | None) -> None:
        """What a breaker did, if it did anything."""
        if transition is None:
            return
        self.tell(PoolEventKind.BREAKER, transition.reason, transition.agent_id, transition)
        if transition.scope is BreakerScope.SITE and transition.to_state is BreakerState.CLOSED:
            forget_requests(self.connection, self.now_us)

    def count(self) -> None:
        """Make the counts follow the identities that changed."""
        for agent_id, member in self._uncounted.items():
            was, now = self._counted[agent_id], _counting(member)
            if was == now:
                continue
            self._count(was, -1)
            self._count(now, 1)
            self._counted[agent_id] = now
        self._uncounted.clear()

    def look_at_rate(self) -> None:
        """Open the pool's breaker when too few are available, and close it where nothing but that kept it open."""
        pool, site = self.site.pool, self.site
        counted = site.available + site.suspended + site.blocked - site.by_hand
        if not site.is_above_minimum(self.limits):
            if pool.state is BreakerState.CLOSED or (counted == 0 and pool.state is BreakerState.HALF_OPEN):
                reason = f"{site.available} of {counted} identities available" if counted else "the pool is empty"
                self.tell_of(pool.trip(self.now, reason))
                site.is_proven = False
        elif pool.state is BreakerState.HALF_OPEN and site.is_proven:
            self.tell_of(pool.close(self.now, "enough identities are available again"))

    def flush(self) -> None:
        """Write the identities that changed, so that statements find them where they are now."""
        if not self._changed:
            return
        self.count()
        for member in self._changed.values():
            self.site.revision += 1
            member.revision = self.site.revision
        INSERT.many(self.connection, [row_of(each) for each in self._changed.values() if each.agent_id in self._new])
        SAVE.many(self.connection, [saved(each) for each in self._changed.values() if each.agent_id not in self._new])
        self._new.clear()
        self._changed.clear()

    def finish(self) -> None:
        self.flush()
        _EVENT.many(self.connection, self._events)
        self._events.clear()
        moved = [(health, count) for health, count in self._health.items() if count]
        _HEALTH.on(self.connection.dialect.name).many(self.connection, moved)
        self._health.clear()
        self.site.save(self.connection, self.name)

    def _count(self, counting: tuple[str, bool, int] | None, step: int) -> None:
        if counting is None:
            return
        status, is_by_hand, health = counting
        name = _COUNTS[status]
        setattr(self.site, name, getattr(self.site, name) + step)
        self.site.by_hand += step * is_by_hand
        self._health[health] += step


def _counting(member: Member) -> tuple[str, bool, int] | None:
    return (member.status, bool(member.is_blocked_by_hand), member.health) if member.is_counted else None
