"""Absences: when a crawl has ended and its documents are absorbed, what it did not show is counted as absent.

    one commit per execution: absent products miss it (two in a row: DELISTED), returned ones are ACTIVE again

Only a whole list proves an absence; an incomplete one proves nothing, except for items whose own page said that they
are gone. The list of an execution is forgotten when it is SETTLED.
"""

from dataclasses import dataclass
from datetime import datetime

from sellerwatch.domain.changes import Change
from sellerwatch.domain.executions import Execution, ListState
from sellerwatch.domain.products import announce
from sellerwatch.ports.store import Store, Unit
from sellerwatch.ports.time import Bell, Clock


@dataclass(frozen=True, slots=True)
class Delist:
    store: Store
    clock: Clock
    bell: Bell

    async def run(self) -> tuple[int, tuple[Change, ...]]:
        """Settle the lists of some ended executions: how many, and what changed by it."""
        at = self.clock.now()
        settled, changes = await self.store.transact(lambda unit: self._write(unit, at))
        if changes:
            self.bell.ring("deliver")
        return settled, tuple(changes)

    def _write(self, unit: Unit, at: datetime) -> tuple[int, list[Change]]:
        executions = unit.executions.lock_unsettled(1)
        changes = [change for execution in executions for change in self._settle(unit, execution, at)]
        return len(executions), changes

    def _settle(self, unit: Unit, execution: Execution, at: datetime) -> list[Change]:
        absent = unit.listings.absent(
            execution.execution_id,
            execution.seller_id,
            is_complete=execution.list_state is ListState.COMPLETE,
            before=execution.started_at,
        )
        returned = unit.listings.returned(execution.execution_id)
        products = unit.products.lock([*absent, *returned])
        changes, events = [], []
        for item_nos, is_absent in ((absent, True), (returned, False)):
            for item_no in item_nos:
                product = products[item_no]
                change = (product.miss if is_absent else product.relist)(at, execution.execution_id)
                if change:
                    changes.append(change)
                    events.append(announce(product, change))
        unit.products.save(list(products.values()))
        unit.changes.add(changes)
        unit.events.add(events)
        unit.listings.forget(execution.execution_id)
        execution.settle_list()
        unit.executions.save([execution])
        return changes
