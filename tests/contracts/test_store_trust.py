"""What ports/store/trust.py promises, and what the other stores promise of what is quarantined; on every engine."""

from datetime import datetime

import pytest

from builders import NOON, an_execution, at
from desk import a_product, a_raw, an_event
from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.reports import SqlReports
from sellerwatch.domain.documents import DocumentKind
from sellerwatch.domain.drift import Breach, Measure, Tally, Watch
from sellerwatch.domain.executions import Execution, ExecutionStatus, ListState
from sellerwatch.domain.outbox import OutboxStatus
from sellerwatch.domain.quarantines import Quarantine, QuarantineStatus
from sellerwatch.domain.raws import Raw, RawStatus
from sellerwatch.ports.store import Claim, Store, Unit
from sellerwatch.ports.store.keeping import OTHER_NAMES, UNKNOWN_NAMES_MAX

BREACH = Breach(Measure.MISSING, "DETAIL.brandName", 0.9, 0.01, 90, 100, "1000")
DETAIL = DocumentKind.DETAIL


def ended(seller_id: str = "nord", name: object = 1, **other: object) -> Execution:
    return an_execution(seller_id, name=name, status=ExecutionStatus.COMPLETED, list_state=ListState.COMPLETE, **other)


def a_quarantine(execution: Execution, status: QuarantineStatus = QuarantineStatus.OPEN) -> Quarantine:
    quarantine = Quarantine.open(execution.execution_id, execution.seller_id, BREACH, NOON)
    if status is not QuarantineStatus.OPEN:
        quarantine.release(at(1))
    quarantine.status = status
    return quarantine


def a_tally(**documents: float) -> Tally:
    return Tally({"documents": dict(documents), "missing": {"DETAIL.brandName": 2}})


async def keep(store: Store, *quarantines: Quarantine) -> None:
    await store.transact(lambda unit: unit.quarantines.save(quarantines))


async def watched(store: Store, execution: Execution) -> Watch | None:
    found = await store.transact(lambda unit: unit.drift.watch([execution.execution_id]))
    return found.get(execution.execution_id)


async def test_what_was_counted_comes_back_beside_what_is_usual_for_the_seller(store: Store) -> None:
    execution = ended(same_details=7, full_pages=2, full_page_entries=990)

    def count(unit: Unit) -> None:
        unit.executions.add(execution)
        [watch] = unit.drift.watch([execution.execution_id]).values()
        assert (watch.usual, watch.crawl.sections) == (None, {})
        watch.take(a_tally(DETAIL=30))
        unit.drift.save([watch], NOON)
        unit.drift.learn("nord", a_tally(DETAIL=400), NOON)

    await store.transact(count)
    watch = await watched(store, execution)
    assert watch is not None
    assert watch.usual is not None
    assert (watch.crawl.of("documents", "DETAIL"), watch.recent.of("missing", "DETAIL.brandName")) == (30, 2)
    assert watch.usual.of("documents", "DETAIL") == 400
    assert (watch.progress.same[DETAIL], watch.progress.full_pages, watch.progress.full_page_entries) == (7, 2, 990)


async def test_counted_again_and_learned_again_it_is_the_newest(store: Store) -> None:
    execution = ended()
    await store.transact(lambda unit: unit.executions.add(execution))
    for times in (1, 2):
        watch = await watched(store, execution)
        assert watch is not None
        watch.take(a_tally(DETAIL=10))
        await store.transact(lambda unit, watch=watch: unit.drift.save([watch], NOON))
        await store.transact(lambda unit, times=times: unit.drift.learn("nord", a_tally(DETAIL=times), NOON))
    watch = await watched(store, execution)
    assert watch is not None
    assert watch.usual is not None
    assert (watch.crawl.of("documents", "DETAIL"), watch.usual.of("documents", "DETAIL")) == (20, 2)


async def test_what_was_counted_of_an_execution_can_be_forgotten(store: Store) -> None:
    execution = ended()
    await store.transact(lambda unit: unit.executions.add(execution))
    watch = await watched(store, execution)
    assert watch is not None
    watch.take(a_tally(DETAIL=10))
    await store.transact(lambda unit: unit.drift.save([watch], NOON))
    await store.transact(lambda unit: unit.drift.forget([execution.execution_id]))
    again = await watched(store, execution)
    assert again is not None
    assert again.crawl.sections == {}


async def test_an_execution_that_does_not_exist_or_is_settled_is_not_watched(store: Store) -> None:
    execution = ended()
    execution.settle_list()
    await store.transact(lambda unit: unit.executions.add(execution))
    assert await watched(store, execution) is None
    assert await store.transact(lambda unit: unit.drift.watch(["nobody"])) == {}


async def test_a_quarantine_comes_back_as_it_was_saved_new_or_known(store: Store) -> None:
    quarantine = a_quarantine(ended())
    quarantine.hold(300, 90)
    await keep(store, quarantine)
    quarantine.release(at(5))
    quarantine.settle(at(9))
    await keep(store, quarantine)
    found = await store.transact(lambda unit: unit.quarantines.lock([quarantine.quarantine_id, "nobody"]))
    assert found == [quarantine]
    assert await store.transact(lambda unit: unit.quarantines.of([quarantine.execution_id])) == {
        quarantine.execution_id: quarantine
    }


async def test_a_reason_longer_than_its_column_is_cut(store: Store) -> None:
    quarantine = a_quarantine(ended())
    quarantine.reason = "x" * 5000
    await keep(store, quarantine)
    [found] = await store.transact(lambda unit: unit.quarantines.lock([quarantine.quarantine_id]))
    assert 500 <= len(found.reason) < 5000


async def test_open_ones_are_found_by_seller_or_all_and_ended_ones_until_they_are_settled(store: Store) -> None:
    open_one, other = a_quarantine(ended()), a_quarantine(ended("sud"))
    gone = [a_quarantine(ended(name=status), status) for status in QuarantineStatus if status != "OPEN"]
    gone[0].settle(at(9))
    await keep(store, open_one, other, *gone)
    assert await store.transact(lambda unit: unit.quarantines.lock_open("nord")) == [open_one]
    everyone = await store.transact(lambda unit: unit.quarantines.lock_open())
    assert {one.quarantine_id for one in everyone} == {open_one.quarantine_id, other.quarantine_id}
    waiting = await store.transact(lambda unit: unit.quarantines.lock_ended(99))
    assert {one.quarantine_id for one in waiting} == {one.quarantine_id for one in gone[1:]}
    assert len(await store.transact(lambda unit: unit.quarantines.lock_ended(2))) == 2


async def test_foretold_rows_stand_in_nobodys_way_and_are_found_by_their_quarantine(store: Store) -> None:
    product = a_product(1)
    foretold = an_event(product, 2, OutboxStatus.WAITING).foretold("quarantine")
    await store.transact(lambda unit: unit.events.foretell([foretold]))
    await store.transact(lambda unit: unit.events.add([an_event(product, 3, OutboxStatus.WAITING)]))
    claim = Claim("d", at(60), at(1))
    assert [[row.version for row in rows] for rows in await store.transact(lambda u: u.events.claim(claim, 9))] == [[3]]
    assert await store.transact(lambda unit: unit.events.lock_foretold("quarantine", 9)) == [foretold]
    assert await store.transact(lambda unit: unit.events.lock_foretold("another", 9)) == []
    assert await store.transact(lambda unit: unit.events.lock_waiting([product.product_id])) == []


async def test_foretold_again_a_row_takes_the_place_of_what_was_foretold_also_if_that_had_ended(store: Store) -> None:
    product = a_product(1)
    first = an_event(product, 2, OutboxStatus.WAITING).foretold("quarantine")
    await store.transact(lambda unit: unit.events.foretell([first]))
    first.discard(at(1), "read once more")
    await store.transact(lambda unit: unit.events.put([first]))
    again = an_event(product, 2, OutboxStatus.WAITING).foretold("quarantine")
    await store.transact(lambda unit: unit.events.foretell([again]))
    assert await store.transact(lambda unit: unit.events.lock([again.outbox_id])) == [again]


async def test_waiting_rows_of_products_are_locked_without_what_is_held_or_sent(store: Store) -> None:
    product, other = a_product(1), a_product(2)
    waiting = an_event(product, 3, OutboxStatus.WAITING)
    rows = [an_event(product, 1, OutboxStatus.COMPLETED), an_event(product, 2, OutboxStatus.HELD), waiting]
    await store.transact(lambda unit: unit.events.add([*rows, an_event(other, 1, OutboxStatus.WAITING)]))
    assert await store.transact(lambda unit: unit.events.lock_waiting([product.product_id])) == [waiting]


def held(item_no: int, status: RawStatus, execution: Execution, crawled_at: datetime = NOON) -> Raw:
    raw = a_raw(item_no, raw_hash=f"{item_no:032}", status=status, crawled_at=crawled_at)
    raw.execution_id = execution.execution_id
    return raw


async def test_held_raws_are_found_by_execution_with_those_that_failed_if_asked(store: Store) -> None:
    execution, other = ended(), ended("sud")
    raws = [
        held(1, RawStatus.HELD, execution),
        held(2, RawStatus.FAILED, execution),
        held(3, RawStatus.PROCESSED, execution),
        held(4, RawStatus.HELD, other),
    ]
    await store.transact(lambda unit: unit.raws.put(raws))

    def found(unit: Unit, *, failed: bool) -> set[int]:
        return {raw.item_no for raw in unit.raws.lock_held(execution.execution_id, 99, failed=failed)}

    assert await store.transact(lambda unit: found(unit, failed=False)) == {1}
    assert await store.transact(lambda unit: found(unit, failed=True)) == {1, 2}


@pytest.mark.parametrize("reason", ["held", "quarantined", "unconfirmed"])
async def test_an_execution_that_waits_for_a_decision_is_not_settled(store: Store, reason: str) -> None:
    execution = ended()
    if reason == "unconfirmed":
        execution.ask_for_confirmation()

    def plant(unit: Unit) -> None:
        unit.executions.add(execution)
        if reason == "held":
            unit.raws.put([held(1, RawStatus.HELD, execution)])
        if reason == "quarantined":
            unit.quarantines.save([a_quarantine(execution)])

    await store.transact(plant)
    assert await store.transact(lambda unit: unit.executions.lock_unsettled(9)) == []
    waiting = await store.transact(lambda unit: unit.executions.lock_unconfirmed("nord"))
    assert waiting == ([execution] if reason == "unconfirmed" else [])


async def test_active_products_are_counted_by_seller(store: Store, database: Database) -> None:
    gone = a_product(3)
    gone.miss(NOON)
    gone.miss(NOON)
    await store.transact(
        lambda unit: unit.products.save([a_product(1), a_product(2), gone, a_product(4, seller_id="b")])
    )
    assert await store.read(lambda unit: unit.listings.active("shop-1")) == 2


async def test_unknown_names_are_told_apart_up_to_a_bound_a_day(store: Store, database: Database) -> None:
    for part in range(4):
        names = [f"name{n}" for n in range(part * 90, part * 90 + 90)]
        rows = [(DETAIL, name, "unknown", "1000") for name in [*names, "name0"]]
        await store.transact(lambda unit, rows=rows: unit.chores.note_drift(rows, NOON))
    report = await SqlReports(database).drift(NOON)
    fields = {row.field: row.times for row in report.fields}
    assert (fields["name0"], fields[OTHER_NAMES]) == (5, 4 * 90 - UNKNOWN_NAMES_MAX)


async def test_what_was_not_told_is_counted_by_rule_and_day(store: Store, database: Database) -> None:
    for rule, times, seconds in (("flap", 2, 0), ("flap", 4, 60), ("discarded", 9, 0), ("flap", 1, -90_000)):
        moment = at(seconds)
        await store.transact(lambda unit, r=rule, n=times, m=moment: unit.chores.note_suppressed(r, n, m))
    report = await SqlReports(database).drift(NOON)
    assert {row.rule: (row.times, row.last_at) for row in report.suppressed} == {
        "flap": (6, at(60)),
        "discarded": (9, NOON),
    }
