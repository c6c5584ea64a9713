"""What resending and reconciling promise: only what the receiver lacks, under the same id, whatever number there is."""

import tracemalloc
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from builders import NOON
from desk import a_product, an_event, new_house
from sellerwatch.adapters.bell import AsyncBell
from sellerwatch.adapters.clock import SystemClock
from sellerwatch.adapters.sql.store import SqlStore
from sellerwatch.domain.outbox import OutboxStatus, ProductEvent
from sellerwatch.domain.products import ProductStatus
from sellerwatch.flows import resend as resending
from sellerwatch.flows.resend import Resend, Resent
from sellerwatch.ports.store import Unit

WAITING, COMPLETED, FAILED, HELD = (
    OutboxStatus.WAITING,
    OutboxStatus.COMPLETED,
    OutboxStatus.FAILED,
    OutboxStatus.HELD,
)


class Place:
    def __init__(self, store: SqlStore) -> None:
        self.store = store
        clock = SystemClock()
        self.bell = AsyncBell(clock)
        self.resend = Resend(store, clock, self.bell)

    async def everything(self, seller_id: str | None = None, *, is_trial: bool = False) -> Resent:
        return [done async for done in self.resend.everything(seller_id, is_trial=is_trial)][-1]

    async def reconcile(self, theirs: Iterable[tuple[int, int]], *, is_trial: bool = False) -> Resent:
        return [done async for done in self.resend.difference(theirs, is_trial=is_trial)][-1]

    async def events(self, *events: ProductEvent) -> list[ProductEvent]:
        found = await self.store.read(lambda unit: unit.events.lock([event.outbox_id for event in events]))
        by_id = {event.outbox_id: event for event in found}
        return [by_id[event.outbox_id] for event in events]

    async def arrived(self, *versions: int) -> list[ProductEvent]:
        """Products 1, 2, 3 … of which these versions were sent and confirmed."""
        products = [a_product(number, version=version) for number, version in enumerate(versions, 1)]
        events = [
            an_event(product, version, COMPLETED, sent_at=NOON)
            for product, version in zip(products, versions, strict=True)
        ]

        def plant(unit: Unit) -> None:
            unit.products.save(products)
            unit.events.add(events)

        await self.store.transact(plant)
        return events


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with new_house(tmp_path) as database:
        yield Place(SqlStore(database))


async def test_the_newest_row_of_a_product_is_sent_once_more_and_one_forgotten_is_written_anew(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resending, "BATCH", 2)
    known, forgotten, incomplete = a_product(1, version=2), a_product(2, version=4), a_product(3, version=0)
    forgotten.status = ProductStatus.DELISTED
    newest, waiting = an_event(known, 2, COMPLETED, sent_at=NOON), a_product(4, seller_id="shop-2")
    unsent = an_event(waiting, 1, WAITING, retry_count=3)

    def plant(unit: Unit) -> None:
        unit.products.save([known, forgotten, incomplete, waiting])
        unit.events.add([an_event(known, 1, COMPLETED), newest, unsent])

    await place.store.transact(plant)
    counted = await place.everything(is_trial=True)
    assert (counted.sent, counted.on_their_way) == (2, 1)
    assert (await place.events(newest))[0].status is COMPLETED
    assert not await place.bell.wait("deliver", 0)
    assert await place.everything() == counted
    assert await place.bell.wait("deliver", 0)
    [again, still] = await place.events(newest, unsent)
    # It was measured when it arrived.
    assert (again.status, again.sent_at, again.seen_at) == (WAITING, None, None)
    assert still.retry_count == 3
    [anew] = await place.events(an_event(forgotten, 4, WAITING))
    assert anew.payload["productData"]["name"] == "Item 2"
    assert (anew.version, anew.payload["changes"], anew.status) == (4, [], WAITING)
    assert anew.payload["eventType"] == "PRODUCT_DELISTED"
    assert (await place.everything("shop-2")).on_their_way == 1


async def test_only_what_is_missing_or_older_there_is_sent_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resending, "BATCH", 2)
    events = await place.arrived(1, 5, 3, 2, 7)
    theirs = [(5, 7), (1, 1), (2, 4), (4, 1), (99, 1)]
    told = await place.reconcile(theirs, is_trial=True)
    assert {event.status for event in await place.events(*events)} == {COMPLETED}
    done = await place.reconcile(theirs)
    assert done == told
    assert (done.compared, done.same, done.older, done.missing, done.sent) == (5, 2, 2, 1, 3)
    assert [event.status for event in await place.events(*events)] == [COMPLETED, WAITING, WAITING, WAITING, COMPLETED]
    assert (done.newer.count, done.unknown.samples) == (0, [(99, 1, 0)])


async def test_what_is_newer_there_is_told_and_not_sent(place: Place) -> None:
    events = await place.arrived(3, 3)
    done = await place.reconcile([(1, 4), (2, 3)])
    assert (done.newer.count, done.newer.samples) == (1, [(1, 4, 3)])
    assert (done.sent, done.missing) == (0, 0)
    assert {event.status for event in await place.events(*events)} == {COMPLETED}


async def test_what_is_on_its_way_or_held_stays_as_it_is(place: Place) -> None:
    products = [a_product(number) for number in (1, 2, 3)]
    rows = [an_event(one, 1, status) for one, status in zip(products, (WAITING, HELD, FAILED), strict=True)]

    def plant(unit: Unit) -> None:
        unit.products.save(products)
        unit.events.add(rows)

    await place.store.transact(plant)
    done = await place.reconcile([])
    assert (done.missing, done.sent, done.on_their_way) == (3, 1, 2)
    assert [event.status for event in await place.events(*rows)] == [WAITING, HELD, WAITING]


async def test_doing_it_twice_sends_nothing_twice(place: Place) -> None:
    await place.arrived(1, 2, 3)
    assert (await place.reconcile([(1, 1)])).sent == 2
    again = await place.reconcile([(1, 1)])
    assert (again.sent, again.on_their_way) == (0, 2)


async def test_memory_does_not_grow_with_the_number_of_products(place: Place) -> None:
    async def peak(count: int) -> int:
        def plant(unit: Unit) -> None:
            unit.products.save([a_product(number) for number in range(1, count + 1)])

        await place.store.transact(plant)
        tracemalloc.start()
        await place.reconcile(((number, 1) for number in range(1, count + 1)), is_trial=True)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    # A bit each; as a set of numbers they would take half a megabyte.
    few = await peak(600)
    assert await peak(6_000) < few + 150_000
