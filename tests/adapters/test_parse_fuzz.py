"""Malformed answers: never a crash, never a change, never a null or a zero (I17); no order of arrival matters (I8, I16).

`make fuzz` runs the same with a million answers (`--answers`); here a few hundred do.
"""

import json
from collections.abc import Callable
from random import Random  # noqa: TID251  # seeded here
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import at
from flows.noises import an_item
from flows.shelf import DETAIL, MINI_SHOP, OPTION
from sellerwatch.adapters.marketplace.parse import Parse
from sellerwatch.domain.documents import DocumentKind, content_hash
from sellerwatch.domain.errors import Unreadable
from sellerwatch.domain.meaning import MEANING
from sellerwatch.domain.products import Fetched, Product

PARSE = Parse()
SEEDS = 4
ITEM = 1000
PLAIN = an_item(ITEM).documents()
WEIRD = (
    None,
    True,
    False,
    0,
    -1,
    1.5,
    10**40,
    "",
    " ",
    "17%",
    "1~3 days",
    "null",
    [],
    {},
    [[]],
    "\x00",
    "🜚",
    "a" * 3000,
)


def _cut(body: bytes, chance: Random) -> bytes:
    return body[: chance.randrange(len(body))]


def _flipped(body: bytes, chance: Random) -> bytes:
    found = bytearray(body)
    for _ in range(chance.randint(1, 8)):
        found[chance.randrange(len(found))] = chance.randrange(256)
    return bytes(found)


def _spliced(body: bytes, chance: Random) -> bytes:
    start, end = sorted(chance.sample(range(len(body)), 2))
    return body[:start] + body[start:end] * chance.choice((0, 2, 3)) + body[end:]


def _foreign(_: bytes, chance: Random) -> bytes:
    return chance.choice(
        (b"", b" ", b"<html><body>", b"null", b"[]", b"{}", b"0", b'"x"', b"[" * 50_000, b'{"a":' * 3_000, b"\xff\xfe")
    )


def _elsewhere(body: bytes, chance: Random) -> bytes:
    """One value somewhere inside is another, is gone, or has another name."""
    document = orjson.loads(body)
    holders = list(_holders(document))
    holder = chance.choice(holders)
    place = chance.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    match chance.randrange(3):
        case 0:
            holder[place] = chance.choice(WEIRD)
        case 1:
            del holder[place]
        case _ if isinstance(holder, dict):
            holder[f"{place}2"] = holder.pop(place)
    return json.dumps(document).encode()


def _holders(value: object) -> list[dict | list]:
    found: list[dict | list] = []
    if isinstance(value, dict | list):
        if value:
            found.append(value)
        for one in value.values() if isinstance(value, dict) else value:
            found += _holders(one)
    return found


SPOILS: tuple[Callable[[bytes, Random], bytes], ...] = (_cut, _flipped, _spliced, _foreign, _elsewhere, _elsewhere)


def a_known_product() -> Product:
    product = Product.discover(ITEM, "nord", at(0))
    product.apply([fetched(kind, body, 0) for kind, body in PLAIN.items()], at(0))
    return product


def fetched(kind: DocumentKind, body: bytes, seconds: int) -> Fetched:
    return Fetched(PARSE.document(kind, ITEM, body), content_hash(body), at(seconds))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_bytes_come_they_are_read_or_unreadable_and_nothing_required_becomes_nothing(
    seed: int, request: pytest.FixtureRequest
) -> None:
    rounds = request.config.getoption("answers") // SEEDS
    chance = Random(seed)  # no secret
    read = 0
    required = {
        kind: {f.name for f in MEANING.fields if f.document is kind and f.required and not f.stands_for}
        for kind in DocumentKind
    }
    for _ in range(rounds):
        kind = chance.choice(tuple(DocumentKind))
        body = chance.choice(SPOILS)(PLAIN[kind], chance)
        for listed in ("MINI_SHOP", "SEARCH"):
            _or_unreadable(lambda listed=listed, body=body: PARSE.listing(listed, body))
        if kind is not MINI_SHOP:
            _or_unreadable(lambda kind=kind, body=body: PARSE.verify(kind, ITEM, body))
        document = _or_unreadable(lambda kind=kind, body=body: PARSE.document(kind, ITEM, body))
        if document is None:
            continue
        read += 1
        assert [name for name in required[kind] if document.fields.get(name) is None] == []
        product = a_known_product()
        change = product.apply([Fetched(document, content_hash(body), at(60))], at(60))
        for one in change.fields if change else ():
            # What a field may lose is what is not required; a number never comes of what is none.
            assert one.new is not None or one.field not in set().union(*required.values()), (one, body)
            orjson.dumps(one.shown())
    assert 0 < read < rounds


def _or_unreadable(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except Unreadable:
        return None


@given(st.permutations([MINI_SHOP, DETAIL, OPTION]), st.permutations(range(6)))
def test_any_order_and_repetition_of_a_products_documents_gives_the_same_product(
    kinds: list[DocumentKind], order: list[int]
) -> None:
    """I8, I16: two observations, six documents, one by one in any order, some twice."""
    item = an_item(ITEM)
    item.info["sellingPrice"], item.entry["appPrice"], item.options[0]["stock"] = 499_000, "1,000", 9
    later = item.documents()
    arrivals = [fetched(kind, PLAIN[kind], 0) for kind in kinds] + [fetched(kind, later[kind], 60) for kind in kinds]
    wanted = a_known_product()
    wanted.apply([fetched(kind, later[kind], 60) for kind in DocumentKind], at(90))
    product = Product.discover(ITEM, "nord", at(0))
    for place in (*order, *order[:3]):
        product.apply([arrivals[place]], at(90))
    assert product.fields == wanted.fields
    assert {kind: seen.digest for kind, seen in product.seen.items()} == {
        kind: seen.digest for kind, seen in wanted.seen.items()
    }
