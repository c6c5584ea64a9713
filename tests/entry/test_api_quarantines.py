"""What waits for a person's word, over the API: quarantined crawls, held rows, and much of a shop at once."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from builders import NOON, a_publication, a_schedule, a_seller, a_task, an_execution
from builders import at as moment
from described import check
from desk import a_product, a_raw, an_event
from doors import Door, door
from sellerwatch.domain.drift import Breach, Measure
from sellerwatch.domain.executions import ExecutionStatus, ListState
from sellerwatch.domain.outbox import OutboxStatus, TaskOutboxStatus
from sellerwatch.domain.quarantines import Quarantine
from sellerwatch.domain.raws import RawStatus
from sellerwatch.ports.store import Unit

BREACH = Breach(Measure.JUMPED, "sellingPrice", 1.0, 0.0, 90, 90, "1000: 599000 → 5990")
EXECUTION = an_execution("shop-1", status=ExecutionStatus.COMPLETED, list_state=ListState.COMPLETE)
HELD = Quarantine.open(EXECUTION.execution_id, "shop-1", BREACH, NOON).quarantine_id
QUARANTINES = "/api/v1/quarantines"
NOBODY = "019a0000-0000-7000-8000-000000000000"


@pytest.fixture
async def at(tmp_path: Path) -> AsyncIterator[Door]:
    async with door(tmp_path) as opened:
        await opened.house.store.transact(plant)
        yield opened


def plant(unit: Unit) -> None:
    """A quarantined crawl with three documents and two foretold events."""
    quarantine = Quarantine.open(EXECUTION.execution_id, "shop-1", BREACH, NOON)
    quarantine.hold(3, 2)
    unit.sellers.add(a_seller())
    unit.schedules.add(a_schedule())
    unit.executions.add(EXECUTION)
    unit.quarantines.save([quarantine])
    products = [a_product(1000), a_product(1001)]
    unit.products.save(products)
    unit.events.foretell([an_event(one, 2, OutboxStatus.WAITING).foretold(HELD) for one in products])
    raws = [a_raw(1000 + n, raw_hash=f"{n:032}", status=RawStatus.HELD) for n in range(3)]
    for raw in raws:
        raw.execution_id = EXECUTION.execution_id
    unit.raws.put(raws)


async def said(at: Door, method: str, path: str, *, status: int = 200) -> Any:
    answer = await at.call(method, path)
    assert answer.status == status, answer.body
    return check(at, method, path, answer)


async def held_documents(at: Door) -> int:
    return len(await at.house.store.transact(lambda unit: unit.raws.lock_held(EXECUTION.execution_id, 9)))


async def test_quarantines_are_listed_by_status_and_shown_with_their_reason(at: Door) -> None:
    seen = await said(at, "GET", QUARANTINES)
    assert (seen["totalElements"], seen["content"][0]["quarantineId"]) == (1, HELD)
    shown = await said(at, "GET", f"{QUARANTINES}/{HELD}")
    assert shown == seen["content"][0]
    assert (shown["status"], shown["documents"], shown["events"], shown["endedAt"]) == ("OPEN", 3, 2, None)
    assert "1000: 599000 → 5990" in shown["reason"]
    assert (await said(at, "GET", f"{QUARANTINES}?status=RELEASED"))["content"] == []
    assert (await said(at, "GET", f"{QUARANTINES}?status=OPEN&page=1&size=1"))["totalElements"] == 1
    await said(at, "GET", f"{QUARANTINES}?status=ENDED", status=400)
    missing = await said(at, "GET", f"{QUARANTINES}/{NOBODY}", status=404)
    assert missing["errorCode"] == "QUARANTINE_NOT_FOUND"


@pytest.mark.parametrize(("verb", "ends"), [("release", "RELEASED"), ("discard", "DISCARDED")])
async def test_a_decision_is_made_once_and_nothing_is_held_after_it(at: Door, verb: str, ends: str) -> None:
    done = await said(at, "POST", f"{QUARANTINES}/{HELD}/{verb}")
    assert (done["status"], done["quarantineId"]) == (ends, HELD)
    assert done["endedAt"]
    assert await held_documents(at) == 0
    assert {row["status"] for row in (await said(at, "GET", "/api/v1/outbox"))["content"]} == {"COMPLETED"}
    for again in ("release", "discard"):
        refused = await said(at, "POST", f"{QUARANTINES}/{HELD}/{again}", status=409)
        assert refused["errorCode"] == "WRONG_STATE"
    assert (await said(at, "GET", f"{QUARANTINES}/{HELD}")) == done
    assert (await said(at, "POST", f"{QUARANTINES}/{NOBODY}/{verb}", status=404))["errorCode"] == "QUARANTINE_NOT_FOUND"


@pytest.mark.parametrize(("verb", "becomes"), [("release", "WAITING"), ("discard", "COMPLETED")])
async def test_a_row_held_by_itself_goes_by_itself(at: Door, verb: str, becomes: str) -> None:
    alone = an_event(a_product(7), 1, OutboxStatus.HELD)
    failed = an_event(a_product(8), 1, OutboxStatus.FAILED)
    publication = a_publication(a_task(1, execution=EXECUTION), status=TaskOutboxStatus.SENT)

    def more(unit: Unit) -> None:
        unit.products.save([a_product(7), a_product(8)])
        unit.events.add([alone, failed])
        unit.publications.add([publication])

    await at.house.store.transact(more)
    done = await said(at, "POST", f"/api/v1/outbox/{alone.outbox_id}/{verb}")
    assert (done["outboxId"], done["status"]) == (alone.outbox_id, becomes)
    for outbox_id in (alone.outbox_id, failed.outbox_id, publication.outbox_id):
        refused = await said(at, "POST", f"/api/v1/outbox/{outbox_id}/{verb}", status=409)
        assert refused["errorCode"] == "WRONG_STATE"
    missing = await said(at, "POST", f"/api/v1/outbox/{NOBODY}/{verb}", status=404)
    assert missing["errorCode"] == "OUTBOX_ROW_NOT_FOUND"
    assert await held_documents(at) == 3


async def test_a_row_of_a_quarantine_takes_all_of_it_along(at: Door) -> None:
    row = (await said(at, "GET", "/api/v1/outbox?status=HELD"))["content"][0]
    done = await said(at, "POST", f"/api/v1/outbox/{row['outboxId']}/release")
    assert (done["status"], done["quarantineId"]) == ("COMPLETED", HELD)
    assert (await said(at, "GET", f"{QUARANTINES}/{HELD}"))["status"] == "RELEASED"
    assert (await said(at, "GET", "/api/v1/outbox?status=HELD"))["totalElements"] == 0


async def test_much_of_a_shop_goes_when_somebody_confirms_it_and_once(at: Door) -> None:
    path = "/api/v1/sellers/shop-1/confirm-delisting"
    assert (await said(at, "POST", path, status=409))["errorCode"] == "NOTHING_TO_CONFIRM"

    def ask(unit: Unit) -> None:
        gone = [a_product(2000 + n) for n in range(6)]
        for product in gone:
            product.miss(NOON)
        unit.products.save(gone)
        waiting = an_execution(
            "shop-1", name=2, status=ExecutionStatus.COMPLETED, list_state=ListState.UNCONFIRMED, at=moment(60)
        )
        unit.executions.add(waiting)
        unit.listings.add(waiting.execution_id, "shop-1", [(1000, 0), (1001, 0)])

    await at.house.store.transact(ask)
    assert await said(at, "POST", path) == {"delisted": 6}
    assert (await said(at, "POST", path, status=409))["errorCode"] == "NOTHING_TO_CONFIRM"
    missing = await said(at, "POST", "/api/v1/sellers/nobody/confirm-delisting", status=404)
    assert missing["errorCode"] == "SELLER_NOT_FOUND"
