"""A receiver's versions: both forms are read, and whatever is neither is refused by its line."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sellerwatch.domain.errors import Invalid
from sellerwatch.entry.versions import LINE_MAX, versions_in

PAIRS = st.lists(st.tuples(st.integers(1, 2**63 - 1), st.integers(0, 2**31)))


def read(text: str) -> list[tuple[int, int]]:
    return list(versions_in(io.StringIO(text)))


@given(PAIRS)
def test_json_lines_and_csv_say_the_same(pairs: list[tuple[int, int]]) -> None:
    lines = "".join(f'{{"itemNo": {item_no}, "version": {version}, "x": []}}\n' for item_no, version in pairs)
    assert read(lines) == pairs
    assert read("itemNo,version\n" + "".join(f"{item_no},{version}\r\n" for item_no, version in pairs)) == pairs
    assert (
        read("name,version,itemNo\n" + "".join(f'"a,b",{version},{item_no}\n' for item_no, version in pairs)) == pairs
    )


def test_blank_lines_are_passed_over_and_the_last_line_needs_no_end() -> None:
    assert read("\n1,2\n\n  3 , 4  ") == [(1, 2), (3, 4)]


@pytest.mark.parametrize(
    "line",
    [
        "<!doctype html><html>",
        "1",
        "1,",
        "1,two",
        "-1,2",
        "0,2",
        "1.0,2",
        "²,2",
        "1,9999999999999999999",
        "{}",
        '{"itemNo": 1}',
        '{"itemNo": "1", "version": 2}',
        '{"itemNo": true, "version": 2}',
        '{"itemNo": 1, "version": 2.0}',
        '{"itemNo": 1, "vers',
        '[{"itemNo": 1, "version": 2}]',
        "x" * (LINE_MAX + 1),
        '"',
    ],
)
def test_a_line_that_says_neither_is_refused_by_its_number(line: str) -> None:
    with pytest.raises(Invalid) as caught:
        read(f"1,2\n{line}\n")
    assert str(caught.value).startswith("line 2: ")
    assert len(str(caught.value)) < 300
