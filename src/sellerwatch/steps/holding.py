"""Holding: how a crawl is quarantined, and where what waited goes when its quarantine has ended.

Opened in the transaction of the batch that met the limit, which is held itself. Ended by one row; what waited follows
in batches, each its own transaction: a crash between two leaves the rest to whoever comes next.
"""

from collections.abc import Sequence
from datetime import datetime

from sellerwatch.domain.drift import Breach
from sellerwatch.domain.outbox import ProductEvent
from sellerwatch.domain.quarantines import Quarantine, QuarantineStatus
from sellerwatch.domain.raws import Raw
from sellerwatch.ports.store import Unit

_NOTES = {
    QuarantineStatus.RELEASED: "released: told by its own row",
    QuarantineStatus.REPROCESSED: "read once more",
    QuarantineStatus.DISCARDED: "discarded",
    QuarantineStatus.SUPERSEDED: "superseded by a later crawl",
}


def open_for(
    unit: Unit, known: Quarantine | None, execution_id: str, seller_id: str, breach: Breach, at: datetime
) -> Quarantine:
    """A new one, or the one that was read once more; it takes the place of what the seller has open."""
    if known is not None:
        known.reopen(breach, at)
        return known
    end_open(unit, seller_id, at)
    return Quarantine.open(execution_id, seller_id, breach, at)


def hold(unit: Unit, quarantine: Quarantine, raws: Sequence[Raw], events: Sequence[ProductEvent], at: datetime) -> None:
    """These wait in it. The raws are saved by whoever locked them."""
    for raw in raws:
        raw.hold()
    quarantine.hold(len(raws), len(events))
    unit.events.foretell([event.foretold(quarantine.quarantine_id) for event in events])
    unit.quarantines.save([quarantine])
    text = (
        f"the crawl of {quarantine.seller_id} is quarantined: {quarantine.reason}; "
        f"{quarantine.documents} documents and {quarantine.events} events are held"
    )
    details = {
        "quarantineId": quarantine.quarantine_id,
        "executionId": quarantine.execution_id,
        "measure": quarantine.measure,
        "field": quarantine.field,
    }
    unit.chores.raise_alert(f"field_drift:{quarantine.seller_id}", "critical", text, details, at)


def end_open(unit: Unit, seller_id: str, at: datetime) -> None:
    """A later crawl of the seller has come to its own verdict."""
    for quarantine in unit.quarantines.lock_open(seller_id):
        quarantine.supersede(at)
        ended(unit, [quarantine], at)


def reprocess(unit: Unit, since: datetime, at: datetime) -> list[Quarantine]:
    """What has been quarantined since is read once more, and judged on what is counted from now on."""
    found = [quarantine for quarantine in unit.quarantines.lock_open() if quarantine.opened_at >= since]
    for quarantine in found:
        quarantine.reprocess(at)
    ended(unit, found, at)
    unit.drift.forget([quarantine.execution_id for quarantine in found])
    return found


def ended(unit: Unit, quarantines: Sequence[Quarantine], at: datetime) -> None:
    """Write their end; nobody need be told of them any more."""
    unit.quarantines.save(quarantines)
    for quarantine in quarantines:
        unit.chores.clear_alert(f"field_drift:{quarantine.seller_id}", at)


def let_some_go(unit: Unit, at: datetime, count: int) -> int:
    """Of one ended quarantine up to `count` documents and events; how many quarantines there were, none or one."""
    found = unit.quarantines.lock_ended(1)
    for quarantine in found:
        let_go(unit, quarantine, at, count)
    return len(found)


def let_go(unit: Unit, quarantine: Quarantine, at: datetime, count: int) -> bool:
    """Up to `count` documents and events of an ended quarantine go where its end sends them; whether that was all."""
    note = _NOTES[quarantine.status]
    # With what is read once more goes what could not be read: together they are one observation.
    is_read_anew = quarantine.status is QuarantineStatus.REPROCESSED
    raws = unit.raws.lock_held(quarantine.execution_id, count, failed=is_read_anew)
    for raw in raws:
        if quarantine.drops:
            raw.done_with(note, at)
        elif is_read_anew:
            raw.anew(at)
        else:
            raw.again(at)
    unit.raws.save(raws)
    events = unit.events.lock_foretold(quarantine.quarantine_id, count)
    for event in events:
        event.discard(at, note)
    unit.events.put(events)
    if events and quarantine.drops:
        unit.chores.note_suppressed(quarantine.status.lower(), len(events), at)
    is_all = len(raws) < count and len(events) < count
    if is_all:
        quarantine.settle(at)
        unit.quarantines.save([quarantine])
    return is_all
