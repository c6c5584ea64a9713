"""Products over the API: filtered, read to the end, as they were, with their changes."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from builders import NOON
from described import check
from desk import a_change, a_product
from doors import Door, door
from sellerwatch.domain.products import Product
from sellerwatch.ports.store import Unit

PRODUCTS = "/api/v1/products"


@pytest.fixture
async def at(tmp_path: Path) -> AsyncIterator[Door]:
    async with door(tmp_path) as opened:
        yield opened


async def said(at: Door, path: str, *, status: int = 200) -> Any:
    answer = await at.call("GET", path)
    assert answer.status == status, (path, answer.body)
    return check(at, "GET", path, answer)


async def planted(at: Door, count: int) -> list[Product]:
    products = [a_product(1000 + number, seller_id=f"shop-{number % 2}") for number in range(count)]
    await at.house.store.transact(lambda unit: unit.products.save(products))
    return products


async def test_a_product_is_told_flat_with_all_its_fields(at: Door) -> None:
    await planted(at, 1)
    seen = await said(at, f"{PRODUCTS}/1000")
    assert list(seen)[:8] == [
        "itemNo", "sellerId", "status", "version", "complete", "firstSeenAt", "lastSeenAt", "lastChangedAt",
    ]  # fmt: skip
    assert (seen["sellingPrice"], seen["price"], seen["brand"]["nameKr"]) == (599000, 599000, "메종")
    assert (seen["complete"], seen["version"], seen["status"]) == (True, 1, "ACTIVE")
    again = await at.call("GET", f"{PRODUCTS}/1000", headers=[("if-none-match", "*")])
    assert again.status == 304


async def test_an_item_number_is_digits_within_bounds(at: Door) -> None:
    for item in ("0", "-1", "01", "1.0", "1e3", "x", "٣", "9223372036854775808", "1" * 30, "%00"):
        problem = await said(at, f"{PRODUCTS}/{item}", status=400)
        assert problem["errors"][0]["field"] == "itemNo", item


async def test_a_product_nobody_knows_is_not_found(at: Door) -> None:
    for path in (f"{PRODUCTS}/7", f"{PRODUCTS}/7/changes", f"{PRODUCTS}/9223372036854775807"):
        assert (await said(at, path, status=404))["errorCode"] == "PRODUCT_NOT_FOUND"


async def test_all_products_are_read_by_cursor_while_more_come(at: Door) -> None:
    await planted(at, 7)
    read: list[int] = []
    path, pages = f"{PRODUCTS}?size=3", []
    while path:
        seen = await said(at, path)
        read += [each["itemNo"] for each in seen["content"]]
        pages.append((seen["page"], seen["totalElements"], seen["totalPages"]))
        if len(pages) == 1:
            late = a_product(2000)
            await at.house.store.transact(lambda unit, late=late: unit.products.save([late]))
        path = f"{PRODUCTS}?size=3&cursor={seen['nextCursor']}" if seen["nextCursor"] else ""
    assert read == [*range(1000, 1007), 2000]
    assert pages == [(number, 7, 3) for number in range(3)]


async def test_products_are_filtered_by_seller_completeness_and_change(at: Door) -> None:
    products = await planted(at, 4)
    fresh = a_product(3000, last_changed_at=None)
    fresh.seen, fresh.version, fresh.last_changed_at = {}, 0, NOON + timedelta(hours=1)
    await at.house.store.transact(lambda unit: unit.products.save([fresh]))
    assert (await said(at, f"{PRODUCTS}?sellerId=shop-0"))["totalElements"] == 2
    assert (await said(at, f"{PRODUCTS}?sellerId=nobody"))["content"] == []
    assert (await said(at, f"{PRODUCTS}?complete=false"))["content"][0]["itemNo"] == 3000
    assert (await said(at, f"{PRODUCTS}?complete=true"))["totalElements"] == len(products)
    since = "2026-03-02T21:30:00.000%2B09:00"
    assert [each["itemNo"] for each in (await said(at, f"{PRODUCTS}?changedSince={since}"))["content"]] == [3000]


FILTERS = [
    ("changedSince=0001-01-01T00:00:00Z", 200), ("changedSince=0001-01-01T00:00:00%2B14:00", 200),
    ("changedSince=9999-12-31T23:59:59.999999999-12:00", 200), ("changedSince=2016-12-31T23:59:60Z", 200),
    ("changedSince=2026-03-02t12:00:00z", 200), ("changedSince=2026-03-02T12:00:00", 400),
    ("changedSince=2026-02-30T12:00:00Z", 400), ("changedSince=2026-03-02", 400), ("changedSince=1772452800", 400),
    ("changedSince=2026-03-02T24:00:00Z", 400), ("complete=1", 400), ("complete=True", 400), ("complete=", 400),
    ("cursor=x", 400), ("cursor=1", 400), ("cursor=-1-0-0", 400), ("cursor=999999999999999999-0-0", 200),
    ("cursor=1-1-1' OR 1=1", 400), ("sellerId=a b", 400), ("sellerId=%00", 400),
]  # fmt: skip


async def test_a_filter_is_written_one_way(at: Door) -> None:
    for query, status in FILTERS:
        await said(at, f"{PRODUCTS}?{query.replace(' ', '%20')}", status=status)


async def test_changes_are_told_the_oldest_first_and_read_by_cursor(at: Door) -> None:
    [product] = await planted(at, 1)
    product.version = 5

    def plant(unit: Unit) -> None:
        unit.products.save([product])
        unit.changes.add([a_change(product, version) for version in range(1, 6)])

    await at.house.store.transact(plant)
    first = await said(at, f"{PRODUCTS}/1000/changes?size=3")
    assert [each["version"] for each in first["content"]] == [1, 2, 3]
    assert first["content"][0]["fields"] == [{"field": "sellingPrice", "old": 1, "new": 2}]
    rest = await said(at, f"{PRODUCTS}/1000/changes?size=3&cursor={first['nextCursor']}")
    assert ([each["version"] for each in rest["content"]], rest["nextCursor"], rest["page"]) == ([4, 5], None, 1)
    assert (await said(at, f"{PRODUCTS}/1000/changes?page=7"))["content"] == []


async def test_a_product_is_told_as_it_was(at: Door) -> None:
    product = a_product(1000, version=2)
    product.fields["sellingPrice"], product.last_changed_at = 2, NOON + timedelta(hours=2)
    changes = [a_change(product, 1, "sellingPrice", None, 1), a_change(product, 2)]
    later = [changes[0], type(changes[1])(**{**_fields(changes[1]), "changed_at": product.last_changed_at})]

    def plant(unit: Unit) -> None:
        unit.products.save([product])
        unit.changes.add(later)

    await at.house.store.transact(plant)
    assert (await said(at, f"{PRODUCTS}/1000"))["sellingPrice"] == 2
    was = await said(at, f"{PRODUCTS}/1000?at=2026-03-02T13:00:00Z")
    assert (was["sellingPrice"], was["version"]) == (1, 1)
    assert (await said(at, f"{PRODUCTS}/1000?at=2026-03-02T11:00:00Z", status=404))["errorCode"] == "PRODUCT_NOT_FOUND"


def _fields(change: Any) -> dict[str, Any]:
    return {name: getattr(change, name) for name in change.__dataclass_fields__}
