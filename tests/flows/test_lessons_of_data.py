"""Lessons of documents, from the raws to what the product server hears; 36 to 39, 42, 43, 45 and 46 stand beside what they teach."""

from collections.abc import AsyncIterator

import orjson
import pytest

from builders import NOON, a_seller, an_id, at
from flows.shelf import DETAIL, MINI_SHOP, OPTION, SELLER, Shelf, a_shelf, documents, of_kinds
from pages import a_mini_shop_page
from sellerwatch.adapters.chance import SystemChance
from sellerwatch.adapters.marketplace.parse import Parse
from sellerwatch.adapters.vault import Vault
from sellerwatch.domain.identities import SealedToken
from sellerwatch.domain.sellers import CrawlSource


@pytest.fixture
async def shelf() -> AsyncIterator[Shelf]:
    async with a_shelf() as made:
        yield made


async def test_lesson_40_an_older_document_overwrites_no_newer_one_however_late_it_is_processed(shelf: Shelf) -> None:
    await shelf.crawl({1000: documents(1000)})
    await shelf.crawl({1000: documents(1000, sellingPrice=510_000)}, absorbed=False)
    late = shelf.clock.now()
    await shelf.crawl({1000: documents(1000, sellingPrice=520_000)}, absorbed=False)

    def put_off(unit: object) -> None:
        raws = [raw for raw in unit.raws.lock_ripe(shelf.clock.now(), 100) if raw.crawled_at == late]  # type: ignore[attr-defined]
        for raw in raws:
            raw.next_attempt_at = at(10**7)
        unit.raws.save(raws)  # type: ignore[attr-defined]

    await shelf.store.transact(put_off)
    await shelf.process()
    await shelf.clock.sleep(10**8)
    await shelf.process()
    product = await shelf.product(1000)
    assert product is not None
    assert (product.fields["sellingPrice"], product.version) == (520_000, 2)


async def test_lesson_41_details_that_come_before_anything_else_wait_for_the_rest_and_are_not_dropped(
    shelf: Shelf,
) -> None:
    whole = documents(1000)
    for kind in (OPTION, DETAIL):
        await shelf.crawl({1000: {kind: whole[kind]}}, hours=1, is_complete=False)
        product = await shelf.product(1000)
        assert product is not None
        assert (product.version, shelf.changes) == (0, [])
    await shelf.crawl({1000: {MINI_SHOP: whole[MINI_SHOP]}}, hours=1)
    product = await shelf.product(1000)
    assert product is not None
    assert (product.version, product.fields["sellingPrice"], len(product.fields["options"])) == (1, 599_000, 2)
    assert await shelf.raws() == {"PROCESSED": 3}


async def test_lesson_44_a_strangers_item_in_a_search_is_skipped_and_case_makes_no_stranger(shelf: Shelf) -> None:
    seller = a_seller(SELLER, crawl_source=CrawlSource.SEARCH)
    await shelf.store.transact(lambda unit: unit.sellers.add(seller))
    await shelf.crawl({1000: documents(1000, sellerId="NoRd"), 2000: documents(2000, sellerId="somebody")})
    mine, strangers = await shelf.product(1000), await shelf.product(2000)
    assert mine is not None
    assert (mine.seller_id, strangers) == (SELLER, None)
    # Crawled by its list, whoever is written there: nobody is absent because of a capital letter.
    for _ in range(3):
        await shelf.crawl({1000: documents(1000, sellerId="NORD")})
    product = await shelf.product(1000)
    assert product is not None
    assert (product.seller_id, product.status, product.version) == (SELLER, "ACTIVE", 1)


async def test_lesson_47_content_that_comes_again_is_stored_once(shelf: Shelf) -> None:
    one, other = {1000: documents(1000)}, {1000: documents(1000, sellingPrice=1_000_000)}
    for shop in (one, one, other, one, other, one):
        await shelf.crawl(shop)
    assert await shelf.raws() == {"PROCESSED": 4}
    assert of_kinds(shelf.changes) == {"CREATED": 1, "PRICE": 4}


def test_lesson_47_a_page_larger_than_any_buffer_is_cut_into_the_bytes_of_its_entries() -> None:
    page = a_mini_shop_page(500, groupResult={"x": ["y" * 1000] * 4000})
    listing = Parse().listing("MINI_SHOP", page)
    assert len(page) > 4_000_000
    assert len(listing.entries) == 500
    assert max(len(entry.raw) for entry in listing.entries) < 2_000
    assert orjson.loads(listing.entries[-1].raw)["itemNo"] == listing.entries[-1].item_no


async def test_lesson_48_tokens_that_begin_with_the_same_255_characters_are_distinct(shelf: Shelf) -> None:
    vault = Vault((("k1", bytes(32)),), SystemChance().token_bytes)
    values = [f"{'e' * 255}{end}" for end in ("a", "b")]
    fingerprints = [vault.fingerprint(value) for value in values]
    assert len(set(fingerprints)) == 2

    def keep(unit: object) -> list[tuple[int, SealedToken]]:
        for agent_id, (value, fingerprint) in enumerate(zip(values, fingerprints, strict=True), start=1):
            token = SealedToken(vault.seal(value, an_id(agent_id)), fingerprint, NOON, at(7200), None)
            unit.identities.keep_token(agent_id, token, NOON)  # type: ignore[attr-defined]
        return unit.identities.tokens()  # type: ignore[attr-defined, no-any-return]

    kept = await shelf.store.transact(keep)
    assert [token.fingerprint for _, token in sorted(kept, key=lambda pair: pair[0])] == fingerprints
