"""A trigger from outside, however it was written."""

import pytest

from sellerwatch.domain.errors import Invalid
from sellerwatch.domain.schedules import rule_name
from sellerwatch.domain.triggers import Called, called

ENVELOPE = {
    "version": "0",
    "id": "e-1",
    "detail-type": "Scheduled Event",
    "source": "aws.events",
    "time": "2026-11-18T00:00:00Z",
    "resources": ["arn:aws:events:ap-northeast-2:1:rule/mustit-crawler-dmont"],
    "detail": {},
}

READ = {
    "ours": ({"sellerId": "dmont", "triggerKey": "k", "scheduledAt": "2026-11-18T00:00:00Z"}, Called("dmont", "k")),
    "without a key": ({"sellerId": "dmont"}, Called("dmont", None)),
    "with a null key": ({"sellerId": "dmont", "triggerKey": None}, Called("dmont", None)),
    "with fields nobody knows": ({"sellerId": "dmont", "x": {"y": 1}}, Called("dmont", None)),
    "an envelope of a rule": (ENVELOPE, Called("dmont", "e-1")),
    "an envelope that says whom": (ENVELOPE | {"detail": {"sellerId": "other"}}, Called("other", "e-1")),
    "an envelope of a rule on a bus": (
        ENVELOPE | {"resources": ["arn:aws:events:r:1:rule/bus/mustit-crawler-dmont"]},
        Called("dmont", "e-1"),
    ),
}

REFUSED = {
    "nothing": ({}, "sellerId"),
    "a number": ({"sellerId": 7}, "sellerId"),
    "a hostile name": ({"sellerId": "../../etc"}, "sellerId"),
    "a name that is too long": ({"sellerId": "x" * 65}, "sellerId"),
    "a key that is no text": ({"sellerId": "dmont", "triggerKey": {"$ne": 1}}, "triggerKey"),
    "an empty key": ({"sellerId": "dmont", "triggerKey": ""}, "triggerKey"),
    "a key that is too long": ({"sellerId": "dmont", "triggerKey": "k" * 201}, "triggerKey"),
    "a key that can't be seen": ({"sellerId": "dmont", "triggerKey": "a\x00b"}, "triggerKey"),
    "an envelope without an id": ({name: one for name, one in ENVELOPE.items() if name != "id"}, "id"),
    "an envelope of nobody": (ENVELOPE | {"resources": []}, "detail.sellerId"),
    "an envelope of a foreign rule": (ENVELOPE | {"resources": ["arn:aws:events:r:1:rule/backup"]}, "detail.sellerId"),
    "an envelope whose rule's name is cut": (ENVELOPE | {"resources": [f"rule/{rule_name('x' * 64)}"]}, "detail"),
    "a detail that is no object": (ENVELOPE | {"detail": "text", "resources": "text"}, "detail.sellerId"),
}


@pytest.mark.parametrize("name", READ)
def test_a_trigger_says_whose_turn_it_is_and_by_which_key(name):
    body, expected = READ[name]
    assert called(body) == expected


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_trigger_is_refused_by_the_name_of_the_field(name):
    body, field = REFUSED[name]
    with pytest.raises(Invalid, match=field):
        called(body)
