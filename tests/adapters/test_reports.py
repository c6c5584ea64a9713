"""What ports/reports promises, of the database: the right rows, in order, by a fixed number of statements."""

from collections.abc import Awaitable, Callable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from builders import NOON, a_publication, a_schedule, a_seller, a_task, an_execution, at
from desk import a_change, a_product, a_raw, an_event, new_house
from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.reports import SqlReports
from sellerwatch.adapters.sql.reports.politeness import AT_ONCE
from sellerwatch.adapters.sql.store import SqlStore
from sellerwatch.domain.breakers import Breaker, BreakerScope
from sellerwatch.domain.executions import ExecutionStatus
from sellerwatch.domain.identities import IdentityStatus
from sellerwatch.domain.outbox import OutboxStatus
from sellerwatch.domain.products import ProductStatus
from sellerwatch.domain.raws import RawStatus
from sellerwatch.domain.sellers import CrawlSource, SellerStatus
from sellerwatch.domain.tasks import TaskStatus
from sellerwatch.ports.reports import Box, Overview
from sellerwatch.ports.store import Unit, Usage

DAY = date(2026, 3, 2)


class Place:
    def __init__(self, database: Database) -> None:
        self.database = database
        self.store = SqlStore(database)
        self.reports = SqlReports(database)

    async def plant(self, work: Callable[[Unit], object]) -> None:
        await self.store.transact(work)

    async def statements(self, ask: Callable[[], Awaitable[object]]) -> int:
        count = 0

        def counted(*_: Any) -> None:
            nonlocal count
            count += 1

        event.listen(self.database.engine, "before_cursor_execute", counted)
        await ask()
        event.remove(self.database.engine, "before_cursor_execute", counted)
        return count


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with new_house(tmp_path) as database:
        yield Place(database)


def _shops(unit: Unit) -> None:
    for number in range(5):
        unit.sellers.add(a_seller(f"shop-{number}"))
    unit.sellers.add(a_seller("still", status=SellerStatus.INACTIVE, crawl_source=CrawlSource.SEARCH, interval_days=3))


async def test_sellers_come_by_id_a_page_at_a_time(place: Place) -> None:
    await place.plant(_shops)
    page = await place.reports.sellers(page=1, size=4)
    assert ([row.seller_id for row in page.rows], page.total, page.pages) == (["shop-4", "still"], 6, 2)
    [still] = (await place.reports.sellers(status=SellerStatus.INACTIVE)).rows
    assert (still.crawl_source, still.interval_days, still.created_at) == (CrawlSource.SEARCH, 3, NOON)
    assert (await place.reports.sellers(page=9)).rows == ()


async def test_a_seller_is_told_with_its_schedule_its_last_crawl_and_its_products(place: Place) -> None:
    def plant(unit: Unit) -> None:
        unit.sellers.add(a_seller())
        unit.schedules.add(a_schedule())
        unit.executions.add(an_execution(name=1, status=ExecutionStatus.COMPLETED))
        unit.executions.add(an_execution(name=2, at=at(60), total_tasks=3, completed_tasks=1, failed_tasks=1))
        gone, begun = a_product(2), a_product(3, version=0)
        gone.status = ProductStatus.DELISTED
        begun.seen.popitem()
        unit.products.save([a_product(1), gone, begun, a_product(4, seller_id="another")])

    await place.plant(plant)
    found = await place.reports.seller("shop-1")
    assert found is not None
    assert found.schedule is not None
    assert found.last_execution is not None
    assert found.schedule.rule_name == "mustit-crawler-shop-1"
    assert (found.last_execution.started_at, found.last_execution.is_open) == (at(60), True)
    assert (found.last_execution.progress_rate, found.last_execution.success_rate) == (66.67, 33.33)
    assert (found.products.total, found.products.complete, found.products.delisted) == (3, 2, 1)
    assert await place.reports.seller("nobody") is None
    newest_first = (await place.reports.executions("shop-1")).rows
    assert [row.status for row in newest_first] == [ExecutionStatus.IN_PROGRESS, ExecutionStatus.COMPLETED]


async def test_an_execution_is_told_with_its_tasks_by_status(place: Place) -> None:
    execution = an_execution(total_tasks=3)
    tasks = [
        a_task(execution=execution),
        *(a_task(number, state=TaskStatus.FAILED, execution=execution) for number in (7, 8)),
    ]

    def plant(unit: Unit) -> None:
        unit.executions.add(execution)
        unit.tasks.add(tasks)

    await place.plant(plant)
    found = await place.reports.execution(execution.execution_id)
    assert found is not None
    assert found.tasks == {status: {"WAITING": 1, "FAILED": 2}.get(status, 0) for status in TaskStatus}
    page = await place.reports.tasks(execution.execution_id, status=TaskStatus.FAILED, size=1)
    assert (page.total, [(row.item_no, row.page_no) for row in page.rows]) == (2, [(7, None)])
    [listed] = (await place.reports.tasks(execution.execution_id, status=TaskStatus.WAITING)).rows
    assert (listed.item_no, listed.page_no) == (None, 0)
    assert await place.reports.execution("nonsense") is None


async def test_a_product_is_told_with_all_its_fields(place: Place) -> None:
    options = ({"optionNo": 1, "color": "", "size": "US 4", "stock": 1},)
    product = a_product(5, options=options, soldOut=False, images=("https://a/1.jpg",))
    await place.plant(lambda unit: unit.products.save([product]))
    found = await place.reports.product(5)
    assert found is not None
    assert found.fields == product.fields
    assert found.data() == product.data()
    assert (found.version, found.is_complete, found.last_changed_at) == (1, True, NOON)
    assert await place.reports.product(6) is None


async def test_all_products_can_be_read_behind_one_another(place: Place) -> None:
    products = [a_product(number, seller_id=f"shop-{number % 2}") for number in range(1, 8)]
    products[0].last_changed_at = at(-3600)
    products[1].seen.popitem()
    await place.plant(lambda unit: unit.products.save(products))
    read, number = [], 0
    while some := await place.reports.products_after(number, 3):
        read += [row.item_no for row in some]
        number = some[-1].number
    assert read == list(range(1, 8))
    ours = await place.reports.products(seller_id="shop-1", complete=True, changed_since=NOON, size=2)
    assert ([row.item_no for row in ours.rows], ours.total) == ([3, 5], 3)
    assert [row.item_no for row in await place.reports.products_after(0, 9, complete=False)] == [2]


async def test_the_changes_of_an_item_come_by_version(place: Place) -> None:
    product = a_product(1)

    def plant(unit: Unit) -> None:
        unit.products.save([product, a_product(2)])
        unit.changes.add([a_change(product, version, old=version, new=version + 1) for version in (3, 1, 2)])
        unit.changes.add([a_change(a_product(2), 1)])

    await place.plant(plant)
    page = await place.reports.changes(1, size=2)
    assert (page.total, [row.version for row in page.rows]) == (3, [1, 2])
    [last] = await place.reports.changes_after(1, 2, 10)
    assert [one.shown() for one in last.fields] == [{"field": "sellingPrice", "old": 3, "new": 4}]
    assert (await place.reports.changes(99)).total == 0


async def test_outbox_rows_say_whom_they_are_about(place: Place) -> None:
    product = a_product(42)
    task = a_task(7)

    def plant(unit: Unit) -> None:
        unit.products.save([product])
        unit.events.add([an_event(product, 1, OutboxStatus.HELD), an_event(product, 2, OutboxStatus.FAILED)])
        unit.tasks.add([task])
        unit.publications.add([a_publication(task)])

    await place.plant(plant)
    [first, second] = (await place.reports.outbox(Box.PRODUCT)).rows
    assert (first.subject, first.event, first.version, first.status) == ("42", "PRODUCT_UPDATED", 1, "HELD")
    assert (await place.reports.outbox(Box.PRODUCT, status="FAILED")).rows == (second,)
    assert await place.reports.outbox_after(Box.PRODUCT, 0, 5, status="HELD", since=at(1)) == []
    assert await place.reports.outbox_after(Box.PRODUCT, first.number, 5, status="FAILED") == [second]
    [row] = (await place.reports.outbox(Box.TASK)).rows
    assert (row.subject, row.event, row.version, row.status) == (task.task_id, task.kind, None, "PENDING")
    assert (await place.reports.outbox(Box.SCHEDULER)).total == 0


async def test_the_record_of_the_identities_is_told(place: Place) -> None:
    seen = await place.reports.identities(page=1, size=3)
    assert (seen.total, seen.pages, [row.agent_id for row in seen.rows]) == (100, 34, [4, 5, 6])
    assert (seen.rows[0].status, seen.rows[0].breaker, seen.rows[0].token_issued_at) == ("AVAILABLE", "CLOSED", None)
    assert (await place.reports.identities(status=IdentityStatus.BLOCKED)).total == 0
    assert await place.reports.identity(4) == await place.reports.identity(seen.rows[0].user_agent_id) == seen.rows[0]
    await place.plant(lambda unit: unit.identities.retire([4], NOON))
    assert (await place.reports.identities()).total == 99
    assert await place.reports.identity(4) is None


async def test_an_outbox_row_is_found_by_its_id_in_whichever_box(place: Place) -> None:
    product = a_product(42)
    event, task = an_event(product, 1, OutboxStatus.FAILED), a_task(1, execution=an_execution("shop-1"))
    publication = a_publication(task)

    def plant(unit: Unit) -> None:
        unit.events.add([event])
        unit.publications.add([publication])

    await place.plant(plant)
    for outbox_id, box in [(event.outbox_id, Box.PRODUCT), (publication.outbox_id, Box.TASK)]:
        found = await place.reports.outbox_row(outbox_id)
        assert found
        assert (found.outbox_id, found.box) == (outbox_id, box)
    assert await place.reports.outbox_row("nothing") is None


async def _overview(place: Place) -> Overview:
    return await place.reports.overview(NOON)


async def test_the_overview_tells_what_runs_what_waits_and_what_failed(place: Place) -> None:
    breaker = Breaker(BreakerScope.PRODUCT_SERVER, 5, timedelta(seconds=60))
    breaker.trip(NOON, "HTTP 503")

    def plant(unit: Unit) -> None:
        _shops(unit)
        unit.executions.add(an_execution("shop-1", total_tasks=2))
        unit.tasks.add([a_task(7), a_task(8, state=TaskStatus.FAILED), a_task(9, state=TaskStatus.FAILED, at=at(-9e5))])
        unit.products.save([a_product(1)])
        unit.events.add([an_event(a_product(1), 1, OutboxStatus.WAITING)])
        unit.raws.put([a_raw(raw_hash="a" * 32, status=RawStatus.FAILED)])
        unit.breakers.save(breaker, NOON)
        for owner, seen_at in (("here", at(-5)), ("gone", at(-300))):
            unit.chores.show_life(owner, "worker", "host", 1, "1", seen_at)
        unit.chores.raise_alert("delivery_failed", "critical", "nobody took it", {}, at(-60))
        unit.chores.raise_alert("over", "warning", "it was bad", {}, at(-60))
        unit.chores.clear_alert("over", NOON)
        unit.chores.note_sweeps([("stuck_tasks", 3, None, NOON)])

    await place.plant(plant)
    seen = await _overview(place)
    assert seen.sellers == {SellerStatus.ACTIVE: 5, SellerStatus.INACTIVE: 1}
    assert [one.owner for one in seen.processes] == ["here"]
    assert [one.seller_id for one in seen.executions_open] == ["shop-1"]
    assert (seen.tasks[TaskStatus.WAITING], seen.tasks[TaskStatus.FAILED]) == (1, 1)
    assert seen.outboxes[Box.PRODUCT].by_status == {"WAITING": 1}
    assert seen.outboxes[Box.PRODUCT].oldest_at == NOON
    assert seen.outboxes[Box.TASK].oldest_at is None
    assert (seen.raws, seen.products.complete) == ({"FAILED": 1}, 1)
    assert [(one.name, one.text, one.since) for one in seen.alerts] == [("delivery_failed", "nobody took it", at(-60))]
    [open_one] = [one for one in seen.breakers if one.state == "OPEN"]
    assert (open_one.scope, open_one.retry_at) == ("PRODUCT_SERVER", at(60))
    assert [(one.name, one.last_found) for one in seen.sweeps] == [("stuck_tasks", 3)]


async def test_a_day_of_crawling_counts_the_tasks_created_in_it(place: Place) -> None:
    start, end = NOON - timedelta(hours=12), NOON + timedelta(hours=12)

    def plant(unit: Unit) -> None:
        seller = a_seller()
        seller.total_product_count = 4
        unit.sellers.add(seller)
        execution = an_execution("shop-2")
        unit.tasks.add(
            [
                a_task(1, state=TaskStatus.SUCCESS),
                a_task(2, state=TaskStatus.FAILED),
                a_task(3),
                a_task(4, at=at(-86400), state=TaskStatus.SUCCESS),
                a_task(5, execution=execution, state=TaskStatus.SUCCESS),
            ]
        )
        gone = a_product(2)
        gone.status = ProductStatus.DELISTED
        unit.products.save([a_product(1), gone])

    await place.plant(plant)
    ours = await place.reports.crawling("shop-1", DAY, start, end)
    assert (ours.total, ours.completed, ours.failed, ours.in_progress) == (3, 1, 1, 1)
    assert (ours.success_rate, ours.progress_rate) == (33.33, 25.0)
    everyone = await place.reports.crawling(None, DAY, start, end)
    assert (everyone.total, everyone.success_rate) == (4, 50.0)


async def test_of_a_day_whose_tasks_are_forgotten_what_was_noted_is_told(place: Place) -> None:
    start, end = NOON - timedelta(hours=12), NOON + timedelta(hours=12)

    def plant(unit: Unit) -> None:
        unit.sellers.add(a_seller())
        unit.tasks.add([a_task(1, state=TaskStatus.SUCCESS), a_task(2)])
        unit.chores.write_daily_figures(DAY, start, end)

    await place.plant(plant)
    noted = await place.reports.crawling("shop-1", DAY, start + timedelta(days=40), end + timedelta(days=40))
    assert (noted.total, noted.completed, noted.success_rate, noted.in_progress) == (2, 1, 50.0, 1)
    everyone = await place.reports.crawling(None, DAY, start + timedelta(days=40), end + timedelta(days=40))
    assert everyone.total == 2


async def test_no_question_takes_more_statements_when_there_is_more_to_tell(place: Place) -> None:
    reports = place.reports
    execution = an_execution("shop-1")
    questions: list[Callable[[], Awaitable[object]]] = [
        lambda: reports.sellers(size=100),
        lambda: reports.seller("shop-1"),
        lambda: reports.executions(size=100),
        lambda: reports.execution(execution.execution_id),
        lambda: reports.tasks(execution.execution_id, size=100),
        lambda: reports.overview(NOON),
        lambda: reports.products(size=100),
        lambda: reports.products_after(0, 100),
        lambda: reports.changes(1, size=100),
        lambda: reports.outbox(Box.PRODUCT, size=100),
        lambda: reports.identities(size=100),
        lambda: reports.crawling(None, DAY, NOON - timedelta(days=1), NOON + timedelta(days=1)),
    ]

    def some(unit: Unit) -> None:
        _shops(unit)
        unit.executions.add(execution)
        unit.tasks.add([a_task(1, execution=execution)])

    def more(unit: Unit) -> None:
        products = [a_product(number) for number in range(1, 60)]
        unit.tasks.add([a_task(number, execution=execution) for number in range(2, 60)])
        unit.products.save(products)
        unit.changes.add([a_change(products[0], version) for version in range(1, 60)])
        unit.events.add([an_event(product, 1, OutboxStatus.WAITING) for product in products])

    await place.plant(some)
    few = [await place.statements(ask) for ask in questions]
    await place.plant(more)
    assert [await place.statements(ask) for ask in questions] == few
    assert max(few) <= 20


async def test_a_day_longer_than_a_page_of_the_log_is_told_whole_and_in_order(place: Place) -> None:
    """Many of one moment, on both sides of a page's end."""
    moments = [NOON + timedelta(seconds=number // 7) for number in range(2 * AT_ONCE + 11)]
    usages = [
        Usage(1 + number % 50, "https://market.test/", moment, is_success=bool(number % 3))
        for number, moment in enumerate(moments)
    ]
    await place.plant(lambda unit: unit.chores.log_usage(usages))
    seen = await place.reports.politeness(NOON, NOON + timedelta(days=1))
    assert seen.site.requests == len(usages)
    assert sum(its.requests for its in seen.identities.values()) == len(usages)
    assert seen.site.in_a_second.requests == 7
    assert await place.statements(lambda: place.reports.politeness(NOON, NOON + timedelta(days=1))) <= 7
