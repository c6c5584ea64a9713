"""Announcing schedules: scheduler outbox → whatever fires the triggers, and alerts → whoever is on call.

    claim: WAITING ─▶ SENDING ─▶ announce (nothing is open) ─▶ COMPLETED, or WAITING with backoff, or FAILED

Rows of one schedule go in order. Only a no counts as a retry: while the engine is away they wait. When one is given up its schedule becomes FAILED and an alert is raised; the next
success makes it ACTIVE again. Everything announced is idempotent: a crash in the middle announces it twice.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from sellerwatch.domain.errors import Trouble, Unavailable, Unreadable
from sellerwatch.domain.outbox import OutboxStatus, ScheduleNotice, backoff
from sellerwatch.ports.outside import Alert, Alerts, Schedules, Severity
from sellerwatch.ports.store import Claim, Store, Unit
from sellerwatch.ports.time import Chance, Clock

_BACKOFF_SECONDS, _BACKOFF_CEILING = 5.0, 900.0
_AWAY_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Announce:
    store: Store
    schedules: Schedules
    alerts: Alerts
    clock: Clock
    chance: Chance
    owner: str
    retries_max: int = 3
    batch: int = 100
    claim_seconds: float = 30.0
    alert_repeat_seconds: float = 3600.0

    async def run(self) -> int:
        """Announce what is due; how many rows were taken up."""
        at = self.clock.now()
        claim = Claim(self.owner, at + timedelta(seconds=self.claim_seconds), at)
        notices = await self.store.transact(lambda unit: unit.notices.claim(claim, self.batch))
        for notice in notices:
            trouble = await self._tell(notice)
            # Decided here, not inside: a transaction that is tried again must come to the same.
            self._decide(notice, trouble)
            await self.store.transact(partial(self._write, notice=notice, error=str(trouble)))
        return len(notices)

    async def tell_alerts(self) -> int:
        """Tell the open alerts that nobody was told of lately; how many got through."""
        at = self.clock.now()
        due = await self.store.read(lambda unit: unit.chores.alerts_to_tell(at, self.alert_repeat_seconds))
        names: list[str] = []
        for name, severity, text, since, details in due:
            if await self.alerts.tell(Alert(name, Severity(severity), text, since, details)):
                names.append(name)
        await self.store.transact(partial(_told, names=names, at=at))
        return len(names)

    async def _tell(self, notice: ScheduleNotice) -> Trouble | None:
        try:
            await self.schedules.announce(notice)
        except Trouble as trouble:
            return trouble
        return None

    def _decide(self, notice: ScheduleNotice, trouble: Trouble | None) -> None:
        at, chance = self.clock.now(), self.chance.random()
        if trouble is None:
            notice.completed(at)
        elif isinstance(trouble, Unavailable):
            # Nothing was said to it: waiting for an engine costs no retry.
            notice.wait(at + backoff(0, _AWAY_SECONDS, _AWAY_SECONDS, chance), str(trouble))
        else:
            pause = backoff(notice.retry_count, _BACKOFF_SECONDS, _BACKOFF_CEILING, chance)
            notice.failed(str(trouble), self.retries_max, at + pause)

    def _write(self, unit: Unit, notice: ScheduleNotice, error: str) -> None:
        at = self.clock.now()
        if not unit.notices.save([notice], self.owner):
            return
        try:
            schedule = unit.schedules.lock_by_id(notice.schedule_id)
        except Unreadable:
            # What was announced stays so; the store tells of the schedule.
            return
        if schedule is None or notice.status is OutboxStatus.WAITING:
            return
        if notice.status is OutboxStatus.FAILED:
            schedule.give_up(at)
            text = f"schedule of {schedule.seller_id} could not be announced: {error}"
            unit.chores.raise_alert(
                f"schedule_failed:{schedule.seller_id}", "critical", text, {"outboxId": notice.outbox_id}, at
            )
        else:
            schedule.restore(at)
            unit.chores.clear_alert(f"schedule_failed:{schedule.seller_id}", at)
        unit.schedules.save(schedule)


def _told(unit: Unit, names: list[str], at: datetime) -> None:
    for name in names:
        unit.chores.told(name, at)
