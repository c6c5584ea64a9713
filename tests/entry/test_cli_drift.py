"""What an operator sees of drift, and decides: `drift`, `outbox held`, `release`, `discard`, `seller confirm-delisting`."""

from pathlib import Path

import pytest

from builders import NOON, a_schedule, a_seller, an_execution, at
from desk import Desk, a_product, a_raw, an_event
from sellerwatch.domain.documents import DocumentKind
from sellerwatch.domain.drift import Breach, Measure
from sellerwatch.domain.executions import ExecutionStatus, ListState
from sellerwatch.domain.outbox import OutboxStatus
from sellerwatch.domain.quarantines import Quarantine
from sellerwatch.domain.raws import RawStatus
from sellerwatch.ports.store import Unit

BREACH = Breach(Measure.JUMPED, "sellingPrice", 1.0, 0.0, 90, 90, "1000: 599000 → 5990")
EXECUTION = an_execution("shop-1", status=ExecutionStatus.COMPLETED, list_state=ListState.COMPLETE)
QUARANTINE = Quarantine.open(EXECUTION.execution_id, "shop-1", BREACH, NOON)
WHY = "sellingPrice is 5 times as high or as low as before in 90 of 90 (100%, usually 0%); 1000: 599000 → 5990"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    made = Desk(tmp_path)
    made.plant(plant)
    return made


def plant(unit: Unit) -> None:
    quarantine = Quarantine.open(EXECUTION.execution_id, "shop-1", BREACH, NOON)
    quarantine.hold(3, 2)
    unit.sellers.add(a_seller())
    unit.schedules.add(a_schedule())
    unit.executions.add(EXECUTION)
    unit.quarantines.save([quarantine])
    products = [a_product(1000), a_product(1001)]
    unit.products.save(products)
    foretold = [an_event(one, 2, OutboxStatus.WAITING).foretold(quarantine.quarantine_id) for one in products]
    unit.events.foretell(foretold)
    raws = [a_raw(1000 + n, raw_hash=f"{n:032}", status=RawStatus.HELD) for n in range(3)]
    for raw in raws:
        raw.execution_id = EXECUTION.execution_id
    unit.raws.put(raws)
    unit.chores.raise_alert("field_drift:shop-1", "critical", "quarantined", {}, NOON)
    unit.chores.note_drift([(DocumentKind.DETAIL, "ProductInfoModule.salePrice", "unknown", "1000")] * 3, at(0))


def statuses(desk: Desk) -> set[str]:
    return {row["status"] for row in desk.type("outbox", "list", "--json").json}


def test_what_is_held_is_listed_under_its_quarantine_and_why(desk: Desk) -> None:
    said = desk.type("outbox", "held", COLUMNS="250")
    assert said.exit_code == 0
    assert QUARANTINE.quarantine_id in said.out
    assert WHY in said.out
    found = desk.type("outbox", "held", "--json").json
    assert [one["quarantineId"] for one in found["quarantines"]] == [QUARANTINE.quarantine_id]
    rows = found["rows"]
    assert [(row["subject"], row["status"], row["quarantineId"]) for row in rows] == [
        ("1000", "HELD", QUARANTINE.quarantine_id),
        ("1001", "HELD", QUARANTINE.quarantine_id),
    ]


@pytest.mark.parametrize("named", ["quarantine", "row", "all"])
def test_a_release_lets_the_whole_quarantine_go_however_it_is_named(desk: Desk, named: str) -> None:
    row = desk.type("outbox", "held", "--json").json["rows"][0]["outboxId"]
    word = {"quarantine": QUARANTINE.quarantine_id, "row": row, "all": "--all"}[named]
    said = desk.type("outbox", "release", word)
    assert said.exit_code == 0
    assert said.out.splitlines() == [
        "the crawl of shop-1 is released: 3 documents, 2 events",
        "2 rows released",
    ]
    assert desk.plant(lambda unit: len(unit.raws.lock_held(EXECUTION.execution_id, 9))) == 0
    assert statuses(desk) == {"COMPLETED"}
    assert desk.plant(lambda unit: unit.chores.alerts_to_tell(at(9**9), 0)) == []


def test_discarded_it_is_counted_as_not_told(desk: Desk) -> None:
    assert desk.type("outbox", "discard", QUARANTINE.quarantine_id).exit_code == 0
    found = desk.type("drift", "--days", "365", "--json").json
    assert [(one["rule"], one["times"]) for one in found["suppressed"]] == [("discarded", 2)]
    assert statuses(desk) == {"COMPLETED"}


def test_a_second_decision_is_refused_and_changes_nothing(desk: Desk) -> None:
    desk.type("outbox", "release", QUARANTINE.quarantine_id)
    said = desk.type("outbox", "discard", QUARANTINE.quarantine_id)
    assert said.exit_code == 1
    assert said.problems == [f"error: quarantine {QUARANTINE.quarantine_id} is RELEASED: it cannot be discarded"]
    assert desk.type("outbox", "release", "nothing").problems == ["error: nothing held is called nothing"]


def test_drift_tells_the_fields_the_quarantines_and_what_was_not_told(desk: Desk) -> None:
    found = desk.type("drift", "--days", "365", "--json").json
    assert [(one["field"], one["problem"], one["times"]) for one in found["fields"]] == [
        ("ProductInfoModule.salePrice", "unknown", 3)
    ]
    [quarantine] = found["quarantines"]
    assert (quarantine["status"], quarantine["measure"], quarantine["reason"]) == ("OPEN", "JUMPED", WHY)
    said = desk.type("drift", "--days", "365", COLUMNS="250")
    assert "ProductInfoModule.salePrice" in said.out
    assert WHY in said.out


def test_without_any_it_says_so(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.plant(lambda unit: unit.sellers.add(a_seller()))
    assert desk.type("drift").out == "no drift in 7 days: every field was as declared\n"


def test_a_delisting_that_waits_for_nobody_is_refused_in_one_line(desk: Desk) -> None:
    said = desk.type("seller", "confirm-delisting", "shop-1")
    assert said.exit_code == 1
    assert said.problems == ["error: no delisting of shop-1 waits to be confirmed"]


def test_a_confirmed_delisting_is_told(desk: Desk) -> None:
    def ask(unit: Unit) -> None:
        gone = [a_product(2000 + n) for n in range(6)]
        for product in gone:
            product.miss(NOON)
        unit.products.save(gone)
        waiting = an_execution(
            "shop-1", name=2, status=ExecutionStatus.COMPLETED, list_state=ListState.UNCONFIRMED, at=at(60)
        )
        unit.executions.add(waiting)
        unit.listings.add(waiting.execution_id, "shop-1", [(1000, 0), (1001, 0)])

    desk.plant(ask)
    said = desk.type("seller", "confirm-delisting", "shop-1")
    assert (said.exit_code, said.out) == (0, "6 products of shop-1 delisted\n")
