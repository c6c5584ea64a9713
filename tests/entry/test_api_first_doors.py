"""The first doors: sellers, their crawls, executions."""

from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from doors import Door, door
from sellerwatch.domain.addresses import Addresses
from sellerwatch.domain.executions import Execution
from sellerwatch.domain.sellers import CrawlSource
from sellerwatch.domain.tasks import TaskKind, list_tasks, new_task
from sellerwatch.entry.api.tokens import Role
from sellerwatch.ports.store import Claim, Unit

SITE = Addresses("https://market.example")


@pytest.fixture
async def at(tmp_path: Path) -> AsyncIterator[Door]:
    async with door(tmp_path) as opened:
        yield opened


def planned_as(unit: Unit, at: Door, execution_id: str, products: int) -> None:
    """What the trigger's second half does once the marketplace has told its count."""
    moment = at.clock.now()
    (execution,) = unit.executions.claim_started(Claim("tests", moment + timedelta(seconds=30), moment), 1)
    assert execution.execution_id == execution_id
    tasks = list_tasks(execution_id, execution.seller_id, products, 500, SITE, moment)
    execution.plan(len(tasks), products, moment)
    unit.tasks.add(tasks)
    unit.executions.release(execution, "tests")


def follow_up(unit: Unit, at: Door, execution_id: str) -> None:
    moment = at.clock.now() + timedelta(seconds=1)
    execution: Execution = unit.executions.lock([execution_id])[execution_id]
    task = new_task(execution_id, execution.seller_id, TaskKind.DETAIL, SITE.detail(7), SITE, moment, item_no=7)
    unit.tasks.add([task])
    execution.grow(1)
    unit.executions.save([execution])


async def test_a_seller_is_registered(at: Door) -> None:
    answer = await at.call(
        "POST", "/api/v1/sellers", {"sellerId": "atelier", "name": "아틀리에", "crawlingIntervalDays": 3}
    )
    assert answer.status == 201
    seller = answer.json()
    assert list(seller) == [
        "sellerId", "name", "status", "crawlingIntervalDays", "totalProductCount", "createdAt", "updatedAt",
    ]  # fmt: skip
    assert seller["name"] == "아틀리에"
    assert (seller["status"], seller["crawlingIntervalDays"], seller["totalProductCount"]) == ("ACTIVE", 3, 0)
    assert seller["createdAt"].endswith("Z")
    assert answer.headers["location"] == "/api/v1/sellers/atelier"


async def test_a_seller_has_the_defaults_of_the_contract(at: Door) -> None:
    answer = await at.call("POST", "/api/v1/sellers", {"sellerId": "a", "name": "A"})
    assert answer.json()["crawlingIntervalDays"] == 1
    found = await at.house.store.read(lambda unit: unit.sellers.get("a"))
    assert found
    assert found.crawl_source is CrawlSource.MINI_SHOP
    assert await at.house.store.read(lambda unit: unit.executions.open_of("a")) is None


async def test_a_seller_may_be_crawled_at_once(at: Door) -> None:
    await at.call("POST", "/api/v1/sellers", {"sellerId": "a", "name": "A", "source": "SEARCH", "crawlNow": True})
    assert await at.house.store.read(lambda unit: unit.executions.open_of("a"))
    found = await at.house.store.read(lambda unit: unit.sellers.get("a"))
    assert found
    assert found.crawl_source is CrawlSource.SEARCH


async def test_a_seller_registered_twice_is_a_conflict(at: Door) -> None:
    await at.call("POST", "/api/v1/sellers", {"sellerId": "a", "name": "A"})
    answer = await at.call("POST", "/api/v1/sellers", {"sellerId": "a", "name": "B"})
    assert (answer.status, answer.json()["errorCode"]) == (409, "SELLER_ALREADY_EXISTS")


WRONG: list[tuple[dict[str, object], str]] = [
    ({"name": "A"}, "sellerId"),
    ({"sellerId": "a"}, "name"),
    ({"sellerId": "", "name": "A"}, "sellerId"),
    ({"sellerId": "a b", "name": "A"}, "sellerId"),
    ({"sellerId": "a\n", "name": "A"}, "sellerId"),
    ({"sellerId": "１２", "name": "A"}, "sellerId"),
    ({"sellerId": "x" * 65, "name": "A"}, "sellerId"),
    ({"sellerId": 7, "name": "A"}, "sellerId"),
    ({"sellerId": None, "name": "A"}, "sellerId"),
    ({"sellerId": "a", "name": ""}, "name"),
    ({"sellerId": "a", "name": "   "}, "name"),
    ({"sellerId": "a", "name": "x" * 201}, "name"),
    ({"sellerId": "a", "name": "A", "crawlingIntervalDays": 0}, "crawlingIntervalDays"),
    ({"sellerId": "a", "name": "A", "crawlingIntervalDays": 31}, "crawlingIntervalDays"),
    ({"sellerId": "a", "name": "A", "crawlingIntervalDays": "3"}, "crawlingIntervalDays"),
    ({"sellerId": "a", "name": "A", "crawlingIntervalDays": 1.5}, "crawlingIntervalDays"),
    ({"sellerId": "a", "name": "A", "crawlingIntervalDays": True}, "crawlingIntervalDays"),
    ({"sellerId": "a", "name": "A", "source": "search"}, "source"),
    ({"sellerId": "a", "name": "A", "crawlNow": "yes"}, "crawlNow"),
]
UNKNOWN = (
    "id", "status", "role", "__class__", "seller_id", "createdAt", "totalProductCount", "intervalDays", "", "name ",
)  # fmt: skip


async def test_what_is_wrong_with_a_seller_is_named(at: Door) -> None:
    for body, field in WRONG:
        answer = await at.call("POST", "/api/v1/sellers", body)
        problem = answer.json()
        assert (answer.status, problem["errorCode"]) == (400, "INVALID_INPUT"), body
        assert [error["field"] for error in problem["errors"]] == [field], body
        assert await at.house.store.read(lambda unit: unit.sellers.get("a")) is None, body


async def test_unknown_fields_are_refused_by_name(at: Door) -> None:
    for path, body in (("/api/v1/sellers", {"sellerId": "b", "name": "B"}), ("/api/v1/sellers/a/crawl", {})):
        for name in UNKNOWN:
            answer = await at.call("POST", path, {**body, name: "x"})
            assert answer.status == 400, (path, name)
            named = [error["field"] for error in answer.json()["errors"]]
            assert named == [name or "body"] or name == "", (path, name)


async def test_a_crawl_begins_and_waits_a_little_for_its_plan(at: Door) -> None:
    await at.call("POST", "/api/v1/sellers", {"sellerId": "a", "name": "A"})
    answer = await at.call("POST", "/api/v1/sellers/a/crawl")
    assert answer.status == 202
    assert list(answer.json()) == ["executionId", "taskCount"]
    assert answer.json()["taskCount"] is None
    assert answer.headers["location"].endswith(answer.json()["executionId"])


async def test_a_crawl_tells_its_first_tasks_and_not_their_follow_ups(
    at: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    await at.call("POST", "/api/v1/sellers", {"sellerId": "a", "name": "A"})
    slept = at.clock.sleep

    async def sleep(seconds: float) -> None:
        open_one = await at.house.store.read(lambda unit: unit.executions.open_of("a"))
        assert open_one
        await at.house.store.transact(partial(planned_as, at=at, execution_id=open_one.execution_id, products=1200))
        await at.house.store.transact(partial(follow_up, at=at, execution_id=open_one.execution_id))
        await slept(seconds)

    monkeypatch.setattr(at.clock, "sleep", sleep)
    answer = await at.call("POST", "/api/v1/sellers/a/crawl", {})
    assert (answer.status, answer.json()["taskCount"]) == (202, 3)
    shown = await at.call("GET", answer.headers["location"])
    assert (shown.json()["status"], shown.json()["totalTasks"]) == ("IN_PROGRESS", 4)


@pytest.mark.slow
async def test_a_second_crawl_is_refused_with_the_open_ones_id(at: Door) -> None:
    await at.call("POST", "/api/v1/sellers", {"sellerId": "a", "name": "A"})
    first = (await at.call("POST", "/api/v1/sellers/a/crawl")).json()["executionId"]
    answer = await at.call("POST", "/api/v1/sellers/a/crawl")
    problem = answer.json()
    assert (answer.status, problem["errorCode"]) == (409, "EXECUTION_IN_PROGRESS")
    assert problem["executionId"] == first
    assert first in problem["detail"]


async def test_an_inactive_seller_is_not_crawled(at: Door) -> None:
    await at.call("POST", "/api/v1/sellers", {"sellerId": "a", "name": "A"})
    await at.house.sellers.deactivate("a")
    answer = await at.call("POST", "/api/v1/sellers/a/crawl")
    assert (answer.status, answer.json()["errorCode"]) == (409, "SELLER_INACTIVE")


async def test_who_is_not_there_is_not_found(at: Door) -> None:
    for method, path, code in [
        ("POST", "/api/v1/sellers/nobody/crawl", "SELLER_NOT_FOUND"),
        ("GET", "/api/v1/executions/019a0000-0000-7000-8000-000000000000", "EXECUTION_NOT_FOUND"),
        ("GET", "/api/v1/nothing", "NOT_FOUND"),
        ("POST", "/api/v1/sellers/", "NOT_FOUND"),
    ]:
        answer = await at.call(method, path)
        assert (answer.status, answer.json()["errorCode"]) == (404, code)


async def test_an_execution_is_asked_for_by_its_id_only(at: Door) -> None:
    for name in ("7", "019A0000-0000-7000-8000-000000000000", "019a0000", "%0a", "x" * 5000):
        answer = await at.call("GET", f"/api/v1/executions/{name}")
        assert answer.status == 400, name
        assert answer.json()["errors"][0]["field"] == "executionId", name


@pytest.mark.slow
async def test_an_execution_is_shown_to_viewers(at: Door) -> None:
    await at.call("POST", "/api/v1/sellers", {"sellerId": "a", "name": "A"})
    begun = (await at.call("POST", "/api/v1/sellers/a/crawl")).json()["executionId"]
    answer = await at.call("GET", f"/api/v1/executions/{begun}", token=at.token(Role.VIEWER))
    assert answer.status == 200
    shown = answer.json()
    assert (shown["executionId"], shown["sellerId"], shown["status"]) == (begun, "a", "STARTED")
    assert (shown["progressRate"], shown["successRate"], shown["completedAt"]) == (0.0, 0.0, None)
