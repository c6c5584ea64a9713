"""What two processes do at the same time on MariaDB: claims pass each other by, and what SQLite's one writer would
never let happen ends as if one had come after the other.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from typing import Any

import pytest

import servers
from builders import NOON, a_notice, a_publication, a_schedule, a_seller, a_task, an_execution, an_id, at
from contracts.pool_world import FakeClock, identities, some_limits
from contracts.test_store_events import an_event
from contracts.test_store_raws import a_raw
from flows.shelf import a_shelf, a_shop, documents
from sellerwatch.adapters.bell import AsyncBell
from sellerwatch.adapters.chance import SeededChance
from sellerwatch.adapters.clock import SystemClock
from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.dialect import engine
from sellerwatch.adapters.sql.pool import SqlPool
from sellerwatch.adapters.sql.queue import SqlQueue
from sellerwatch.adapters.sql.session import Session
from sellerwatch.adapters.sql.store import SqlStore, SqlUnit
from sellerwatch.domain.documents import DocumentKind
from sellerwatch.domain.executions import ExecutionStatus
from sellerwatch.domain.leadership import Engine, Leadership, Phase
from sellerwatch.domain.outbox import OutboxStatus
from sellerwatch.domain.products import Product
from sellerwatch.domain.raws import RawStatus
from sellerwatch.domain.tasks import TaskStatus
from sellerwatch.flows.trigger import Trigger
from sellerwatch.ports.queue import Outgoing
from sellerwatch.ports.store import Claim, Unit

pytestmark = pytest.mark.slow
ROWS, EACH = 40, 5


@pytest.fixture
def database(mariadb: servers.MariaDb) -> Iterator[Database]:
    made = Database(engine(mariadb.database("house"), busy_seconds=1), wait=SystemClock().sleep)
    yield made
    made.close()


@pytest.fixture
def store(database: Database) -> SqlStore:
    return SqlStore(database)


@pytest.fixture
def a_process(database: Database) -> Callable[[], AbstractContextManager[Unit]]:
    """A transaction on a connection of its own, open until the block ends."""

    @contextmanager
    def process() -> Iterator[Unit]:
        with database.engine.begin() as connection:
            yield SqlUnit(Session(connection, database.dialect), "main")

    return process


def claim(owner: object) -> Claim:
    return Claim(str(owner), until=at(100), at=at(50))


def an_open(number: int, **other: Any) -> Any:
    return an_execution(f"shop-{number}", name=number, **other)


def publications(unit: Unit, number: int) -> None:
    if number == 0:
        unit.executions.add(an_execution())
    unit.publications.add([a_publication(a_task(number + 1))])


def stuck(unit: Unit, number: int) -> None:
    unit.tasks.add([a_task(number + 1, state=TaskStatus.RUNNING, claimed_until=at(-1))])


def started(unit: Unit, number: int) -> None:
    unit.executions.add(an_open(number, status=ExecutionStatus.STARTED))


def idle(unit: Unit, number: int) -> None:
    unit.executions.add(an_open(number, total_tasks=1, completed_tasks=1))


def unsettled(unit: Unit, number: int) -> None:
    unit.executions.add(an_open(number, status=ExecutionStatus.COMPLETED))


def due(unit: Unit, number: int) -> None:
    unit.schedules.add(a_schedule(f"shop-{number}", at=at(-100 * 86400)))


def failed_raw(unit: Unit, number: int) -> None:
    raw = a_raw(number + 1)
    raw.status = RawStatus.FAILED
    unit.raws.put([raw])


CLAIMS = {
    "publications": (publications, lambda unit, who: [p.outbox_id for p in unit.publications.claim(claim(who), EACH)]),
    "events": (
        lambda unit, number: unit.events.add([an_event(number)]),
        lambda unit, who: [rows[0].outbox_id for rows in unit.events.claim(claim(who), EACH)],
    ),
    "notices": (
        lambda unit, number: unit.notices.add(a_notice(f"shop-{number}")),
        lambda unit, who: [notice.outbox_id for notice in unit.notices.claim(claim(who), EACH)],
    ),
    "schedules": (due, lambda unit, _who: [schedule.schedule_id for schedule in unit.schedules.lock_due(NOON, EACH)]),
    "executions": (
        started,
        lambda unit, who: [e.execution_id for e in unit.executions.claim_started(claim(who), EACH)],
    ),
    "idle executions": (idle, lambda unit, _who: [e.execution_id for e in unit.executions.lock_idle(EACH)]),
    "unsettled executions": (
        unsettled,
        lambda unit, _who: [e.execution_id for e in unit.executions.lock_unsettled(EACH)],
    ),
    "raws": (
        lambda unit, number: unit.raws.put([a_raw(number + 1)]),
        lambda unit, _who: [raw.raw_id for raw in unit.raws.lock_ripe(at(50), EACH)],
    ),
    "failed raws": (failed_raw, lambda unit, _who: [raw.raw_id for raw in unit.raws.lock_failed(at(9999), 3, EACH)]),
    "stuck tasks": (stuck, lambda unit, _who: [task.task_id for task in unit.tasks.lock_stuck(NOON, at(-999), EACH)]),
}


@pytest.mark.parametrize("what", CLAIMS)
async def test_a_second_process_gets_other_rows_and_a_third_may_insert(
    store: SqlStore, a_process: Callable[[], AbstractContextManager[Unit]], database: Database, what: str
) -> None:
    plant, take = CLAIMS[what]

    def plant_all(unit: Unit) -> None:
        for number in range(ROWS):
            plant(unit, number)

    await store.transact(plant_all)
    with a_process() as first, a_process() as second:
        mine = take(first, "first")
        others = take(second, "second")
        assert (len(mine), len(others)) == (EACH, EACH)
        assert not set(mine) & set(others)
        await store.transact(lambda unit: plant(unit, ROWS))
    assert not database.tries_again


async def test_a_second_receiver_gets_other_messages(database: Database) -> None:
    queues = [SqlQueue(database, FakeClock(), SeededChance(seed), "tasks", 30, 3) for seed in range(2)]
    await queues[0].send([Outgoing({"taskId": str(n)}, f"group-{n % 20}", f"outbox-{n}-1") for n in range(ROWS)])
    with database.engine.begin() as first, database.engine.begin() as second:
        taken = [queue._take(connection, EACH) for queue, connection in zip(queues, (first, second), strict=True)]
    groups = [{delivery.group for delivery in mine} for mine in taken]
    assert [len(each) for each in groups] == [EACH, EACH]
    assert not groups[0] & groups[1]


async def test_two_triggers_at_once_begin_one_execution(database: Database, store: SqlStore) -> None:
    sellers = [f"shop-{number}" for number in range(10)]

    def plant(unit: Unit) -> None:
        for seller_id in sellers:
            unit.sellers.add(a_seller(seller_id))
            unit.schedules.add(a_schedule(seller_id, at=at(-100 * 86400)))

    await store.transact(plant)
    clock = SystemClock()
    triggers = [Trigger(store, clock, SeededChance(seed), AsyncBell(clock)) for seed in range(3)]
    opened = await asyncio.gather(
        *(trigger.open(seller_id, "run-1") for seller_id in sellers for trigger in triggers),
        *(trigger.open_due(100) for trigger in triggers),
    )
    told = [each for each in opened if not isinstance(each, int)]
    begun = sum(each.is_new for each in told) + sum(each for each in opened if isinstance(each, int))
    assert begun == len(sellers)
    assert all(each.execution is not None for each in told)


async def test_two_that_discover_a_product_at_once_lose_nothing_of_it(database: Database, store: SqlStore) -> None:
    """A row that is not there cannot be locked: without care the later one would write over the earlier."""
    tries, both_looked = count(), threading.Barrier(2)

    def discover(kind: DocumentKind) -> Callable[[Unit], None]:
        def work(unit: Unit) -> None:
            product = unit.products.lock([7]).get(7) or Product.discover(7, "shop-1", NOON)
            if next(tries) < 2:
                both_looked.wait(10)
            product.fields = {**product.fields, "name" if kind is DocumentKind.DETAIL else "appPrice": 1}
            if kind is DocumentKind.DETAIL:
                product.fields["name"] = "coat"
            unit.products.save([product])

        return work

    await asyncio.gather(*(store.transact(discover(kind)) for kind in (DocumentKind.DETAIL, DocumentKind.MINI_SHOP)))
    found = await store.read(lambda unit: unit.products.get(7))
    assert found is not None
    assert found.fields == {"name": "coat", "appPrice": 1}
    assert sum(database.tries_again.values()) == 1


async def test_two_processes_that_load_the_pool_at_once_load_it_once(database: Database) -> None:
    pools = [SqlPool(database, FakeClock(), SeededChance(seed), some_limits()) for seed in range(4)]
    await asyncio.gather(*(pool.load(identities(20)) for pool in pools))
    figures = await pools[0].figures()
    assert (figures.total, figures.available) == (20, 20)


async def test_two_that_see_nobody_lead_do_not_both_begin(store: SqlStore) -> None:
    begun: list[str] = []

    def begin(name: str) -> Callable[[Unit], None]:
        def work(unit: Unit) -> None:
            state = unit.leaderships.lock()
            if state.epoch == 0:
                unit.leaderships.save(Leadership(1, Engine.SQL, Phase.BEGINNING, at(60)))
                begun.append(name)
            else:
                begun.append("late")

        return work

    await asyncio.gather(*(store.transact(begin(name)) for name in ("a", "b", "c")))
    kept = await store.read(lambda unit: unit.leaderships.get())
    assert kept.epoch == 1
    # Who was broken off had noted itself before; it came back and found the row.
    assert begun.count("late") == 2


async def test_who_was_taken_over_writes_nothing(
    store: SqlStore, a_process: Callable[[], AbstractContextManager[Unit]]
) -> None:
    task = a_task(1, state=TaskStatus.RUNNING, attempt_id=an_id("old"))
    await store.transact(lambda unit: unit.tasks.add([task]))
    seen: list[bool] = []

    def late(unit: Unit) -> None:
        seen.append(unit.tasks.lock([task.task_id])[task.task_id].is_held_by(an_id("old")))

    with a_process() as other:
        taken = other.tasks.lock([task.task_id])[task.task_id]
        taken.attempt_id = an_id("new")
        other.tasks.save([taken])
        settling = asyncio.create_task(store.transact(late))
        await SystemClock().sleep(0.05)
        assert not settling.done()
    await settling
    assert seen == [False]


async def test_those_that_absorb_a_drifted_crawl_at_once_hold_it_together_and_lose_nothing_of_it(
    database: Database,
) -> None:
    items = 120
    async with a_shelf(on=database, batch=20) as shelf:
        await shelf.crawl(a_shop(items))
        in_cents = {item_no: documents(item_no, sellingPrice=59_900_000) for item_no in a_shop(items)}
        execution = await shelf.crawl(in_cents, absorbed=False)

        async def absorbing() -> None:
            while (await shelf.absorb.run()).raws:
                pass

        await asyncio.gather(*(absorbing() for _ in range(3)))
        await shelf.process()
        quarantine = await shelf.quarantine(execution)
        assert quarantine is not None
        assert quarantine.is_open
        held = await shelf.events(OutboxStatus.HELD)
        passed = [row for row in await shelf.events(OutboxStatus.WAITING) if row.version == 2]
        assert (await shelf.raws())["HELD"] == len(held)
        assert len({row.product_id for row in [*held, *passed]}) == len(held) + len(passed) == items
        # What the others had read before the first of them judged.
        assert len(passed) <= 3 * 20
        assert len(await shelf.alerts()) == 1
        await shelf.decide.release([quarantine.quarantine_id])
        await shelf.process()
        products = [await shelf.product(item_no) for item_no in in_cents]
        assert {(product.version, product.fields["sellingPrice"]) for product in products if product} == {
            (2, 59_900_000)
        }
        assert len([row for row in await shelf.events(OutboxStatus.WAITING) if row.version == 2]) == items
