"""Ids: the same cause and role, the same id; and nothing but an id passes for one."""

from uuid import UUID, uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import an_id
from sellerwatch.domain.errors import Invalid
from sellerwatch.domain.ids import _NAMESPACE, checked_seller_id, checked_uuid, derived

TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(TEXT, TEXT)
def test_a_derived_id_is_the_version_5_uuid_of_its_cause_and_role(cause: str, role: str) -> None:
    made = derived(cause, role)
    assert made == str(uuid5(UUID(bytes=_NAMESPACE), f"{cause}/{role}"))
    assert UUID(made).version == 5
    assert checked_uuid("id", made) == made


def test_no_two_things_the_house_derives_share_an_id() -> None:
    """Causes are UUIDs, item numbers or `item/kind`: their families never meet."""
    items, cause = [1, 12, 112, 2], an_id("cause")
    made = [derived(str(item), "product") for item in items]
    made += [derived(f"{item}/{kind}", "0" * 32) for item in items for kind in ("MINI_SHOP", "DETAIL", "OPTION")]
    made += [derived(cause, f"task/{kind}/{item}/-1") for item in items for kind in ("DETAIL", "OPTION")]
    made += [derived(cause, f"task/MINI_SHOP/0/{page}") for page in (0, 1, 11, 10_000, 10_001)]
    made += [derived(cause, role) for role in ("outbox", "outbox/1", "outbox/11", "change/1", "change/11", "run/1")]
    assert len(set(made)) == len(made)


@given(st.from_regex(r"\A[A-Za-z0-9._-]{1,64}\Z"))
def test_a_seller_id_of_the_marketplace_is_taken_as_it_is(value: str) -> None:
    assert checked_seller_id(value) == value


@pytest.mark.parametrize(
    "value",
    [
        "", " ", "a b", "nord ", " nord", "nord\n", "\nnord", "nord\r\n", "nord\x00", "nord\t", "a" * 65, "a/b", "../etc",
        "a\\b", "a%2Fb", "a&pageNo=9", "a#b", "a?b", "a=b", "a+b", "a;b", "a:b", "a@b", "a,b", "a'b", 'a"b', "a`b", "a$b",
        "<b>", "{a}", "a|b", "a*b", "a~b", "１２３", "٣", "노르드", "nörd", "аdmin", "a\u200bb", "a\u202eb", "ª", "\u212a",
        "a\ud800", "a\x7f", "a\x85", "a\u2028",
    ],
)  # fmt: skip
def test_what_is_not_quite_a_seller_id_is_refused(value: str) -> None:
    with pytest.raises(Invalid) as refused:
        checked_seller_id(value)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize(
    "value", [an_id("x"), "019a0000-0000-7000-8000-000000000000", "0" * 8 + "-0000" * 3 + "-" + "0" * 12]
)
def test_a_uuid_in_its_usual_spelling_is_taken(value: str) -> None:
    assert checked_uuid("taskId", value) == value


@pytest.mark.parametrize(
    "change",
    [
        str.upper,
        lambda text: text.replace("-", ""),
        lambda text: f"{{{text}}}",
        lambda text: f"urn:uuid:{text}",
        lambda text: text + "\n",
        lambda text: " " + text,
        lambda text: text[:-1],
        lambda text: text + "0",
        lambda text: text[:-1] + "g",
        lambda text: text[:-1] + "１",
        lambda text: text[:-1] + "٣",
        lambda text: text.replace("-", "\u2010"),
        lambda text: "../" + text,
        lambda _: "",
        lambda _: "1 OR 1=1",
    ],
)
def test_what_is_not_quite_a_uuid_is_refused(change) -> None:
    with pytest.raises(Invalid, match="taskId"):
        checked_uuid("taskId", change("019a0000-abcd-7000-8000-00000000000a"))


def test_a_refusal_shows_a_long_value_cut() -> None:
    with pytest.raises(Invalid) as refused:
        checked_seller_id("x" * 1_000_000)
    assert len(str(refused.value)) < 200


def test_a_refusal_can_be_told_whatever_the_value_was() -> None:
    for value in (10**5000, -(10**5000), [10**5000], "x" * 10**6, "a\nb\x1b[31m\u202e", None, float("nan")):
        error = Invalid("field", value, "a value")
        assert len(str(error)) < 200
        assert str(error).isprintable()
