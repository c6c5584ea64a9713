"""Promises of mutation: the account is exact, nothing else moves, and every kind does what it is called."""

import orjson
import pytest

from sandbox.visits import NOON, Visitor, a_sandbox, detail_path, list_path, option_path
from sellerwatch.sandbox.mutate import MUTATIONS

EXPECTED = {
    "price": {"sellingPrice", "discountPrice"},
    "appPrice": {"appPrice"},
    "stock": {"stock"},
    "swapStock": {"options"},
    "soldOut": {"stock", "soldOut"},
    "optionAdded": {"options"},
    "optionRemoved": {"options"},
    "optionText": {"options"},
    "imageOrder": {"images"},
    "imageAdded": {"images"},
    "name": {"name"},
    "category": {"category"},
    "shipping": {"shipping"},
    "tags": {"tags"},
    "description": {"description"},
}


def compared(before, after):
    return [
        (item_no, field, old, after[item_no][field])
        for item_no, truth in before.items()
        for field, old in truth.items()
        if field != "price" and after[item_no][field] != old
    ]


@pytest.mark.parametrize("seed", range(12))
def test_the_account_is_exactly_the_difference_of_the_truths(seed):
    sandbox = a_sandbox({"atelier": 150, "lunaire": 50})
    before = {**dict(sandbox.truths("atelier")), **dict(sandbox.truths("lunaire"))}
    account = sandbox.mutate(0.1, seed)
    after = {item_no: sandbox.truth(item_no) for item_no in before}
    told = [(one["itemNo"], one["field"], one["old"], one["new"]) for one in account]
    assert sorted(map(repr, told)) == sorted(map(repr, compared(before, after)))
    assert len({one["itemNo"] for one in account}) == 20
    assert orjson.loads(orjson.dumps(account)) == account


def test_the_same_seed_changes_the_same_and_rounds_differ():
    one, other = a_sandbox(), a_sandbox()
    assert one.mutate(0.2, 9) == other.mutate(0.2, 9)
    assert one.mutate(0.2) != one.mutate(0.2)


def test_one_percent_of_few_is_one_and_none_is_none():
    sandbox = a_sandbox({"atelier": 3})
    assert len({one["itemNo"] for one in sandbox.mutate(0.01)}) == 1
    assert sandbox.mutate(0) == []


@pytest.mark.parametrize("kind", MUTATIONS)
def test_each_kind_changes_what_it_is_named_after(kind):
    sandbox = a_sandbox({"atelier": 40})
    fields = set()
    for item_no in sandbox.world.listed():
        account = sandbox.change(item_no, kind)
        assert account
        fields |= {one["field"] for one in account}
    assert EXPECTED[kind] <= fields


def test_what_was_changed_is_served_and_what_was_not_keeps_its_bytes():
    sandbox = a_sandbox({"atelier": 60})
    visitor = Visitor(sandbox).log_in()
    targets = {
        item: [visitor.ask(detail_path(item)).body, visitor.ask(option_path(item)).body]
        for item in sandbox.world.listed()
    }
    list_before = visitor.ask(list_path()).body
    changed = {one["itemNo"] for one in sandbox.mutate(0.1, only=("price", "name"))}
    for item_no, bodies in targets.items():
        now = [visitor.ask(detail_path(item_no)).body, visitor.ask(option_path(item_no)).body]
        assert (now != bodies) == (item_no in changed)
    assert visitor.ask(list_path()).body != list_before


def test_mutation_over_the_control_path_gives_the_account():
    sandbox = a_sandbox({"atelier": 20})
    asked = orjson.dumps({"share": 0.1, "seed": 3, "add": {"atelier": 2, "fresh": 4}, "remove": {"atelier": 1}})
    reply = sandbox.answer("POST", "/__mutate", {}, asked, NOON)
    account = orjson.loads(reply.body)
    assert reply.status == 200
    assert account["items"] == 2
    assert {one["itemNo"] for one in account["changes"]} <= {*sandbox.world.listed(), *account["removed"]["atelier"]}
    assert len(account["added"]["fresh"]) == 4
    assert len(sandbox.world.shops["atelier"].order) == 21


def test_a_renamed_field_is_served_under_its_new_name_until_it_has_its_own_again():
    sandbox = a_sandbox({"atelier": 3})
    visitor = Visitor(sandbox).log_in()
    [item_no, *_] = sandbox.world.listed()
    before = visitor.ask(detail_path(item_no)).body
    sandbox.answer("POST", "/__mutate", {}, b'{"rename": {"sellingPrice": "salePrice"}}', NOON)
    renamed = visitor.ask(detail_path(item_no)).body
    assert b'"sellingPrice"' not in renamed
    assert renamed.replace(b'"salePrice"', b'"sellingPrice"') == before
    sandbox.rename({})
    assert visitor.ask(detail_path(item_no)).body == before


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b'{"share": 2}', b'{"share": "1"}', b'{"seed": "x"}', b'{"only": ["x"], "share": 1}',
             b'{"add": {"atelier": "x"}}', b'{"rename": []}', b'{"rename": {"a": "\\""}}', b'{"only": "price"}']
)  # fmt: skip
def test_a_senseless_mutation_is_refused_in_one_line(body):
    reply = a_sandbox().answer("POST", "/__mutate", {}, body, NOON)
    assert reply.status == 400
    assert b"\\n" not in reply.body
