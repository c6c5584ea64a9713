"""Forgetting: what is older than it may be kept goes, a little at a time. Each method is safe to run anywhere, at any time,
twice at once, and says how much there was; interrupted, it has done a part.

    retention           older than may be kept             deleted, a batch of each kind
    partitions          a month to come, or long gone      made, or dropped
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from sellerwatch.domain.retention import usage_kept_since
from sellerwatch.ports.partitions import Partitions
from sellerwatch.ports.store import Store, Unit
from sellerwatch.ports.time import Clock

BATCH = 500
_DAYS_90, _DAYS_30, _DAY = timedelta(days=90), timedelta(days=30), timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Forget:
    store: Store
    clock: Clock
    months: Partitions
    raw_retention_days: float = 90.0
    usage_retention_months: int = 3

    async def retention(self) -> int:
        """What is older than it may be kept, a batch of each kind at a time."""
        at, count = self.clock.now(), BATCH
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
            "processes": at - timedelta(days=1),
        }
        if await self.months.all():
            # Dropped month by month.
            del ages["usage"]
        await self.store.transact(lambda unit: unit.chores.clear_unmet(at, _DAY))
        pruned = 0
        for what, before in ages.items():
            pruned += await self.store.transact(partial(_prune, what=what, before=before, count=count))
        return pruned

    async def partitions(self) -> int:
        at = self.clock.now()
        kept = await self.months.keep(at, usage_kept_since(at, self.usage_retention_months))
        return len(kept.made) + len(kept.dropped)


def _prune(unit: Unit, what: str, before: datetime, count: int) -> int:
    return unit.chores.prune(what, before, count)
