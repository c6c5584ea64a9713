"""Meaning: normal forms, and the table that says which field is whose."""

import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sellerwatch.domain import forms
from sellerwatch.domain.documents import ChangeKind, Document, DocumentKind, frozen
from sellerwatch.domain.errors import Unknown, Unreadable
from sellerwatch.domain.fields import DATA_ORDER, FIELDS
from sellerwatch.domain.meaning import MEANING, UNKNOWN_MAX

ENTRY: dict[str, object] = {
    "itemNo": 7,
    "name": "coat",
    "brandName": "NORD",
    "imageUrlList": ["https://x/a.jpg"],
    "price": "900",
    "normalPrice": "1,200",
    "originalPrice": "1,300",
    "discountRate": "25",
    "appPrice": "890",
    "appDiscountRate": "26",
    "tagList": [{"title": "free"}],
}
INFO: dict[str, object] = {
    "itemNo": 7,
    "sellerId": "nord",
    "itemName": "coat",
    "brandCode": 3,
    "brandName": "NORD",
    "brandNameKr": "노르드",
    "headerCategoryCode": "W",
    "headerCategory": "여성",
    "largeCategoryCode": "15",
    "largeCategory": "의류",
    "normalPrice": 1200,
    "sellingPrice": 1000,
    "discountPrice": 900,
    "discountRate": 25,
    "stock": 3,
    "isSoldOut": False,
}
SHIPPING = {"type": "SHIPPING", "data": {"shippingType": "DOMESTIC", "shippingFee": 0, "shippingFeeType": "FREE"}}


def detail(**info: object) -> dict[str, object]:
    return {
        "ProductInfoModule": {**INFO, **info},
        "ProductBannersModule": {"images": ["https://x/a.jpg"]},
        "ShippingModule": {"items": [SHIPPING]},
    }


def without(content: dict[str, object], *names: str) -> dict[str, object]:
    return {name: value for name, value in content.items() if name not in names}


# ── numbers ──


@pytest.mark.parametrize(
    ("written", "amount"),
    [
        (0, 0),
        (621000, 621000),
        (621000.0, 621000),
        ("0", 0),
        ("49", 49),
        ("999", 999),
        ("1,000", 1000),
        ("1,141,800", 1141800),
        (" 1141800 ", 1141800),
        ("1,141,800.0", 1141800),
        ("1141800.00", 1141800),
        (10**12, 10**12),
    ],
)
def test_a_price_means_the_same_however_it_is_written(written: object, amount: int) -> None:
    assert forms.won(written, "price") == amount


@pytest.mark.parametrize(
    "written",
    [
        *("17%", "1~3 days", "", " ", "1,14,1800", "1141,800", ",100", "100,", "0,100", "007", "1,000.5", "1.000"),
        *(
            "-1",
            "+1",
            "1e3",
            "0x10",
            "1_000",
            "١٢٣",
            "１２３",
            "NaN",
            "1,000원",
            "1 000",
            "null",
            "9" * 41,
            "9" * 100_000,
        ),
        *(-1, 1.5, float("nan"), float("inf"), -float("inf"), 1e300, 10**12 + 1, 10**5000),
        *(None, True, False, [], {}, [1], b"1"),
    ],
    ids=lambda written: repr(written)[:20] if not isinstance(written, int) or written < 10**13 else "huge",
)
def test_lesson_36_what_is_no_price_is_an_error_that_names_the_field_never_a_number(written: object) -> None:
    with pytest.raises(Unreadable, match="sellingPrice") as trouble:
        forms.won(written, "sellingPrice")
    assert len(str(trouble.value)) < 200


@given(st.integers(0, forms.WON_MAX))
def test_every_price_is_read_back_from_each_of_its_spellings(amount: int) -> None:
    for written in (amount, str(amount), f"{amount:,}", float(amount), f"{amount:,}.00"):
        assert forms.won(written, "price") == amount


@given(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.integers())))
def test_anything_at_all_is_a_whole_number_within_bounds_or_unreadable(written: object) -> None:
    try:
        amount = forms.won(written, "price")
    except Unreadable:
        return
    assert type(amount) is int
    assert 0 <= amount <= forms.WON_MAX


@pytest.mark.parametrize("written", [101, "101", "49%", "-1"])
def test_a_rate_is_a_percentage(written: object) -> None:
    assert forms.percent("49", "rate") == 49
    with pytest.raises(Unreadable):
        forms.percent(written, "rate")


@pytest.mark.parametrize("written", [0, 1, "true", "Y", None, []])
def test_a_flag_is_true_or_false_and_nothing_like_it(written: object) -> None:
    with pytest.raises(Unreadable, match="soldOut"):
        forms.flag(written, "soldOut")


# ── texts ──


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("  coat\n", "coat"),
        (unicodedata.normalize("NFD", "노르드 é"), "노르드 é"),
        ("", None),
        (" \u3000", None),
        (None, None),
    ],
)
def test_a_text_is_trimmed_composed_and_null_when_it_says_nothing(written: object, read: str | None) -> None:
    assert forms.text(written, "name") == read


@given(st.text(max_size=200))
def test_a_text_read_twice_is_read_once(written: str) -> None:
    try:
        once = forms.text(written, "name")
    except Unreadable:
        assert any(unicodedata.combining(c) or "\ud800" <= c <= "\udfff" for c in written) or len(written) > 100
        return
    assert forms.text(once, "name") == once


@given(st.text(st.characters(codec="utf-8"), max_size=100))
def test_no_form_of_unicode_makes_a_difference(written: str) -> None:
    composed, decomposed = unicodedata.normalize("NFC", written), unicodedata.normalize("NFD", written)
    assert forms.markup(composed, "name") == forms.markup(f" {decomposed} ", "name")


@pytest.mark.parametrize("written", ["x" * 501, "\ud800", 5, ["a"], "a" + "\u0301\u0316" * 500, "노" * 100_000])
def test_a_text_that_is_too_long_broken_or_an_attack_is_unreadable(written: object) -> None:
    with pytest.raises(Unreadable, match="name"):
        forms.text(written, "name")


# ── images, tags, options ──


def test_lesson_42_an_image_is_the_same_at_every_size_and_their_order_matters() -> None:
    small = ["https://x/a.jpg/_dims_/resize/300x300/extent/300x400", " https://x/b.jpg "]
    large = ["https://x/a.jpg/_dims_/resize/900x900", "https://x/b.jpg/_dims_/optimize"]
    assert forms.images(small, "images") == forms.images(large, "images") == ("https://x/a.jpg", "https://x/b.jpg")
    assert forms.images(large[::-1], "images") == ("https://x/b.jpg", "https://x/a.jpg")


@pytest.mark.parametrize("written", [None, "https://x/a.jpg", [None], [5], ["https://x/" + "a" * 3000], {"0": "x"}])
def test_what_is_no_list_of_urls_is_unreadable(written: object) -> None:
    with pytest.raises(Unreadable, match="images"):
        forms.images(written, "images")


@pytest.mark.parametrize(
    ("written", "urls"),
    [
        ('<p><IMG class="a" src="https://x/a.jpg/_dims_/resize/5x5"></p>', ("https://x/a.jpg",)),
        ("<img src='//x/a.jpg'><img src=https://x/b.jpg>", ("//x/a.jpg", "https://x/b.jpg")),
        ('<img src="https://x/a.jpg?b=1&amp;c=2">', ("https://x/a.jpg?b=1&c=2",)),
        ('<img data-src="https://x/a.jpg"><img src="data:image/png;base64,AAAA"><img src="javascript:x">', ()),
        ("no pictures, <b>only</b> text", ()),
    ],
)
def test_the_pictures_of_a_description_are_found_in_their_order(written: str, urls: tuple[str, ...]) -> None:
    assert forms.images_in_markup(written, "descriptionImages") == urls


@pytest.mark.parametrize("piece", ["<img ", "<img src", '<img src="', "<img src=' src=", " src", "<", "<img src = "])
def test_a_hostile_description_of_100_kb_is_searched_in_no_time(piece: str) -> None:
    forms.images_in_markup(piece * (100_000 // len(piece)), "descriptionImages")


def test_tags_are_a_set_of_titles_whatever_their_order_and_colours() -> None:
    one = [{"title": "b", "textColor": "#000"}, {"title": " a "}, {"title": "b"}]
    assert forms.tags(one, "tags") == forms.tags([{"title": "a"}, {"title": "b"}], "tags") == ("a", "b")


def option(option_no: int, **changes: object) -> dict[str, object]:
    return {"optionNo": option_no, "color": "", "size": "US 4", "stock": 1, "shippingType": "NONE", **changes}


@given(st.permutations([option(number) for number in range(6)]))
def test_the_order_of_options_is_irrelevant(options: list[dict[str, object]]) -> None:
    read = forms.options(options, "options")
    assert isinstance(read, tuple)
    assert [one["optionNo"] for one in read if isinstance(one, dict)] == list(range(6))


def test_lesson_38_no_options_are_options() -> None:
    fields, missing, _ = MEANING.read(DocumentKind.OPTION, {"options": []})
    assert fields == {"options": ()}
    assert missing == ()


@pytest.mark.parametrize(
    "spoiled",
    [
        option(2, stock="many"),
        option(2, stock=None),
        option(2, stock=-1),
        option(2, size=5),
        option(1),
        without(option(2), "color"),
        without(option(2), "stock"),
        without(option(2), "optionNo"),
        None,
    ],
)
def test_lesson_39_one_unreadable_option_spoils_the_document(spoiled: object) -> None:
    with pytest.raises(Unreadable, match="option"):
        MEANING.read(DocumentKind.OPTION, {"options": [option(1), spoiled, option(3)]})


# ── the table ──


def test_each_field_has_one_owner_and_a_kind_of_change() -> None:
    owned = [field.name for field in FIELDS if not field.stands_for]
    assert len(owned) == len(set(owned))
    assert MEANING.owner_of("sellingPrice") is DocumentKind.DETAIL
    assert MEANING.owner_of("appPrice") is DocumentKind.MINI_SHOP
    assert MEANING.owner_of("options") is DocumentKind.OPTION
    assert MEANING.change_kind("soldOut") is ChangeKind.SOLD_OUT
    assert {MEANING.change_kind(name) for name in owned} >= {ChangeKind.PRICE, ChangeKind.STOCK, ChangeKind.SHIPPING}
    with pytest.raises(Unknown):
        MEANING.owner_of("price")


def test_what_stands_in_stands_in_for_a_field_of_another_document() -> None:
    assert {field.stands_for for field in FIELDS if field.stands_for} <= {
        field.name for field in FIELDS if not field.stands_for and field.document is not DocumentKind.MINI_SHOP
    }


BUSINESS = {
    DocumentKind.DETAIL: {
        "ProductInfoModule": "itemName brandName brandNameKr brandCode headerCategory headerCategoryCode largeCategory "
        "largeCategoryCode mediumCategory mediumCategoryCode smallCategory smallCategoryCode normalPrice sellingPrice "
        "discountPrice discountRate stock isSoldOut",
        "ProductBannersModule": "images",
        "ShippingModule": "shippingType shippingFee shippingFeeType averageDeliveryDay",
        "ProductDetailInfoModule": "originCountry itemStatus descriptionMarkUp",
    },
    DocumentKind.MINI_SHOP: {
        "": "name brandName imageUrlList price originalPrice normalPrice discountRate appPrice appDiscountRate tagList"
    },
    DocumentKind.OPTION: {"options": "optionNo itemNo color size shippingType stock sizeGuide"},
}
"""What the marketplace's documents say of a product that is business; whose and which item it is are no fields."""


@pytest.mark.parametrize("kind", BUSINESS)
def test_lesson_37_every_business_name_of_the_marketplace_is_read_into_a_field(kind: DocumentKind) -> None:
    read: dict[str, set[str]] = {}
    for field in FIELDS:
        if field.document is kind:
            module, _, name = field.path.rpartition(".")
            names = field.form.keys or {name}
            read.setdefault(
                module if kind is DocumentKind.DETAIL else field.path if field.form.keys else "", set()
            ).update(names)
    assert read == {module: set(names.split()) for module, names in BUSINESS[kind].items()}


def test_lesson_37_every_business_field_reaches_the_product_and_the_event() -> None:
    data = MEANING.product_data({field.name: field.name for field in FIELDS if not field.stands_for}, 7, "ACTIVE")
    assert tuple(data)[: len(DATA_ORDER)] == DATA_ORDER
    said = {value for value in data.values() if isinstance(value, str)} | {"brandCode", "brandName", "brandNameKr"}
    assert said >= {field.name for field in FIELDS if not field.stands_for}
    assert data["brand"] == {"code": "brandCode", "name": "brandName", "nameKr": "brandNameKr"}
    assert data["price"] == data["sellingPrice"] == "sellingPrice"
    assert data["url"] == "https://m.web.mustit.co.kr/v2/m/product/product_detail/7"
    assert MEANING.product_data({}, 7, "ACTIVE", "https://x/{itemNo}")["url"] == "https://x/7"


def test_a_list_entry_stands_in_until_the_detail_is_known() -> None:
    fields, missing, unknown = MEANING.read(DocumentKind.MINI_SHOP, ENTRY)
    document = Document(DocumentKind.MINI_SHOP, 7, None, fields, "")
    assert (missing, unknown) == ((), ())
    assert MEANING.owned(document, {}) == {
        "appPrice": 890,
        "appDiscountRate": 26,
        "originalPrice": 1300,
        "tags": ("free",),
    }
    assert MEANING.stand_ins(document) == {
        "name": "coat",
        "brandName": "NORD",
        "images": ("https://x/a.jpg",),
        "discountPrice": 900,
        "normalPrice": 1200,
        "discountRate": 25,
    }
    assert MEANING.stand_ins(Document(DocumentKind.DETAIL, 7, None, {"name": "coat"}, "")) == {}


def test_an_entry_of_a_search_does_not_speak_of_what_searches_never_have() -> None:
    entry = without({**ENTRY, "brandCode": 3, "shippingType": "DOMESTIC"}, "appPrice", "appDiscountRate", "normalPrice")
    fields, missing, _ = MEANING.read(DocumentKind.MINI_SHOP, entry)
    assert fields.keys().isdisjoint({"appPrice", "appDiscountRate", "normalPrice"})
    assert missing == ()


@pytest.mark.parametrize(
    "name", ["sellingPrice", "normalPrice", "discountPrice", "discountRate", "stock", "isSoldOut", "itemName"]
)
@pytest.mark.parametrize("instead", ["absent", "null"])
def test_a_required_field_that_is_missing_refuses_the_document(name: str, instead: str) -> None:
    content = detail(**{name: None})
    if instead == "absent":
        content["ProductInfoModule"] = without(INFO, name)
    with pytest.raises(Unreadable, match="missing"):
        MEANING.read(DocumentKind.DETAIL, content)


@pytest.mark.parametrize("module", ["ProductInfoModule", "ProductBannersModule", "ShippingModule"])
def test_a_page_without_one_of_its_modules_is_refused_not_applied_as_emptiness(module: str) -> None:
    with pytest.raises(Unreadable, match="missing"):
        MEANING.read(DocumentKind.DETAIL, without(detail(), module))


def test_a_document_without_most_of_its_fields_says_so() -> None:
    with pytest.raises(Unreadable, match="most of its fields"):
        MEANING.read(DocumentKind.DETAIL, {})


def test_an_optional_field_that_is_missing_is_null_and_counted_as_drift() -> None:
    fields, missing, _ = MEANING.read(DocumentKind.DETAIL, detail(brandNameKr=None, brandName=""))
    assert fields["brandNameKr"] is fields["brandName"] is None
    assert missing == ("brandName", "brandNameKr")


def test_a_module_that_is_not_on_every_page_is_no_drift_but_its_empty_fields_are() -> None:
    fields, missing, _ = MEANING.read(DocumentKind.DETAIL, detail())
    assert (fields["description"], fields["descriptionImages"], missing) == (None, (), ())
    _, missing, _ = MEANING.read(DocumentKind.DETAIL, {**detail(), "ProductDetailInfoModule": {"originCountry": "IT"}})
    assert missing == ("itemStatus", "description", "descriptionImages")


def test_undeclared_names_are_named_few_short_and_printable() -> None:
    strange = {f"new{n}": 1 for n in range(100)} | {"x" * 10_000: 1, "a\nb\u202e": 1}
    _, _, unknown = MEANING.read(DocumentKind.MINI_SHOP, {**ENTRY, **strange})
    assert len(unknown) == UNKNOWN_MAX
    assert all(len(name) <= 80 and name.isprintable() for name in unknown)
    _, _, unknown = MEANING.read(DocumentKind.DETAIL, detail(novelty=1))
    assert unknown == ("ProductInfoModule.novelty",)
    _, _, unknown = MEANING.read(DocumentKind.OPTION, {"options": [option(1), option(2, novelty=1)]})
    assert unknown == ("options.novelty",)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)
READINGS: tuple[Callable[[object, str], object], ...] = tuple({field.form.read for field in FIELDS})


@given(JSON, st.sampled_from(READINGS))
def test_whatever_a_field_holds_it_is_read_into_a_value_or_unreadable(
    written: object, read: Callable[[object, str], object]
) -> None:
    try:
        value = read(written, "field")
    except Unreadable:
        return
    assert frozen(value) == value


@given(st.sampled_from(sorted(INFO)), JSON)
def test_one_strange_value_never_becomes_a_change_of_another_field(name: str, written: object) -> None:
    usual, _, _ = MEANING.read(DocumentKind.DETAIL, detail())
    try:
        fields, _, _ = MEANING.read(DocumentKind.DETAIL, detail(**{name: written}))
    except Unreadable:
        return
    assert sum(fields[field] != usual[field] for field in usual) <= 1
