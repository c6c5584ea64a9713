"""Trace contexts: W3C's form, derived from their cause."""

import re

import pytest

from builders import an_id
from sellerwatch.domain.traces import checked, child, crawled, root, span_id, trace_id

FORM = re.compile(r"00-[0-9a-f]{32}-[0-9a-f]{16}-01")


def test_a_root_is_the_same_for_the_same_task_and_no_other() -> None:
    contexts = [root(an_id(number)) for number in range(200)]
    assert all(FORM.fullmatch(context) for context in contexts)
    assert len({trace_id(context) for context in contexts}) == 200
    assert root(an_id(1)) == contexts[1]


def test_a_child_stays_in_the_trace_and_has_a_span_of_its_own() -> None:
    parent = root(an_id("task"))
    children = [child(parent, "relay/1"), child(parent, "relay/2"), child(child(parent, "relay/1"), "relay/1")]
    assert {trace_id(each) for each in children} == {trace_id(parent)}
    assert len({span_id(each) for each in (parent, *children)}) == 4
    assert all(FORM.fullmatch(each) for each in children)
    assert crawled(an_id("task")) == child(parent, "crawl")


@pytest.mark.parametrize(
    "context",
    [
        None,
        7,
        "",
        "00-" + "0" * 32 + "-" + "1" * 16 + "-01",
        "00-" + "1" * 32 + "-" + "0" * 16 + "-01",
        "00-" + "A" * 32 + "-" + "1" * 16 + "-01",
        "01-" + "1" * 32 + "-" + "1" * 16 + "-01",
        "00-" + "1" * 32 + "-" + "1" * 16 + "-01\n",
        "00-" + "1" * 32 + "-" + "1" * 16 + "-01-extra",
        "00-" + "١" * 32 + "-" + "1" * 16 + "-01",
        "00-ab-cd-01",
    ],
)
def test_what_is_no_context_is_none(context: object) -> None:
    assert checked(context) is None


def test_a_context_that_came_from_outside_is_taken_as_it_is() -> None:
    context = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
    assert checked(context) == context
    assert child(context, "deliver").endswith("-00")
