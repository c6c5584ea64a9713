"""Punctuality: a loop or sweep that nobody has run for too long is seen, and told of.

    last runs ─▶ those longer ago than some of their periods ─▶ an alert each; those that ran since: no alert any more

Nobody is late while no ticker is alive (that is told otherwise), or before one has been so for that long. Whoever looks
comes to the same; looking twice changes nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sellerwatch.ports.reports import LATE_ALERT, Overview, Reports, Runs
from sellerwatch.ports.store import Store, Unit
from sellerwatch.ports.time import Clock

_TICKER = "ticker"


@dataclass(frozen=True, slots=True)
class Late:
    name: str
    seconds: float
    """Since it last ran, or since somebody could have run it."""


def late(seen: Overview | Runs, late_after: Mapping[str, float]) -> list[Late]:
    """Of the loops and sweeps that are to run, those that have not for longer than they may."""
    began = _ticking_since(seen)
    if began is None:
        return []
    ran = {one.name: one.last_run_at for one in seen.sweeps if one.last_run_at}
    ages = {name: (seen.at - max(began, ran.get(name, began))).total_seconds() for name in late_after}
    return [Late(name, age) for name, age in sorted(ages.items()) if age > late_after[name]]


@dataclass(frozen=True, slots=True)
class Punctuality:
    store: Store
    reports: Reports
    clock: Clock

    async def run(self, late_after: Mapping[str, float]) -> int:
        """How many are late."""
        at = self.clock.now()
        seen = await self.reports.runs(at)
        if _ticking_since(seen) is None:
            return 0
        found = late(seen, late_after)
        over = seen.late - {f"{LATE_ALERT}:{one.name}" for one in found}

        def write(unit: Unit) -> None:
            for one in found:
                text = f"{one.name} has not run for {one.seconds:.0f} s: it hangs, or nobody runs it"
                unit.chores.raise_alert(
                    f"{LATE_ALERT}:{one.name}", "critical", text, {"seconds": round(one.seconds)}, at
                )
            for name in over:
                unit.chores.clear_alert(name, at)

        if found or over:
            await self.store.transact(write)
        return len(found)


def _ticking_since(seen: Overview | Runs) -> datetime | None:
    return min((one.started_at for one in seen.processes if _TICKER in one.role.split("+")), default=None)
