"""Leading: which engine of the pool lends, kept by whoever runs this; any number may, a few times within a lead.

    renew      Redis' pulse ─▶ one commit: the lead is longer ─▶ Redis is told until when
    give up    Redis is there but its ledger is not: one commit: the lead is over now
    hand over  Redis has been there for a while: one commit: the database lends no more
    begin      one commit: a new epoch ─▶ the ledger forgotten, told the last hour, completed ─▶ one commit: it leads

Every time is told to the record before Redis is told, and is no later there than here; so a crash between any two lines
leaves an engine that lends too short rather than two that lend. A begin that breaks off is begun again by the next.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sellerwatch.domain.breakers import BreakerScope
from sellerwatch.domain.errors import Unavailable, WrongVerb
from sellerwatch.domain.identities import Identity
from sellerwatch.domain.leadership import BEGINS, Engine, Leadership, LeadRules, Phase, Pulse, Step, next_step
from sellerwatch.domain.recollection import Above, Budget, Lost, Memory, Plea, recollect, site_pause
from sellerwatch.ports.leading import Kept, Lendable
from sellerwatch.ports.store import Store, Unit
from sellerwatch.ports.time import Bell, Clock

BATCH = 500
PATIENCE = timedelta(hours=25)
"""A plea for patience is for a day at most."""
ALERT = "pool_engine"
NO_GRACE = LeadRules(grace=timedelta())
Verb = Callable[[Leadership, datetime], None]


@dataclass(frozen=True, slots=True)
class Led:
    """What was done."""

    step: Step
    known: Leadership


@dataclass(slots=True)
class Lead:
    store: Store
    kept: Kept
    elsewhere: Lendable | None
    clock: Clock
    bell: Bell
    budget: Budget
    rules: LeadRules = field(default_factory=LeadRules)
    _reached_since: datetime | None = None

    async def run(self) -> Led:
        """One look, and the one step that follows from it."""
        pulse = await self._pulse()
        at = self.clock.now()
        known = await self.store.read(lambda unit: unit.leaderships.get())
        is_steady = self._reached_since is not None and at - self._reached_since >= self.rules.steady
        is_drained = known.phase is Phase.ENDING and await self._is_drained()
        if self.elsewhere is None and known.phase is None:
            # The database leads from its first load on.
            return Led(Step.NOTHING, known)
        step = next_step(known, at, self.rules, pulse, is_steady=is_steady, is_drained=is_drained)
        if step is Step.RENEW and pulse:
            await self._renew(known, pulse)
        elif step is Step.GIVE_UP:
            await self._give_up(known)
        elif step is Step.HAND_OVER:
            await self._write(known, lambda state, now: state.hand_over(now, self.budget.lease.total_seconds()))
        elif step in BEGINS:
            await self._begin(known, BEGINS[step])
        return Led(step, known)

    async def _pulse(self) -> Pulse | None:
        if self.elsewhere is None:
            return None
        try:
            pulse = await self.elsewhere.pulse()
        except Unavailable:
            self._reached_since = None
            return None
        self._reached_since = self._reached_since or self.clock.now()
        return pulse

    async def _is_drained(self) -> bool:
        await self.kept.expire()
        return (await self.kept.figures()).leased == 0

    async def _renew(self, known: Leadership, pulse: Pulse) -> None:
        if await self._write(known, lambda state, now: state.renew(now, self.rules)) and self.elsewhere:
            await self.elsewhere.renew(known.epoch, pulse.at + self.rules.lead)

    async def _give_up(self, known: Leadership) -> None:
        if self.elsewhere is None:
            return
        await self.elsewhere.resign()
        await self._write(known, lambda state, now: state.give_up(now))

    async def _begin(self, known: Leadership, engine: Engine) -> None:
        state = await self._write(known, lambda state, now: state.begin(engine, now, self.rules))
        if state is None:
            return
        ledger = self.kept if engine is Engine.SQL else self.elsewhere
        if ledger is None:
            raise AssertionError("an engine that is not there was chosen")
        if state.past is not engine or engine is Engine.REDIS:
            if not await ledger.clear(state.epoch):
                return
            pleas: dict[int, Sequence[Plea]] = {}
            async for memories in self._memories(state, pleas):
                if not await ledger.remember(state.epoch, memories) or not await self._goes_on(state):
                    return
            if not await ledger.complete(state.epoch, await self._above(state, pleas)):
                return
        pulse = await self.elsewhere.pulse() if self.elsewhere and engine is Engine.REDIS else None
        if await self._write(state, lambda each, now: each.lead(now, self.rules)) is None:
            return
        if pulse and self.elsewhere:
            await self.elsewhere.renew(state.epoch, pulse.at + self.rules.lead)
        self.bell.ring("pool")

    async def _goes_on(self, state: Leadership) -> bool:
        if state.until is not None and self.clock.now() > state.until - self.rules.beginning / 2:
            state.go_on(self.clock.now(), self.rules)
            return await self._write(state, lambda each, now: each.go_on(now, self.rules)) is not None
        return True

    async def _memories(self, state: Leadership, pleas: dict[int, Sequence[Plea]]) -> AsyncIterator[list[Memory]]:
        """From the ledger that led last, where that is the database's; else from the traces in the record."""
        if state.past is Engine.SQL:
            after = 0
            while memories := await self.kept.recall(after, BATCH):
                yield memories
                after = memories[-1].identity.agent_id
            return
        identities = await self.store.read(lambda unit: unit.identities.all())
        now = self.clock.now()
        lost = Lost(state.books_at, state.ended_at or now) if state.past is Engine.REDIS else None
        for begin in range(0, len(identities), BATCH):
            yield await self._recollected(identities[begin : begin + BATCH], now, lost, pleas)

    async def _recollected(
        self, identities: Sequence[Identity], now: datetime, lost: Lost | None, pleas: dict[int, Sequence[Plea]]
    ) -> list[Memory]:
        ids = [identity.agent_id for identity in identities]
        # What was counted when the books were kept may have gone out a whole reach before that.
        since = now - self.budget.reach * 2
        traces = await self.store.read(lambda unit: unit.leaderships.traces(ids, since, now - PATIENCE))
        memories = []
        for identity in identities:
            trace = traces[identity.agent_id]
            pleas[identity.agent_id] = trace.pleas
            memories.append(
                recollect(identity, trace.logged, trace.bucket, trace.pleas, trace.breaker, lost, self.budget, now)
            )
        return memories

    async def _above(self, state: Leadership, pleas: dict[int, Sequence[Plea]]) -> Above:
        if state.past is Engine.SQL:
            return await self.kept.above()
        return await self.store.read(
            lambda unit: Above(
                unit.breakers.load(BreakerScope.POOL), unit.breakers.load(BreakerScope.SITE), site_pause(pleas)
            )
        )

    async def _write(self, known: Leadership, verb: Verb) -> Leadership | None:
        """The verb, if the row is still what it was when it was looked at; else None: somebody else was quicker."""
        now = self.clock.now()

        def work(unit: Unit) -> Leadership | None:
            state = unit.leaderships.lock()
            if (state.epoch, state.phase, state.engine) != (known.epoch, known.phase, known.engine):
                return None
            try:
                verb(state, now)
            except WrongVerb:
                return None
            unit.leaderships.save(state)
            self._tell(unit, state, now)
            return state

        return await self.store.transact(work)

    def _tell(self, unit: Unit, state: Leadership, at: datetime) -> None:
        """Whoever is on call hears when the pool is not where it is wanted."""
        if self.elsewhere is None:
            return
        is_lost = state.past is Engine.REDIS and (not state.leads(Engine.REDIS) or state.may_begin(at, NO_GRACE))
        if is_lost or (state.engine is Engine.SQL and state.phase is Phase.BEGINNING):
            text = (
                "Redis does not hold the identity pool; nothing is lent until it does, or the database has taken over"
            )
            unit.chores.raise_alert(ALERT, "critical", text, {"epoch": state.epoch}, at)
        elif state.leads(Engine.REDIS):
            unit.chores.clear_alert(ALERT, at)
