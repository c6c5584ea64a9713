"""The page for the product server's team says what is so: its examples are run, its answers are the code's."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sellerwatch.adapters.product_server import secret_bytes, signed
from sellerwatch.domain.meaning import DATA_ORDER
from sellerwatch.flows import deliver

PAGE = (Path(__file__).parents[2] / "docs" / "events.md").read_text()
NOW = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def examples() -> dict[str, Any]:
    """What the page's Python defines."""
    names: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(code, names)
    return names


def a_delivery(body: bytes = b'{"version": 1}') -> dict[str, str]:
    return signed(secret_bytes(SECRET), "event-1", NOW, body)


def test_the_example_takes_what_we_sign() -> None:
    is_genuine = examples()["is_genuine"]
    body = '{"name": "가방 “A”"}'.encode()
    assert is_genuine(SECRET, a_delivery(body), body, NOW.timestamp())
    assert is_genuine(SECRET, a_delivery(body), body, NOW.timestamp() + 299)


@pytest.mark.parametrize(
    "spoiled",
    [
        {"webhook-id": "event-2"},
        {"webhook-timestamp": str(int(NOW.timestamp()) + 1)},
        {"webhook-timestamp": "soon"},
        {"webhook-timestamp": ""},
        {"webhook-signature": "v1,AAAA"},
        {"webhook-signature": ""},
    ],
)
def test_the_example_refuses_what_was_touched(spoiled: dict[str, str]) -> None:
    is_genuine = examples()["is_genuine"]
    body = b'{"version": 1}'
    assert not is_genuine(SECRET, a_delivery() | spoiled, body, NOW.timestamp())
    assert not is_genuine(SECRET, a_delivery(), body + b" ", NOW.timestamp())
    assert not is_genuine(SECRET, a_delivery(), body, NOW.timestamp() + 301)
    assert not is_genuine("whsec_" + "A" * 32, a_delivery(), body, NOW.timestamp())


def test_the_example_keeps_the_newest_whatever_comes_twice_or_late() -> None:
    take, copies = examples()["take"], {}
    for version in (1, 3, 3, 2, 4, 1):
        take(copies, {"itemNo": 7, "version": version})
    assert copies == {7: {"itemNo": 7, "version": 4}}


def test_the_event_shown_has_the_fields_that_are_promised() -> None:
    [shown] = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    event = json.loads(shown)
    assert tuple(event["productData"]) == DATA_ORDER
    told = set(re.findall(r"^\| `([a-zA-Z]+)` \|", PAGE, re.MULTILINE))
    assert told | {"itemNo", "sellerId"} == set(event)


def test_the_answers_that_give_an_event_up_are_those_of_the_code() -> None:
    [told] = re.findall(r"^\| ([0-9, ]+) \| give it up", PAGE, re.MULTILINE)
    assert {int(status) for status in told.split(",")} == set(deliver.FINAL)
