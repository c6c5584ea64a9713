"""Parse: pages are cut, checked and read; hostile bytes are Unreadable and nothing else."""

import json
import random  # noqa: TID251  # seeded by Hypothesis
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages import (
    LEFT_OUT,
    a_detail,
    a_list_item,
    a_mini_shop_page,
    a_search_item,
    a_search_page,
    an_option,
    modules_of,
    options_of,
    page_of,
)
from sellerwatch.adapters.marketplace.parse import Parse
from sellerwatch.domain.addresses import Addresses
from sellerwatch.domain.documents import Document, DocumentKind, content_hash
from sellerwatch.domain.errors import Invalid, Unreadable
from sellerwatch.ports.marketplace import Reader

PARSE: Reader = Parse()
DETAIL, OPTION, MINI_SHOP = DocumentKind.DETAIL, DocumentKind.OPTION, DocumentKind.MINI_SHOP
NEXT = "/v1/search/items?keyword=nord&sort=LATEST&f=us:NEW,lwp:Y&pageNo=2&previousIdx=0%2C0"


def entry(**changes: object) -> bytes:
    return orjson.dumps(a_list_item(**changes))


def detail(**changes: object) -> Document:
    return PARSE.document(DETAIL, 1000, a_detail(**changes))


# ── lists ──


def test_a_page_is_cut_into_the_very_bytes_of_its_entries() -> None:
    page = b'{"count": "3,464", "items": [ {"itemNo":7, "name": "\xeb\x85\xb8"} ,{"itemNo":8}], "more": {}}'
    listing = PARSE.listing("MINI_SHOP", page)
    assert [(one.item_no, one.raw) for one in listing.entries] == [
        (7, b'{"itemNo":7, "name": "\xeb\x85\xb8"}'),
        (8, b'{"itemNo":8}'),
    ]
    assert (listing.count, listing.bad, listing.next_path, listing.ended) == (3464, [], None, False)


def test_an_empty_shop_is_a_page_with_nothing_on_it() -> None:
    listing = PARSE.listing("MINI_SHOP", a_mini_shop_page(0))
    assert (listing.count, listing.entries, listing.ended) == (0, [], True)


@pytest.mark.parametrize(
    "spoiled",
    [None, 5, "x", [], {}, {"itemNo": None}, {"itemNo": "7"}, {"itemNo": 0}, {"itemNo": -1}, {"itemNo": 10**18}],
)
@pytest.mark.parametrize("kind", ["MINI_SHOP", "SEARCH"])
def test_lesson_3_one_bad_item_costs_neither_the_page_nor_the_next_link(kind: str, spoiled: Any) -> None:
    if kind == "MINI_SHOP":
        body = a_mini_shop_page([a_list_item(1), spoiled, a_list_item(3)], count=10)
    else:
        body = a_search_page([a_search_item(1), spoiled, a_search_item(3)], NEXT)
    listing = PARSE.listing(kind, body)
    assert [one.item_no for one in listing.entries] == [1, 3]
    assert [one.raw for one in listing.bad] == [orjson.dumps(spoiled)]
    assert "item" in listing.bad[0].problem
    assert listing.next_path == (NEXT if kind == "SEARCH" else None)


def test_an_item_that_is_no_text_is_bad_and_the_others_are_not() -> None:
    body = a_mini_shop_page([a_list_item(1), a_list_item(2, brandName="SPOILED")]).replace(b"SPOILED", b"\xff\xfe")
    listing = PARSE.listing("MINI_SHOP", body)
    assert [one.item_no for one in listing.entries] == [1]
    assert "UTF-8" in listing.bad[0].problem


def test_modules_of_a_search_that_are_no_items_are_skipped() -> None:
    listing = PARSE.listing("SEARCH", a_search_page(2, NEXT))
    assert [one.item_no for one in listing.entries] == [1000, 1001]
    assert listing.bad == []
    assert listing.entries[0].raw == orjson.dumps(a_search_item(1000))


def test_a_module_that_is_none_is_bad_and_the_others_are_not() -> None:
    module = {"type": "SearchItemV2", "data": a_search_item(5)}
    listing = PARSE.listing("SEARCH", a_search_page(0, NEXT, moduleList=[None, {"type": "SearchItemV2"}, module]))
    assert [one.item_no for one in listing.entries] == [5]
    assert (len(listing.bad), listing.next_path) == (2, NEXT)


def test_lesson_45_the_next_link_is_handed_on_as_it_was_written() -> None:
    listing = PARSE.listing("SEARCH", a_search_page(1, NEXT))
    assert listing.next_path == NEXT
    assert Addresses("https://m.web.mustit.co.kr").next_search(NEXT).endswith(NEXT)


@pytest.mark.parametrize(
    "link",
    [
        "https://elsewhere.example/v1/search/items?keyword=nord",
        "//elsewhere.example/v1/search/items?keyword=nord",
        "/v1/search/items",
        "/v1/search/items?",
        "/v1/search/itemsx?keyword=nord",
        "/v1/search/items/../../admin?x=1",
        "/v1/item/1/detail/top?keyword=nord",
        "v1/search/items?keyword=nord",
        "/v1/search/items?keyword=노르드",
        "/v1/search/items?keyword=a b",
        "/v1/search/items?keyword=a\r\nHost: x",
        "/v1/search/items?keyword=a#b",
        "/v1/search/items?keyword=a\\b",
        "/v1/search/items?keyword=100%",
        "/v1/search/items?keyword=" + "a" * 3000,
        "@elsewhere.example/v1/search/items?keyword=nord",
        5,
        ["/v1/search/items?keyword=nord"],
    ],
)
def test_a_next_link_that_is_no_relative_address_of_a_search_is_unreadable(link: object) -> None:
    with pytest.raises(Unreadable):
        PARSE.listing("SEARCH", a_search_page(1, link))


def test_a_search_ends_with_neither_an_item_nor_a_next_link() -> None:
    assert PARSE.listing("SEARCH", a_search_page(0)).ended
    assert PARSE.listing("SEARCH", a_search_page(0, nextApiUrl=LEFT_OUT)).ended
    assert not PARSE.listing("SEARCH", a_search_page(0, NEXT)).ended
    assert not PARSE.listing("SEARCH", a_search_page(1)).ended


@pytest.mark.parametrize("kind", ["MINI_SHOP", "SEARCH"])
@pytest.mark.parametrize(
    "body",
    [
        *(b"", b" \n", b"<!doctype html><html>503</html>", b"\n <html>", b"null", b"[]", b"{}", b"5", b'"items"'),
        *(b'{"items": [], "count": null, "moduleList": null}', b'{"items": {}, "count": 1, "moduleList": {}}'),
        *(b'{"count": -1, "items": []}', b'{"count": "many", "items": []}', b'{"count": 1}', b'{"errorCode": 500}'),
        *(a_mini_shop_page(2)[:-40], a_search_page(2)[:-40], b"\xef\xbb\xbf" + a_mini_shop_page(1), b"\x1f\x8b\x08"),
        *(a_mini_shop_page(1) + b"x", a_search_page(1) + a_search_page(1)),
        b'{"count": 1, "items": [' + b"1," * 6000 + b'1], "moduleList": "x"}',
    ],
    ids=lambda value: repr(value)[:30],
)
def test_lesson_2_an_answer_that_is_no_list_is_unreadable_not_the_end_of_the_list(kind: str, body: bytes) -> None:
    with pytest.raises(Unreadable):
        PARSE.listing(kind, body)


def test_a_page_of_html_is_called_by_its_name() -> None:
    with pytest.raises(Unreadable, match="HTML"):
        PARSE.listing("MINI_SHOP", b"  <html>maintenance</html>")


def test_lesson_47_a_page_of_500_large_items_is_read_whole() -> None:
    items = [a_list_item(n, imageUrlList=["https://image.mustit.co.kr/" + "a" * 300] * 12) for n in range(1, 501)]
    body = a_mini_shop_page(items, count=3464)
    assert len(body) > 2_000_000
    assert [one.item_no for one in PARSE.listing("MINI_SHOP", body).entries] == list(range(1, 501))


# ── verify ──


def test_an_item_s_own_pages_are_let_through() -> None:
    PARSE.verify("DETAIL", 1000, a_detail())
    PARSE.verify("OPTION", 1000, options_of())
    PARSE.verify("OPTION", 1000, b"[]")


def test_another_item_s_detail_is_refused_and_options_copied_from_another_are_not() -> None:
    with pytest.raises(Unreadable, match="asked for item 1001, was given item 1000"):
        PARSE.verify("DETAIL", 1001, a_detail(1000))
    with pytest.raises(Unreadable, match="asked for item 1001"):
        PARSE.document(DETAIL, 1001, a_detail(1000))
    with pytest.raises(Unreadable, match="asked for item 1001"):
        PARSE.document(MINI_SHOP, 1001, entry(item_no=1000))
    PARSE.verify("OPTION", 1000, options_of(an_option(itemNo=999)))


@pytest.mark.parametrize("kind", ["DETAIL", "OPTION"])
@pytest.mark.parametrize(
    "body",
    [
        *(
            b"",
            b"<html></html>",
            b"null",
            b"{}",
            b"[null]",
            b"[{}]",
            b"[[]]",
            b'[{"optionNo": "5"}]',
            b'{"moduleList": []}',
        ),
        *(a_detail()[:-100], options_of()[:-1], a_mini_shop_page(), b'{"message": "error"}'),
        a_detail().replace(b"ATELIER", b"\xff\xff"),
        b'{"moduleList":[],' + a_detail()[1:],
        page_of([module for module in modules_of() if module["type"] != "ProductInfoModule"]),
        page_of([*modules_of(), *modules_of()]),
        page_of([{"data": {}}]),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_what_is_no_page_of_an_item_is_refused(kind: str, body: bytes) -> None:
    with pytest.raises(Unreadable):
        PARSE.verify(kind, 1000, body)


def test_a_kind_that_is_not_read_here_is_refused() -> None:
    with pytest.raises(Invalid):
        PARSE.listing("DETAIL", b"")
    with pytest.raises(Invalid):
        PARSE.verify("MINI_SHOP", 1, b"")


# ── documents ──


def test_a_detail_says_all_that_is_business() -> None:
    document = detail()
    pictures = tuple(f"https://files.example.com/nord/1000/{n:02}.jpg" for n in range(1, 9))
    assert document.fields == {
        "name": "노르드 여성 울 코트(네이비) AN1000",
        "brandCode": 4711,
        "brandName": "ATELIER NORD",
        "brandNameKr": "아틀리에노르드",
        "normalPrice": 1075000,
        "sellingPrice": 599000,
        "discountPrice": 545600,
        "discountRate": 49,
        "stock": 3,
        "soldOut": False,
        "category": (
            {"level": "header", "code": "W", "name": "여성"},
            {"level": "large", "code": "15", "name": "의류"},
            {"level": "medium", "code": "15r01", "name": "코트/자켓"},
        ),
        "images": tuple(f"https://image.mustit.co.kr/lib/upload/product/nord/2026/1000-{n}.jpeg" for n in range(2)),
        "shipping": {"type": "DOMESTIC", "fee": 0, "feeType": "FREE", "delivery": "평균 배송 2일 소요"},
        "originCountry": "이탈리아",
        "itemStatus": "새상품",
        "description": "\n".join(f'<p align="center"><img src="{url}"></p>' for url in pictures),
        "descriptionImages": pictures,
    }
    assert (document.kind, document.item_no, document.seller_id) == (DETAIL, 1000, "nord")
    assert (document.missing, document.unknown, len(document.digest)) == ((), (), 32)


def test_entries_of_both_lists_are_mini_shop_documents() -> None:
    listed = PARSE.document(MINI_SHOP, 7, entry(item_no=7))
    assert listed.fields["appPrice"] == 537500
    assert listed.fields["tags"] == ("당일출고", "무료배송")
    found = PARSE.document(MINI_SHOP, 7, orjson.dumps(a_search_item(7)))
    assert found.fields["originalPrice"] == listed.fields["originalPrice"] == 1075000
    assert found.fields.keys() == listed.fields.keys() - {"appPrice", "appDiscountRate", "normalPrice"}
    assert (found.missing, found.unknown, found.seller_id) == ((), (), None)


def test_the_seller_is_told_as_the_page_writes_it() -> None:
    assert detail(sellerId=" NorD ").seller_id == "NorD"
    for nobody in ("", None, 5, "x" * 65, LEFT_OUT):
        with pytest.raises(Unreadable, match="sellerId"):
            detail(sellerId=nobody)


NOISE: dict[str, Callable[[dict[str, Any]], object]] = {
    "likes": lambda page: page["bottom"].update(likeCount=99, isLike=True),
    "the bottom": lambda page: page.pop("bottom"),
    "tracking": lambda page: page.update(nextApiUrl="/v1/other", trackingInfos=[1]),
    "order of modules": lambda page: page["moduleList"].reverse(),
    "unknown modules": lambda page: page["moduleList"].append({"type": "Novelty", "data": [1]}),
    "reviews": lambda page: page["moduleList"][6]["data"].update(sellerReviewSummary=None),
    "figures of the reader": lambda page: page["moduleList"][1]["data"].update(userDiscountInfo={"purchasePrice": 1}),
    "badges": lambda page: page["moduleList"][1]["data"].update(badgeList=[{"title": "new"}]),
    "number formats": lambda page: page["moduleList"][1]["data"].update(sellingPrice="599,000", stock=3.0),
    "blanks": lambda page: page["moduleList"][1]["data"].update(brandName="  ATELIER NORD\n"),
    "unicode": lambda page: page["moduleList"][1]["data"].update(
        brandNameKr=unicodedata.normalize("NFD", "아틀리에노르드")
    ),
    "an empty level": lambda page: page["moduleList"][1]["data"].update(smallCategoryCode=None, smallCategory=None),
    "sizes of images": lambda page: page["moduleList"][0]["data"].update(
        images=[url.replace("500x500", "64x64") for url in page["moduleList"][0]["data"]["images"]]
    ),
    "sales": lambda page: page["moduleList"][0]["data"].update(timesales=[{"until": 5}]),
}


@pytest.mark.parametrize("kind", NOISE)
def test_lesson_42_noise_makes_no_difference(kind: str) -> None:
    page = orjson.loads(a_detail())
    NOISE[kind](page)
    assert PARSE.document(DETAIL, 1000, orjson.dumps(page)).digest == detail().digest


def test_lesson_42_neither_do_spaces_nor_the_order_of_keys_nor_escapes() -> None:
    page = orjson.loads(a_detail())
    for module in page["moduleList"]:
        if isinstance(module["data"], dict):
            module["data"] = dict(reversed(module["data"].items()))
    written = (
        orjson.dumps(page, option=orjson.OPT_INDENT_2),
        json.dumps(page).encode(),
        json.dumps(page, indent=9).encode(),
    )
    assert {PARSE.document(DETAIL, 1000, raw).digest for raw in written} == {detail().digest}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"itemName": "another"}, "name"),
        ({"brandCode": 4712}, "brandCode"),
        ({"brandName": "ATELIER SUD"}, "brandName"),
        ({"brandNameKr": None}, "brandNameKr"),
        ({"normalPrice": 1075001}, "normalPrice"),
        ({"sellingPrice": 0}, "sellingPrice"),
        ({"discountPrice": "545,601"}, "discountPrice"),
        ({"discountRate": 50}, "discountRate"),
        ({"stock": 0}, "stock"),
        ({"isSoldOut": True}, "soldOut"),
        ({"mediumCategory": "재킷"}, "category"),
        ({"smallCategoryCode": "15r01r01", "smallCategory": "롱"}, "category"),
        ({"images": []}, "images"),
        ({"shippingFee": 3000}, "shipping"),
        ({"averageDeliveryDay": None}, "shipping"),
        ({"originCountry": "프랑스"}, "originCountry"),
        ({"itemStatus": "중고"}, "itemStatus"),
        ({"descriptionMarkUp": LEFT_OUT}, "description"),
    ],
)
def test_every_real_change_is_seen_in_its_field(changes: dict[str, object], field: str) -> None:
    before, after = detail(), detail(**changes)
    assert after.digest != before.digest
    assert {name for name in before.fields if before.fields[name] != after.fields[name]} - {"descriptionImages"} == {
        field
    }


def test_lesson_42_the_order_of_images_is_a_difference_that_of_options_and_tags_is_not() -> None:
    assert detail(images=["https://x/a", "https://x/b"]).digest != detail(images=["https://x/b", "https://x/a"]).digest
    options = [an_option(n) for n in (3, 1, 2)]
    one, other = (PARSE.document(OPTION, 1, options_of(*rows)) for rows in (options, options[::-1]))
    assert one.digest == other.digest
    tags = a_list_item()["tagList"]
    assert entry(tagList=tags) != entry(tagList=tags[::-1])
    assert (
        PARSE.document(MINI_SHOP, 1000, entry(tagList=tags)).digest
        == PARSE.document(MINI_SHOP, 1000, entry(tagList=tags[::-1])).digest
    )


@pytest.mark.parametrize("written", ["17%", "1~3 days", "", None, True, -1, 1.5, "1,14,000", [], {}, 10**15, LEFT_OUT])
@pytest.mark.parametrize(
    "name", ["sellingPrice", "normalPrice", "discountPrice", "stock", "discountRate", "shippingFee"]
)
def test_lesson_36_an_unreadable_number_refuses_the_whole_document_by_name(name: str, written: object) -> None:
    with pytest.raises(Unreadable, match=rf"DETAIL\.({name}|shipping\.fee)"):
        detail(**{name: written})


def test_a_renamed_field_is_an_error_and_its_new_name_is_not_lost() -> None:
    with pytest.raises(Unreadable, match=r"DETAIL\.sellingPrice: missing"):
        detail(sellingPrice=LEFT_OUT, salePrice=599000)
    assert detail(salePrice=599000).unknown == ("ProductInfoModule.salePrice",)
    assert detail(brandNameKr=LEFT_OUT).missing == ("brandNameKr",)


# ── hostile bytes ──


def business(value: bytes) -> dict[str, tuple[DocumentKind, bytes]]:
    """A page of each kind with these bytes where a business value stands."""
    return {
        "detail": (DETAIL, a_detail(itemName="SPOT").replace(b'"SPOT"', value)),
        "entry": (MINI_SHOP, entry(name="SPOT").replace(b'"SPOT"', value)),
        "option": (OPTION, options_of(an_option(color="SPOT")).replace(b'"SPOT"', value)),
    }


HOSTILE = {
    "a depth bomb": b"[" * 200_000 + b"]" * 200_000,
    "an open depth bomb": b'{"a":' * 200_000,
    "a number of a million digits": b"9" * 1_000_000,
    "an exponent of a million digits": b"1e" + b"9" * 1_000_000,
    "a number beyond floats": b"1e999",
    "NaN": b"NaN",
    "Infinity": b"-Infinity",
    "half a character": rb'"\ud800"',
    "the other half": rb'"\udc00x"',
    "invalid UTF-8": b'"\xff"',
    "UTF-8 of half a character": b'"\xed\xa0\x80"',
    "a line break in a text": b'"\n"',
    "a text of a megabyte": b'"' + b"a" * 1_000_000 + b'"',
    "combining marks": ('"a' + "\u0301\u0316" * 100_000 + '"').encode(),
    "a number": b"5",
    "nothing": b"",
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("page", ["detail", "entry", "option"])
def test_hostile_values_are_unreadable_and_cost_little(name: str, page: str) -> None:
    kind, raw = business(HOSTILE[name])[page]
    with pytest.raises(Unreadable) as trouble:
        PARSE.document(kind, 1000, raw)
    assert len(str(trouble.value)) < 400


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bytes_alone_are_unreadable_to_every_reader(name: str) -> None:
    raw = HOSTILE[name]
    for read in (
        lambda: PARSE.listing("MINI_SHOP", raw),
        lambda: PARSE.listing("SEARCH", raw),
        lambda: PARSE.verify("DETAIL", 1, raw),
        lambda: PARSE.verify("OPTION", 1, raw),
    ):
        with pytest.raises(Unreadable):
            read()


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        (DETAIL, a_detail().replace(b'"sellingPrice":599000', b'"sellingPrice":599000,"sellingPrice":1')),
        (DETAIL, a_detail().replace(b'"shippingFee":0', b'"shippingFee":0,"shippingFee":1')),
        (DETAIL, a_detail().replace(b'"images":[', b'"images":[],"images":[')),
        (MINI_SHOP, entry().replace(b'"price":', b'"price":"1","price":')),
        (OPTION, options_of().replace(b'"stock":1', b'"stock":1,"stock":2', 1)),
        (OPTION, options_of().replace(b'"stock":1', b'"stock":1,"size":"x"', 1)),
    ],
)
def test_a_name_that_comes_twice_is_unreadable(kind: DocumentKind, raw: bytes) -> None:
    with pytest.raises(Unreadable, match="comes twice"):
        PARSE.document(kind, 1000, raw)


def test_a_value_or_an_inner_object_of_the_same_name_is_no_repetition() -> None:
    assert detail(brandName="stock", userDiscountInfo={"stock": 1, "sellingPrice": 2}).fields["brandName"] == "stock"
    document = PARSE.document(OPTION, 1, options_of(an_option(color="size"), an_option(2, sizeGuide=LEFT_OUT)))
    assert len(document.fields["options"] or ()) == 2  # type: ignore[arg-type]


def everything(raw: bytes) -> None:
    """Each reader parses these bytes or says Unreadable."""
    readers: tuple[Callable[[], object], ...] = (
        lambda: PARSE.listing("MINI_SHOP", raw),
        lambda: PARSE.listing("SEARCH", raw),
        lambda: PARSE.verify("DETAIL", 1000, raw),
        lambda: PARSE.verify("OPTION", 1000, raw),
        *((lambda kind=kind: PARSE.document(kind, 1000, raw)) for kind in DocumentKind),
    )
    for read in readers:
        with suppress(Unreadable):
            read()


@given(st.binary(max_size=300))
def test_any_bytes_parse_or_are_unreadable(raw: bytes) -> None:
    everything(raw)


PAGES = (a_detail(), a_mini_shop_page(2), a_search_page(2, NEXT), options_of(), entry(), orjson.dumps(a_search_item()))


@given(st.sampled_from(PAGES), st.randoms(use_true_random=False), st.integers(1, 4))
def test_any_page_with_some_bytes_changed_parses_or_is_unreadable(
    page: bytes, chance: random.Random, times: int
) -> None:
    raw = bytearray(page)
    for _ in range(times):
        at = chance.randrange(len(raw))
        with_what = chance.choice((b"", b'"', b"{", b"[", b"]", b",", b"null", b"-", b"1e9", b"\\u", b"\xff", b"\x00"))
        raw[at : at + chance.choice((0, 1, 5, 500))] = with_what
    everything(bytes(raw))


@given(
    st.sampled_from(PAGES),
    st.randoms(use_true_random=False),
    st.sampled_from((None, True, -1, 1.5, 10**30, "", "1,0", "\x00", [], [[]], {}, {"type": None}, [None], {"": {}})),
)
def test_any_page_with_a_value_of_another_kind_parses_or_is_unreadable(
    page: bytes, chance: random.Random, value: object
) -> None:
    everything(json.dumps(with_one_changed(orjson.loads(page), chance, value)).encode())


def with_one_changed(node: Any, chance: random.Random, value: object) -> Any:
    """The document with one value, anywhere in it, replaced."""
    if not isinstance(node, dict | list) or not node or chance.random() < 0.1:
        return value
    place = chance.choice(list(node)) if isinstance(node, dict) else chance.randrange(len(node))
    node[place] = with_one_changed(node[place], chance, value)
    return node


def test_bytes_have_a_hash_of_128_bits() -> None:
    assert content_hash(b"") == "cae66941d9efbd404e4d88758ea67670"
    assert content_hash(b"a") != content_hash(b"b")
