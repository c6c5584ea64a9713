"""Delist: when a crawl has ended and its documents are absorbed, what it did not show is counted as absent.

    one commit per execution: absent products miss it (two in a row: DELISTED), returned ones are ACTIVE again

What a list proves, and what waits for a person's word, says steps/absences.py. The list of an execution is forgotten
when it is SETTLED. A crash leaves the execution as it was.
"""

from dataclasses import dataclass
from datetime import datetime

from sellerwatch.domain.changes import Change
from sellerwatch.ports.store import Store, Unit
from sellerwatch.ports.time import Bell, Clock
from sellerwatch.steps.absences import settle_list


@dataclass(frozen=True, slots=True)
class Delist:
    store: Store
    clock: Clock
    bell: Bell
    flap_seconds: float = 0.0

    async def run(self) -> tuple[int, tuple[Change, ...]]:
        """Settle the lists of some ended executions: how many, and what changed by it."""
        at = self.clock.now()
        settled, changes = await self.store.transact(lambda unit: self._write(unit, at))
        if changes:
            self.bell.ring("deliver")
        return settled, tuple(changes)

    def _write(self, unit: Unit, at: datetime) -> tuple[int, list[Change]]:
        executions = unit.executions.lock_unsettled(1)
        changes = [change for execution in executions for change in settle_list(unit, execution, self.flap_seconds, at)]
        return len(executions), changes
