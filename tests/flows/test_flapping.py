"""Flapping: a change and its exact reverse within `FLAP_SECONDS` are told as nothing, and counted."""

from datetime import timedelta

import pytest

from flows.shelf import Shelf, a_shelf, documents
from sellerwatch.adapters.sql.reports import SqlReports
from sellerwatch.domain.outbox import OutboxStatus, ProductEvent
from sellerwatch.flows.deliver import Deliver
from sellerwatch.ports.outside import Receipt

HOUR = 3600.0


class Listener:
    """A product server that takes everything."""

    def __init__(self) -> None:
        self.heard: list[tuple[int, list[tuple[object, object]]]] = []

    async def deliver(self, _outbox_id: str, payload: dict, _at: object, _context: object) -> Receipt:
        self.heard.append((payload["version"], [(one["old"], one["new"]) for one in payload["changes"]]))
        return Receipt(200)


async def tell(shelf: Shelf, listener: Listener) -> None:
    deliver = Deliver(shelf.store, listener, shelf.clock, shelf.absorb.chance, "d")  # type: ignore[arg-type]
    while (await deliver.run()).sent:
        pass


async def rows(shelf: Shelf) -> list[tuple[int, str, str | None]]:
    found: list[ProductEvent] = []
    for status in OutboxStatus:
        found += await shelf.events(status)
    return sorted((row.version, row.status.value, row.error_message) for row in found)


async def suppressed(shelf: Shelf) -> dict[str, int]:
    report = await SqlReports(shelf.database).drift(shelf.clock.now() - timedelta(days=30))
    return {row.rule: row.times for row in report.suppressed}


async def stocks(shelf: Shelf, *amounts: int, minutes: float = 10) -> None:
    for amount in amounts:
        await shelf.crawl({1000: documents(1000, stock=amount)}, hours=minutes / 60)


async def test_a_change_and_its_reverse_are_told_as_nothing_and_counted() -> None:
    async with a_shelf(flap_seconds=HOUR) as shelf:
        listener = Listener()
        await stocks(shelf, 3, 5, 3)
        await shelf.clock.sleep(2 * HOUR)
        await tell(shelf, listener)
        assert listener.heard == [(1, [])]
        assert await rows(shelf) == [
            (1, "COMPLETED", None),
            (2, "COMPLETED", "flap: undone by 3"),
            (3, "COMPLETED", "flap: undid 2"),
        ]
        assert await suppressed(shelf) == {"flap": 2}


async def test_by_default_every_change_is_told() -> None:
    async with a_shelf() as shelf:
        listener = Listener()
        for amount in (3, 5, 3):
            await stocks(shelf, amount)
            await tell(shelf, listener)
        assert listener.heard == [(1, []), (2, [(3, 5)]), (3, [(5, 3)])]
        assert await suppressed(shelf) == {}


async def test_a_change_waits_so_long_for_its_reverse_and_a_creation_does_not() -> None:
    async with a_shelf(flap_seconds=HOUR) as shelf:
        listener = Listener()
        await stocks(shelf, 3)
        await tell(shelf, listener)
        assert [version for version, _ in listener.heard] == [1]
        await stocks(shelf, 5)
        await tell(shelf, listener)
        assert [version for version, _ in listener.heard] == [1]
        await shelf.clock.sleep(HOUR)
        await tell(shelf, listener)
        assert listener.heard[1:] == [(2, [(3, 5)])]


@pytest.mark.parametrize(("minutes", "told"), [(59, []), (61, [(2, [(3, 5)]), (3, [(5, 3)])])])
async def test_later_than_that_a_reverse_is_a_change(minutes: float, told: list[object]) -> None:
    async with a_shelf(flap_seconds=HOUR) as shelf:
        listener = Listener()
        await stocks(shelf, 3, 5)
        await tell(shelf, listener)
        await shelf.clock.sleep(minutes * 60)
        await tell(shelf, listener)
        await stocks(shelf, 3, minutes=0)
        await shelf.clock.sleep(2 * HOUR)
        await tell(shelf, listener)
        assert listener.heard[1:] == told


async def test_only_the_exact_reverse_of_the_version_before_is_one() -> None:
    async with a_shelf(flap_seconds=HOUR) as shelf:
        listener = Listener()
        await stocks(shelf, 3)
        await tell(shelf, listener)
        await stocks(shelf, 5, 4)
        await shelf.crawl({1000: documents(1000, stock=4, itemName="other")}, hours=0.1)
        await stocks(shelf, 4, minutes=1)
        await shelf.clock.sleep(2 * HOUR)
        await tell(shelf, listener)
        assert listener.heard == [(1, []), (3, [(3, 4)])]
        assert await suppressed(shelf) == {"flap": 2}


async def test_a_change_that_is_due_does_not_take_one_along_that_may_still_be_undone() -> None:
    async with a_shelf(flap_seconds=HOUR) as shelf:
        listener = Listener()
        await stocks(shelf, 3)
        await tell(shelf, listener)
        await stocks(shelf, 5)
        await stocks(shelf, 6, minutes=50)
        await shelf.clock.sleep(15 * 60)
        await tell(shelf, listener)
        assert listener.heard[1:] == [(2, [(3, 5)])]
        await stocks(shelf, 5, minutes=10)
        await shelf.clock.sleep(2 * HOUR)
        await tell(shelf, listener)
        assert listener.heard[1:] == [(2, [(3, 5)])]
