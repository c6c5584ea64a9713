"""Sellers over the API: listed, shown, changed; their crawls, followed and cancelled."""

from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from builders import a_seller, a_task, an_execution
from described import check
from doors import Door, door
from sellerwatch.domain.executions import ExecutionStatus
from sellerwatch.domain.tasks import TaskStatus
from sellerwatch.ports.store import Unit

SELLERS = "/api/v1/sellers"
NOBODY = "019a0000-0000-7000-8000-000000000000"


@pytest.fixture
async def at(tmp_path: Path) -> AsyncIterator[Door]:
    async with door(tmp_path) as opened:
        yield opened


async def said(at: Door, method: str, path: str, body: object = None, *, status: int = 200) -> Any:
    answer = await at.call(method, path, body)
    assert answer.status == status, (path, answer.body)
    return check(at, method, path, answer)


async def registered(at: Door, *seller_ids: str) -> None:
    for seller_id in seller_ids:
        await said(at, "POST", SELLERS, {"sellerId": seller_id, "name": seller_id}, status=201)


async def test_sellers_are_listed_by_id_a_page_at_a_time(at: Door) -> None:
    await registered(at, "c", "a", "b")
    await said(at, "POST", f"{SELLERS}/b/deactivate")
    seen = await said(at, "GET", f"{SELLERS}?page=1&size=2")
    assert list(seen) == ["content", "page", "size", "totalElements", "totalPages"]
    assert ([each["sellerId"] for each in seen["content"]], seen["totalElements"], seen["totalPages"]) == (["c"], 3, 2)
    inactive = await said(at, "GET", f"{SELLERS}?status=INACTIVE")
    assert ([each["sellerId"] for each in inactive["content"]], inactive["page"], inactive["size"]) == (["b"], 0, 20)


async def test_a_page_beyond_the_bounds_is_refused_by_name(at: Door) -> None:
    for query in (
        "page=-1", "page=1000", "page=00", "page=+1", "page=1_0", "page=1.0", "page=%201", "page=x", "size=0", "size=101",
        "size=%EF%BC%91", "page=99999999999999999999", "status=active", "status=null", "size=1e1",
    ):  # fmt: skip
        problem = await said(at, "GET", f"{SELLERS}?{query}", status=400)
        assert [each["field"] for each in problem["errors"]] == [query.partition("=")[0]], query


async def test_a_seller_is_shown_with_its_schedule_its_last_crawl_and_its_products(at: Door) -> None:
    await registered(at, "a")
    seen = await said(at, "GET", f"{SELLERS}/a")
    assert list(seen) == [
        "sellerId", "name", "status", "crawlingIntervalDays", "totalProductCount", "createdAt", "updatedAt",
        "schedule", "lastExecution", "productCounts",
    ]  # fmt: skip
    assert (seen["lastExecution"], seen["productCounts"]) == (None, {"total": 0, "complete": 0, "delisted": 0})
    assert (seen["schedule"]["ruleName"], seen["schedule"]["expression"]) == ("mustit-crawler-a", "rate(1 day)")
    crawl = await said(at, "POST", f"{SELLERS}/a/crawl", status=202)
    assert (await said(at, "GET", f"{SELLERS}/a"))["lastExecution"]["executionId"] == crawl["executionId"]


async def test_who_knows_the_content_gets_304_until_it_changes(at: Door) -> None:
    await registered(at, "a")
    first = await at.call("GET", f"{SELLERS}/a")
    tag = first.headers["etag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        again = await at.call("GET", f"{SELLERS}/a", headers=[("if-none-match", known)])
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
        check(at, "GET", f"{SELLERS}/a", again)
    await said(at, "PATCH", f"{SELLERS}/a/interval", {"crawlingIntervalDays": 2})
    changed = await at.call("GET", f"{SELLERS}/a", headers=[("if-none-match", tag)])
    assert (changed.status, changed.headers["etag"] != tag) == (200, True)
    assert changed.headers["cache-control"] == "private, no-cache"


async def test_an_interval_is_changed_and_with_it_the_schedule(at: Door) -> None:
    await registered(at, "a")
    changed = await said(at, "PATCH", f"{SELLERS}/a/interval", {"crawlingIntervalDays": 7.0})
    assert changed["crawlingIntervalDays"] == 7
    assert (await said(at, "GET", f"{SELLERS}/a"))["schedule"]["expression"] == "rate(7 days)"
    for body in ({}, {"crawlingIntervalDays": 0}, {"crawlingIntervalDays": 31}, {"crawlingIntervalDays": 1.5}):
        problem = await said(at, "PATCH", f"{SELLERS}/a/interval", body, status=400)
        assert [each["field"] for each in problem["errors"]] == ["crawlingIntervalDays"]


async def test_a_seller_is_switched_off_and_on_as_often_as_one_likes(at: Door) -> None:
    await registered(at, "a")
    for verb, status in [("deactivate", "INACTIVE")] * 2 + [("activate", "ACTIVE")] * 2:
        assert (await said(at, "POST", f"{SELLERS}/a/{verb}"))["status"] == status
    await said(at, "POST", f"{SELLERS}/a/deactivate")
    assert (await said(at, "POST", f"{SELLERS}/a/crawl", status=409))["errorCode"] == "SELLER_INACTIVE"
    assert (await said(at, "GET", f"{SELLERS}/a"))["schedule"]["status"] == "INACTIVE"


async def test_who_is_not_there_is_not_found_at_any_door(at: Door) -> None:
    for method, path, body, code in [
        ("GET", f"{SELLERS}/x", None, "SELLER_NOT_FOUND"),
        ("PATCH", f"{SELLERS}/x/interval", {"crawlingIntervalDays": 1}, "SELLER_NOT_FOUND"),
        ("POST", f"{SELLERS}/x/activate", None, "SELLER_NOT_FOUND"),
        ("POST", f"{SELLERS}/x/deactivate", None, "SELLER_NOT_FOUND"),
        ("GET", f"{SELLERS}/x/executions", None, "SELLER_NOT_FOUND"),
        ("GET", "/api/v1/metrics/crawling?sellerId=x", None, "SELLER_NOT_FOUND"),
        ("GET", f"/api/v1/executions/{NOBODY}/tasks", None, "EXECUTION_NOT_FOUND"),
        ("POST", f"/api/v1/executions/{NOBODY}/cancel", None, "EXECUTION_NOT_FOUND"),
    ]:
        assert (await said(at, method, path, body, status=404))["errorCode"] == code


async def test_crawls_are_listed_and_their_tasks_by_status(at: Door) -> None:
    await registered(at, "shop-1")
    execution = an_execution("shop-1", total_tasks=3, completed_tasks=1)
    ended = an_execution(
        "shop-1", name=0, status=ExecutionStatus.COMPLETED, at=execution.started_at - timedelta(days=1)
    )

    def plant(unit: Unit) -> None:
        unit.executions.add(ended)
        unit.executions.add(execution)
        states = (TaskStatus.SUCCESS, TaskStatus.RUNNING, TaskStatus.WAITING)
        unit.tasks.add([a_task(number, execution=execution, state=state) for number, state in enumerate(states, 1)])

    await at.house.store.transact(plant)
    seen = await said(at, "GET", f"{SELLERS}/shop-1/executions")
    assert [each["executionId"] for each in seen["content"]] == [execution.execution_id, ended.execution_id]
    tasks = f"/api/v1/executions/{execution.execution_id}/tasks"
    assert [each["itemNo"] for each in (await said(at, "GET", tasks))["content"]] == [1, 2, 3]
    running = await said(at, "GET", f"{tasks}?status=RUNNING")
    assert (running["totalElements"], running["content"][0]["taskType"]) == (1, "DETAIL")
    cancelled = await said(at, "POST", f"/api/v1/executions/{execution.execution_id}/cancel")
    assert (cancelled["status"], cancelled["failedTasks"], cancelled["completedTasks"]) == ("FAILED", 2, 1)
    again = await said(at, "POST", f"/api/v1/executions/{execution.execution_id}/cancel", status=409)
    assert again["errorCode"] == "WRONG_STATE"
    assert (await said(at, "GET", f"{tasks}?status=RUNNING"))["content"] == []


async def test_a_days_figures_are_of_the_operators_day(at: Door) -> None:
    await registered(at, "shop-1")
    execution = an_execution("shop-1")
    moment = at.clock.now().replace(year=2026, month=3, day=2, hour=15, minute=30)

    def plant(unit: Unit) -> None:
        unit.executions.add(execution)
        states = (TaskStatus.SUCCESS, TaskStatus.SUCCESS, TaskStatus.SUCCESS, TaskStatus.FAILED, TaskStatus.RETRY)
        unit.tasks.add(
            [a_task(n, execution=execution, state=state, created_at=moment) for n, state in enumerate(states, 1)]
        )

    await at.house.store.transact(plant)
    for seller in ("", "&sellerId=shop-1"):
        # Half past three in the afternoon in UTC is tomorrow in Seoul.
        seen = await said(at, "GET", f"/api/v1/metrics/crawling?date=2026-03-03{seller}")
        assert seen["taskStats"] == {"total": 5, "completed": 3, "failed": 1, "inProgress": 1}
        assert (seen["successRate"], seen["progressRate"], seen["date"]) == (60.0, 0.0, "2026-03-03")
        assert (await said(at, "GET", f"/api/v1/metrics/crawling?date=2026-03-02{seller}"))["taskStats"]["total"] == 0
    today = await said(at, "GET", "/api/v1/metrics/crawling")
    assert today["date"] == at.clock.now().astimezone(at.house.settings.timezone).date().isoformat()


async def test_a_day_is_written_one_way(at: Door) -> None:
    for day in ("2026-02-30", "20260302", "2026-3-2", "today", "", "2026-03-02T00:00:00Z", "٢٠٢٦-03-02"):
        await said(at, "GET", f"/api/v1/metrics/crawling?date={day}", status=400)


async def test_a_day_of_which_nothing_can_be_known_has_no_figures(at: Door) -> None:
    for day in ("0001-01-01", "1969-12-31", "9999-12-31"):
        told = await said(at, "GET", f"/api/v1/metrics/crawling?date={day}")
        assert told["taskStats"]["total"] == 0, day


async def test_lists_take_as_many_statements_for_a_hundred_rows_as_for_one(at: Door) -> None:
    await registered(at, "shop-1")
    paths = [SELLERS, f"{SELLERS}/shop-1/executions", "/api/v1/products", "/api/v1/user-agents", "/api/v1/outbox"]
    few = [await statements(at, f"{path}?size=100") for path in paths]

    def more(unit: Unit) -> None:
        for number in range(60):
            unit.sellers.add(a_seller(f"more-{number}"))
            unit.executions.add(an_execution("shop-1", name=number, status=ExecutionStatus.COMPLETED))

    await at.house.store.transact(more)
    assert [await statements(at, f"{path}?size=100") for path in paths] == few
    assert max(few) <= 4


async def statements(at: Door, path: str) -> int:
    from sqlalchemy import event  # noqa: PLC0415 - only here

    seen: list[str] = []
    engine = at.house.database.engine
    listen = partial(_note, seen)
    event.listen(engine, "before_cursor_execute", listen)
    assert (await at.call("GET", path)).status == 200
    event.remove(engine, "before_cursor_execute", listen)
    return len(seen)


def _note(seen: list[str], _: Any, __: Any, statement: str, *rest: Any) -> None:
    seen.append(statement)
