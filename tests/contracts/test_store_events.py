"""What ports/store.py promises of the product outbox, on every engine."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import insert, select

from builders import NOON, an_id, at
from sellerwatch.adapters.sql import tables
from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.store import SqlStore
from sellerwatch.adapters.sql.stores import events
from sellerwatch.domain.outbox import EventType, OutboxStatus, ProductEvent
from sellerwatch.ports.store import Claim, Store

WAITING, SENDING, COMPLETED = OutboxStatus.WAITING, OutboxStatus.SENDING, OutboxStatus.COMPLETED
FAILED, HELD = OutboxStatus.FAILED, OutboxStatus.HELD


def an_event(
    product: object = 1, version: int = 1, status: OutboxStatus = WAITING, *, due_at: datetime = NOON, **other: Any
) -> ProductEvent:
    event = ProductEvent(
        outbox_id=an_id(f"event/{product}/{version}"),
        payload={"version": version, "changes": [{"field": "name", "old": None, "new": "이름"}], "productData": {}},
        created_at=NOON,
        status=status,
        retry_count=0,
        next_attempt_at=due_at,
        error_message=None,
        sent_at=None,
        product_id=an_id(f"product/{product}"),
        event_type=EventType.UPDATED,
        version=version,
    )
    for name, value in other.items():
        setattr(event, name, value)
    return event


async def add(store: Store, *events: ProductEvent) -> None:
    await store.transact(lambda unit: unit.events.add(events))


def a_claim(seconds: float = 0, owner: str = "ticker-1") -> Claim:
    return Claim(owner, until=at(seconds + 30), at=at(seconds))


async def claim(
    store: Store, seconds: float = 0, count: int = 100, owner: str = "ticker-1"
) -> list[list[ProductEvent]]:
    return await store.transact(lambda unit: unit.events.claim(a_claim(seconds, owner), count))


async def save(store: Store, events: Sequence[ProductEvent], owner: str = "ticker-1") -> int:
    return await store.transact(lambda unit: unit.events.save(events, owner))


async def kept(store: Store, *events: ProductEvent) -> list[ProductEvent]:
    found = await store.transact(lambda unit: unit.events.lock([event.outbox_id for event in events]))
    by_id = {event.outbox_id: event for event in found}
    return [by_id[event.outbox_id] for event in events if event.outbox_id in by_id]


async def claims(database: Database) -> list[tuple[Any, ...]]:
    c = tables.product_outbox.c
    rows = select(c.status, c.claimed_by, c.claimed_until).order_by(c.id)
    return await database.read(lambda connection: [tuple(row) for row in connection.execute(rows)])


def names(groups: Sequence[Sequence[ProductEvent]]) -> list[list[str]]:
    return [[event.outbox_id for event in rows] for rows in groups]


async def test_an_event_comes_back_as_it_was_added(store: Store) -> None:
    event = an_event(due_at=at(9), retry_count=2, error_message="HTTP 500", sent_at=at(3), status=FAILED)
    await add(store, event)
    assert await kept(store, event) == [event]


async def test_an_event_that_is_there_is_not_added_twice(store: Store) -> None:
    await add(store, an_event(), an_event())
    await add(store, an_event(status=HELD))
    assert [event.status for event in await kept(store, an_event())] == [WAITING]
    assert names(await claim(store)) == [[an_event().outbox_id]]


async def test_a_claim_takes_the_oldest_due_first_and_of_each_product_all_that_wait_by_version(store: Store) -> None:
    late, early = [an_event(1, version, due_at=at(5)) for version in (2, 1, 3)], [an_event(2, due_at=at(1))]
    await add(store, *late, *early)
    got = await claim(store, 5)
    assert [[event.version for event in rows] for rows in got] == [[1], [1, 2, 3]]
    assert got[0][0].product_id == early[0].product_id
    assert {event.status for rows in got for event in rows} == {SENDING}


async def test_a_claim_is_about_so_many_products(store: Store) -> None:
    await add(store, *(an_event(product, version) for product in range(5) for version in (1, 2)))
    assert [len(rows) for rows in await claim(store, count=2)] == [2, 2]
    assert len(await claim(store, count=100)) == 3


async def test_what_is_claimed_bears_its_owner_and_deadline_and_is_nobody_elses(
    store: Store, database: Database
) -> None:
    await add(store, an_event(1), an_event(1, 2))
    assert len(await claim(store, owner="ticker-1")) == 1
    assert await claims(database) == [("SENDING", "ticker-1", at(30))] * 2
    assert await claim(store, owner="ticker-2") == []


async def test_rows_wait_while_their_first_is_not_due(store: Store) -> None:
    await add(store, an_event(1, 1, due_at=at(60)), an_event(1, 2))
    assert await claim(store, 59) == []
    assert [[event.version for event in rows] for rows in await claim(store, 60)] == [[1, 2]]


async def test_a_row_that_is_not_due_yet_waits_behind_one_that_is(store: Store, database: Database) -> None:
    await add(store, an_event(1), an_event(1, 2, due_at=at(99)), an_event(1, 3))
    assert [[event.version for event in rows] for rows in await claim(store)] == [[1]]
    assert [row[0] for row in await claims(database)] == ["SENDING", "WAITING", "WAITING"]


async def test_behind_a_row_that_was_tried_the_others_wait_unclaimed(store: Store, database: Database) -> None:
    await add(store, an_event(1, 1, retry_count=1), an_event(1, 2), an_event(2, 1, error_message="cut off"))
    await add(store, an_event(2, 2), an_event(3, 1), an_event(3, 2), an_event(3, 3, retry_count=1), an_event(3, 4))
    assert [[event.version for event in rows] for rows in await claim(store)] == [[1], [1], [1, 2]]
    assert [row[0] for row in await claims(database)] == [
        *("SENDING", "WAITING", "SENDING", "WAITING"),
        *("SENDING", "SENDING", "WAITING", "WAITING"),
    ]
    # Nobody else passes by what is under way.
    assert await claim(store, owner="ticker-2") == []


async def test_a_product_with_a_row_under_way_or_held_before_them_is_skipped(store: Store) -> None:
    for product, status in ((1, SENDING), (2, HELD)):
        await add(store, an_event(product, 1, status), an_event(product, 2))
    await add(store, an_event(3, 1, FAILED), an_event(3, 2), an_event(4, 1, COMPLETED), an_event(4, 2))
    got = await claim(store)
    assert names(got) == [[an_event(3, 2).outbox_id], [an_event(4, 2).outbox_id]]


async def test_rows_behind_a_held_one_wait_for_it(store: Store) -> None:
    await add(store, an_event(1, 1), an_event(1, 2, HELD), an_event(1, 3))
    assert names(await claim(store)) == [[an_event(1, 1).outbox_id]]


async def test_an_older_row_is_not_sent_beside_a_newer_one_that_is_under_way(store: Store) -> None:
    await add(store, an_event(1, 1), an_event(1, 2, SENDING))
    assert await claim(store) == []


async def test_products_that_must_wait_hold_up_nobody(store: Store) -> None:
    for product in range(20):
        await add(store, an_event(product, 1, HELD), an_event(product, 2))
    await add(store, an_event("free", due_at=at(1)))
    assert names(await claim(store, 1, 3)) == [[an_event("free").outbox_id]]


async def test_who_claims_writes_back_what_became_of_it(store: Store, database: Database) -> None:
    await add(store, *(an_event(product) for product in range(4)))
    done, again, lost, on_its_way = (rows[0] for rows in await claim(store))
    done.completed(at(2))
    again.failed("HTTP 503", 5, at(60))
    lost.failed("x" * 9000, 5, at(60), is_final=True)
    assert await save(store, [done, again, lost, on_its_way]) == 4
    lost.error_message = "x" * 2048
    assert await kept(store, done, again, lost, on_its_way) == [done, again, lost, on_its_way]
    assert [row[1] for row in await claims(database)] == [None, None, None, "ticker-1"]


async def test_who_claims_no_longer_changes_nothing(store: Store) -> None:
    await add(store, an_event())
    [[mine]] = await claim(store)
    assert await store.transact(lambda unit: unit.events.free_zombies(at(31), 10)) == 1
    [[other]] = await claim(store, 31, owner="ticker-2")
    mine.completed(at(40))
    assert await save(store, [mine]) == 0
    other.completed(at(41), "by the other")
    assert await save(store, [other], "ticker-2") == 1
    assert await save(store, [other], "ticker-2") == 0
    assert await kept(store, mine) == [other]


async def test_a_superseded_row_and_the_one_in_its_place_are_kept(store: Store) -> None:
    await add(store, an_event(1, 1, event_type=EventType.CREATED), an_event(1, 2))
    [[older, newer]] = await claim(store)
    newer.supersede(older, at(1))
    await store.transact(lambda unit: unit.events.restate([newer]))
    assert await save(store, [older, newer]) == 2
    assert await kept(store, older, newer) == [older, newer]
    assert newer.event_type is EventType.CREATED


async def test_a_claim_that_ran_out_leaves_its_rows_waiting(store: Store, database: Database) -> None:
    await add(store, an_event(1), an_event(2), an_event(3, status=HELD))
    await claim(store)
    assert await store.transact(lambda unit: unit.events.free_zombies(at(29), 10)) == 0
    assert await store.transact(lambda unit: unit.events.free_zombies(at(30), 1)) == 1
    assert await store.transact(lambda unit: unit.events.free_zombies(at(30), 10)) == 1
    assert await claims(database) == [("WAITING", None, None), ("WAITING", None, None), ("HELD", None, None)]


async def test_locked_rows_are_written_back_whoever_claims_them(store: Store, database: Database) -> None:
    await add(store, an_event(1, status=HELD), an_event(2, status=FAILED), an_event(3))
    await claim(store)

    def work(unit: Any) -> None:
        held, failed, sending = unit.events.lock([an_event(product).outbox_id for product in (1, 2, 3)])
        for event in (held, failed, sending):
            if event.status is HELD:
                event.release(at(5))
            elif event.status is FAILED:
                event.again(at(5))
        unit.events.put([held, failed, sending])

    await store.transact(work)
    assert await claims(database) == [("WAITING", None, None), ("WAITING", None, None), ("SENDING", "ticker-1", at(30))]


async def test_failed_rows_since_a_moment_are_found_oldest_first(store: Store) -> None:
    rows = [an_event(place, status=FAILED, created_at=at(place)) for place in (3, 1, 2, 0)]
    await add(store, *rows, an_event(9))
    found = await store.transact(lambda unit: unit.events.lock_failed_since(at(1), 2))
    assert found == [rows[1], rows[2]]


async def test_a_newer_row_counts_as_sent_only_when_it_was(store: Store) -> None:
    await add(
        store,
        an_event(1, 1, FAILED),
        an_event(1, 2, COMPLETED, sent_at=at(1)),
        an_event(1, 3, COMPLETED, sent_at=at(1), error_message="superseded by 5"),
        an_event(1, 4, COMPLETED, sent_at=at(1), error_message="discarded"),
        an_event(1, 5),
        an_event(2, 7, COMPLETED, sent_at=at(1)),
    )
    newer = [await store.read(lambda unit, v=v: unit.events.newer_sent(an_event(1, v))) for v in (1, 2)]  # type: ignore[misc]
    assert newer == [2, None]


async def test_a_claim_is_no_slower_for_what_was_sent_long_ago(sqlite: Database) -> None:
    store = SqlStore(sqlite)
    rows = [
        {
            "outbox_id": an_id(f"old/{number}"),
            "product_id": an_id("product/1"),
            "event_type": "PRODUCT_UPDATED",
            "version": number,
            "payload": "{}",
            "status": "COMPLETED",
            "next_attempt_at": NOON,
            "created_at": NOON,
        }
        for number in range(5000)
    ]
    await sqlite.write(lambda connection: connection.execute(insert(tables.product_outbox), rows))
    await add(store, an_event(1, 9000))
    assert await sqlite.read(hundreds_of_steps) < 5


def hundreds_of_steps(connection: Any) -> int:
    """How many instructions SQLite needs for the question of the claim."""
    driver, count = connection.connection.driver_connection, 0

    def tick() -> None:
        nonlocal count
        count += 1

    driver.set_progress_handler(tick, 100)
    try:
        events._FIRSTS.rows(connection, ("2026-03-02 12:00:00.123456", 100))
    finally:
        driver.set_progress_handler(None, 0)
    return count
