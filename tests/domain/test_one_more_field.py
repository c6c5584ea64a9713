"""Adding a field is one line: a copy of the table with one more, and everything that follows from it."""

import orjson

from builders import NOON, at
from doors import upgraded
from pages import LEFT_OUT, a_detail, a_list_item, options_of
from sellerwatch.adapters.marketplace.parse import Parse
from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.store import SqlStore
from sellerwatch.domain import forms
from sellerwatch.domain.changes import FieldChange
from sellerwatch.domain.documents import ChangeKind, DocumentKind, content_hash
from sellerwatch.domain.fields import FIELDS, Field
from sellerwatch.domain.meaning import MEANING, Meaning
from sellerwatch.domain.products import Fetched, Product, announce
from sellerwatch.entry.console.fields import fields_page

DETAIL, MINI_SHOP, OPTION = DocumentKind.DETAIL, DocumentKind.MINI_SHOP, DocumentKind.OPTION
# The one line.
LEAD_TIME = Field("leadDays", DETAIL, "ShippingModule.leadDays", forms.PIECES, ChangeKind.SHIPPING, tolerance=1)
MORE = Meaning((*FIELDS, LEAD_TIME))
PARSE = Parse(MORE)


def a_page(days: object) -> bytes:
    page = orjson.loads(a_detail(1000))
    [module] = [module for module in page["moduleList"] if module["type"] == "ShippingModule"]
    if days is not LEFT_OUT:
        module["data"]["leadDays"] = days
    return orjson.dumps(page)


def fetched(kind: DocumentKind, body: bytes, seconds: int) -> Fetched:
    return Fetched(PARSE.document(kind, 1000, body), content_hash(body), at(seconds))


def a_complete_product(days: object) -> Product:
    product = Product.discover(1000, "nord", NOON)
    bodies = {MINI_SHOP: orjson.dumps(a_list_item(1000)), DETAIL: a_page(days), OPTION: options_of()}
    product.apply([fetched(kind, body, 0) for kind, body in bodies.items()], NOON, meaning=MORE)
    return product


def test_it_is_read_into_the_canonical_form_and_the_digest() -> None:
    three, seven = (PARSE.document(DETAIL, 1000, a_page(days)) for days in (3, 7))
    assert (three.fields["leadDays"], seven.fields["leadDays"]) == (3, 7)
    assert three.digest != seven.digest
    assert three.digest == PARSE.document(DETAIL, 1000, a_page("3")).digest


def test_it_was_unknown_before_and_is_missed_where_it_is_not() -> None:
    assert Parse().document(DETAIL, 1000, a_page(3)).unknown == ("ShippingModule.leadDays",)
    assert PARSE.document(DETAIL, 1000, a_page(3)).unknown == ()
    assert PARSE.document(DETAIL, 1000, a_page(LEFT_OUT)).missing == ("leadDays",)


def test_its_change_has_a_kind_an_old_and_a_new_and_reaches_the_event() -> None:
    product = a_complete_product(3)
    change = product.apply([fetched(DETAIL, a_page(9), 60)], at(60), meaning=MORE)
    assert change is not None
    assert (change.kinds, change.fields) == ((ChangeKind.SHIPPING,), (FieldChange("leadDays", 3, 9),))
    event = announce(product, change, MORE)
    assert event.payload["productData"]["leadDays"] == 9
    assert event.payload["changes"] == [{"field": "leadDays", "old": 3, "new": 9}]


def test_within_its_tolerance_two_are_the_same_and_small_steps_add_up() -> None:
    product = a_complete_product(3)
    assert product.apply([fetched(DETAIL, a_page(4), 60)], at(60), meaning=MORE) is None
    assert product.fields["leadDays"] == 3
    change = product.apply([fetched(DETAIL, a_page(5), 120)], at(120), meaning=MORE)
    assert change is not None
    assert change.fields == (FieldChange("leadDays", 3, 5),)


async def test_it_is_kept_without_a_column_of_its_own() -> None:
    database = Database(upgraded(), inline=True)
    store = SqlStore(database)
    product = a_complete_product(3)
    await store.transact(lambda unit: unit.products.save([product]))
    known = await store.read(lambda unit: unit.products.get(1000))
    database.close()
    assert known is not None
    assert known.fields["leadDays"] == 3
    assert known.apply([fetched(DETAIL, a_page(3), 60)], at(60), meaning=MORE) is None


def test_the_page_of_the_docs_has_a_line_more() -> None:
    before, after = fields_page(MEANING).splitlines(), fields_page(MORE).splitlines()
    [line] = set(after) - set(before)
    assert len(after) == len(before) + 1
    assert line == (
        "| `leadDays` | `ShippingModule.leadDays` | pieces | no further apart than 1 | SHIPPING | usual | `leadDays` |"
    )
