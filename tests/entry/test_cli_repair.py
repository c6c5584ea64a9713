"""What the commands of repair promise: what was done, what was refused, and exit 1 when anything was."""

from pathlib import Path

import pytest

from builders import NOON, a_seller, a_task, at
from desk import Desk, a_product, a_raw, an_event, hash_of
from pages.products import a_detail
from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.dialect import engine
from sellerwatch.adapters.sql.tables import queue_messages
from sellerwatch.domain.documents import DocumentKind
from sellerwatch.domain.outbox import OutboxStatus
from sellerwatch.domain.raws import RawStatus
from sellerwatch.ports.store import Unit

PRODUCTS = [a_product(number) for number in (1, 2, 3, 4)]
FAILED, HELD, HELD_TOO, SENT = (
    an_event(product, 1, status)
    for product, status in zip(
        PRODUCTS,
        (OutboxStatus.FAILED, OutboxStatus.HELD, OutboxStatus.HELD, OutboxStatus.COMPLETED),
        strict=True,
    )
)


def plant(unit: Unit) -> None:
    unit.sellers.add(a_seller())
    unit.products.save(PRODUCTS)
    unit.events.add([FAILED, HELD, HELD_TOO, SENT])
    unit.raws.put(
        [
            a_raw(1, raw_hash="a" * 32, status=RawStatus.FAILED, retry_count=3, crawled_at=at(60)),
            a_raw(2, raw_hash=hash_of(DocumentKind.DETAIL)),
        ]
    )


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path)
    desk.plant(plant)
    return desk


def statuses(desk: Desk) -> list[str]:
    return [row["status"] for row in desk.type("outbox", "list", "--json").json]


def test_an_outbox_is_listed_by_box_and_status(desk: Desk) -> None:
    assert statuses(desk) == ["FAILED", "HELD", "HELD", "COMPLETED"]
    [row] = desk.type("outbox", "list", "--status", "failed", "--json").json
    assert (row["outboxId"], row["subject"], row["eventType"]) == (FAILED.outbox_id, "1", "PRODUCT_UPDATED")
    assert FAILED.outbox_id in desk.type("outbox", "list").out
    assert desk.type("outbox", "list", "--box", "task", "--json").json == []
    assert desk.type("outbox", "list", "--box", "nonsense").exit_code == 2


def test_failed_rows_are_retried_by_id_or_since_a_time(desk: Desk) -> None:
    said = desk.type("outbox", "retry", FAILED.outbox_id, SENT.outbox_id)
    assert (said.exit_code, said.out) == (1, "1 row sent again\n")
    assert said.problems == [f"error: outbox row {SENT.outbox_id} is COMPLETED: it cannot be tried again"]
    assert statuses(desk)[0] == "WAITING"
    assert desk.type("outbox", "retry", "--since", "2026-01-01").out == "0 rows sent again\n"
    assert desk.type("outbox", "retry").exit_code == 2
    assert desk.type("outbox", "retry", "x", "--since", "1h").exit_code == 2


def test_what_is_held_is_listed_released_and_discarded(desk: Desk) -> None:
    assert [row["outboxId"] for row in desk.type("outbox", "held", "--json").json["rows"]] == [
        HELD.outbox_id,
        HELD_TOO.outbox_id,
    ]
    assert desk.type("outbox", "release", HELD.outbox_id).out == "1 row released\n"
    assert desk.type("outbox", "discard", "--all").out == "1 row discarded\n"
    assert statuses(desk) == ["FAILED", "WAITING", "COMPLETED", "COMPLETED"]
    assert desk.type("outbox", "held").out == "nothing is held\n"
    assert desk.type("outbox", "list", "--status", "held").out == "the product outbox has no row that is HELD\n"
    assert desk.type("outbox", "list", "--box", "task").out == "the task outbox has no row\n"
    assert desk.type("outbox", "release").exit_code == 2


def test_products_are_told_once_more(desk: Desk) -> None:
    assert desk.type("outbox", "resend", "--seller", "shop-1").out == (
        "2 products will be sent once more\n2 products left alone: the newest version is on its way, or held\n"
    )
    assert statuses(desk) == ["WAITING", "HELD", "HELD", "WAITING"]
    assert desk.type("outbox", "resend", "--seller", "nobody").problems == ["error: no seller nobody"]
    assert desk.type("outbox", "resend").exit_code == 2


def test_raws_are_processed_once_more(desk: Desk) -> None:
    assert desk.type("raw", "retry").out == "1 raw will be processed once more\n"
    assert desk.type("raw", "retry", "nonsense").problems == ["error: no raw nonsense"]


def test_raws_are_read_once_more_and_first_for_trial(desk: Desk) -> None:
    product = a_product(9, name="as it was")
    body = a_detail(9, itemName="as it is")
    raw = a_raw(9, raw_hash=hash_of(DocumentKind.DETAIL), body=body)
    desk.plant(lambda unit: (unit.products.save([product]), unit.raws.put([raw])))
    told = desk.type("raw", "reprocess", "--since", "2026-03-01", "--dry-run").out
    for line in (
        "1 raw of 3 items read once more; 2 raws passed over: older content, or waiting anyway",
        "name ",
        "as it was",
        "as it is",
        "not understood",
        "1 event would be sent. Nothing was changed: it was a trial.",
    ):
        assert line in told
    found = desk.type("raw", "reprocess", "--since", "2026-03-01", "--dry-run", "--json").json
    assert (found["events"], found["raws"]) == (1, 1)
    assert found["fields"]["name"] == {
        "count": 1,
        "samples": [{"itemNo": 9, "old": "as it was", "new": "as it is"}],
    }
    assert found["notUnderstood"]["DETAIL"]["count"] == 2
    assert desk.type("raw", "reprocess", "--since", "2026-03-01").out.endswith("1 event will be sent.\n")
    assert desk.type("product", "show", "9", "--json").json["name"] == "as it is"
    assert desk.type("raw", "reprocess").exit_code == 2


def test_dead_letters_are_listed_and_driven_back(desk: Desk) -> None:
    assert desk.type("dlq", "list", "--json").json == []
    database = Database(engine(f"sqlite:///{desk.file}"), inline=True)
    row = {
        "queue": "tasks",
        "message_group": "shop-1",
        "dedup_id": "outbox-1",
        "body": f'{{"taskId": "{a_task().task_id}"}}',
        "attributes": "{}",
        "state": "DEAD",
        "receives": 3,
        "visible_at": NOON,
        "sent_at": NOON,
        "error": "received 3 times",
    }
    with database.engine.begin() as connection:
        connection.execute(queue_messages.insert(), [row])
    database.close()
    [letter] = desk.type("dlq", "list", "--json").json
    assert (letter["taskId"], letter["error"]) == (a_task().task_id, "received 3 times")
    assert "received 3 times" in desk.type("dlq", "list").out
    unknown = desk.type("dlq", "redrive", "999")
    assert (unknown.exit_code, unknown.problems) == (1, ["error: 999 is not among the dead letters"])
    assert unknown.out == ""
    assert desk.type("dlq", "redrive", "--all").out == "1 dead letter back in the queue\n"
    assert desk.type("dlq", "list", "--json").json == []
    assert desk.type("dlq", "list").out == "there are no dead letters\n"
    assert desk.type("dlq", "redrive").exit_code == 2
