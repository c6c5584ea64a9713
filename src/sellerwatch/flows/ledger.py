"""The ledger: of every execution, planned = succeeded + failed + open, by its counters and by its tasks.

    one snapshot: the next executions' counters beside their tasks ─▶ one commit: an alert for each that does not add up,
    and the end of it for each that does again

Counters change in the transactions that change tasks, so the two can't part; that they have not is looked at again and
again, round and round over the newest executions, a bounded number of tasks at a time. A crash anywhere loses nothing:
what was not looked at is next. Nothing is mended here: whoever reads the alert should know that something is wrong.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sellerwatch.domain.executions import Balance
from sellerwatch.ports.store import Store, Unit
from sellerwatch.ports.time import Clock

TASKS_AT_ONCE = 20_000
KEPT = timedelta(days=60)
"""Tasks of ended executions are forgotten some time after this; an execution without them would not add up."""


@dataclass(slots=True)
class Ledger:
    store: Store
    clock: Clock
    _after: int = 0

    async def run(self) -> int:
        """How many of those looked at do not add up."""
        at = self.clock.now()
        balances, after = await self._next(self._after, at)
        if not balances and self._after:
            balances, after = await self._next(0, at)
        if balances:
            await self.store.transact(lambda unit: _tell(unit, balances, at))
        self._after = after
        return sum(not balance.is_even for balance in balances)

    async def _next(self, after: int, at: datetime) -> tuple[list[Balance], int]:
        return await self.store.read(lambda unit: unit.executions.balances(after, at - KEPT, TASKS_AT_ONCE))


def _tell(unit: Unit, balances: list[Balance], at: datetime) -> None:
    for balance in balances:
        if balance.is_even:
            unit.chores.clear_alert(f"ledger_broken:{balance.execution_id}", at)
        else:
            text = f"the crawl of {balance.seller_id} does not add up: {balance}"
            details = {"executionId": balance.execution_id, "sellerId": balance.seller_id}
            unit.chores.raise_alert(f"ledger_broken:{balance.execution_id}", "critical", text, details, at)
