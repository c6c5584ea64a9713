"""Changes: the arithmetic of differences."""

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from builders import NOON, at
from sellerwatch.domain.changes import Change, FieldChange, Proof, difference, merged, rewound
from sellerwatch.domain.documents import ChangeKind, DocumentKind
from sellerwatch.domain.raws import raw_id

VALUES = st.none() | st.integers(0, 3) | st.lists(st.sampled_from("ab"), max_size=2)
STATES = st.dictionaries(st.sampled_from(["name", "price", "stock", "status"]), VALUES)
Told = list[dict[str, Any]]


def told(old: dict[str, Any], new: dict[str, Any]) -> Told:
    return [change.shown() for change in difference(old, new)]


def by_field(changes: Told) -> dict[str, tuple[Any, Any]]:
    assert len({change["field"] for change in changes}) == len(changes)
    return {change["field"]: (change["old"], change["new"]) for change in changes}


@given(STATES, STATES)
def test_a_difference_names_each_field_that_differs_once_and_no_other(old: dict[str, Any], new: dict[str, Any]) -> None:
    found = by_field(told(old, new))
    assert set(found) == {name for name in {*old, *new} if old.get(name) != new.get(name)}
    assert all(found[name] == (old.get(name), new.get(name)) for name in found)
    assert by_field(told(new, old)) == {name: (after, before) for name, (before, after) in found.items()}


def test_a_field_that_one_side_does_not_know_differs_from_null() -> None:
    assert difference({"a": None}, {}) == ()
    assert difference({}, {"a": 1}) == (FieldChange("a", None, 1),)


@given(STATES, STATES, STATES)
def test_two_changes_in_a_row_told_as_one_are_the_difference_of_their_ends(
    first: dict[str, Any], second: dict[str, Any], third: dict[str, Any]
) -> None:
    assert by_field(merged(told(first, second), told(second, third))) == by_field(told(first, third))


@given(st.lists(STATES, min_size=4, max_size=4))
def test_it_does_not_matter_which_are_told_as_one_first(states: list[dict[str, Any]]) -> None:
    one, two, three = (told(old, new) for old, new in pairwise(states))
    assert by_field(merged(merged(one, two), three)) == by_field(merged(one, merged(two, three)))


@given(STATES, STATES)
def test_there_and_back_is_no_change_and_nothing_adds_nothing(old: dict[str, Any], new: dict[str, Any]) -> None:
    there, back = told(old, new), told(new, old)
    assert merged(there, back) == []
    assert merged(there, []) == there
    assert merged([], there) == there


def test_the_oldest_old_and_the_newest_new_are_told() -> None:
    older = [{"field": "price", "old": 1, "new": 2}, {"field": "stock", "old": 5, "new": 0}]
    newer = [
        {"field": "stock", "old": 0, "new": 5},
        {"field": "price", "old": 2, "new": 3},
        {"field": "name", "old": "a", "new": "b"},
    ]
    assert merged(older, newer) == [
        {"field": "price", "old": 1, "new": 3},
        {"field": "name", "old": "a", "new": "b"},
    ]


def test_merging_leaves_what_it_was_given_as_it_was() -> None:
    older, newer = [{"field": "price", "old": 1, "new": 2}], [{"field": "price", "old": 2, "new": 3}]
    merged(older, newer)
    assert (older[0]["new"], newer[0]["old"]) == (2, 2)


@given(st.lists(STATES, min_size=1, max_size=6))
def test_a_state_is_wound_back_through_its_changes(states: list[dict[str, Any]]) -> None:
    changes = [difference(old, new) for old, new in pairwise(states)]
    for steps in range(len(changes) + 1):
        then = states[len(states) - 1 - steps]
        back = rewound(states[-1], reversed(changes[len(changes) - steps :]))
        assert back == {name: value for name, value in then.items() if value is not None}


def test_a_proof_names_its_raw_whether_it_is_kept_or_not() -> None:
    assert Proof(DocumentKind.DETAIL, "a" * 32, NOON).raw_id(7) == raw_id(7, DocumentKind.DETAIL, "a" * 32)


def test_a_change_was_seen_with_the_first_answer_that_told_of_it_and_a_new_product_with_the_last() -> None:
    proofs = tuple(Proof(kind, "a" * 32, at(place)) for place, kind in enumerate(DocumentKind))

    def seen_at(kind: ChangeKind, proofs: tuple[Proof, ...]) -> object:
        return Change("id", "product", 7, "shop-1", 1, (kind,), (), at(60), proofs).seen_at

    assert seen_at(ChangeKind.PRICE, proofs) == at(0)
    assert seen_at(ChangeKind.CREATED, proofs) == at(2)
    assert seen_at(ChangeKind.DELISTED, ()) == at(60)
