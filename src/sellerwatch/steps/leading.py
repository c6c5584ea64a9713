"""The pool that everybody uses: each call goes to the engine that leads, or to the only one there is.

Who leads is a row of the record, looked at again every second, and at once when an engine says that it does not. Where
the leader can't be reached nothing is lent (AWAY): who alone can't reach it waits. What becomes of a lease is told to
the engine that gave it, tried again until the lease is over; a 429 that could not be told by then suspends as soon as
somebody can be told.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar

from sellerwatch.domain.breakers import Breaker, BreakerScope
from sellerwatch.domain.errors import Refused, Unavailable
from sellerwatch.domain.identities import Identity, IdentityStatus, SealedToken, Verdict
from sellerwatch.domain.leadership import Engine, Leadership, Phase
from sellerwatch.ports.pool import (
    Grant,
    Lease,
    Outlook,
    Pool,
    PoolEvent,
    PoolFigures,
    Report,
    Standing,
    WhyNot,
)
from sellerwatch.ports.store import Store
from sellerwatch.ports.time import Clock

T = TypeVar("T")

LOOK_SECONDS = 1.0
AGAIN_SECONDS = 0.5
_NOBODY = "no engine of the pool leads just now: it is being decided"


@dataclass
class LeadingPool:
    engines: Mapping[Engine, Pool]
    """Of two the record says who leads; one that is alone knows by itself whether it may lend."""
    store: Store
    clock: Clock
    _known: Leadership = field(default_factory=Leadership)
    _looked: float | None = None
    _out: dict[str, tuple[Engine, datetime]] = field(default_factory=dict)
    """Who gave each lease that is out, and until when it is."""
    _owed: dict[int, datetime] = field(default_factory=dict)
    """Identities whose 429 nobody could be told of, and until when they were asked for patience."""

    @property
    def epoch(self) -> int | None:
        return self._known.epoch if self._looked is not None and self._known.phase is Phase.LEADING else None

    async def lease(self, count: int) -> Grant:
        async def ask(engine: Engine) -> Grant:
            grant = await self.engines[engine].lease(count)
            self._note(engine, grant.leases)
            self._doubt(grant.why)
            return grant

        return await self._or_away(ask, Grant((), WhyNot.AWAY, self._soon()))

    async def report(self, reports: Sequence[Report]) -> list[bool]:
        answers = [False] * len(reports)
        for engine, places in self._by_engine([report.lease_id for report in reports]).items():
            accepted = await self._report(engine, [reports[place] for place in places])
            for place, each in zip(places, accepted, strict=True):
                answers[place] = each
        return answers

    async def cancel(self, lease_ids: Iterable[tuple[str, int]]) -> int:
        wanted, ended = list(lease_ids), 0
        for engine, places in self._by_engine([lease_id for lease_id, _ in wanted]).items():
            try:
                ended += await self.engines[engine].cancel([wanted[place] for place in places])
            except Unavailable:
                # They run out by themselves, and stay spent.
                continue
        return ended

    async def expire(self) -> int:
        return await self._or_away(lambda engine: self.engines[engine].expire(), 0)

    async def outlook(self) -> Outlook:
        async def ask(engine: Engine) -> Outlook:
            outlook = await self.engines[engine].outlook()
            self._doubt(outlook.why)
            return outlook

        return await self._or_away(ask, Outlook(0, WhyNot.AWAY, self._soon()))

    async def capacity(self, seconds: float) -> int:
        return await self._or_away(lambda engine: self.engines[engine].capacity(seconds), 0)

    async def load(self, identities: Sequence[Identity]) -> None:
        await (await self._leader()).load(identities)

    async def suspend(self, agent_id: int, patience: timedelta = timedelta()) -> None:
        await (await self._leader()).suspend(agent_id, patience)

    async def recover(self, agent_id: int) -> None:
        await (await self._leader()).recover(agent_id)

    async def block(self, agent_id: int) -> None:
        await (await self._leader()).block(agent_id)

    async def unblock(self, agent_id: int) -> None:
        await (await self._leader()).unblock(agent_id)

    async def discard_token(self, agent_id: int) -> None:
        await (await self._leader()).discard_token(agent_id)

    async def recover_due(self) -> list[int]:
        return await self._or_away(lambda engine: self.engines[engine].recover_due(), [])

    async def refreshable(self, before: datetime, count: int) -> list[int]:
        return await self._or_away(lambda engine: self.engines[engine].refreshable(before, count), [])

    async def lease_of(self, agent_id: int) -> Lease | None:
        async def ask(engine: Engine) -> Lease | None:
            lease = await self.engines[engine].lease_of(agent_id)
            self._note(engine, (lease,) if lease else ())
            return lease

        return await self._or_away(ask, None)

    async def keep_token(self, agent_id: int, token: SealedToken) -> None:
        await (await self._leader()).keep_token(agent_id, token)

    def space_out(self, seconds: float) -> None:
        for engine in self.engines.values():
            engine.space_out(seconds)

    async def figures(self) -> PoolFigures:
        figures = await self._or_away(lambda engine: self.engines[engine].figures(), None)
        return await self._recorded() if figures is None or figures.why is WhyNot.AWAY else figures

    async def standings(self, after_revision: int = 0, count: int = 1000) -> list[Standing]:
        return await (await self._leader()).standings(after_revision, count)

    async def events(self, after: int = 0, count: int = 1000) -> list[PoolEvent]:
        return await (await self._leader()).events(after, count)

    async def forget_events(self, upto: int) -> None:
        await (await self._leader()).forget_events(upto)

    async def look(self) -> Leadership:
        """Who leads now, by the record."""
        self._known = await self.store.read(lambda unit: unit.leaderships.get())
        self._looked = self.clock.monotonic()
        return self._known

    @property
    def _only(self) -> Engine | None:
        return next(iter(self.engines)) if len(self.engines) == 1 else None

    async def _engine(self) -> Engine:
        if only := self._only:
            return only
        if self._looked is None or self.clock.monotonic() - self._looked >= LOOK_SECONDS:
            await self.look()
        engine = self._known.engine
        if self._known.phase is not Phase.LEADING or engine is None:
            raise Unavailable(_NOBODY)
        return engine

    async def _leader(self) -> Pool:
        return self.engines[await self._engine()]

    async def _or_away(self, ask: Callable[[Engine], Awaitable[T]], away: T) -> T:
        try:
            engine = await self._engine()
            await self._tell_owed(engine)
            return await ask(engine)
        except Unavailable:
            self._looked = None
            return away

    async def _report(self, engine: Engine, reports: list[Report]) -> list[bool]:
        deadline = min((self._out[each.lease_id][1] for each in reports if each.lease_id in self._out), default=None)
        while True:
            try:
                accepted = await self.engines[engine].report(reports)
            except Unavailable:
                if deadline is not None and self.clock.now() + timedelta(seconds=AGAIN_SECONDS) < deadline:
                    await self.clock.sleep(AGAIN_SECONDS)
                    continue
                accepted = [False] * len(reports)
            for report, is_accepted in zip(reports, accepted, strict=True):
                known = self._out.pop(report.lease_id, None)
                if known and not is_accepted and report.verdict is Verdict.RATE_LIMITED:
                    self._owed[report.agent_id] = self.clock.now() + (report.retry_after or timedelta())
            return accepted

    async def _tell_owed(self, engine: Engine) -> None:
        for agent_id, patient_until in list(self._owed.items()):
            try:
                await self.engines[engine].suspend(agent_id, max(timedelta(), patient_until - self.clock.now()))
                await self.engines[engine].discard_token(agent_id)
            except Refused:
                # Gone, or worse than suspended: it asks for nothing.
                pass
            self._owed.pop(agent_id, None)

    def _by_engine(self, lease_ids: Sequence[str]) -> dict[Engine, list[int]]:
        """The places of those that each engine gave; of a lease of another process, whoever leads may know."""
        found: dict[Engine, list[int]] = {}
        for place, lease_id in enumerate(lease_ids):
            given = self._out.get(lease_id)
            engine = given[0] if given else self._only or self._known.engine
            if engine is not None and engine in self.engines:
                found.setdefault(engine, []).append(place)
        return found

    def _note(self, engine: Engine, leases: Sequence[Lease]) -> None:
        now = self.clock.now()
        while self._out and next(iter(self._out.values()))[1] < now - timedelta(minutes=1):
            self._out.pop(next(iter(self._out)))
        self._out |= {lease.lease_id: (engine, lease.deadline) for lease in leases}

    def _doubt(self, why: WhyNot | None) -> None:
        if why is WhyNot.AWAY:
            self._looked = None

    def _soon(self) -> datetime:
        return self.clock.now() + timedelta(seconds=LOOK_SECONDS)

    async def _recorded(self) -> PoolFigures:
        """As the record has it, while nobody can be asked."""
        identities = await self.store.read(lambda unit: unit.identities.all())
        statuses = [identity.status for identity in identities]
        health = [identity.health_score for identity in identities] or [0]
        closed = timedelta(0)
        return PoolFigures(
            total=len(identities),
            available=statuses.count(IdentityStatus.AVAILABLE),
            suspended=statuses.count(IdentityStatus.SUSPENDED),
            blocked=statuses.count(IdentityStatus.BLOCKED),
            health_min=min(health),
            health_avg=round(sum(health) / len(health), 2),
            health_max=max(health),
            remaining_requests=0,
            leased=0,
            pool_breaker=Breaker(BreakerScope.POOL, 0, closed),
            site_breaker=Breaker(BreakerScope.SITE, 0, closed),
            next_available_at=self._soon(),
            why=WhyNot.AWAY,
        )
