"""Forgetting: what is older than it may be kept goes, a little at a time. Each method is safe to run anywhere, at any time,
twice at once, and says how much there was; interrupted, it has done a part.

    retention           older than may be kept             deleted, batch after batch, in the operators' night
    partitions          a month to come, or long gone      made, or dropped
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

from sellerwatch.domain.retention import usage_kept_since
from sellerwatch.ports.partitions import Partitions
from sellerwatch.ports.store import Store, Unit
from sellerwatch.ports.time import Clock

BATCH = 500
NIGHT = range(2, 6)
"""Hours, in the operators' time zone, when the least is asked of the database."""
LASTING_SECONDS = 120.0
"""So long one run takes at most; the next one goes on."""
_BREATH_SECONDS = 0.05
_AT_ANY_HOUR = frozenset({"queue", "processes"})
"""Of these there is so much more in a day than is kept that they can't wait for the night."""
_DAYS_90, _DAYS_30, _DAY = timedelta(days=90), timedelta(days=30), timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Forget:
    store: Store
    clock: Clock
    months: Partitions
    raw_retention_days: float = 90.0
    usage_retention_months: int = 3
    timezone: str = "Asia/Seoul"

    async def retention(self) -> int:
        """In the night all that may go, by day only what can't wait; a batch of each kind, and again while there was any."""
        await self.store.transact(lambda unit: unit.chores.clear_unmet(self.clock.now(), _DAY))
        is_night = self.clock.now().astimezone(ZoneInfo(self.timezone)).hour in NIGHT
        pruned, until = 0, self.clock.monotonic() + LASTING_SECONDS
        while some := await self.prune(None if is_night else _AT_ANY_HOUR):
            pruned += some
            if self.clock.monotonic() >= until:
                break
            await self.clock.sleep(_BREATH_SECONDS)
        return pruned

    async def prune(self, kinds: Collection[str] | None = None) -> int:
        """A batch of each of these kinds, or of all, at whatever hour."""
        at = self.clock.now()
        raws = at - timedelta(days=self.raw_retention_days)
        ages = {
            "attempts": at - _DAYS_90,
            "breaker_events": at - _DAYS_90,
            "tasks": at - _DAYS_90,
            "usage": usage_kept_since(at, self.usage_retention_months),
            "task_outbox": at - _DAYS_30,
            "product_outbox": at - _DAYS_30,
            "scheduler_outbox": at - _DAYS_30,
            "raws": raws,
            "queue": at - timedelta(minutes=10),
            "processes": at - _DAY,
            "tokens": at - _DAY,
            "refreshes": at - _DAY,
        }
        if await self.months.all():
            # Dropped month by month.
            del ages["usage"]
        pruned = 0
        for what, before in ages.items():
            if kinds is None or what in kinds:
                pruned += await self.store.transact(partial(_prune, what=what, before=before))
        return pruned

    async def partitions(self) -> int:
        at = self.clock.now()
        kept = await self.months.keep(at, usage_kept_since(at, self.usage_retention_months))
        return len(kept.made) + len(kept.dropped)


def _prune(unit: Unit, what: str, before: datetime) -> int:
    return unit.chores.prune(what, before, BATCH)
