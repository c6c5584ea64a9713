"""Bringing what fires the triggers in line with the store: what notices that were lost, or somebody's hand, left behind.

    the engine's rules ─▶ the store's schedules ─▶ what differs ─▶ put or removed, one by one

The engine is looked at first: a schedule that changes meanwhile is then at most put once too often, and no rule is taken
for left over because its seller is new. A crash in the middle has mended a part; doing it again does the rest.
"""

from dataclasses import dataclass

from sellerwatch.domain.schedules import Rule, Schedule, ScheduleStatus
from sellerwatch.ports.layout import Deviation
from sellerwatch.ports.outside import Rules
from sellerwatch.ports.store import Store, Unit
from sellerwatch.ports.time import Clock

_BATCH = 500


@dataclass(frozen=True, slots=True)
class Misfit(Deviation):
    """A rule that is not as it should be."""

    schedule: Schedule | None
    right: Rule | None
    """None: it should not be there."""


@dataclass(frozen=True, slots=True)
class Sync:
    store: Store
    rules: Rules
    clock: Clock

    async def deviations(self) -> list[Misfit]:
        """What differs, by the rules' names. Changes nothing."""
        found = {rule.name: rule for rule in await self.rules.found()}
        wanted = await self._wanted()
        misfits = []
        for name in sorted(found.keys() | wanted.keys()):
            schedule, right = wanted.get(name, (None, None))
            said = found[name].otherwise(right) if name in found else "is missing"
            if said is None and schedule and schedule.status is ScheduleStatus.FAILED:
                said = "is right, but its schedule is still FAILED"
            if said:
                misfits.append(Misfit(name, said, schedule, right))
        return misfits

    async def mend(self, misfit: Misfit) -> None:
        if misfit.right is None or misfit.schedule is None:
            await self.rules.remove(misfit.name)
            return
        await self.rules.put(misfit.right)
        at, schedule_id = self.clock.now(), misfit.schedule.schedule_id

        def work(unit: Unit) -> None:
            schedule = unit.schedules.lock_by_id(schedule_id)
            if schedule is not None and schedule.status is ScheduleStatus.FAILED:
                schedule.restore(at)
                unit.schedules.save(schedule)
                unit.chores.clear_alert(f"schedule_failed:{schedule.seller_id}", at)

        await self.store.transact(work)

    async def _wanted(self) -> dict[str, tuple[Schedule, Rule]]:
        wanted: dict[str, tuple[Schedule, Rule]] = {}
        after = ""
        while some := await self._some(after):
            after = some[-1].seller_id
            wanted |= {schedule.rule_name: (schedule, self.rules.right(schedule)) for schedule in some}
        return wanted

    async def _some(self, after: str) -> list[Schedule]:
        return await self.store.read(lambda unit: unit.schedules.active(after, _BATCH))
