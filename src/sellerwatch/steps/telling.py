"""Telling: the events of new changes into the product outbox; what takes back what nobody has heard of is not told.

A change and its exact reverse within `flap_seconds` are told as nothing: both rows end COMPLETED with a note, and are
counted by their rule. For that an event waits so long before it is due; a CREATED never does.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sellerwatch.domain.outbox import EventType, OutboxStatus, ProductEvent
from sellerwatch.ports.store import Unit

FLAP = "flap"


def tell(unit: Unit, events: Sequence[ProductEvent], flap_seconds: float, at: datetime) -> None:
    if flap_seconds and events:
        window = timedelta(seconds=flap_seconds)
        _drop_flaps(unit, events, window, at)
        for event in events:
            if event.event_type is not EventType.CREATED and event.status is OutboxStatus.WAITING:
                event.next_attempt_at = event.created_at + window
    unit.events.add(events)


def _drop_flaps(unit: Unit, events: Sequence[ProductEvent], window: timedelta, at: datetime) -> None:
    newest: dict[str, ProductEvent] = {}
    for row in sorted(unit.events.lock_waiting({event.product_id for event in events}), key=_version):
        newest[row.product_id] = row
    undone: list[ProductEvent] = []
    for event in sorted(events, key=_version):
        older = newest.get(event.product_id)
        newest[event.product_id] = event
        if older is None or not _is_flap(event, older, window):
            continue
        older.completed(at, f"{FLAP}: undone by {event.version}")
        event.completed(at, f"{FLAP}: undid {older.version}")
        del newest[event.product_id]
        undone.append(older)
    known = {event.outbox_id for event in events}
    unit.events.put([row for row in undone if row.outbox_id not in known])
    if undone:
        unit.chores.note_suppressed(FLAP, 2 * len(undone), at)


def _is_flap(event: ProductEvent, older: ProductEvent, window: timedelta) -> bool:
    return older.is_untried and event.created_at - older.created_at <= window and event.undoes(older)


def _version(event: ProductEvent) -> int:
    return event.version
