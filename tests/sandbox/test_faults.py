"""Promises of the faults: each does what it says, once when staged, as often as its rate says otherwise."""

import orjson
import pytest

from sandbox.visits import NOON, Visitor, a_sandbox, detail_path, list_path, module, option_path
from sellerwatch.domain.errors import Invalid
from sellerwatch.sandbox.faults import NAMES, Fault


@pytest.fixture
def sandbox():
    return a_sandbox({"atelier": 40})


@pytest.fixture
def visitor(sandbox):
    return Visitor(sandbox).log_in()


def staged(visitor, name, target, **more):
    visitor.sandbox.stage(target, Fault(name=name, **more))
    return visitor.ask(target)


def test_a_staged_fault_meets_one_request_of_its_path_and_no_other(sandbox, visitor):
    one, other = sandbox.world.listed()[:2]
    sandbox.stage(detail_path(one), Fault(name="error", status=502), times=2)
    assert visitor.ask(detail_path(other)).status == 200
    assert [visitor.ask(detail_path(one)).status for _ in range(3)] == [502, 502, 200]
    assert sandbox.stats()["faults"] == {"error": 2}


def test_a_fault_can_be_staged_for_a_kind_or_for_anything(sandbox, visitor):
    item_no = sandbox.world.listed()[0]
    sandbox.stage("OPTION", Fault(name="empty"))
    assert visitor.ask(detail_path(item_no)).body
    assert visitor.ask(option_path(item_no)).body == b""
    sandbox.stage("*", Fault(name="drop"))
    assert visitor.ask(list_path()).drop


def test_html_is_a_page_with_status_200(visitor):
    reply = staged(visitor, "html", list_path())
    assert reply.status == 200
    assert reply.body.startswith(b"<!doctype html>")


@pytest.mark.parametrize("form", ["seconds", "date", "none"])
def test_throttle_is_a_429_with_retry_after_in_the_form_asked_for(visitor, form):
    reply = staged(visitor, "throttle", list_path(), retry_after=form, retry_after_seconds=7200)
    told = dict(reply.headers).get("retry-after")
    assert reply.status == 429
    assert {"seconds": told == "7200", "date": (told or "").endswith("GMT"), "none": told is None}[form]


def test_unauthorized_ends_the_tokens_too(visitor):
    assert staged(visitor, "unauthorized", list_path()).status == 401
    assert visitor.ask(list_path()).status == 401
    assert visitor.log_in().ask(list_path()).status == 200


def test_a_truncated_body_is_no_json_and_a_cut_one_is_shorter_than_announced(visitor):
    reply = staged(visitor, "truncate", list_path())
    assert not reply.drop
    with pytest.raises(orjson.JSONDecodeError):
        orjson.loads(reply.body)
    reply = staged(visitor, "cut", list_path())
    assert reply.drop
    assert len(reply.body) < int(dict(reply.headers)["content-length"])


def test_slow_lost_gone_redirect_and_answer(visitor):
    assert staged(visitor, "slow", list_path(), seconds=9).delay == 9
    lost = staged(visitor, "lost", list_path())
    assert (lost.drop, lost.body) == (True, b"")
    assert staged(visitor, "gone", list_path(), status=410).status == 410
    inside = dict(staged(visitor, "redirect", list_path()).headers)["location"]
    assert visitor.ask(inside).status == 200
    outside = staged(visitor, "redirect", list_path(), location="https://elsewhere.example/")
    assert dict(outside.headers)["location"] == "https://elsewhere.example/"
    told = staged(visitor, "answer", list_path(), status=418, headers=(("x-tea", "yes"),), body=b"pot")
    assert (told.status, told.headers, told.body) == (418, [("x-tea", "yes")], b"pot")


def test_wrong_item_is_a_good_detail_of_another_item(sandbox, visitor):
    for item_no in sandbox.world.listed()[:3]:
        document = orjson.loads(staged(visitor, "wrong_item", detail_path(item_no)).body)
        shown = module(document, "ProductInfoModule")["itemNo"]
        assert shown != item_no
        assert shown in sandbox.world.listed()


def test_a_bad_item_leaves_the_rest_of_the_page(visitor):
    items = orjson.loads(staged(visitor, "bad_item", list_path()).body)["items"]
    assert len(items) == 40
    assert [item["itemNo"] for item in items].count(None) == 1


def test_a_bad_price_is_no_number(sandbox, visitor):
    prices = [item["price"] for item in orjson.loads(staged(visitor, "bad_price", list_path()).body)["items"]]
    assert sum(not price.replace(",", "").isdigit() for price in prices) == 1
    target = detail_path(sandbox.world.listed()[0])
    info = module(orjson.loads(staged(visitor, "bad_price", target).body), "ProductInfoModule")
    assert isinstance(info["sellingPrice"], str)


def test_a_hollow_document_has_lost_nearly_everything(sandbox, visitor):
    target = detail_path(sandbox.world.listed()[0])
    info = module(orjson.loads(staged(visitor, "hollow", target).body), "ProductInfoModule")
    assert info.keys() == {"itemNo", "sellerId"}


@pytest.mark.parametrize("target", [list_path(), "/mustit-api/facade-api/v1/search/items?keyword=atelier&pageNo=1"])
def test_a_short_page_has_fewer_items_than_it_should(visitor, target):
    def amount(body):
        document = orjson.loads(body)
        return len(document.get("items") or [one for one in document["moduleList"] if one["type"] == "SearchItemV2"])

    assert 0 < amount(staged(visitor, "short_page", target).body) < amount(visitor.ask(target).body)


def test_items_that_move_are_seen_twice_or_never_while_nothing_about_them_changes(sandbox, visitor):
    before = dict(sandbox.truths("atelier"))
    first = [item["itemNo"] for item in visitor.page(0, 20)["items"]]
    sandbox.stage("MINI_SHOP", Fault(name="shuffle"))
    second = [item["itemNo"] for item in visitor.page(1, 20)["items"]]
    assert len({*first, *second}) < 40
    assert {*sandbox.world.listed()} == {*before}
    assert dict(sandbox.truths("atelier")) == before


def test_a_rate_comes_true_about_as_often_as_it_says_and_the_same_way_each_time():
    def statuses(order):
        sandbox = a_sandbox({"atelier": 400})
        visitor = Visitor(sandbox).log_in()
        sandbox.market.faults.set_rates({"error": 10})
        return {item: visitor.ask(detail_path(item)).status for item in order(sandbox.world.listed())}

    forwards, backwards = statuses(list), statuses(reversed)
    failed = sum(status >= 500 for status in forwards.values())
    assert 20 < failed < 60
    assert forwards == backwards, "the fate of a request does not depend on the others"


def test_a_token_meets_by_rate_only_what_any_request_meets():
    sandbox = a_sandbox(rates={"html": 50, "empty": 50})
    visitors = [Visitor(sandbox, f"agent {number}").log_in() for number in range(20)]
    assert all(visitor.token for visitor in visitors)
    assert not sandbox.stats()["faults"]


def test_every_fault_by_rate_gives_an_answer():
    for name in NAMES:
        sandbox = a_sandbox({"atelier": 5})
        visitor, item_no = Visitor(sandbox).log_in(), sandbox.world.listed()[0]
        sandbox.market.faults.set_rates({name: 100})
        for target in (list_path(), detail_path(item_no), option_path(item_no)):
            visitor.ask(target)
        assert sandbox.stats()["faults"] == {name: 3}


def test_latency_waits_and_jitter_differs():
    assert Visitor(a_sandbox(latency_ms=200)).ask("/").delay == 0.2
    visitor = Visitor(a_sandbox(latency_ms=200, jitter_ms=100)).log_in()
    delays = [visitor.ask(list_path()).delay for _ in range(5)]
    assert len({*delays}) == 5
    assert all(0.2 <= delay < 0.3 for delay in delays)


def test_faults_over_the_control_path(sandbox, visitor):
    asked = {
        "rates": {"html": 100},
        "next": [
            {"path": "MINI_SHOP", "fault": "throttle", "times": 2, "retryAfter": "seconds", "retryAfterSeconds": 9}
        ],
        "receiver": {"next": [{"path": "/products", "fault": "error", "status": 500}]},
    }
    assert sandbox.answer("POST", "/__faults", {}, orjson.dumps(asked), NOON).status == 200
    assert [visitor.ask(list_path()).status for _ in range(3)] == [429, 429, 200]
    assert sandbox.answer("POST", "/products", {}, b"", NOON).status == 500
    sandbox.answer("POST", "/__faults", {}, b'{"clear": true, "revokeTokens": true}', NOON)
    assert visitor.ask(list_path()).status == 401


@pytest.mark.parametrize(
    "asked",
    [
        {"rates": {"fire": 1}}, {"rates": {"html": "often"}}, {"rates": [1]}, {"next": [{"path": "/"}]}, {"next": [7]},
        {"next": [{"path": "/", "fault": "fire"}]}, {"next": [{"path": "/", "fault": "html", "colour": 1}]},
        {"next": [{"path": "/", "fault": "html", "times": "x"}]}, {"receiver": [1]},
        {"next": [{"path": "/", "fault": "html", "headers": 1}]},
    ],
)  # fmt: skip
def test_senseless_faults_are_refused(sandbox, asked):
    assert sandbox.answer("POST", "/__faults", {}, orjson.dumps(asked), NOON).status == 400


def test_a_fault_has_a_known_name():
    with pytest.raises(Invalid):
        Fault(name="fire")
    with pytest.raises(Invalid):
        Fault(name="error", retry_after="soon")


def test_gzip_is_given_only_to_those_who_take_it():
    visitor = Visitor(a_sandbox(gzip=True)).log_in()
    plain, packed = visitor.ask(list_path()), visitor.ask(list_path(), **{"Accept-Encoding": "gzip, br"})
    assert ("content-encoding", "gzip") in packed.headers
    assert ("content-encoding", "gzip") not in plain.headers
    assert len(packed.body) < len(plain.body) / 3
