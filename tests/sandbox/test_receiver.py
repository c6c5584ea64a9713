"""Promises of the fake product server: it trusts only what is signed, applies each event once, and tells what went wrong."""

import base64

import orjson
import pytest
from standardwebhooks import Webhook

from sandbox.visits import NOON, SECRET, a_sandbox, an_event, deliver
from sellerwatch.domain.errors import Invalid
from sellerwatch.sandbox.faults import Fault
from sellerwatch.sandbox.receiver import sign, signature_problem, signing_key


@pytest.fixture
def sandbox():
    return a_sandbox({"atelier": 5}, secret=SECRET)


@pytest.fixture
def item_no(sandbox):
    return sandbox.world.listed()[0]


def told(sandbox, *names):
    shown = sandbox.receiver.shown()
    return tuple(shown[name] for name in names)


def test_the_test_vector_of_the_standard_is_signed_as_it_says():
    key = signing_key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    signature = sign(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", b'{"test": 2432232314}')
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_what_the_reference_library_signs_is_accepted(sandbox, item_no):
    from datetime import UTC, datetime  # noqa: PLC0415 - only the library wants a datetime

    event = an_event(sandbox, item_no)
    body = orjson.dumps(event)
    signature = Webhook(SECRET).sign("id-1", datetime.fromtimestamp(NOON, UTC), body.decode())
    headers = {"webhook-id": "id-1", "webhook-timestamp": str(int(NOON)), "webhook-signature": signature}
    assert sandbox.answer("POST", "/products", headers, body, NOON + 200).status == 200


def test_a_signed_delivery_becomes_the_copy(sandbox, item_no):
    assert deliver(sandbox, an_event(sandbox, item_no)).status == 200
    assert sandbox.receiver.copy(item_no)["productData"] == orjson.loads(orjson.dumps(sandbox.truth(item_no)))
    assert sandbox.receiver.versions() == {item_no: 1}
    assert told(sandbox, "deliveries", "products", "PRODUCT_CREATED") == (1, 1, 1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"webhook-signature": "v1,AAAA"},
        {"webhook-signature": ""},
        {"webhook-timestamp": str(int(NOON) - 301)},
        {"webhook-timestamp": str(int(NOON) + 301)},
        {"webhook-timestamp": "soon"},
        {"webhook-id": "another"},
        {"Idempotency-Key": "another"},
    ],
)
def test_what_is_not_signed_well_is_refused_and_not_kept(sandbox, item_no, wrong):
    assert deliver(sandbox, an_event(sandbox, item_no), **wrong).status == 401
    assert sandbox.receiver.copy(item_no) is None
    assert told(sandbox, "badSignatures", "deliveries") == (1, 0)


def test_one_good_signature_among_several_is_enough():
    key = signing_key(SECRET)
    headers = {"webhook-id": "a", "webhook-timestamp": str(int(NOON))}
    headers["webhook-signature"] = "v1a,x v1,AAAA " + sign(key, "a", headers["webhook-timestamp"], b"body")
    assert signature_problem(key, headers, b"body", NOON) is None
    assert signature_problem(key, headers, b"Body", NOON) == "wrong signature"


def test_a_repeat_is_answered_well_and_changes_nothing(sandbox, item_no):
    event = an_event(sandbox, item_no)
    assert [deliver(sandbox, event, at=NOON + late).status for late in (0, 30)] == [200, 200]
    assert told(sandbox, "deliveries", "repeats", "keysReused") == (1, 1, 0)
    deliver(sandbox, event | {"version": 9})
    assert told(sandbox, "deliveries", "repeats", "keysReused") == (1, 2, 1)


def test_older_or_equal_versions_are_noticed_and_not_applied(sandbox, item_no):
    for version in (2, 1):
        deliver(sandbox, an_event(sandbox, item_no, version))
    deliver(sandbox, an_event(sandbox, item_no, 2), key="another key")
    assert told(sandbox, "deliveries", "outOfOrder") == (1, 2)
    assert sandbox.receiver.versions() == {item_no: 2}
    assert sandbox.receiver.shown()["stories"][0]["what"] == "outOfOrder"


def test_a_change_that_does_not_begin_where_the_copy_stands_is_a_mismatch(sandbox, item_no):
    deliver(sandbox, an_event(sandbox, item_no))
    account = [{name: one[name] for name in ("field", "old", "new")} for one in sandbox.change(item_no, "name")]
    deliver(sandbox, an_event(sandbox, item_no, 2, changes=account))
    assert told(sandbox, "deliveries", "mismatches") == (2, 0)
    deliver(sandbox, an_event(sandbox, item_no, 3, changes=account))
    assert told(sandbox, "mismatches") == (1,)


def test_what_is_no_event_is_refused():
    sandbox = a_sandbox()
    for body in (b"", b"{", b"[]", b"{}", b'{"productData": {}, "itemNo": "x", "version": 1, "eventType": "x"}'):
        assert sandbox.answer("POST", "/products", {"Idempotency-Key": "k"}, body, NOON).status == 400
    assert sandbox.answer("GET", "/products", {}, b"", NOON).status == 405
    assert told(sandbox, "unreadable") == (5,)


def test_staged_failures_are_met_once_and_a_lost_answer_was_applied(sandbox, item_no):
    event = an_event(sandbox, item_no)
    sandbox.stage("/products", Fault(name="error", status=503, retry_after="seconds", retry_after_seconds=42))
    reply = deliver(sandbox, event)
    assert (reply.status, dict(reply.headers)["retry-after"]) == (503, "42")
    sandbox.stage("PRODUCTS", Fault(name="drop"))
    assert deliver(sandbox, event).drop
    assert sandbox.receiver.copy(item_no) is None
    sandbox.stage("PRODUCTS", Fault(name="lost"))
    assert deliver(sandbox, event).drop
    assert sandbox.receiver.copy(item_no) is not None
    sandbox.stage("PRODUCTS", Fault(name="slow", seconds=6))
    assert deliver(sandbox, event).delay == 6
    assert told(sandbox, "deliveries", "repeats") == (1, 1)


def test_a_rate_of_the_receiver_leaves_the_marketplace_alone():
    sandbox = a_sandbox(receiver_rates={"error": 100}, receiver_latency_ms=50)
    reply = deliver(sandbox, an_event(sandbox, sandbox.world.listed()[0]))
    assert reply.status >= 500
    assert reply.delay == 0.05
    assert not sandbox.market.faults.rates


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_AAAA", "whsec_!!", base64.b64encode(bytes(32)).decode()])
def test_a_weak_secret_is_refused_without_showing_it(secret):
    with pytest.raises(Invalid) as refused:
        a_sandbox(secret=secret)
    assert len(secret) < 7 or secret not in str(refused.value)
