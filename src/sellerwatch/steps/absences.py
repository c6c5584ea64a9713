"""Absences: what an ended crawl did not show, drawn from its list once and for all.

Only a whole list proves an absence; an incomplete one proves nothing, except for items whose own page said that they
are gone. A quarantined crawl that was discarded or superseded proves nothing either. What would delist too much of a
shop at once waits for a person's word, or for the next crawl of the seller, which takes its place.
"""

from contextlib import suppress
from datetime import datetime

from sellerwatch.domain.changes import Change
from sellerwatch.domain.errors import Unreadable
from sellerwatch.domain.executions import Execution, ListState
from sellerwatch.domain.products import Product, announce
from sellerwatch.domain.quarantines import Quarantine, QuarantineStatus
from sellerwatch.ports.store import Unit
from sellerwatch.steps.holding import end_open
from sellerwatch.steps.telling import tell

MASS_SHARE = 0.3
"""More of a shop than this going at once is rather a mistake, ours or the marketplace's."""
MASS_MIN = 5
"""Fewer than this a small shop may lose in a day: one of two is half of it."""


def settle_list(
    unit: Unit, execution: Execution, flap_seconds: float, at: datetime, *, is_confirmed: bool = False
) -> list[Change]:
    """Draw what its list proves; what changed by that. `is_confirmed`: by a person, however much it is."""
    quarantine = unit.quarantines.of([execution.execution_id]).get(execution.execution_id)
    if not is_confirmed:
        _learn(unit, execution, quarantine, at)
        _drop_unconfirmed(unit, execution, at)
    if quarantine is not None and quarantine.drops:
        _end(unit, execution)
        return []
    if execution.list_state is ListState.COMPLETE and execution.expected_items is None:
        _count_what_was_found(unit, execution, at)
    is_complete = execution.list_state is not ListState.INCOMPLETE
    absent = unit.listings.absent(
        execution.execution_id, execution.seller_id, is_complete=is_complete, before=execution.started_at
    )
    returned = unit.listings.returned(execution.execution_id)
    products = unit.products.lock([*absent, *returned])
    # One that can't be read is left as it is.
    absent, returned = ([no for no in some if no in products] for some in (absent, returned))
    going = sum(products[item_no].is_about_to_go for item_no in absent)
    if not is_confirmed and _is_mass(unit, execution.seller_id, going):
        if execution.list_state is ListState.COMPLETE:
            _ask(unit, execution, going, at)
            return []
        absent = []
    changes = _draw(
        unit, execution, [products[no] for no in absent], [products[no] for no in returned], flap_seconds, at
    )
    _end(unit, execution)
    return changes


def _learn(unit: Unit, execution: Execution, quarantine: Quarantine | None, at: datetime) -> None:
    """A crawl that passed teaches what is usual, and ends what an earlier one left open."""
    watch = unit.drift.watch([execution.execution_id]).get(execution.execution_id)
    unit.drift.forget([execution.execution_id])
    if watch is None or (quarantine is not None and quarantine.drops):
        return
    is_released = quarantine is not None and quarantine.status is QuarantineStatus.RELEASED
    unit.drift.learn(execution.seller_id, watch.learned(afresh=is_released), at)
    if execution.list_state is ListState.COMPLETE:
        end_open(unit, execution.seller_id, at)


def _count_what_was_found(unit: Unit, execution: Execution, at: datetime) -> None:
    """A keyword search says neither how many items it has nor whose they are: by now the details have told."""
    seller = None
    with suppress(Unreadable):  # the store tells of it
        seller = unit.sellers.lock(execution.seller_id)
    if seller:
        seller.record_product_count(unit.listings.own(execution.execution_id, execution.seller_id), at)
        unit.sellers.save(seller)


def _drop_unconfirmed(unit: Unit, execution: Execution, at: datetime) -> None:
    """What an earlier crawl wanted confirmed, this one says anew."""
    for earlier in unit.executions.lock_unconfirmed(execution.seller_id):
        _end(unit, earlier)
    unit.chores.clear_alert(_alert(execution), at)


def _is_mass(unit: Unit, seller_id: str, going: int) -> bool:
    return going >= MASS_MIN and going > MASS_SHARE * unit.listings.active(seller_id)


def _ask(unit: Unit, execution: Execution, going: int, at: datetime) -> None:
    execution.ask_for_confirmation()
    unit.executions.save([execution])
    active = unit.listings.active(execution.seller_id)
    text = (
        f"{going} of {active} products of {execution.seller_id} would be delisted at once: "
        f"`sellerwatch seller confirm-delisting {execution.seller_id}` if that is right"
    )
    details = {"executionId": execution.execution_id, "products": going, "of": active}
    unit.chores.raise_alert(_alert(execution), "critical", text, details, at)


def _draw(
    unit: Unit,
    execution: Execution,
    absent: list[Product],
    returned: list[Product],
    flap_seconds: float,
    at: datetime,
) -> list[Change]:
    changes, events = [], []
    for products, verb in ((absent, Product.miss), (returned, Product.relist)):
        for product in products:
            change = verb(product, at, execution.execution_id)
            if change:
                changes.append(change)
                events.append(announce(product, change))
    unit.products.save([*absent, *returned])
    unit.changes.add(changes)
    tell(unit, events, flap_seconds, at)
    return changes


def _end(unit: Unit, execution: Execution) -> None:
    unit.listings.forget(execution.execution_id)
    execution.settle_list()
    unit.executions.save([execution])


def _alert(execution: Execution) -> str:
    return f"mass_delisting:{execution.seller_id}"
