"""What ports/store.py promises of a row that can't be read: it holds up no other, on every engine, in every store."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from builders import NOON, a_notice, a_publication, a_schedule, a_seller, a_task, an_execution, at
from contracts.test_store_events import an_event
from contracts.test_store_products import a_product
from contracts.test_store_raws import a_raw
from sellerwatch.adapters.sql.aside import LOOK_AGAIN
from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.session import Session
from sellerwatch.adapters.sql.shelves import EVENTS
from sellerwatch.adapters.sql.store import SqlStore
from sellerwatch.domain.errors import Unreadable
from sellerwatch.domain.executions import ExecutionStatus
from sellerwatch.domain.outbox import TaskOutboxStatus
from sellerwatch.domain.tasks import TaskStatus
from sellerwatch.ports.store import Claim, FailedRow, Store, Unit

CLAIM = Claim("ticker-1", until=at(30), at=NOON)
LATE = NOON + timedelta(days=3)
EXECUTIONS = {shop: an_execution(shop) for shop in ("a", "b")}
TASKS = {
    shop: a_task(7, execution=execution, state=TaskStatus.RUNNING, attempt_id=None)
    for shop, execution in EXECUTIONS.items()
}
STARTED = {shop: an_execution(shop, status=ExecutionStatus.STARTED) for shop in ("a", "b")}


@pytest.fixture
def store(database: Database) -> Store:
    return SqlStore(database, now=lambda: NOON)


@dataclass(frozen=True)
class Case:
    put: Callable[[Unit], object]
    spoil: str
    take: Callable[[Unit], list[Any]]
    """The shops, items or ids of what is found."""
    found: list[Any]
    state: str
    stays: tuple[Any, ...]


def each(add: Callable[[Any], object], *things: Any) -> None:
    for thing in things:
        add(thing)


CASES = {
    "schedules due": Case(
        lambda unit: each(unit.schedules.add, a_schedule("a"), a_schedule("b")),
        "UPDATE crawling_schedules SET schedule_expression = 'banana' WHERE seller_id = 'a'",
        lambda unit: [schedule.seller_id for schedule in unit.schedules.lock_due(LATE, 10)],
        ["b"],
        "SELECT status FROM crawling_schedules WHERE seller_id = 'a'",
        ("FAILED",),
    ),
    "schedules that run": Case(
        lambda unit: each(unit.schedules.add, a_schedule("a"), a_schedule("b")),
        "UPDATE crawling_schedules SET schedule_expression = 'rate(0.5 days)' WHERE seller_id = 'b'",
        lambda unit: [schedule.seller_id for schedule in unit.schedules.active("", 10)],
        ["a"],
        "SELECT status FROM crawling_schedules WHERE seller_id = 'b'",
        ("FAILED",),
    ),
    "notices": Case(
        lambda unit: each(unit.notices.add, a_notice("a"), a_notice("b")),
        f"UPDATE scheduler_outbox SET payload = '{{' WHERE schedule_id = '{a_notice('a').schedule_id}'",
        lambda unit: [notice.schedule_id for notice in unit.notices.claim(CLAIM, 10)],
        [a_notice("b").schedule_id],
        f"SELECT status, claimed_by FROM scheduler_outbox WHERE schedule_id = '{a_notice('a').schedule_id}'",
        ("FAILED", None),
    ),
    "events": Case(
        lambda unit: unit.events.add([an_event(1), an_event(2)]),
        f"UPDATE product_outbox SET payload = '{{' WHERE product_id = '{an_event(1).product_id}'",
        lambda unit: [row.product_id for rows in unit.events.claim(CLAIM, 10) for row in rows],
        [an_event(2).product_id],
        f"SELECT status, claimed_by FROM product_outbox WHERE product_id = '{an_event(1).product_id}'",
        ("FAILED", None),
    ),
    "events without changes": Case(
        lambda unit: unit.events.add([an_event(1, 1), an_event(1, 2), an_event(1, 3)]),
        f"UPDATE product_outbox SET payload = '{{}}' WHERE outbox_id = '{an_event(1, 1).outbox_id}'",
        lambda unit: [row.version for rows in unit.events.claim(CLAIM, 10) for row in rows],
        [2, 3],
        f"SELECT status FROM product_outbox WHERE outbox_id = '{an_event(1, 1).outbox_id}'",
        ("FAILED",),
    ),
    "publications": Case(
        lambda unit: (
            each(unit.executions.add, *EXECUTIONS.values()),
            unit.tasks.add(list(TASKS.values())),
            unit.publications.add([a_publication(task) for task in TASKS.values()]),
        ),
        "UPDATE crawler_task_outbox SET payload = '{' WHERE seller_id = 'a'",
        lambda unit: [row.seller_id for row in unit.publications.claim(CLAIM, 10)],
        ["b"],
        "SELECT status, claimed_by FROM crawler_task_outbox WHERE seller_id = 'a'",
        ("FAILED", None),
    ),
    "tasks": Case(
        lambda unit: (each(unit.executions.add, *EXECUTIONS.values()), unit.tasks.add(list(TASKS.values()))),
        "UPDATE crawler_tasks SET task_type = 'WEIRD' WHERE seller_id = 'a'",
        lambda unit: [task.seller_id for task in unit.tasks.lock_stuck(LATE, NOON, 10)],
        ["b"],
        "SELECT t.status, e.failed_tasks, e.list_state FROM crawler_tasks t"
        " JOIN crawling_schedule_executions e ON e.execution_id = t.execution_id WHERE t.seller_id = 'a'",
        ("FAILED", 1, "INCOMPLETE"),
    ),
    "executions": Case(
        lambda unit: (each(unit.executions.add, *STARTED.values()), unit.tasks.add(list(TASKS.values()))),
        "UPDATE crawling_schedule_executions SET list_state = 'WEIRD' WHERE seller_id = 'a'",
        lambda unit: [execution.seller_id for execution in unit.executions.claim_started(CLAIM, 10)],
        ["b"],
        "SELECT e.status, e.open_key, e.list_state, t.status FROM crawling_schedule_executions e"
        " JOIN crawler_tasks t ON e.execution_id = t.execution_id WHERE t.seller_id = 'a'",
        ("FAILED", None, "SETTLED", "FAILED"),
    ),
    "raws": Case(
        lambda unit: unit.raws.put([a_raw(1), a_raw(2)]),
        "UPDATE product_raw_data SET status = 'WEIRD' WHERE item_no = 1",
        lambda unit: [raw.item_no for raw in unit.raws.lock_by_id([a_raw(1).raw_id, a_raw(2).raw_id])],
        [2],
        "SELECT status, error_message FROM product_raw_data WHERE item_no = 1",
        ("FAILED", "unreadable: 'WEIRD'"),
    ),
    "products": Case(
        lambda unit: unit.products.save([a_product(1), a_product(2)]),
        "UPDATE products SET images = '[' WHERE item_no = 1",
        lambda unit: [*unit.products.lock([1, 2, 3]), "spoilt", *unit.products.spoilt()],
        [2, "spoilt", 1],
        "SELECT status FROM products WHERE item_no = 1",
        ("ACTIVE",),
    ),
    "identities": Case(
        lambda unit: unit.identities.retire([one.agent_id for one in unit.identities.all()[2:]], NOON),
        "UPDATE user_agent_pool SET status = 'WEIRD' WHERE agent_id = 1",
        lambda unit: [one.agent_id for one in unit.identities.all()],
        [2],
        "SELECT status FROM user_agent_pool WHERE agent_id = 1",
        ("WEIRD",),
    ),
}


async def change(database: Database, statement: str) -> None:
    await database.write(lambda connection: connection.execute(text(statement)))


async def the_row(database: Database, statement: str) -> tuple[Any, ...]:
    return await database.read(lambda connection: tuple(connection.execute(text(statement)).one()))


async def alerts(store: Store) -> list[tuple[str, dict[str, Any]]]:
    told = await store.read(lambda unit: unit.chores.alerts_to_tell(NOON, 1))
    return [(name, details) for name, _, _, _, details in told]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_lesson_14_a_bad_row_is_set_aside_and_the_others_are_found(
    store: Store, database: Database, case: Case
) -> None:
    await store.transact(case.put)
    await change(database, case.spoil)
    assert await store.transact(case.take) == case.found
    assert await the_row(database, case.state) == case.stays


async def test_lesson_14_a_bad_row_is_told_by_one_alert_a_table_that_ends_a_day_after_the_last(
    store: Store, database: Database
) -> None:
    await store.transact(lambda unit: unit.events.add([an_event(1), an_event(2), an_event(3)]))
    await change(database, f"UPDATE product_outbox SET payload = '{{' WHERE outbox_id != '{an_event(3).outbox_id}'")
    await store.transact(lambda unit: unit.events.claim(CLAIM, 10))
    [(name, details)] = await alerts(store)
    assert name == "unreadable_row:product_outbox"
    assert {row["key"] for row in details["rows"]} == {an_event(1).outbox_id, an_event(2).outbox_id}
    await store.transact(lambda unit: unit.chores.clear_unmet(NOON + timedelta(hours=23), timedelta(days=1)))
    assert await alerts(store)
    await store.transact(lambda unit: unit.chores.clear_unmet(NOON + timedelta(days=1), timedelta(days=1)))
    assert await alerts(store) == []


async def test_lesson_14_a_row_that_is_asked_for_by_name_is_unreadable_and_told_of_although_nothing_is_committed(
    store: Store, database: Database
) -> None:
    await store.transact(lambda unit: unit.sellers.add(a_seller("a")))
    await store.transact(lambda unit: unit.schedules.add(a_schedule("a")))
    await change(database, "UPDATE sellers SET crawl_source = 'WEIRD'")
    await change(database, "UPDATE crawling_schedules SET schedule_expression = 'banana'")
    with pytest.raises(Unreadable, match="sellers a: 'WEIRD' is not a valid CrawlSource"):
        await store.read(lambda unit: unit.sellers.get("a"))
    with pytest.raises(Unreadable, match="banana"):
        await store.transact(lambda unit: unit.schedules.lock("a"))
    assert [name for name, _ in await alerts(store)] == [
        "unreadable_row:crawling_schedules",
        "unreadable_row:sellers",
    ]
    assert await the_row(database, "SELECT status FROM crawling_schedules") == ("FAILED",)


async def test_lesson_14_a_schedule_that_cannot_be_read_is_looked_at_again_when_it_may_be_mended(
    store: Store, database: Database
) -> None:
    await store.transact(lambda unit: unit.schedules.add(a_schedule("a", at=NOON - timedelta(days=1))))
    await change(database, "UPDATE crawling_schedules SET schedule_expression = 'banana'")
    assert await store.transact(lambda unit: unit.schedules.lock_due(NOON, 10)) == []
    await change(database, "UPDATE crawling_schedules SET schedule_expression = 'rate(1 day)'")
    assert await store.transact(lambda unit: unit.schedules.lock_due(NOON + LOOK_AGAIN / 2, 10)) == []
    assert await store.transact(lambda unit: unit.schedules.lock_due(NOON + LOOK_AGAIN, 10)) != []


async def test_lesson_14_what_had_ended_stays_as_it_ended(store: Store, database: Database) -> None:
    execution = an_execution("a", status=ExecutionStatus.COMPLETED)
    task = a_task(7, execution=execution, state=TaskStatus.SUCCESS)
    row = a_publication(task, status=TaskOutboxStatus.SENT)
    await store.transact(
        lambda unit: (unit.executions.add(execution), unit.tasks.add([task]), unit.publications.add([row]))
    )
    await change(database, "UPDATE crawler_tasks SET task_type = 'WEIRD'")
    await change(database, "UPDATE crawling_schedule_executions SET list_state = 'WEIRD'")
    await store.transact(lambda unit: (unit.tasks.lock([task.task_id]), unit.executions.lock([execution.execution_id])))
    assert len(await alerts(store)) == 2
    assert await the_row(
        database,
        "SELECT t.status, e.status, e.failed_tasks, o.status FROM crawler_tasks t, crawling_schedule_executions e,"
        " crawler_task_outbox o",
    ) == ("SUCCESS", "COMPLETED", 0, "SENT")


async def test_lesson_14_a_task_whose_row_in_the_outbox_cannot_be_read_is_found_and_not_tried_again(
    store: Store, database: Database
) -> None:
    await store.transact(CASES["publications"].put)
    await change(database, CASES["publications"].spoil)
    await store.transact(CASES["publications"].take)
    row = a_publication(TASKS["a"])
    assert await store.transact(lambda unit: unit.publications.lock_failed(10)) == [
        FailedRow(row.outbox_id, row.task_id, 0, is_spoilt=True)
    ]


def test_lesson_14_rows_are_read_one_by_one_only_when_one_of_them_is_bad(database: Database) -> None:
    read: list[int] = []

    def make(row: tuple[int]) -> int:
        read.append(row[0])
        return 1 // row[0] if row[0] else int("banana")

    with database.engine.connect() as connection:
        session = Session(connection, database.dialect)
        assert session.each(EVENTS, [(1,), (2,)], make) == [1, 0]
        assert read == [1, 2]
        assert session.each(EVENTS, [(1,), (0,), (2,)], make) == [1, 0]
        assert read == [1, 2, 1, 0, 1, 0, 2]
