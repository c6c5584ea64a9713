"""What ports/store.py promises of products and their changes, on every engine."""

from datetime import datetime
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from builders import NOON, at
from pages.items import a_list_item, a_search_item
from pages.products import a_detail, an_option, options_of
from sellerwatch.adapters.marketplace.parse import Parse
from sellerwatch.adapters.sql import tables
from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.stores.products import COLUMN_OF, PREFIX_OF, _said, _thawed
from sellerwatch.domain.changes import Change, FieldChange, difference
from sellerwatch.domain.documents import ChangeKind, DocumentKind, content_hash, frozen
from sellerwatch.domain.fields import FIELDS
from sellerwatch.domain.products import Fetched, Product, ProductStatus, Seen
from sellerwatch.ports.store import Store, Touch

MINI_SHOP, DETAIL, OPTION = DocumentKind.MINI_SHOP, DocumentKind.DETAIL, DocumentKind.OPTION
BODIES = {
    MINI_SHOP: lambda item_no: orjson.dumps(a_list_item(item_no)),
    DETAIL: a_detail,
    OPTION: lambda _: options_of(an_option(1, color="검정", sizeGuide="[a]"), an_option(2), an_option(3, stock=0)),
}


def fetched(kind: DocumentKind, body: bytes, item_no: int = 1000, when: datetime = NOON) -> Fetched:
    return Fetched(Parse().document(kind, item_no, body), content_hash(body), when)


def a_product(item_no: int = 1000, *kinds: DocumentKind, seller_id: str = "nord", when: datetime = NOON) -> Product:
    """As these documents make it; all three unless told which."""
    product = Product.discover(item_no, seller_id, when)
    product.apply([fetched(kind, BODIES[kind](item_no), item_no, when) for kind in kinds or DocumentKind], when)
    return product


async def save(store: Store, *products: Product) -> None:
    await store.transact(lambda unit: unit.products.save(products))


async def got(store: Store, item_no: int = 1000) -> Product | None:
    return await store.read(lambda unit: unit.products.get(item_no))


async def columns(database: Database, *names: str) -> tuple[Any, ...]:
    statement = select(*(tables.products.c[name] for name in names))
    return await database.read(lambda connection: tuple(connection.execute(statement).one()))


def without_none(product: Product) -> Product:
    product.fields = {name: value for name, value in product.fields.items() if value is not None}
    return product


def test_every_declared_field_has_a_column_and_every_column_a_field() -> None:
    assert {field.name for field in FIELDS} == set(COLUMN_OF)
    assert len(set(COLUMN_OF.values())) == len(COLUMN_OF)
    names = list(tables.products.c.keys())
    business = set(names[names.index("absences") + 1 : names.index("first_seen_at")])
    assert business == set(COLUMN_OF.values()) | {"further"}


@pytest.mark.parametrize(
    "kinds", [(MINI_SHOP,), (DETAIL,), (OPTION,), (MINI_SHOP, OPTION), (MINI_SHOP, DETAIL, OPTION)], ids=str
)
async def test_a_product_comes_back_as_it_was_saved(store: Store, kinds: tuple[DocumentKind, ...]) -> None:
    product = a_product(1000, *kinds)
    product.absences, product.last_seen_at = 1, at(70)
    await save(store, product)
    assert await got(store) == without_none(product)


async def test_the_same_documents_again_change_nothing_in_a_product_that_was_saved(store: Store) -> None:
    await save(store, a_product())
    product = await got(store)
    assert product is not None
    before = dict(product.fields)
    # As if the digests were lost: every field is compared with what the store gave back.
    product.seen = {kind: Seen("", "", NOON) for kind in DocumentKind}
    assert product.apply([fetched(kind, body(1000), when=at(9)) for kind, body in BODIES.items()], at(9)) is None
    assert difference(before, product.fields) == ()


async def test_documents_that_say_little_come_back_as_they_were(store: Store) -> None:
    product = Product.discover(1000, "nord", NOON)
    page = a_detail(1000, images=[], descriptionMarkUp=None, originCountry="", brandNameKr=None)
    listed = orjson.dumps(a_search_item(1000, tagList=[]))
    product.apply([fetched(DETAIL, page), fetched(MINI_SHOP, listed), fetched(OPTION, b"[]")], NOON)
    await save(store, product)
    assert await got(store) == without_none(product)


async def test_saving_again_writes_everything_but_what_a_product_is_born_with(store: Store) -> None:
    await save(store, a_product(1000, MINI_SHOP))
    product = a_product(1000, when=at(60))
    product.seller_id, product.status = "sud", ProductStatus.DELISTED
    await save(store, product)
    product.created_at = NOON
    assert await got(store) == without_none(product)


async def test_a_field_that_says_nothing_any_more_is_gone(store: Store) -> None:
    product = a_product()
    await save(store, product)
    product.fields["shipping"] = None
    await save(store, product)
    loaded = await got(store)
    assert loaded is not None
    assert "shipping" not in loaded.fields


@pytest.mark.parametrize(("kinds", "complete"), [((MINI_SHOP, DETAIL), False), ((MINI_SHOP, DETAIL, OPTION), True)])
async def test_complete_is_what_has_been_seen_in_all_three_documents(
    store: Store, database: Database, kinds: tuple[DocumentKind, ...], complete: bool
) -> None:
    product = a_product(1000, *kinds)
    await save(store, product)
    hashes = [product.seen[kind].digest if kind in kinds else None for kind in DocumentKind]
    names = [f"{PREFIX_OF[kind]}_data_hash" for kind in DocumentKind]
    assert await columns(database, "is_complete", *names) == (complete, *hashes)


async def test_a_text_longer_than_its_column_is_cut(store: Store) -> None:
    product = a_product()
    product.fields |= {"name": "n" * 2000, "brandName": "브" * 600, "description": "d" * 70_000}
    await save(store, product)
    loaded = await got(store)
    assert loaded is not None
    assert [len(str(loaded.fields[name])) for name in ("name", "brandName", "description")] == [1000, 500, 70_000]


async def test_heads_tell_what_decides_whether_an_answer_is_news(store: Store) -> None:
    whole, part = a_product(1), a_product(2, MINI_SHOP, OPTION)
    part.status, part.absences = ProductStatus.DELISTED, 2
    await save(store, whole, part)
    heads = await store.read(lambda unit: unit.products.heads([1, 2, 2, 3]))
    assert sorted(heads) == [1, 2]
    for product in (whole, part):
        head = heads[product.item_no]
        assert (head.item_no, head.product_id, head.seller_id) == (product.item_no, product.product_id, "nord")
        assert (head.status, head.absences, head.seen) == (product.status, product.absences, product.seen)


async def test_a_page_of_items_is_asked_for_at_once(store: Store) -> None:
    await save(store, *(a_product(item, MINI_SHOP) for item in range(1, 1200)))
    assert len(await store.read(lambda unit: unit.products.heads(range(1, 1300)))) == 1199
    assert await store.read(lambda unit: unit.products.heads([])) == {}


async def test_touched_means_seen_again_and_nothing_more(store: Store) -> None:
    product = a_product()
    await save(store, product)
    known = product.seen[OPTION]
    await store.transact(lambda unit: unit.products.touch([Touch(1000, OPTION, known.raw_hash, at(60))]))
    product.seen[OPTION] = Seen(known.digest, known.raw_hash, at(60))
    product.last_seen_at = at(60)
    assert await got(store) == without_none(product)


async def test_a_touch_changes_nothing_where_the_applied_document_is_another_by_now(store: Store) -> None:
    product = a_product()
    await save(store, product)
    touches = [Touch(1000, DETAIL, "0" * 32, at(60)), Touch(2000, DETAIL, "0" * 32, at(60))]
    await store.transact(lambda unit: unit.products.touch(touches))
    assert await got(store) == without_none(product)


async def test_a_touch_never_goes_back_in_time(store: Store) -> None:
    product = a_product()
    product.last_seen_at = at(100)
    await save(store, product)
    touches = [Touch(1000, kind, product.seen[kind].raw_hash, at(when)) for kind, when in ((OPTION, -9), (DETAIL, 50))]
    await store.transact(lambda unit: unit.products.touch(touches))
    loaded = await got(store)
    assert loaded is not None
    assert (loaded.seen[OPTION].at, loaded.seen[DETAIL].at, loaded.last_seen_at) == (NOON, at(50), at(100))


async def test_products_are_locked_by_item_and_unknown_ones_left_out(store: Store) -> None:
    products = [a_product(1), a_product(2, MINI_SHOP)]
    await save(store, *products)
    locked = await store.transact(lambda unit: unit.products.lock([1, 2, 3]))
    assert locked == {product.item_no: without_none(product) for product in products}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(VALUES).map(tuple) | st.dictionaries(st.text(max_size=3), VALUES))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_value_in_normal_form_comes_back_as_it_was(value: Any) -> None:
    text = orjson.dumps(value).decode()
    assert _thawed(text) == value == frozen(orjson.loads(text))


def test_flags_come_back_as_flags() -> None:
    values = [1 if name == "soldOut" else None for name in ("soldOut", *[None] * (len(COLUMN_OF) - 1))]
    assert _said(values) == {"soldOut": True}
    assert type(_said(values)["soldOut"]) is bool


def a_change(product: Product, version: int = 1, *fields: FieldChange) -> Change:
    return Change(
        f"{product.product_id[:-4]}{version:04}",
        product.product_id,
        product.item_no,
        product.seller_id,
        version,
        (ChangeKind.PRICE, ChangeKind.OPTIONS),
        fields,
        at(version),
    )


async def test_changes_come_back_by_version(store: Store) -> None:
    product, another = a_product(1), a_product(2)
    options = product.fields["options"]
    changes = [
        a_change(product, 2, FieldChange("options", (), options), FieldChange("name", None, "이름")),
        a_change(product, 1),
        a_change(another, 1),
    ]
    await save(store, product, another)
    await store.transact(lambda unit: unit.changes.add(changes))
    assert await store.read(lambda unit: unit.changes.of_item(1)) == [changes[1], changes[0]]
    assert await store.read(lambda unit: unit.changes.of_item(3)) == []


async def test_a_change_that_is_there_is_not_added_twice(store: Store) -> None:
    product = a_product(1)
    await save(store, product)
    change = a_change(product, 1)
    for _ in range(2):
        await store.transact(lambda unit: unit.changes.add([change, change]))
    assert await store.read(lambda unit: unit.changes.of_item(1)) == [change]


async def test_which_version_complete_products_have_come_to_is_told_by_item_and_page_by_page(store: Store) -> None:
    products = [a_product(1), a_product(2, DETAIL), a_product(3), a_product(4)]
    products[2].version, products[3].seller_id = 7, "other"
    await save(store, *products)
    named = await store.read(lambda unit: unit.products.standings([3, 2, 9]))
    assert {item_no: standing.version for item_no, standing in named.items()} == {3: 7}
    first = await store.read(lambda unit: unit.products.standings_after(0, 2))
    assert [(one.item_no, one.version) for one in first] == [(1, 1), (3, 7)]
    assert first[1] == named[3]
    rest = await store.read(lambda unit: unit.products.standings_after(first[-1].number, 2))
    assert [one.item_no for one in rest] == [4]
    ours = await store.read(lambda unit: unit.products.standings_after(0, 9, "nord"))
    assert [one.item_no for one in ours] == [1, 3]
