"""Repair over the API: identities, outboxes, dead letters, and triggers from outside."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from builders import a_publication, a_task, an_execution
from described import check
from desk import a_product, an_event
from doors import KEY, Door, door
from sellerwatch.domain.outbox import OutboxStatus, TaskOutboxStatus
from sellerwatch.ports.queue import Outgoing
from sellerwatch.ports.store import Unit

AGENTS = "/api/v1/user-agents"
TRIGGER = "/api/internal/crawling/trigger"
NOBODY = "019a0000-0000-7000-8000-000000000000"
ENVELOPE: dict[str, Any] = {
    "version": "0",
    "id": "17793124-05d4-b198-2fde-7ededc63b103",
    "detail-type": "Scheduled Event",
    "source": "aws.events",
    "account": "123456789012",
    "time": "2026-11-18T12:00:00Z",
    "region": "ap-northeast-2",
    "resources": ["arn:aws:events:ap-northeast-2:123456789012:rule/mustit-crawler-a"],
    "detail": {},
}


@pytest.fixture
async def at(tmp_path: Path) -> AsyncIterator[Door]:
    async with door(tmp_path) as opened:
        await opened.house.identities.load()
        yield opened


async def said(at: Door, method: str, path: str, body: object = None, *, status: int = 200, key: str = "") -> Any:
    answer = await at.call(method, path, body, key=key, token="" if key else None)
    assert answer.status == status, (path, body, answer.body)
    return check(at, method, path, answer)


async def test_the_pool_is_told_in_the_operators_words(at: Door) -> None:
    seen = await said(at, "GET", f"{AGENTS}/status")
    assert list(seen)[:7] == [
        "totalCount", "activeCount", "suspendedCount", "blockedCount", "availableRate", "healthScoreStats",
        "circuitBreaker",
    ]  # fmt: skip
    assert (seen["totalCount"], seen["activeCount"], seen["availableRate"]) == (100, 100, 100.0)
    assert seen["healthScoreStats"] == {"avg": 100.0, "min": 100, "max": 100}
    assert seen["circuitBreaker"] == {"state": "CLOSED", "openedAt": None, "retryAt": None}
    assert seen["remainingRequests"] == 8000


async def test_an_identity_is_told_without_its_token_and_found_by_number_or_id(at: Door) -> None:
    row = (await said(at, "GET", f"{AGENTS}?size=1"))["content"][0]
    assert not [name for name in row if name in {"token", "tokenValue", "sealed", "cookies"}]
    for name in (str(row["agentId"]), row["userAgentId"]):
        assert (await said(at, "POST", f"{AGENTS}/{name}/suspend" if name == "1" else f"{AGENTS}/{name}/recover"))[
            "agentId"
        ] == 1


async def test_the_verbs_move_an_identity_and_a_wrong_one_is_409(at: Door) -> None:
    moves = [("suspend", "SUSPENDED"), ("recover", "AVAILABLE"), ("block", "BLOCKED"), ("unblock", "AVAILABLE")]
    for verb, status in moves:
        assert (await said(at, "POST", f"{AGENTS}/100/{verb}"))["status"] == status
    for verb in ("recover", "unblock"):
        assert (await said(at, "POST", f"{AGENTS}/100/{verb}", status=409))["errorCode"] == "WRONG_STATE"
    await said(at, "POST", f"{AGENTS}/100/block")
    assert (await said(at, "GET", f"{AGENTS}?status=BLOCKED"))["totalElements"] == 1
    assert (await said(at, "GET", f"{AGENTS}/status"))["blockedCount"] == 1
    assert (await said(at, "POST", f"{AGENTS}/101/block", status=404))["errorCode"] == "IDENTITY_NOT_FOUND"
    assert (await said(at, "POST", f"{AGENTS}/{NOBODY}/block", status=404))["errorCode"] == "IDENTITY_NOT_FOUND"
    for name in ("0", "x", "1%0a", "-1", "٣"):
        await said(at, "POST", f"{AGENTS}/{name}/block", status=400)


async def test_outbox_rows_are_listed_by_box_and_sent_again(at: Door) -> None:
    failed, held = an_event(a_product(1), 1, OutboxStatus.FAILED), an_event(a_product(2), 1, OutboxStatus.HELD)
    task = a_task(1, execution=an_execution("shop-1"))
    publication = a_publication(task, status=TaskOutboxStatus.SENT)

    def plant(unit: Unit) -> None:
        unit.tasks.add([task])
        unit.products.save([a_product(1), a_product(2)])
        unit.events.add([failed, held])
        unit.publications.add([publication])

    await at.house.store.transact(plant)
    seen = await said(at, "GET", "/api/v1/outbox")
    assert [(each["box"], each["subject"], each["status"]) for each in seen["content"]] == [
        ("product", "1", "FAILED"),
        ("product", "2", "HELD"),
    ]
    sent = (await said(at, "GET", "/api/v1/outbox?box=task"))["content"][0]
    assert (sent["outboxId"], sent["subject"], sent["eventType"]) == (publication.outbox_id, task.task_id, task.kind)
    assert (await said(at, "GET", "/api/v1/outbox?box=scheduler&status=FAILED"))["content"] == []
    again = await said(at, "POST", f"/api/v1/outbox/{failed.outbox_id}/retry")
    assert (again["status"], again["retryCount"], again["outboxId"]) == ("WAITING", 0, failed.outbox_id)
    for outbox_id in (failed.outbox_id, held.outbox_id, publication.outbox_id):
        refused = await said(at, "POST", f"/api/v1/outbox/{outbox_id}/retry", status=409)
        assert refused["errorCode"] == "WRONG_STATE"
    refused = await said(at, "POST", f"/api/v1/outbox/{failed.outbox_id}/retry", status=409)
    assert refused["detail"] == f"outbox row {failed.outbox_id} is WAITING: it cannot be tried again"
    missing = await said(at, "POST", f"/api/v1/outbox/{NOBODY}/retry", status=404)
    assert missing["errorCode"] == "OUTBOX_ROW_NOT_FOUND"
    for query in ("box=products", "status=DONE", "box=product&box=task"):
        await said(at, "GET", f"/api/v1/outbox?{query}", status=400)


async def test_dead_letters_are_paged_and_driven_back(at: Door) -> None:
    queue = at.house.queue
    await queue.send([Outgoing({"taskId": f"t{number}"}, f"g{number}", f"d{number}") for number in range(5)])
    for delivery in await queue.receive(5, 0):
        await queue.bury(delivery.receipt, "not understood")
    seen = await said(at, "GET", "/api/v1/dead-letters?page=1&size=2")
    assert (len(seen["content"]), seen["totalElements"], seen["totalPages"]) == (2, 5, 3)
    assert (seen["content"][0]["taskId"], seen["content"][0]["error"]) == ("t2", "not understood")
    letter = seen["content"][0]["letterId"]
    named = {"letterIds": [letter, letter, "none"]}
    assert (await said(at, "POST", "/api/v1/dead-letters/redrive", named)) == {"redriven": 1}
    assert (await said(at, "POST", "/api/v1/dead-letters/redrive")) == {"redriven": 4}
    assert (await said(at, "POST", "/api/v1/dead-letters/redrive", {})) == {"redriven": 0}
    assert (await queue.depth()).waiting == 5
    for body in ({"letterIds": "1"}, {"letterIds": [1]}, {"letterIds": [""]}, {"letterIds": ["x"] * 501}, []):
        await said(at, "POST", "/api/v1/dead-letters/redrive", body, status=400)


async def registered(at: Door, seller_id: str) -> None:
    await said(at, "POST", "/api/v1/sellers", {"sellerId": seller_id, "name": "A"}, status=201)


async def test_a_trigger_begins_a_crawl_once_for_each_key(at: Door) -> None:
    await registered(at, "a")
    first = await said(at, "POST", TRIGGER, {"sellerId": "a", "triggerKey": "k1"}, key=KEY)
    assert first["taskCount"] is None
    # An open one, under whatever key, and also without one.
    for body in ({"sellerId": "a", "triggerKey": "k1"}, {"sellerId": "a", "triggerKey": "k2"}, {"sellerId": "a"}):
        assert await said(at, "POST", TRIGGER, body, key=KEY) == first
    await at.house.repair.cancel_execution(first["executionId"])
    known = await said(at, "POST", TRIGGER, {"sellerId": "a", "triggerKey": "k1"}, key=KEY)
    assert known == {"executionId": first["executionId"], "taskCount": 0}
    new = await said(at, "POST", TRIGGER, {"sellerId": "a", "scheduledAt": "2026-11-18T12:00:00Z"}, key=KEY)
    assert new["executionId"] != first["executionId"]


async def test_an_inactive_seller_has_no_execution_and_an_unknown_one_is_404(at: Door) -> None:
    await registered(at, "a")
    await said(at, "POST", "/api/v1/sellers/a/deactivate")
    answer = await said(at, "POST", TRIGGER, {"sellerId": "a"}, key=KEY)
    assert answer == {"executionId": None, "taskCount": 0}
    assert (await said(at, "POST", TRIGGER, {"sellerId": "x"}, key=KEY, status=404))["errorCode"] == "SELLER_NOT_FOUND"


@pytest.mark.parametrize(
    "envelope",
    [
        ENVELOPE,
        {**ENVELOPE, "detail": {"sellerId": "a"}, "resources": []},
        {"id": ENVELOPE["id"], "detail": {"sellerId": "a"}},
        {**ENVELOPE, "detail": {"sellerId": "a"}, "resources": ["arn:aws:events:x:1:rule/mustit-crawler-other"]},
    ],
)
async def test_an_eventbridge_envelope_is_understood_and_its_id_is_the_key(at: Door, envelope: dict[str, Any]) -> None:
    await registered(at, "a")
    begun = (await said(at, "POST", TRIGGER, envelope, key=KEY))["executionId"]
    found = await at.house.store.read(lambda unit: unit.executions.get(begun))
    assert found
    assert (found.seller_id, found.trigger_key) == ("a", ENVELOPE["id"])


NEITHER: list[tuple[object, int]] = [
    ({**ENVELOPE, "resources": []}, 404),
    ({**ENVELOPE, "resources": ["arn:aws:events:x:1:rule/another-rule"]}, 404),
    ({**ENVELOPE, "detail": {"sellerId": "a", "status": "ACTIVE"}}, 400),
    ({**ENVELOPE, "role": "ADMIN"}, 400),
    ({**ENVELOPE, "id": ""}, 400),
    ({"sellerId": "a", "id": "x"}, 400),
    ({"sellerId": "a", "triggerKey": ""}, 400),
    ({"sellerId": "a", "triggerKey": "x" * 129}, 400),
    ({"sellerId": "a", "triggerKey": "a b"}, 400),
    ({"sellerId": "a", "triggerKey": 7}, 400),
    ({"sellerId": "a\n"}, 400),
    ({}, 400),
    ([], 400),
]


async def test_what_is_neither_a_trigger_nor_an_envelope_is_refused(at: Door) -> None:
    await registered(at, "a")
    for body, status in NEITHER:
        await said(at, "POST", TRIGGER, body, key=KEY, status=status)
        assert await at.house.store.read(lambda unit: unit.executions.open_of("a")) is None, body


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, ["sellerId"]),
        ({"sellerId": "a", "foo": 1}, ["foo"]),
        ({"sellerId": "a", "id": "x"}, ["id"]),
        ({"sellerId": "a b", "trigger": 1}, ["sellerId", "trigger"]),
        ({**ENVELOPE, "id": 7}, ["id"]),
        ({**ENVELOPE, "detail": {"sellerId": "a b"}}, ["detail.sellerId"]),
        ({**ENVELOPE, "Envelope": 1, "sellerId": "a"}, ["Envelope", "sellerId"]),
        ({"id": "x", "resources": []}, ["detail"]),
        ({"detail": {}}, ["id"]),
        ({**ENVELOPE, "resources": ["x", 2]}, ["resources.1"]),
        ([], ["body"]),
        (7, ["body"]),
    ],
)
async def test_what_is_wrong_with_a_trigger_is_named_as_the_caller_wrote_it(
    at: Door, body: object, fields: list[str]
) -> None:
    problem = await said(at, "POST", TRIGGER, body, key=KEY, status=400)
    assert sorted(error["field"] for error in problem["errors"]) == sorted(fields)


async def test_two_triggers_at_once_begin_one_crawl(at: Door) -> None:
    import asyncio  # noqa: PLC0415 - only here

    await registered(at, "a")
    calls = [said(at, "POST", TRIGGER, {"sellerId": "a", "triggerKey": f"k{n}"}, key=KEY) for n in range(8)]
    begun = {answer["executionId"] for answer in await asyncio.gather(*calls)}
    assert len(begun) == 1
