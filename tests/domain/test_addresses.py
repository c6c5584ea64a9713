"""Addresses: what is built is accepted, and nothing else is, however it is spelled."""

from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sellerwatch.domain.addresses import FACADE, MINI_SHOP_PATH, Addresses
from sellerwatch.domain.errors import Invalid

ORIGIN = "https://m.shop.test"
ADDRESSES = Addresses(ORIGIN)
KINDS = ("MINI_SHOP", "SEARCH", "DETAIL", "OPTION")
SELLER_IDS = st.from_regex(r"\A[A-Za-z0-9._-]{1,64}\Z")
ITEM_NOS = st.integers(1, 10**18 - 1)
DETAIL_PATH = f"{FACADE}/v1/item/7/detail/top"
NEXT = "/v1/search/items?keyword=nord%2Fa%26b&sort=LATEST&pageNo=2&searchAfter=%5B1.5%2C%22x%22%5D"

HOSTS = [
    "evil.test", "evil.test:443", "m.shop.test.evil.test", "evilm.shop.test", "m.shop.testevil", "m.shop.test.",
    "m.shop.test:8443", "m.shop.test:443", "m.shop.test:", "M.SHOP.TEST", "shop.test", "xm.shop.test", "m-shop.test",
    "mXshop.test", "m.shop.test%00", "m.shop.test%2eevil.test", "m.shop.test%2f", "m%2eshop.test", "m.shop.test%0d%0a",
    "m.shop.test\\", "m.shop.test\\@evil.test", "m.shop.test\\.evil.test", "m.shop.test@evil.test",
    "m.shop.test:443@evil.test", "user@m.shop.test", "user:word@m.shop.test", "@m.shop.test", ":@m.shop.test",
    "evil.test#@m.shop.test", "evil.test?@m.shop.test", "evil.test/@m.shop.test", "m.shop.test#@evil.test",
    "m.shop.test?@evil.test", "m.shop.test,evil.test", "m.shop.test;evil.test", "m.shop.test evil.test",
    "m.shop.test\tevil.test", "m.shop.test\nevil.test", "m.shop.test\r\nHost: evil.test\r\n\r\n", "m.shop.test\x00",
    "m.shop.test\u200b", "m\u200b.shop.test", "m\u3002shop\u3002test", "m\uff0eshop.test", "m.ſhop.test",
    "ｍ.shop.test", "m.shop.tеst", "m.ⓢhop.test", "ⓔvil.test",
    "127.0.0.1", "localhost", "127.1", "127.0.1", "0", "0.0.0.0", "2130706433", "017700000001", "0177.0.0.1", "0x7f000001",
    "0x7f.0.0.1", "0x7F.1", "127.0.0.1.", "１２７.０.０.１", "①②⑦.⓪.⓪.①", "١٢٧.٠.٠.١", "[::1]", "[::]", "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]", "[::1%25lo]", "[fe80::1%25eth0]", "[fd00::1]", "[64:ff9b::7f00:1]",
    "169.254.169.254", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "[::ffff:169.254.169.254]",
    "[::ffff:a9fe:a9fe]", "169.254.169.254.nip.test", "metadata.google.internal", "10.0.0.1", "192.168.0.1", "172.16.0.1",
    "100.64.0.1", "224.0.0.1", "255.255.255.255", "", ".", "..", "-", "[", "]", "[]", "[m.shop.test]", "%", "*",
]  # fmt: skip

URLS = [
    f"http://m.shop.test{DETAIL_PATH}",
    f"HTTPS://m.shop.test{DETAIL_PATH}",
    f"ftp://m.shop.test{DETAIL_PATH}",
    f"file://m.shop.test{DETAIL_PATH}",
    f"gopher://m.shop.test{DETAIL_PATH}",
    f"ws://m.shop.test{DETAIL_PATH}",
    f"javascript:{ORIGIN}{DETAIL_PATH}",
    f"data:text/plain,{ORIGIN}{DETAIL_PATH}",
    f"jar:{ORIGIN}!{DETAIL_PATH}",
    f"view-source:{ORIGIN}{DETAIL_PATH}",
    f"//m.shop.test{DETAIL_PATH}",
    f"///m.shop.test{DETAIL_PATH}",
    f"https:m.shop.test{DETAIL_PATH}",
    f"https:/m.shop.test{DETAIL_PATH}",
    f"https:///m.shop.test{DETAIL_PATH}",
    f"https:\\\\m.shop.test{DETAIL_PATH}",
    f"https://\\m.shop.test{DETAIL_PATH}",
    f"m.shop.test{DETAIL_PATH}",
    DETAIL_PATH,
    "",
    ORIGIN,
    f"{ORIGIN}/",
    f" {ORIGIN}{DETAIL_PATH}",
    f"\t{ORIGIN}{DETAIL_PATH}",
    f"{ORIGIN}{DETAIL_PATH} ",
    f"{ORIGIN}{DETAIL_PATH}\n",
    f"{ORIGIN}{DETAIL_PATH}\r\nX-Evil: 1",
    f"{ORIGIN}{DETAIL_PATH}\x00",
    f"{ORIGIN}{DETAIL_PATH}/",
    f"{ORIGIN}{DETAIL_PATH}?",
    f"{ORIGIN}{DETAIL_PATH}?next=https://evil.test",
    f"{ORIGIN}{DETAIL_PATH}#",
    f"{ORIGIN}{DETAIL_PATH}#https://evil.test",
    f"{ORIGIN}{DETAIL_PATH};x",
    f"{ORIGIN}{DETAIL_PATH}%00",
    f"{ORIGIN}{DETAIL_PATH}%0d%0aX-Evil:1",
    f"{ORIGIN}{DETAIL_PATH.upper()}",
    f"{ORIGIN}/{DETAIL_PATH}",
    f"{ORIGIN}//evil.test{DETAIL_PATH}",
    f"{ORIGIN}/.{DETAIL_PATH}",
    f"{ORIGIN}/..{DETAIL_PATH}",
    f"{ORIGIN}/x/..{DETAIL_PATH}",
    f"{ORIGIN}/%2e%2e{DETAIL_PATH}",
    f"{ORIGIN}{DETAIL_PATH.replace('/', '%2F')}",
    f"{ORIGIN}{DETAIL_PATH.replace('/', chr(92))}",
    f"{ORIGIN}{DETAIL_PATH.replace('item', 'it%65m')}",
    f"{ORIGIN}{DETAIL_PATH.replace('item', 'ｉtem')}",
    f"{ORIGIN}{DETAIL_PATH}/../../../../../../admin",
    f"{ORIGIN}{FACADE}/v1/item/7/detail/bottom",
    f"{ORIGIN}{FACADE}/v1/item/0/detail/top",
    f"{ORIGIN}{FACADE}/v1/item/-7/detail/top",
    f"{ORIGIN}{FACADE}/v1/item/+7/detail/top",
    f"{ORIGIN}{FACADE}/v1/item/07/detail/top",
    f"{ORIGIN}{FACADE}/v1/item/0x7/detail/top",
    f"{ORIGIN}{FACADE}/v1/item/7.0/detail/top",
    f"{ORIGIN}{FACADE}/v1/item/７/detail/top",
    f"{ORIGIN}{FACADE}/v1/item/٧/detail/top",
    f"{ORIGIN}{FACADE}/v1/item/7e3/detail/top",
    f"{ORIGIN}{FACADE}/v1/item/%37/detail/top",
    f"{ORIGIN}{FACADE}/v1/item//detail/top",
    f"{ORIGIN}{FACADE}/v1/item/7;8/detail/top",
    f"{ORIGIN}{FACADE}/v1/item/7%2F..%2F8/detail/top",
    f"{ORIGIN}{FACADE}/v1/item/{10**18}/detail/top",
    f"{ORIGIN}{FACADE}/v1/item/{'9' * 100_000}/detail/top",
    f"{ORIGIN}{FACADE}/v1/searchmini-shop-search",
    f"{ORIGIN}{MINI_SHOP_PATH}?sellerId=nord&pageNo=0&pageSize=500",
    f"{ORIGIN}{MINI_SHOP_PATH}?sellerId=nord&pageNo=0&pageSize=500&order=LATEST&x=1",
    f"{ORIGIN}{MINI_SHOP_PATH}?sellerId=nord&pageNo=0&pageSize=500&order=OLDEST",
    f"{ORIGIN}{MINI_SHOP_PATH}?pageNo=0&sellerId=nord&pageSize=500&order=LATEST",
    f"{ORIGIN}{MINI_SHOP_PATH}?sellerId=nord%26order=X&pageNo=0&pageSize=500&order=LATEST",
    f"{ORIGIN}{MINI_SHOP_PATH}?sellerId=nord/../x&pageNo=0&pageSize=500&order=LATEST",
    f"{ORIGIN}{MINI_SHOP_PATH}?sellerId=&pageNo=0&pageSize=500&order=LATEST",
    f"{ORIGIN}{MINI_SHOP_PATH}?sellerId={'n' * 65}&pageNo=0&pageSize=500&order=LATEST",
    f"{ORIGIN}{MINI_SHOP_PATH}?sellerId=nord&pageNo=-1&pageSize=500&order=LATEST",
    f"{ORIGIN}{MINI_SHOP_PATH}?sellerId=nord&pageNo=00&pageSize=500&order=LATEST",
    f"{ORIGIN}{MINI_SHOP_PATH}?sellerId=nord&pageNo=１&pageSize=500&order=LATEST",
    f"{ORIGIN}{MINI_SHOP_PATH}?sellerId=nord&pageNo=0&pageSize=0&order=LATEST",
    f"{ORIGIN}{MINI_SHOP_PATH}?sellerId=nord&pageNo=0&pageSize=10000000&order=LATEST",
    f"{ORIGIN}{FACADE}/v1/search/items",
    f"{ORIGIN}{FACADE}/v1/search/items/?keyword=nord",
    f"{ORIGIN}{FACADE}/v1/search/items?keyword=nord#x",
    f"{ORIGIN}{FACADE}/v1/search/items?keyword=nord x",
    f"{ORIGIN}{FACADE}/v1/search/items?keyword=nord\r\nX: 1",
    f"{ORIGIN}{FACADE}/v1/search/items?keyword=노르드",
    f"{ORIGIN}{FACADE}/v1/search/items?keyword=nord%",
    f"{ORIGIN}{FACADE}/v1/search/items?keyword=nord%2",
    f"{ORIGIN}{FACADE}/v1/search/items?keyword=nord%zz",
    f"{ORIGIN}{FACADE}/v1/search/items?keyword=nord%２０",
    f"{ORIGIN}{FACADE}/v1/search/items?keyword=nord\\x",
    f'{ORIGIN}{FACADE}/v1/search/items?keyword="nord"',
    f"{ORIGIN}{FACADE}/v1/search/items?keyword=<nord>",
    f"{ORIGIN}{FACADE}/v1/search/items?{'x' * 1801}",
    f"{ORIGIN}{FACADE}/v1/search/other?keyword=nord",
]  # fmt: skip

HOSTILE = [f"https://{host}{DETAIL_PATH}" for host in HOSTS] + URLS


def a_url(kind: str) -> str:
    return {
        "MINI_SHOP": ADDRESSES.mini_shop("nord", 3, 500),
        "SEARCH": ADDRESSES.search("nord"),
        "DETAIL": ADDRESSES.detail(7),
        "OPTION": ADDRESSES.option(7),
    }[kind]


# ── what is built ──


@given(SELLER_IDS, st.integers(0, 999_999), st.integers(1, 500), ITEM_NOS)
def test_what_is_built_is_accepted_for_its_own_kind_and_for_no_other(
    seller_id: str, page_no: int, page_size: int, item_no: int
) -> None:
    built = {
        "MINI_SHOP": ADDRESSES.mini_shop(seller_id, page_no, page_size),
        "SEARCH": ADDRESSES.search(seller_id),
        "DETAIL": ADDRESSES.detail(item_no),
        "OPTION": ADDRESSES.option(item_no),
    }
    for kind, url in built.items():
        assert ADDRESSES.check(kind, url) == url
        parts = urlsplit(url)
        assert (parts.scheme, parts.netloc, parts.fragment) == ("https", "m.shop.test", "")
        for other in set(KINDS) - {kind}:
            with pytest.raises(Invalid):
                ADDRESSES.check(other, url)


@given(SELLER_IDS)
def test_a_seller_arrives_as_it_is_and_adds_no_parameter(seller_id: str) -> None:
    query = parse_qs(urlsplit(ADDRESSES.mini_shop(seller_id, 0, 500)).query, strict_parsing=True)
    assert query == {"sellerId": [seller_id], "pageNo": ["0"], "pageSize": ["500"], "order": ["LATEST"]}


@pytest.mark.parametrize(
    "seller_id", ["", "a&b", "a/b", "a?b", "a#b", "a b", "a\r\n", "a%2F", "노르드", "a" * 65, "@evil.test"]
)
def test_no_address_is_built_for_what_is_no_seller(seller_id: str) -> None:
    for build in (lambda: ADDRESSES.mini_shop(seller_id, 0, 500), lambda: ADDRESSES.search(seller_id)):
        with pytest.raises(Invalid):
            build()


@pytest.mark.parametrize("item_no", [0, -1, 10**18, -(10**18)])
def test_an_address_of_no_item_passes_no_check(item_no: int) -> None:
    for kind, url in (("DETAIL", ADDRESSES.detail(item_no)), ("OPTION", ADDRESSES.option(item_no))):
        with pytest.raises(Invalid):
            ADDRESSES.check(kind, url)


def test_the_path_of_mini_shops_is_a_setting() -> None:
    moved = Addresses(ORIGIN, f"{FACADE}/v1/search/mini-shop-search")
    url = moved.mini_shop("nord", 0, 500)
    assert url.startswith(f"{ORIGIN}{FACADE}/v1/search/mini-shop-search?sellerId=nord&")
    assert moved.check("MINI_SHOP", url) == url
    for addresses, other in ((ADDRESSES, url), (moved, ADDRESSES.mini_shop("nord", 0, 500))):
        with pytest.raises(Invalid):
            addresses.check("MINI_SHOP", other)


# ── what is not ──


def test_the_hostile_forms_are_many_and_different() -> None:
    assert len(set(HOSTILE)) == len(HOSTILE)
    assert len(HOSTILE) >= 120


@pytest.mark.parametrize("url", HOSTILE, ids=lambda url: ascii(url)[1:61])
def test_a_hostile_address_is_refused_whatever_it_is_said_to_be(url: str) -> None:
    for kind in KINDS:
        with pytest.raises(Invalid) as refused:
            ADDRESSES.check(kind, url)
        assert len(str(refused.value)) < 300


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: ascii(host)[1:41])
def test_no_kind_is_asked_for_at_another_host(host: str) -> None:
    for kind in KINDS:
        with pytest.raises(Invalid):
            ADDRESSES.check(kind, a_url(kind).replace("m.shop.test", host))


def test_a_query_begins_once() -> None:
    with pytest.raises(Invalid):
        ADDRESSES.check("SEARCH", a_url("SEARCH").replace("?", "??", 1))


@given(st.sampled_from(KINDS), st.data())
def test_an_address_with_one_character_put_in_before_its_query_is_refused(kind: str, data: st.DataObject) -> None:
    url = a_url(kind)
    place = data.draw(st.integers(0, len(url.partition("?")[0])))
    character = data.draw(st.characters(exclude_categories=["Nd", "Cs"]) | st.sampled_from(list("@\\/#%:.?& \r\n\t\0")))
    with pytest.raises(Invalid):
        ADDRESSES.check(kind, url[:place] + character + url[place:])


@pytest.mark.parametrize("kind", ["", "detail", "TOKEN", "DETAIL\n", "SEARCH ", "../", "*"])
def test_an_unknown_kind_is_refused(kind: str) -> None:
    with pytest.raises(Invalid, match="taskType"):
        ADDRESSES.check(kind, ADDRESSES.detail(7))


# ── the next page of a search ──


def test_the_next_page_is_asked_for_as_it_was_named_and_never_encoded_again() -> None:
    url = ADDRESSES.next_search(NEXT)
    assert url == f"{ORIGIN}{FACADE}{NEXT}"
    assert "%2F" in url
    assert "%25" not in url
    assert ADDRESSES.check("SEARCH", url) == url


@given(st.text(st.characters(codec="ascii")) | st.from_regex(r"\A(?:[A-Za-z0-9=&]|%[0-9A-F]{2}){0,200}\Z"))
def test_a_next_page_is_taken_letter_by_letter_or_not_at_all(query: str) -> None:
    path = f"/v1/search/items?{query}"
    try:
        url = ADDRESSES.next_search(path)
    except Invalid:
        return
    assert url == f"{ORIGIN}{FACADE}{path}"
    parts = urlsplit(url)
    assert (parts.scheme, parts.netloc, parts.path, parts.query) == (
        "https",
        "m.shop.test",
        f"{FACADE}/v1/search/items",
        query,
    )
    assert ADDRESSES.check("SEARCH", url) == url


@pytest.mark.parametrize(
    "path",
    [
        *(f"https://{host}/v1/search/items?x=1" for host in HOSTS),
        *(f"//{host}/v1/search/items?x=1" for host in HOSTS[:20]),
        "", "/", "?", "x=1", "/v1/search/items", "v1/search/items?x=1", "/v1/search/itemsx?x=1", "/v1/search/items/?x=1",
        "/v1/search/../item/7?x=1", "/v1/search/items?x=1\r\nX: 1", "/v1/search/items?x=1\n", "/v1/search/items?x= ",
        "/v1/search/items?x=\\", "/v1/search/items?x=1#y", "/v1/search/items?x=노", "/v1/search/items?x=%",
        "/v1/search/items?x=%2", "/v1/search/items?x=%gg", f"/v1/search/items?{'x' * 1801}", "@evil.test/v1/search/items?x=1",
        f"{FACADE}/v1/search/items?x=1", "/V1/search/items?x=1", " /v1/search/items?x=1", "/v1/search/items\x00?x=1",
    ],
    ids=lambda path: ascii(path)[1:61],
)  # fmt: skip
def test_a_next_page_that_is_no_page_of_a_search_is_refused(path: str) -> None:
    with pytest.raises(Invalid):
        ADDRESSES.next_search(path)


# ── the marketplace itself ──


@pytest.mark.parametrize(
    "origin",
    [
        "https://m.web.mustit.co.kr",
        "http://127.0.0.1:8080",
        "http://localhost",
        "http://[::1]:9000",
        "http://fake_shop:80",
    ],
)
def test_an_origin_is_a_scheme_and_a_host_and_perhaps_a_port(origin: str) -> None:
    addresses = Addresses(origin)
    assert addresses.token() == f"{origin}/"
    assert addresses.check("DETAIL", addresses.detail(7)) == f"{origin}{DETAIL_PATH}"


@pytest.mark.parametrize(
    "origin",
    [
        "", "https://", "shop.test", "//shop.test", "ftp://shop.test", "https://shop.test/", "https://shop.test/x",
        "https://shop.test?", "https://shop.test?x", "https://shop.test#", "https://shop.test#x", "https://@shop.test",
        "https://user@shop.test", "https://:word@shop.test", "https://shop.test\\evil", "https://shop.test\n",
        " https://shop.test", "https://shop test", "https://shop.test:", "https://shop.test:abc", "https://shop.test:0",
        "https://shop.test:123456", "https://shop.test%2f", "https://shop.test.", "https://.shop.test", "https://shöp.test",
        "https://shop.test:80:80", "https://[::1", "https://::1", "https://shop.test,evil.test", "https://shop.test\x00",
    ],
    ids=ascii,
)  # fmt: skip
def test_what_is_more_or_less_than_an_origin_is_refused(origin: str) -> None:
    with pytest.raises(Invalid, match="MARKETPLACE_URL"):
        Addresses(origin)


@pytest.mark.parametrize(
    "path",
    ["", "/", "x", "@evil.test/x", ".evil.test/x", ":8080/x", "//evil.test/x", "/x/", "/x?y", "/x#y", "/../x", "/x/..", "/./x",
     "/x y", "/x\n", "/x\\y", "/x%2e", "/노", "https://evil.test/x"],
    ids=ascii,
)  # fmt: skip
def test_a_path_that_could_lead_elsewhere_is_refused(path: str) -> None:
    with pytest.raises(Invalid, match="MINI_SHOP_PATH"):
        Addresses(ORIGIN, path)


def test_a_page_may_be_as_large_as_its_setting() -> None:
    addresses = Addresses(ORIGIN)
    for page_size in (1, 500, 1000, 1_000_000):
        url = addresses.mini_shop("nord", 0, page_size)
        assert addresses.check("MINI_SHOP", url) == url
