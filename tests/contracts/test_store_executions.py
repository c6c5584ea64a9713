"""What ports/store.py promises of executions and of what their lists showed, on every engine."""

from typing import Any

import pytest
from sqlalchemy import insert, select

from builders import NOON, a_seller, a_task, an_execution, an_id, at
from sellerwatch.adapters.sql import tables
from sellerwatch.adapters.sql.database import Database
from sellerwatch.domain.executions import Balance, Counted, Execution, ExecutionStatus, ListState
from sellerwatch.domain.tasks import TaskStatus
from sellerwatch.ports.store import Claim, Store

COMPLETED, FAILED, STARTED = ExecutionStatus.COMPLETED, ExecutionStatus.FAILED, ExecutionStatus.STARTED
DAY = 86400


async def add(store: Store, *executions: Execution) -> list[bool]:
    return await store.transact(lambda unit: [unit.executions.add(each) for each in executions])


async def got(store: Store, execution: Execution) -> Execution | None:
    return await store.read(lambda unit: unit.executions.get(execution.execution_id))


async def columns(database: Database, execution: Execution, *names: str) -> tuple[Any, ...]:
    table = tables.crawling_schedule_executions
    statement = select(*(table.c[name] for name in names)).where(table.c.execution_id == execution.execution_id)
    return await database.read(lambda connection: tuple(connection.execute(statement).one()))


def a_claim(seconds: float = 0, *, owner: str = "ticker-1") -> Claim:
    return Claim(owner, until=at(seconds + 30), at=at(seconds))


@pytest.mark.parametrize("status", ExecutionStatus)
async def test_an_execution_comes_back_as_it_was_added(store: Store, status: ExecutionStatus) -> None:
    execution = an_execution(
        status=status,
        total_tasks=30,
        completed_tasks=10,
        failed_tasks=1,
        plan_attempts=2,
        expected_items=99,
        list_state=ListState.INCOMPLETE,
        error_message="count: 502",
    )
    assert await add(store, execution) == [True]
    assert await got(store, execution) == execution


async def test_one_trigger_makes_one_execution(store: Store) -> None:
    first = an_execution(name=1, status=COMPLETED)
    twice = an_execution(name=2, trigger_key=first.trigger_key)
    assert await add(store, first, twice) == [True, False]
    assert await store.read(lambda unit: unit.executions.of_trigger(first.schedule_id, first.trigger_key)) == first
    assert await store.read(lambda unit: unit.executions.of_trigger(first.schedule_id, "another")) is None


async def test_a_seller_has_one_open_execution_at_most(store: Store) -> None:
    first, second = an_execution(name=1, status=STARTED), an_execution(name=2)
    assert await add(store, first, second, an_execution("shop-2")) == [True, False, True]
    assert await store.read(lambda unit: unit.executions.open_of("shop-1")) == first
    first.fail("no list", at(1))
    await store.transact(lambda unit: unit.executions.save([first]))
    assert await store.read(lambda unit: unit.executions.open_of("shop-1")) is None
    assert await add(store, second) == [True]


async def test_a_refused_execution_leaves_the_transaction_whole(store: Store) -> None:
    first, second = an_execution(name=1), an_execution(name=2)
    other = an_execution("shop-2")
    await add(store, first)
    assert await add(store, other, second) == [True, False]
    assert await got(store, other) == other


async def test_lock_and_save_write_all_that_changes(store: Store, database: Database) -> None:
    execution = an_execution(status=STARTED)
    await add(store, execution, an_execution("shop-2"))

    def grow(unit: Any) -> None:
        locked = unit.executions.lock([execution.execution_id, an_id("nobody")])
        assert list(locked) == [execution.execution_id]
        mine = locked[execution.execution_id]
        mine.plan(3, 1200, at(1))
        mine.count(1, 1)
        unit.executions.save(locked.values())

    await store.transact(grow)
    execution.plan(3, 1200, at(1))
    execution.count(1, 1)
    assert await got(store, execution) == execution
    rates = await columns(database, execution, "progress_rate", "success_rate", "open_key")
    assert rates == (66.67, 33.33, "shop-1")


async def test_started_executions_that_are_due_are_claimed_by_one(store: Store) -> None:
    due = an_execution("shop-1", status=STARTED)
    later = an_execution("shop-2", status=STARTED, next_attempt_at=at(20))
    await add(store, due, later, an_execution("shop-3"))
    assert await store.transact(lambda unit: unit.executions.claim_started(a_claim(1), 10)) == [due]
    assert await store.transact(lambda unit: unit.executions.claim_started(a_claim(2, owner="ticker-2"), 10)) == []
    found = await store.transact(lambda unit: unit.executions.claim_started(a_claim(31, owner="ticker-2"), 10))
    assert found == [due, later]


async def test_release_writes_back_what_is_still_claimed_and_ends_the_claim(store: Store) -> None:
    execution = an_execution(status=STARTED)
    await add(store, execution)
    await store.transact(lambda unit: unit.executions.claim_started(a_claim(), 1))
    await store.transact(lambda unit: unit.executions.claim_started(a_claim(30, owner="ticker-2"), 1))
    execution.put_off("502", 3, at(40), at(31))
    assert not await store.transact(lambda unit: unit.executions.release(execution, "ticker-1"))
    assert await store.transact(lambda unit: unit.executions.release(execution, "ticker-2"))
    assert not await store.transact(lambda unit: unit.executions.release(execution, "ticker-2"))
    assert await store.transact(lambda unit: unit.executions.claim_started(a_claim(40), 1)) == [execution]


async def test_an_ended_execution_gives_up_its_claim(store: Store, database: Database) -> None:
    execution = an_execution(status=STARTED)
    await add(store, execution)
    await store.transact(lambda unit: unit.executions.claim_started(a_claim(), 1))
    execution.cancel(0, at(1))
    await store.transact(lambda unit: unit.executions.save([execution]))
    assert not await store.transact(lambda unit: unit.executions.release(an_execution(), "ticker-1"))
    assert await columns(database, execution, "claimed_by", "claimed_until", "open_key", "status") == (
        None,
        None,
        None,
        "FAILED",
    )


async def test_idle_are_executions_in_progress_without_an_open_task(store: Store) -> None:
    idle = an_execution("shop-1", total_tasks=3, completed_tasks=2, failed_tasks=1)
    busy = an_execution("shop-2", total_tasks=3, completed_tasks=2)
    ended = an_execution("shop-3", total_tasks=1, completed_tasks=1, status=COMPLETED)
    await add(store, idle, busy, ended, an_execution("shop-4", status=STARTED))
    assert await store.transact(lambda unit: unit.executions.lock_idle(10)) == [idle]


async def test_overdue_are_those_open_for_longer_than_the_interval_of_their_seller(store: Store) -> None:
    daily, weekly, young = an_execution("daily"), an_execution("weekly"), an_execution("young", at=at(2 * DAY))
    ended = an_execution("ended", status=COMPLETED)
    await add(store, daily, weekly, young, ended)
    for seller in (a_seller("daily"), a_seller("weekly", interval_days=7), a_seller("young"), a_seller("ended")):
        await store.transact(lambda unit, seller=seller: unit.sellers.add(seller))
    assert await store.read(lambda unit: unit.executions.overdue(at(DAY), 10)) == []
    assert await store.read(lambda unit: unit.executions.overdue(at(2 * DAY), 10)) == [daily]
    assert await store.read(lambda unit: unit.executions.overdue(at(8 * DAY), 10)) == [daily, weekly, young]
    assert await store.read(lambda unit: unit.executions.overdue(at(8 * DAY), 1)) == [daily]


async def test_unsettled_are_ended_executions_whose_raws_are_all_processed(store: Store, database: Database) -> None:
    complete = an_execution("shop-1", status=COMPLETED, list_state=ListState.COMPLETE)
    failed = an_execution("shop-2", status=FAILED, list_state=ListState.INCOMPLETE)
    settled = an_execution("shop-3", status=COMPLETED, list_state=ListState.SETTLED)
    waiting = an_execution("shop-4", status=COMPLETED, list_state=ListState.COMPLETE)
    in_progress = an_execution("shop-5", list_state=ListState.COMPLETE)
    await add(store, complete, failed, settled, waiting, in_progress)
    raws = [a_raw_row(complete, "PROCESSED"), a_raw_row(failed, "FAILED"), a_raw_row(waiting, "PENDING")]
    await database.write(lambda connection: connection.execute(insert(tables.product_raw_data), raws))
    found = await store.transact(lambda unit: unit.executions.lock_unsettled(10))
    assert sorted(each.seller_id for each in found) == ["shop-1", "shop-2"]


async def test_an_item_is_new_to_a_list_once(store: Store) -> None:
    first, second = an_execution().execution_id, an_execution(name=2).execution_id

    async def listed(execution_id: str, *rows: tuple[int, int]) -> set[int]:
        return await store.transact(lambda unit: unit.listings.add(execution_id, "shop-1", rows))

    assert await listed(first, (1, 0), (2, 0), (2, 0)) == {1, 2}
    assert await listed(first, (2, 1), (3, 1)) == {3}
    assert await listed(second, (2, 0)) == {2}
    assert await store.read(lambda unit: unit.listings.count(first)) == 3
    await store.transact(lambda unit: unit.listings.forget(first))
    assert await store.read(lambda unit: unit.listings.count(first)) == 0
    assert await store.read(lambda unit: unit.listings.count(second)) == 1


async def test_absent_are_known_active_items_that_were_not_seen(store: Store, database: Database) -> None:
    execution_id = an_execution().execution_id
    rows = [
        a_product_row(1),
        a_product_row(2),
        a_product_row(3),
        a_product_row(4, status="DELISTED"),
        a_product_row(5, first_seen_at=at(1)),
        a_product_row(6, seller_id="shop-2"),
    ]
    await database.write(lambda connection: connection.execute(insert(tables.products), rows))
    await store.transact(lambda unit: unit.listings.add(execution_id, "shop-1", [(1, 0), (2, 0)]))
    await store.transact(lambda unit: unit.listings.mark_gone([(execution_id, 2), (an_id("other"), 1)]))

    async def absent(*, is_complete: bool) -> list[int]:
        return await store.read(
            lambda unit: unit.listings.absent(execution_id, "shop-1", is_complete=is_complete, before=at(1))
        )

    assert await absent(is_complete=True) == [2, 3]
    assert await absent(is_complete=False) == [2]


async def test_returned_are_listed_items_that_were_away(store: Store, database: Database) -> None:
    execution_id = an_execution().execution_id
    rows = [
        a_product_row(1),
        a_product_row(2, status="DELISTED"),
        a_product_row(3, absences=1),
        a_product_row(4, absences=1),
        a_product_row(5, status="DELISTED"),
    ]
    await database.write(lambda connection: connection.execute(insert(tables.products), rows))
    await store.transact(lambda unit: unit.listings.add(execution_id, "shop-1", [(each, 0) for each in (1, 2, 3, 4)]))
    await store.transact(lambda unit: unit.listings.mark_gone([(execution_id, 4)]))
    assert await store.read(lambda unit: unit.listings.returned(execution_id)) == [2, 3]


async def test_own_are_the_listed_items_that_are_the_sellers(store: Store, database: Database) -> None:
    execution_id = an_execution().execution_id
    rows = [a_product_row(1), a_product_row(2), a_product_row(3, seller_id="shop-2"), a_product_row(4)]
    await database.write(lambda connection: connection.execute(insert(tables.products), rows))
    await store.transact(lambda unit: unit.listings.add(execution_id, "shop-1", [(each, 0) for each in (1, 2, 3, 9)]))
    assert await store.read(lambda unit: unit.listings.own(execution_id, "shop-1")) == 2


def a_product_row(item_no: int, **other: object) -> dict[str, object]:
    row = {"item_no": item_no, "product_id": an_id(item_no), "seller_id": "shop-1", "status": "ACTIVE", "absences": 0}
    moments = dict.fromkeys(("first_seen_at", "last_seen_at", "created_at", "updated_at"), NOON)
    return row | moments | other


def a_raw_row(execution: Execution, status: str) -> dict[str, object]:
    return {
        "raw_id": an_id(f"raw/{execution.execution_id}"),
        "item_no": 1,
        "seller_id": execution.seller_id,
        "execution_id": execution.execution_id,
        "task_id": an_id("task"),
        "data_type": "DETAIL",
        "raw_json": "{}",
        "raw_hash": "0" * 32,
        "status": status,
        "next_attempt_at": NOON,
        "crawled_at": NOON,
        "created_at": NOON,
    }


async def test_the_ledger_shows_counters_beside_tasks_of_the_newest_executions_in_their_order(store: Store) -> None:
    first = an_execution("shop-1", status=COMPLETED, total_tasks=3, completed_tasks=2, failed_tasks=1)
    second = an_execution("shop-2", total_tasks=2, completed_tasks=1)
    third = an_execution("shop-3", status=STARTED)
    old = an_execution("shop-4", status=COMPLETED, total_tasks=9, completed_tasks=9, at=at(-DAY))
    tasks = [
        *(a_task(number, execution=first, state=TaskStatus.SUCCESS) for number in (1, 2)),
        a_task(3, execution=first, state=TaskStatus.FAILED),
        a_task(1, execution=second, state=TaskStatus.RUNNING),
        a_task(2, execution=second, state=TaskStatus.RETRY),
    ]
    await add(store, old, first, second, third)
    await store.transact(lambda unit: unit.tasks.add(tasks))

    async def look(after: int, tasks_max: int = 100) -> tuple[list[Balance], int]:
        return await store.read(lambda unit: unit.executions.balances(after, at(-60), tasks_max))

    balances, last = await look(0)
    assert [balance.execution_id for balance in balances] == [one.execution_id for one in (first, second, third)]
    assert balances[0].said == balances[0].found == Counted(2, 1, 0)
    assert (balances[1].said, balances[1].found) == (Counted(1, 0, 1), Counted(0, 0, 2))
    assert [balance.is_even for balance in balances] == [True, False, True]
    assert await look(last) == ([], 0)
    # A few at a time, and one at least.
    some, last = await look(0, tasks_max=1)
    assert [balance.execution_id for balance in some] == [first.execution_id]
    assert [balance.execution_id for balance in (await look(last, tasks_max=2))[0]] == [
        second.execution_id,
        third.execution_id,
    ]
