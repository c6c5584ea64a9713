"""Disappearance: two absences in a row delist; too much of a shop at once waits for a person's word."""

import pytest

from flows.shelf import SELLER, Shelf, a_shelf, a_shop, of_kinds
from sellerwatch.domain.documents import ChangeKind
from sellerwatch.domain.errors import Conflict
from sellerwatch.domain.executions import ListState
from sellerwatch.steps.absences import MASS_MIN

ALERT = f"mass_delisting:{SELLER}"


async def delisted(shelf: Shelf, count: int) -> int:
    found = [await shelf.product(item_no) for item_no in range(1000, 1000 + count)]
    return sum(product is not None and product.status == "DELISTED" for product in found)


def without(shop: dict, gone: int) -> dict:
    return {item_no: found for item_no, found in shop.items() if item_no >= 1000 + gone}


@pytest.mark.parametrize(
    ("count", "gone", "waits"),
    [
        (2, 1, False),
        (10, MASS_MIN - 1, False),
        (10, MASS_MIN, True),
        (20, 6, False),
        (20, 7, True),
        (20, 20, True),
        (4, 4, False),
    ],
)
async def test_more_than_thirty_percent_of_a_shop_and_at_least_five_wait(count: int, gone: int, waits: bool) -> None:
    async with a_shelf() as shelf:
        shop = a_shop(count)
        await shelf.crawl(shop)
        await shelf.crawl(without(shop, gone))
        assert await delisted(shelf, count) == 0
        execution = await shelf.crawl(without(shop, gone))
        assert await delisted(shelf, count) == (0 if waits else gone)
        assert await shelf.alerts() == ([ALERT] if waits else [])
        kept = await shelf.store.read(lambda unit: unit.executions.get(execution.execution_id))
        assert kept is not None
        assert kept.list_state is (ListState.UNCONFIRMED if waits else ListState.SETTLED)


async def test_confirmed_they_go_and_are_told_once() -> None:
    async with a_shelf() as shelf:
        shop = a_shop(20)
        await shelf.crawl(shop)
        for _ in range(2):
            await shelf.crawl(without(shop, 9))
        changes = await shelf.decide.confirm_delisting(SELLER)
        assert of_kinds(changes) == {"DELISTED": 9}
        assert await shelf.alerts() == []
        with pytest.raises(Conflict, match="no delisting of nord waits"):
            await shelf.decide.confirm_delisting(SELLER)
        assert await shelf.process() == []
        assert await delisted(shelf, 20) == 9


async def test_unconfirmed_the_next_crawl_takes_its_place_and_nothing_is_counted_twice() -> None:
    async with a_shelf() as shelf:
        shop = a_shop(20)
        await shelf.crawl(shop)
        for _ in range(4):
            await shelf.crawl(without(shop, 9))
        waiting = await shelf.store.read(lambda unit: unit.executions.lock_unconfirmed(SELLER))
        assert len(waiting) == 1
        assert await delisted(shelf, 20) == 0
        assert of_kinds(await shelf.decide.confirm_delisting(SELLER)) == {"DELISTED": 9}


async def test_lesson_44_a_shop_that_was_answered_wrongly_is_whole_again_with_the_next_crawl() -> None:
    async with a_shelf() as shelf:
        shop = a_shop(20)
        await shelf.crawl(shop)
        for _ in range(2):
            await shelf.crawl({})
        assert await shelf.alerts() == [ALERT]
        await shelf.crawl(shop)
        assert await shelf.alerts() == []
        found = [await shelf.product(item_no) for item_no in shop]
        assert {(one.status, one.absences, one.version) for one in found if one} == {("ACTIVE", 0, 1)}


async def test_an_incomplete_crawl_delists_nothing_however_little_it_shows() -> None:
    async with a_shelf() as shelf:
        shop = a_shop(20)
        await shelf.crawl(shop)
        for _ in range(3):
            await shelf.crawl(without(shop, 19), is_complete=False)
        assert await delisted(shelf, 20) == 0
        assert await shelf.alerts() == []


async def test_pages_that_are_gone_in_mass_in_an_incomplete_crawl_prove_nothing() -> None:
    async with a_shelf() as shelf:
        shop = a_shop(20)
        await shelf.crawl(shop)
        for _ in range(3):
            execution = await shelf.crawl(shop, is_complete=False, absorbed=False)
            gone = [(execution.execution_id, item_no) for item_no in list(shop)[:10]]
            await shelf.store.transact(lambda unit, gone=gone: unit.listings.mark_gone(gone))
            await shelf.process()
        assert await delisted(shelf, 20) == 0


async def test_what_was_delisted_is_relisted_when_it_is_seen_again() -> None:
    async with a_shelf() as shelf:
        shop = a_shop(20)
        await shelf.crawl(shop)
        for _ in range(2):
            await shelf.crawl(without(shop, 3))
        await shelf.crawl(shop)
        assert of_kinds(shelf.changes) == {"CREATED": 20, "DELISTED": 3, "RELISTED": 3}
        assert [c.version for c in shelf.changes if ChangeKind.RELISTED in c.kinds] == [3, 3, 3]
