"""Decide: what waits for a person's word goes on, or never does.

Waiting are HELD events by themselves, quarantined crawls (all that is held of one goes together, whichever of its rows
is named), and shops of which too much would be delisted at once. A decision is one row; what follows from it is done
in batches, here and by the sweep of the raws: interrupted, it goes on; made twice, it is refused the second time and changes nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from sellerwatch.domain.changes import Change
from sellerwatch.domain.errors import Conflict, WrongVerb
from sellerwatch.domain.outbox import ProductEvent
from sellerwatch.domain.quarantines import Quarantine
from sellerwatch.ports.store import Store, Unit
from sellerwatch.ports.time import Bell, Clock
from sellerwatch.steps.absences import settle_list
from sellerwatch.steps.holding import ended, let_some_go

BATCH = 500


@dataclass(slots=True)
class Decided:
    events: int = 0
    """Rows of the outbox, those of quarantines among them."""
    quarantines: list[Quarantine] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Decide:
    store: Store
    clock: Clock
    bell: Bell
    flap_seconds: float = 0.0

    async def release(self, ids: Sequence[str]) -> Decided:
        """These HELD rows, and the whole quarantines that these rows or ids are of, go on their way."""
        return await self._decide(ids, ProductEvent.release, Quarantine.release)

    async def discard(self, ids: Sequence[str]) -> Decided:
        """These HELD rows, and the whole quarantines that these rows or ids are of, are never told."""
        return await self._decide(ids, ProductEvent.discard, Quarantine.discard)

    async def confirm_delisting(self, seller_id: str) -> tuple[Change, ...]:
        """Too much of the shop would go at once, and that is right."""
        at = self.clock.now()
        changes = await self.store.transact(lambda unit: self._confirm(unit, seller_id, at))
        if changes:
            self.bell.ring("deliver")
        return tuple(changes)

    async def _carry_out(self) -> None:
        """What waits in quarantines that have ended follows."""
        while await self.store.transact(partial(let_some_go, at=self.clock.now(), count=BATCH)):
            self.bell.ring("absorb")
        self.bell.ring("delist")

    async def _decide(
        self,
        ids: Sequence[str],
        on_event: Callable[[ProductEvent, datetime], None],
        on_quarantine: Callable[[Quarantine, datetime], None],
    ) -> Decided:
        decided = Decided()
        wanted = list(dict.fromkeys(ids))
        for start in range(0, len(wanted), BATCH):
            some = wanted[start : start + BATCH]
            work = partial(_rule, ids=some, on_event=on_event, on_quarantine=on_quarantine, at=self.clock.now())
            _add(decided, await self.store.transact(work))
        if decided.quarantines:
            await self._carry_out()
        if decided.events:
            self.bell.ring("deliver")
        return decided

    def _confirm(self, unit: Unit, seller_id: str, at: datetime) -> list[Change]:
        waiting = unit.executions.lock_unconfirmed(seller_id)
        if not waiting:
            raise Conflict("NOTHING_TO_CONFIRM", f"no delisting of {seller_id} waits to be confirmed")
        unit.chores.clear_alert(f"mass_delisting:{seller_id}", at)
        return [
            change
            for execution in waiting
            for change in settle_list(unit, execution, self.flap_seconds, at, is_confirmed=True)
        ]


def _rule(
    unit: Unit,
    ids: Sequence[str],
    on_event: Callable[[ProductEvent, datetime], None],
    on_quarantine: Callable[[Quarantine, datetime], None],
    at: datetime,
) -> Decided:
    decided = Decided()
    events = {event.outbox_id: event for event in unit.events.lock(ids)}
    of_rows = [event.quarantine_id for event in events.values() if event.quarantine_id]
    quarantines = {one.quarantine_id: one for one in unit.quarantines.lock({*ids, *of_rows})}
    known = events.keys() | quarantines.keys()
    decided.refused += [f"nothing held is called {each}" for each in ids if each not in known]
    alone = [event for event in events.values() if not event.quarantine_id]
    changed = [event for event in alone if _do(decided, partial(on_event, event, at))]
    unit.events.put(changed)
    decided.quarantines = [one for one in quarantines.values() if _do(decided, partial(on_quarantine, one, at))]
    ended(unit, decided.quarantines, at)
    decided.events = len(changed) + sum(quarantine.events for quarantine in decided.quarantines)
    return decided


def _do(decided: Decided, verb: Callable[[], None]) -> bool:
    try:
        verb()
    except WrongVerb as refusal:
        decided.refused.append(str(refusal))
        return False
    return True


def _add(total: Decided, some: Decided) -> None:
    total.events += some.events
    total.quarantines += some.quarantines
    total.refused += some.refused
