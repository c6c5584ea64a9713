"""robots.txt is hostile input: what is no rule is passed over, and nothing in it costs more than its length."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sellerwatch.adapters.robots import SECONDS_MAX, ProtegoReader

ORIGIN = "https://market.test"
DETAIL = "/mustit-api/facade-api/v1/item/17/detail/top"
READER = ProtegoReader()


def allows(text: str, path: str = DETAIL) -> bool:
    return READER.rules(text).allows(ORIGIN + path)


@pytest.mark.parametrize(
    ("text", "path", "is_allowed"),
    [
        ("", DETAIL, True),
        ("User-agent: *\nDisallow:", DETAIL, True),
        ("User-agent: *\nDisallow: /", DETAIL, False),
        ("User-agent: *\nDisallow: /", "/robots.txt", True),
        ("User-agent: *\nDisallow: /\nAllow: /mustit-api/", DETAIL, True),
        # The longest wins, and Allow where two are of one length.
        ("User-agent: *\nAllow: /mustit-api\nDisallow: /mustit-api/facade-api", DETAIL, False),
        ("User-agent: *\nDisallow: /mustit-api\nAllow: /mustit-api", DETAIL, True),
        ("User-agent: *\nDisallow: /*/detail/", DETAIL, False),
        ("User-agent: *\nDisallow: /*/detail$", DETAIL, True),
        ("User-agent: *\nDisallow: /*/top$", DETAIL, False),
        ("User-agent: *\nDisallow: /$", "/", False),
        ("User-agent: *\nDisallow: /$", DETAIL, True),
        ("User-agent: *\nDisallow: /*?keyword=", "/v1/search/items?keyword=a", False),
        ("User-agent: *\nDisallow: /%6Dustit-api", DETAIL, False),
        ("User-agent: *\nDisallow: /MUSTIT-API", DETAIL, True),
        # A group of our own takes the place of the one for all; names are in any case.
        ("User-agent: SellerWatch\nDisallow: /\n\nUser-agent: *\nAllow: /", DETAIL, False),
        ("User-agent: *\nDisallow: /\n\nUser-agent: sellerwatch\nAllow: /", DETAIL, True),
        ("User-agent: googlebot\nUser-agent: sellerwatch\nDisallow: /", DETAIL, False),
        ("User-agent: googlebot\nDisallow: /", DETAIL, True),
        # Others whose names are like ours are others.
        ("User-agent: seller\nDisallow: /", DETAIL, True),
        ("User-agent: sellerwatch-two\nDisallow: /", DETAIL, True),
        # Groups of one name are one group.
        (
            "User-agent: *\nAllow: /x\n\nUser-agent: bot\nAllow: /\n\nUser-agent: *\nDisallow: /mustit-api",
            DETAIL,
            False,
        ),
        ("User-agent: * # all\nDisallow: /mustit-api # this", DETAIL, False),
        ("user-agent:*\r\ndisallow:/mustit-api\r\n", DETAIL, False),
        ("User-agent: *\rDisallow: /mustit-api\r", DETAIL, False),
        ("Disallow: /", DETAIL, True),
        ("<html><body>Disallow: /</body></html>", DETAIL, True),
    ],
)
def test_the_rules_are_read_as_rfc_9309_has_them(text: str, path: str, is_allowed: bool) -> None:
    assert allows(text, path) is is_allowed


@pytest.mark.parametrize(
    ("lines", "seconds"),
    [
        ("", 0),
        ("Crawl-delay: 2.5", 2.5),
        ("Request-rate: 1/5", 5),
        ("Crawl-delay: 2\nRequest-rate: 1/5", 5),
        ("Crawl-delay: 0", 0),
        ("Crawl-delay: -3", 0),
        ("Crawl-delay: nan", 0),
        ("Crawl-delay: inf", 0),
        ("Crawl-delay: 1e400", 0),
        ("Crawl-delay: soon", 0),
        ("Crawl-delay: 99999999", SECONDS_MAX),
        ("Request-rate: 0/5", 0),
        ("Request-rate: 1/0", 0),
        ("Request-rate: -1/5", 0),
    ],
)
def test_a_wish_to_be_asked_slowly_is_a_number_of_seconds_up_to_a_day(lines: str, seconds: float) -> None:
    assert READER.rules(f"User-agent: *\n{lines}\nAllow: /").seconds_between == seconds
    assert READER.rules(f"User-agent: other\n{lines}\nAllow: /").seconds_between == 0


@given(st.text())
def test_any_text_has_an_answer(text: str) -> None:
    rules = READER.rules(text)
    assert rules.allows(ORIGIN + "/robots.txt")
    assert rules.allows(ORIGIN + DETAIL) in {True, False}
    assert 0 <= rules.seconds_between <= SECONDS_MAX


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"User-agent: crawler-{number}\n" for number in range(25_000)) + "Disallow: /\n" * 4000,
        "".join(f"User-agent: crawler-{number}\nDisallow: /{number}\n" for number in range(12_000)),
        "User-agent: *\n" + "".join(f"Disallow: /*a{number}\n" for number in range(27_000)),
        "User-agent: *\nDisallow: /" + "*a" * 250_000,
        "User-agent: *\nDisallow: /" + "%41" * 160_000,
        "\x00" * 500_000,
        ":" * 500_000,
        "User-agent: *\nDisallow: /" + "$" * 2000,
    ],
    ids=["names", "groups", "wildcards", "stars", "escapes", "zeros", "colons", "dollars"],
)
def test_half_a_megabyte_made_to_hurt_is_read_line_by_line_and_answered(text: str) -> None:
    rules = READER.rules(text)
    assert rules.allows(ORIGIN + "/" + "a" * 2000) in {True, False}
    # Each line is written into every group that it belongs to: so many of them would take minutes.
    assert len(rules._file._user_agents) <= 2
