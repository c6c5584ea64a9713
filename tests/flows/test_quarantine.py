"""The drift guard: what looks like drift waits, what is real goes out, and a person or a later crawl decides."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from flows.shelf import DETAIL, OPTION, SELLER, Documents, Shelf, a_shelf, a_shop, documents, of_kinds
from pages import LEFT_OUT
from sellerwatch.domain import forms
from sellerwatch.domain.documents import ChangeKind
from sellerwatch.domain.drift import LIMITS, WINDOW, Measure
from sellerwatch.domain.executions import ListState
from sellerwatch.domain.fields import FIELDS, Field
from sellerwatch.domain.meaning import Meaning
from sellerwatch.domain.outbox import OutboxStatus
from sellerwatch.domain.products import ProductStatus
from sellerwatch.domain.quarantines import QuarantineStatus
from sellerwatch.domain.raws import RawStatus
from sellerwatch.ports.store import Claim, Unit
from sellerwatch.steps.holding import let_go

HELD, WAITING, COMPLETED = OutboxStatus.HELD, OutboxStatus.WAITING, OutboxStatus.COMPLETED
COUNT = 90


def with_cents(shop: Mapping[int, Documents]) -> dict[int, Documents]:
    """A day on which prices are written in another unit."""
    return {item_no: documents(item_no, sellingPrice=59_900_000) for item_no in shop}


async def versions(shelf: Shelf) -> dict[int, int]:
    found = [await shelf.product(item_no) for item_no in range(1000, 1000 + COUNT)]
    return {product.item_no: product.version for product in found if product}


async def a_quarantined_shelf(shelf: Shelf) -> str:
    """Known for a day, then drifted; the quarantine's id."""
    await shelf.crawl(a_shop(COUNT))
    execution = await shelf.crawl(with_cents(a_shop(COUNT)))
    quarantine = await shelf.quarantine(execution)
    assert quarantine is not None
    assert quarantine.is_open
    return quarantine.quarantine_id


async def test_products_keep_their_state_events_are_held_and_somebody_is_told() -> None:
    async with a_shelf() as shelf:
        quarantine_id = await a_quarantined_shelf(shelf)
        assert set((await versions(shelf)).values()) == {1}
        assert of_kinds(shelf.changes) == {"CREATED": COUNT}
        product = await shelf.product(1000)
        assert product is not None
        assert product.fields["sellingPrice"] == 599_000
        held = await shelf.events(HELD)
        assert len(held) == COUNT
        assert {(row.version, row.quarantine_id) for row in held} == {(2, quarantine_id)}
        assert held[0].payload["changes"] == [{"field": "sellingPrice", "old": 599_000, "new": 59_900_000}]
        assert await shelf.alerts() == [f"field_drift:{SELLER}"]
        assert (await shelf.raws())["HELD"] == COUNT


async def test_a_release_lets_all_of_it_go_in_order_once() -> None:
    async with a_shelf() as shelf:
        quarantine_id = await a_quarantined_shelf(shelf)
        [first, *_] = await shelf.events(HELD)
        # One row is named: the quarantine goes as a whole.
        decided = await shelf.decide.release([first.outbox_id])
        assert (decided.events, decided.refused) == (COUNT, [])
        await shelf.process()
        assert set((await versions(shelf)).values()) == {2}
        assert await shelf.events(HELD) == []
        waiting = await shelf.events(WAITING)
        assert len(waiting) == 2 * COUNT
        assert {row.error_message for row in await shelf.events(COMPLETED)} == {"released: told by its own row"}
        assert await shelf.alerts() == []
        again = await shelf.decide.release([quarantine_id])
        assert again.refused == [f"quarantine {quarantine_id} is RELEASED: it cannot be released"]
        assert await shelf.process() == []
        assert len(await shelf.events(WAITING)) == 2 * COUNT


async def test_what_was_released_is_what_is_usual_from_then_on() -> None:
    async with a_shelf() as shelf:
        shop = a_shop(COUNT)
        await shelf.crawl(shop)
        unbranded = {item_no: documents(item_no, brandNameKr=LEFT_OUT) for item_no in shop}
        execution = await shelf.crawl(unbranded)
        quarantine = await shelf.quarantine(execution)
        assert quarantine is not None
        assert (quarantine.measure, quarantine.field) == (Measure.MISSING, "DETAIL.brandNameKr")
        await shelf.decide.release([quarantine.quarantine_id])
        await shelf.process()
        still = {item_no: documents(item_no, brandNameKr=LEFT_OUT, stock=7) for item_no in list(shop)[:40]}
        later = await shelf.crawl({**unbranded, **still})
        assert await shelf.quarantine(later) is None


async def test_a_discarded_crawl_changes_nothing_and_the_next_is_judged_by_itself() -> None:
    async with a_shelf() as shelf:
        quarantine_id = await a_quarantined_shelf(shelf)
        decided = await shelf.decide.discard([quarantine_id])
        assert (decided.events, len(decided.quarantines)) == (COUNT, 1)
        assert await shelf.process() == []
        assert {row.error_message for row in await shelf.events(COMPLETED)} == {"discarded"}
        assert await shelf.raws() == {"PROCESSED": 4 * COUNT}
        again = await shelf.crawl(with_cents(a_shop(COUNT)))
        quarantine = await shelf.quarantine(again)
        assert quarantine is not None
        assert quarantine.is_open
        await shelf.crawl({item_no: documents(item_no, stock=9) for item_no in range(1000, 1010)} | a_shop(COUNT - 1))
        assert set((await versions(shelf)).values()) == {1}


async def test_a_later_crawl_that_passes_ends_it_and_tells_only_what_is_real() -> None:
    async with a_shelf() as shelf:
        await a_quarantined_shelf(shelf)
        real = a_shop(COUNT) | {1003: documents(1003, sellingPrice=499_000)}
        await shelf.crawl(real)
        assert {item_no for item_no, version in (await versions(shelf)).items() if version == 2} == {1003}
        assert await shelf.alerts() == []
        await shelf.store.transact(
            lambda unit: [let_go(unit, one, shelf.clock.now(), 500) for one in unit.quarantines.lock_ended(9)]
        )
        assert await shelf.events(HELD) == []
        assert {row.error_message for row in await shelf.events(COMPLETED)} == {"superseded by a later crawl"}


async def test_a_later_crawl_that_trips_too_takes_its_place() -> None:
    async with a_shelf() as shelf:
        first = await a_quarantined_shelf(shelf)
        second = await shelf.crawl(with_cents(a_shop(COUNT)))
        known, taken = (
            await shelf.store.transact(lambda unit: unit.quarantines.lock([first])),
            await shelf.quarantine(second),
        )
        assert [one.status for one in known] == [QuarantineStatus.SUPERSEDED]
        assert taken is not None
        assert taken.is_open
        # The same bytes are the same raws: they went over.
        assert (await shelf.raws())["HELD"] == COUNT


async def test_after_the_table_is_mended_reprocessing_tells_just_what_is_real() -> None:
    """A day on which the marketplace renames `sellingPrice`."""

    def renamed(item_no: int, price: int, entry: Mapping[str, object] | None = None) -> Documents:
        return documents(item_no, sellingPrice=LEFT_OUT, salePrice=price, entry=entry)

    mended = Meaning(
        tuple(replace(one, path="ProductInfoModule.salePrice") if one.name == "sellingPrice" else one for one in FIELDS)
    )
    async with a_shelf() as shelf:
        shop = a_shop(COUNT)
        await shelf.crawl(shop)
        began = shelf.clock.now() + timedelta(hours=1)
        day = {item_no: renamed(item_no, 599_000) for item_no in shop}
        day[1004] = renamed(1004, 499_000)
        day[1005] = renamed(1005, 599_000, entry={"appPrice": "500,000"})
        execution = await shelf.crawl(day)
        quarantine = await shelf.quarantine(execution)
        assert quarantine is not None
        assert (quarantine.measure, quarantine.field) == (Measure.UNREADABLE, "DETAIL.sellingPrice")
        assert "unknown instead: ProductInfoModule.salePrice" in quarantine.reason
        assert await shelf.alerts() == [f"field_drift:{SELLER}"]
        assert (await shelf.raws())["FAILED"] == COUNT
        assert set((await versions(shelf)).values()) == {1}
        shelf.understand(mended)
        await shelf.read_once_more(began)
        changes = await shelf.process()
        assert {(c.item_no, c.fields[0].field, c.fields[0].old, c.fields[0].new) for c in changes} == {
            (1004, "sellingPrice", 599_000, 499_000),
            (1005, "appPrice", 537_500, 500_000),
        }
        assert await shelf.alerts() == []
        assert (await shelf.quarantine(execution)).status is QuarantineStatus.REPROCESSED  # type: ignore[union-attr]


async def test_read_once_more_without_being_mended_it_is_quarantined_again() -> None:
    async with a_shelf() as shelf:
        quarantine_id = await a_quarantined_shelf(shelf)
        await shelf.read_once_more(shelf.clock.now() - timedelta(hours=1))
        assert await shelf.alerts() == []
        assert await shelf.process() == []
        [quarantine] = await shelf.store.transact(lambda unit: unit.quarantines.lock([quarantine_id]))
        assert (quarantine.status, quarantine.documents, quarantine.events) == (QuarantineStatus.OPEN, COUNT, COUNT)
        assert len(await shelf.events(HELD)) == COUNT
        assert set((await versions(shelf)).values()) == {1}


async def test_a_small_shop_may_change_altogether() -> None:
    count = LIMITS[Measure.JUMPED].sample - 1
    async with a_shelf() as shelf:
        shop = a_shop(count)
        await shelf.crawl(shop)
        execution = await shelf.crawl(with_cents(shop))
        assert await shelf.quarantine(execution) is None
        assert of_kinds(shelf.changes) == {"CREATED": count, "PRICE": count}


async def test_a_first_crawl_has_nothing_to_be_compared_with() -> None:
    async with a_shelf() as shelf:
        execution = await shelf.crawl(a_shop(COUNT, brandNameKr=LEFT_OUT))
        assert await shelf.quarantine(execution) is None
        assert of_kinds(shelf.changes) == {"CREATED": COUNT}


async def test_less_than_the_smallest_sample_slips_through_before_the_limit_is_met() -> None:
    """Ten items at a time: the batch that meets the limit is held itself."""
    async with a_shelf(batch=10) as shelf:
        await shelf.crawl(a_shop(COUNT))
        await shelf.crawl(with_cents(a_shop(COUNT)))
        slipped = of_kinds(shelf.changes).get("PRICE", 0)
        assert 0 < slipped < LIMITS[Measure.JUMPED].sample


async def test_in_the_middle_of_a_large_crawl_the_window_bounds_what_slips_through() -> None:
    async with a_shelf(batch=60) as shelf:
        shop = a_shop(1200)
        await shelf.crawl(shop)
        # Everything is written anew; after two thirds of the shop a field is gone.
        day = {
            item_no: documents(item_no, likeCount=7, **({"brandNameKr": LEFT_OUT} if item_no >= 1800 else {}))
            for item_no in shop
        }
        execution = await shelf.crawl(day)
        quarantine = await shelf.quarantine(execution)
        assert quarantine is not None
        slipped = of_kinds(shelf.changes).get("INFO", 0)
        assert 0 < slipped <= LIMITS[Measure.MISSING].above * 2 * WINDOW


async def test_another_shop_goes_on() -> None:
    async with a_shelf() as shelf:
        other = {item_no: documents(item_no, sellerId="sud") for item_no in range(5000, 5030)}
        await shelf.crawl(a_shop(COUNT))
        await shelf.crawl(other, seller_id="sud")
        await shelf.crawl(with_cents(a_shop(COUNT)), absorbed=False)
        await shelf.crawl(
            other | {5001: documents(5001, sellerId="sud", stock=8)}, seller_id="sud", absorbed=False, hours=0
        )
        [change] = await shelf.process()
        assert (change.item_no, change.kinds) == (5001, (ChangeKind.STOCK,))


async def test_a_new_product_waits_with_the_rest_and_is_created_by_the_release() -> None:
    async with a_shelf() as shelf:
        await shelf.crawl(a_shop(COUNT))
        execution = await shelf.crawl(with_cents(a_shop(COUNT)) | {7000: documents(7000)})
        assert await shelf.product(7000) is None
        created = [row for row in await shelf.events(HELD) if row.event_type == "PRODUCT_CREATED"]
        assert [(row.payload["itemNo"], row.version) for row in created] == [(7000, 1)]
        quarantine = await shelf.quarantine(execution)
        assert quarantine is not None
        await shelf.decide.release([quarantine.quarantine_id])
        await shelf.process()
        product = await shelf.product(7000)
        assert product is not None
        assert product.version == 1


async def test_a_held_row_stands_in_nobodys_way() -> None:
    async with a_shelf() as shelf:
        await a_quarantined_shelf(shelf)
        at = shelf.clock.now()
        await shelf.store.transact(lambda unit: unit.events.claim(Claim("d", at + timedelta(minutes=1), at), 500))
        sent = await shelf.events(OutboxStatus.SENDING)
        await shelf.store.transact(lambda unit: _confirm(unit, sent, at))
        # Quarantined, yet a part of the shop is crawled anew: version 2, although a HELD row foretells another.
        await shelf.crawl({1002: documents(1002, stock=5)}, is_complete=False)
        at = shelf.clock.now()
        claimed = await shelf.store.transact(
            lambda unit: unit.events.claim(Claim("d", at + timedelta(minutes=1), at), 500)
        )
        assert [[(row.payload["itemNo"], row.version) for row in rows] for rows in claimed] == [[(1002, 2)]]
        await shelf.store.transact(lambda unit: _confirm(unit, [row for rows in claimed for row in rows], at))
        await shelf.crawl({1002: documents(1002, stock=6)}, is_complete=False)
        at = shelf.clock.now()
        claimed = await shelf.store.transact(
            lambda unit: unit.events.claim(Claim("d", at + timedelta(minutes=1), at), 500)
        )
        assert [[row.version for row in rows] for rows in claimed] == [[3]]


def _confirm(unit: Unit, rows: list[object], at: object) -> None:
    for row in rows:
        row.completed(at)  # type: ignore[attr-defined]
    unit.events.save(rows, "d")  # type: ignore[arg-type]


async def test_what_a_later_crawl_saw_is_not_set_back_by_a_release() -> None:
    async with a_shelf() as shelf:
        quarantine_id = await a_quarantined_shelf(shelf)
        await shelf.crawl({1002: documents(1002, stock=5)}, is_complete=False)
        await shelf.decide.release([quarantine_id])
        await shelf.process()
        product = await shelf.product(1002)
        assert product is not None
        assert (product.fields["sellingPrice"], product.fields["stock"], product.version) == (599_000, 5, 2)
        assert set((await versions(shelf)).values()) == {2}


async def test_no_absence_is_drawn_from_it_before_it_is_released() -> None:
    async with a_shelf() as shelf:
        shop = a_shop(COUNT)
        await shelf.crawl(shop)
        del shop[1000]
        execution = await shelf.crawl(with_cents(shop))
        product = await shelf.product(1000)
        assert product is not None
        assert product.absences == 0
        quarantine = await shelf.quarantine(execution)
        assert quarantine is not None
        await shelf.decide.release([quarantine.quarantine_id])
        await shelf.process()
        product = await shelf.product(1000)
        assert product is not None
        assert product.absences == 1


async def test_no_absence_is_drawn_from_one_that_was_discarded() -> None:
    async with a_shelf() as shelf:
        shop = a_shop(COUNT)
        await shelf.crawl(shop)
        del shop[1000]
        execution = await shelf.crawl(with_cents(shop))
        quarantine = await shelf.quarantine(execution)
        assert quarantine is not None
        await shelf.decide.discard([quarantine.quarantine_id])
        await shelf.process()
        product = await shelf.product(1000)
        assert product is not None
        assert product.absences == 0
        settled = await shelf.store.read(lambda unit: unit.executions.get(execution.execution_id))
        assert settled is not None
        assert settled.list_state is ListState.SETTLED


@pytest.mark.parametrize("after", [0, 1, 2])
async def test_a_crash_in_the_middle_of_a_decision_leaves_the_rest_to_whoever_comes_next(after: int) -> None:
    async with a_shelf() as shelf:
        quarantine_id = await a_quarantined_shelf(shelf)
        at = shelf.clock.now()

        def release(unit: Unit) -> None:
            [quarantine] = unit.quarantines.lock([quarantine_id])
            quarantine.release(at)
            unit.quarantines.save([quarantine])

        def some(unit: Unit) -> list[bool]:
            return [let_go(unit, one, at, 40) for one in unit.quarantines.lock_ended(1)]

        await shelf.store.transact(release)
        for _ in range(after):
            await shelf.store.transact(some)
        # What comes next is the sweep, again and again.
        while await shelf.store.transact(some):
            await shelf.process()
        assert set((await versions(shelf)).values()) == {2}
        assert await shelf.events(HELD) == []
        assert RawStatus.HELD not in await shelf.raws()


async def test_a_sale_of_the_whole_shop_waits_for_a_word() -> None:
    """Half a shop changes the same field in one crawl: a sale, or another form. Which of the two a person knows."""
    async with a_shelf() as shelf:
        shop = a_shop(COUNT)
        await shelf.crawl(shop)
        execution = await shelf.crawl({item_no: documents(item_no, sellingPrice=479_200) for item_no in shop})
        quarantine = await shelf.quarantine(execution)
        assert quarantine is not None
        assert (quarantine.measure, quarantine.field) == (Measure.CHANGED, "sellingPrice")


async def test_a_field_that_is_declared_only_now_appears_everywhere_without_being_drift() -> None:
    more = Meaning((*FIELDS, Field("trustPoint", DETAIL, "ProductInfoModule.catalogId", forms.NUMBER, ChangeKind.INFO)))
    async with a_shelf() as shelf:
        shop = a_shop(COUNT)
        await shelf.crawl(shop)
        shelf.understand(more)
        execution = await shelf.crawl({item_no: documents(item_no, isLowestPrice=False) for item_no in shop})
        assert await shelf.quarantine(execution) is None
        assert of_kinds(shelf.changes) == {"CREATED": COUNT, "INFO": COUNT}


async def test_options_that_are_all_gone_at_once_are_missing_values_too() -> None:
    async with a_shelf() as shelf:
        shop = a_shop(COUNT)
        await shelf.crawl(shop)
        execution = await shelf.crawl({item_no: {**found, OPTION: b"[]"} for item_no, found in shop.items()})
        quarantine = await shelf.quarantine(execution)
        assert quarantine is not None
        assert quarantine.field in {"OPTION.options", "options"}


async def test_full_pages_that_hold_much_less_than_usual_are_drift() -> None:
    async with a_shelf() as shelf:
        shop = a_shop(30)
        await shelf.crawl(shop, full_pages=(4, 2000))
        assert await shelf.quarantine(await shelf.crawl(shop, full_pages=(5, 2490))) is None
        execution = await shelf.crawl(shop | {1001: documents(1001, stock=8)}, full_pages=(4, 400), is_complete=False)
        quarantine = await shelf.quarantine(execution)
        assert quarantine is not None
        assert quarantine.reason == "full pages hold 100 items, usually 499"


async def test_what_is_usual_is_not_learned_from_a_quarantined_crawl() -> None:
    async with a_shelf() as shelf:
        await a_quarantined_shelf(shelf)
        before = await shelf.store.transact(lambda unit: unit.drift.watch(["none"]))
        assert before == {}
        for _ in range(3):
            execution = await shelf.crawl(with_cents(a_shop(COUNT)))
            quarantine = await shelf.quarantine(execution)
            assert quarantine is not None
            assert quarantine.is_open


async def test_a_product_delisted_meanwhile_comes_back_with_the_release() -> None:
    async with a_shelf() as shelf:
        shop = a_shop(COUNT)
        await shelf.crawl(shop)
        rest = {item_no: found for item_no, found in shop.items() if item_no != 1001}
        await shelf.crawl(rest)
        await shelf.crawl(rest)
        product = await shelf.product(1001)
        assert product is not None
        assert product.status is ProductStatus.DELISTED
        execution = await shelf.crawl(with_cents(shop))
        quarantine = await shelf.quarantine(execution)
        assert quarantine is not None
        await shelf.decide.release([quarantine.quarantine_id])
        await shelf.process()
        product = await shelf.product(1001)
        assert product is not None
        assert (product.status, product.version) == (ProductStatus.ACTIVE, 3)
