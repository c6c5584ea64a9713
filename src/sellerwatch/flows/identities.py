"""Identities: loading the pool from the record, keeping the record by the pool, and fresh tokens.

The pool leads in what an identity does; the record says which exist, and follows. Every event of the pool reaches the
record, and a person where one is needed: the pool never drains without anyone being told. Read twice after a crash,
an event is written twice over itself.
"""

from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from sellerwatch.domain.breakers import BreakerScope, BreakerState, Transition
from sellerwatch.domain.errors import Unavailable, Unreadable
from sellerwatch.domain.identities import HEALTH_MIN, IdentityStatus, SealedToken
from sellerwatch.ports.leading import Leading
from sellerwatch.ports.meter import EXPIRED, GRANTED, UNMETERED, Meter
from sellerwatch.ports.pool import Pool, PoolEvent, PoolEventKind, Standing
from sellerwatch.ports.store import Store, Unit, Usage
from sellerwatch.ports.time import Bell, Clock
from sellerwatch.steps.asking import Asking

_ALERT_OF = {BreakerScope.POOL: "pool_breaker_open", BreakerScope.SITE: "site_breaker_open"}
_BACK = frozenset({PoolEventKind.RECOVERED, PoolEventKind.UNBLOCKED})
_REFRESH_AHEAD = timedelta(minutes=10)
REKEY_PASSES = 3
_LOOKED_AT = 1000
"""Of those that are due many may be lent or spent just now; they must not stand before the others."""


@dataclass(frozen=True, slots=True)
class Books:
    """How much was written, and which breakers had changed."""

    written: int
    transitions: tuple[Transition, ...] = ()


@dataclass(frozen=True, slots=True)
class Rekeyed:
    """How many tokens were sealed anew, how many no key opens any more, and how many were still under another key."""

    sealed_anew: int
    unreadable: int
    left: int


@dataclass(slots=True)
class Identities:
    store: Store
    pool: Pool
    clock: Clock
    bell: Bell
    hourly_limit: int
    asking: Asking | None = None
    """None in a process that never asks the marketplace."""
    leading: Leading | None = None
    """None where the pool is the database's only."""
    meter: Meter = UNMETERED
    probation: timedelta | None = None
    """After so long an unhealthy one gets another chance by itself; None: only a person gives it one."""
    _revision: int = 0
    _tokens: dict[int, str | None] = field(default_factory=dict)

    async def load(self) -> int:
        """Make the pool's members those of the record."""
        identities = await self.store.read(lambda unit: unit.identities.all())
        await self.pool.load(identities)
        self.bell.ring("pool")
        return len(identities)

    async def keep_books(self, count: int = 500) -> Books:
        """Write what changed in the pool since the last time into the record.

        What the record knows then is what a new leader of the pool is told, should this one be lost.
        """
        at, epoch = self.clock.now(), self.leading.epoch if self.leading else None
        try:
            standings = await self.pool.standings(self._revision, count)
            events = await self.pool.events(0, count)
        except Unavailable:
            if self.leading is None:
                raise
            # Nobody who leads can be asked: the books stay what they are, and the time since will count as spent.
            return Books(0)
        if standings or events:
            await self.store.transact(lambda unit: self._write(unit, standings, events, at))
        if self.leading and epoch is not None and epoch == self.leading.epoch and len(standings) < count:
            await self.store.transact(lambda unit: unit.leaderships.note_books(epoch, at))
        if events:
            await self.pool.forget_events(events[-1].number)
        for standing in standings:
            self._revision = max(self._revision, standing.revision)
            self._tokens[standing.identity.agent_id] = _mark(standing.identity.token)
        transitions = tuple(event.transition for event in events if event.transition)
        return Books(len(standings) + len(events), transitions)

    async def recover_due(self) -> int:
        recovered = await self.pool.recover_due()
        if recovered:
            self.bell.ring("pool")
        return len(recovered)

    async def expire_leases(self) -> int:
        expired = await self.pool.expire()
        if expired:
            self.meter.lease(EXPIRED, expired)
            self.bell.ring("pool")
        return expired

    async def refresh_tokens(self, count: int = 10) -> int:
        """Fresh tokens by the refresh schedule, and in any case before the old ones end; each by a lease of its own,
        `count` at most. How many were asked for."""
        if self.asking is None:
            return 0
        asked, now = 0, self.clock.now()
        ending = await self.pool.refreshable(now + _REFRESH_AHEAD, _LOOKED_AT)
        due = await self.store.read(lambda unit: unit.identities.refresh_due(now, _LOOKED_AT))
        wanted = dict.fromkeys([*ending, *due])
        if not wanted or not await self.asking.may_issue():
            return 0
        for agent_id in wanted:
            if asked >= count:
                break
            lease = await self.pool.lease_of(agent_id)
            if lease is None:
                continue
            self.meter.lease(GRANTED)
            at = self.clock.now()
            usage, is_success = await self.asking.issue(lease)
            asked += 1
            await self.store.transact(partial(_note_refresh, usage=usage, at=at, is_success=is_success))
        return asked

    async def suspend(self, agent_id: int) -> None:
        await self.pool.suspend(agent_id)
        await self._keep_all_books()

    async def recover(self, agent_id: int) -> None:
        await self.pool.recover(agent_id)
        await self._keep_all_books()
        self.bell.ring("pool")

    async def block(self, agent_id: int) -> None:
        await self.pool.block(agent_id)
        await self._keep_all_books()

    async def unblock(self, agent_id: int) -> None:
        await self.pool.unblock(agent_id)
        await self._keep_all_books()
        self.bell.ring("pool")

    async def add(self, user_agents: Iterable[str]) -> int:
        """More identities; those known already are not added twice. How many were new."""
        at = self.clock.now()
        wanted = list(user_agents)
        added = await self.store.transact(lambda unit: unit.identities.add(wanted, at))
        await self.load()
        return added

    async def retire(self, agent_ids: Iterable[int]) -> int:
        at = self.clock.now()
        wanted = list(agent_ids)
        retired = await self.store.transact(partial(_retire, agent_ids=wanted, at=at))
        await self.load()
        return retired

    async def rekey(self, reseal: Callable[[str, str], str]) -> Rekeyed:
        """Every token under the first key of the ring, in the pool and in the record, while both are in use.

        What is issued meanwhile is found by the next pass. A process that still has the old ring goes on issuing under
        the old key: that is `left`.
        """
        sealed_anew: set[int] = set()
        unreadable: set[int] = set()
        for _ in range(REKEY_PASSES):
            renewed, lost = await self._rekey_once(reseal)
            unreadable |= lost
            if not renewed:
                return Rekeyed(len(sealed_anew), len(unreadable), 0)
            sealed_anew |= renewed
        return Rekeyed(len(sealed_anew), len(unreadable), len((await self._rekey_once(reseal))[0]))

    async def _rekey_once(self, reseal: Callable[[str, str], str]) -> tuple[set[int], set[int]]:
        """Whose token was sealed anew, and whose could not be opened: it is discarded, as it would be at its next use."""
        recorded = await self.store.read(lambda unit: unit.identities.tokens())
        fresh, spoiled = _resealed(recorded, reseal)
        renewed = {agent_id for agent_id, _ in fresh}
        at = self.clock.now()
        await self.store.transact(lambda unit: _keep_resealed(unit, fresh, at))
        lent = [(each.identity.agent_id, each.identity.token) async for each in self._standings()]
        fresh, lost = _resealed([(agent_id, token) for agent_id, token in lent if token], reseal)
        for agent_id, token in fresh:
            await self.pool.keep_token(agent_id, token)
        for agent_id in lost:
            await self.pool.discard_token(agent_id)
        return renewed | {agent_id for agent_id, _ in fresh}, lost | spoiled

    async def _standings(self) -> AsyncIterator[Standing]:
        revision = 0
        while some := await self.pool.standings(revision):
            for standing in some:
                yield standing
            revision = some[-1].revision

    async def _keep_all_books(self, batch: int = 500) -> None:
        """To the last line: who did something by hand looks at the record next."""
        while (await self.keep_books(batch)).written >= batch:
            pass

    def _write(self, unit: Unit, standings: list[Standing], events: list[PoolEvent], at: datetime) -> None:
        """`at`: before the pool was asked, so that what is logged since is no part of what it says is spent."""
        remaining = {standing.identity.agent_id: standing.remaining for standing in standings}
        unit.identities.save([standing.identity for standing in standings], remaining, self.hourly_limit, at)
        for standing in standings:
            identity = standing.identity
            known = self._tokens.get(identity.agent_id, "")
            if known != _mark(identity.token):
                unit.identities.keep_token(identity.agent_id, identity.token, at)
        unit.breakers.record([event.transition for event in events if event.transition])
        for event in events:
            self._alert(unit, event)
        for standing in standings:
            self._alert_stranded(unit, standing)

    def _alert(self, unit: Unit, event: PoolEvent) -> None:
        if event.kind is PoolEventKind.BLOCKED:
            text = f"identity {event.agent_id} is BLOCKED: {event.reason}"
            name = f"identity_blocked:{event.agent_id}"
            unit.chores.raise_alert(name, "warning", text, {"agentId": event.agent_id}, event.at)
        if event.kind in _BACK and event.agent_id is not None:
            _clear_alerts(unit, event.agent_id, event.at)
        if event.transition:
            self._alert_breaker(unit, event.transition)

    def _alert_breaker(self, unit: Unit, transition: Transition) -> None:
        name = _ALERT_OF.get(transition.scope)
        if name is None:
            return
        if transition.to_state is BreakerState.OPEN:
            text = f"the breaker of the {transition.scope.lower()} is open: {transition.reason}"
            unit.chores.raise_alert(name, "critical", text, {}, transition.at)
        elif transition.to_state is BreakerState.CLOSED:
            unit.chores.clear_alert(name, transition.at)

    def _alert_stranded(self, unit: Unit, standing: Standing) -> None:
        identity = standing.identity
        comes_back = identity.recovers_at(self.probation) is not None
        if identity.status is IdentityStatus.SUSPENDED and identity.health_score < HEALTH_MIN and not comes_back:
            text = f"identity {identity.agent_id} is suspended at health {identity.health_score}: only a person can recover it"
            at = identity.suspended_at or self.clock.now()
            unit.chores.raise_alert(
                f"identity_stranded:{identity.agent_id}", "warning", text, {"agentId": identity.agent_id}, at
            )


def _mark(token: SealedToken | None) -> str | None:
    """By which a token is known again: rekeyed, it has the same fingerprint but another text."""
    return token.sealed if token else None


def _note_refresh(unit: Unit, usage: Usage, at: datetime, *, is_success: bool) -> None:
    unit.chores.log_usage([usage])
    unit.identities.note_refresh(usage.agent_id, at, is_success=is_success)


def _keep_resealed(unit: Unit, fresh: list[tuple[int, SealedToken]], at: datetime) -> None:
    """What was replaced is of no use to anybody, and shall not stay under the old key."""
    unit.identities.drop_replaced_tokens()
    unit.identities.reseal(fresh, at)


def _resealed(
    tokens: Iterable[tuple[int, SealedToken]], reseal: Callable[[str, str], str]
) -> tuple[list[tuple[int, SealedToken]], set[int]]:
    """Those that were under another key, and whose can't be opened under any."""
    fresh: list[tuple[int, SealedToken]] = []
    lost: set[int] = set()
    for agent_id, token in tokens:
        try:
            sealed = reseal(token.sealed, f"user_agent_token.token_value:{agent_id}")
            cookies = token.cookies and reseal(token.cookies, f"user_agent_token.cookies:{agent_id}")
        except Unreadable:
            lost.add(agent_id)
            continue
        if (sealed, cookies) != (token.sealed, token.cookies):
            kept = SealedToken(sealed, token.fingerprint, token.issued_at, token.expires_at, cookies)
            fresh.append((agent_id, kept))
    return fresh, lost


def _retire(unit: Unit, agent_ids: list[int], at: datetime) -> int:
    for agent_id in agent_ids:
        _clear_alerts(unit, agent_id, at)
    return unit.identities.retire(agent_ids, at)


def _clear_alerts(unit: Unit, agent_id: int, at: datetime) -> None:
    for name in ("identity_blocked", "identity_stranded"):
        unit.chores.clear_alert(f"{name}:{agent_id}", at)
