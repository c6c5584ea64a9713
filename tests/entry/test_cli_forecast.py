"""`sellerwatch simulate` as a forecast: what is asked, what is answered, and what is wrong use."""

from pathlib import Path

import pytest

from desk import Desk

TIGHT = {"SELLERWATCH_IDENTITY_HOURLY_LIMIT": "8"}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.mark.parametrize(
    ("words", "exit_code", "problem"),
    [
        ("--identities 0", 2, "'--identities'"),
        ("--days 0", 2, "'--days'"),
        ("--sellers -3", 2, "'--sellers'"),
        ("--scale 0.5 --days 1", 2, "'--scale'"),
        ("--products 100000000", 2, "'--products'"),
        ("--identities 20000", 2, "'--identities'"),
        ("--sellers 5 --products 3", 2, "3 is not at least one for each of 5 sellers"),
        ("--days 3 --faults foo=1", 2, "'foo=1' is not none, light, heavy, or NAME=RATE"),
        ("--faults foo", 2, "'foo' is not all, light, none or names that --list shows"),
        ("--products 5 --per-seller 5", 2, "give one of the two, not both"),
        ("--picture drawn.svg", 2, "is of a forecast"),
        ("--mine", 1, "there is no database"),
    ],
)
def test_what_makes_no_sense_is_told_in_one_line(desk: Desk, words: str, exit_code: int, problem: str) -> None:
    said = desk.type("simulate", *words.split())
    assert (said.exit_code, said.out) == (exit_code, "")
    assert problem in said.problems[-1]


def test_a_picture_that_can_not_be_written_is_told_before_anything_is_lived(desk: Desk) -> None:
    said = desk.type("simulate", "--days", "30", "--picture", str(desk.folder / "nowhere" / "drawn.svg"))
    assert said.exit_code == 1
    assert said.problems == [f"error: {desk.folder / 'nowhere' / 'drawn.svg'}: No such file or directory"]


@pytest.mark.slow
def test_a_forecast_is_told_drawn_and_touches_nothing_of_mine(desk: Desk) -> None:
    drawn = desk.folder / "drawn.svg"
    words = [
        "simulate",
        "--sellers",
        "2",
        "--per-seller",
        "15",
        "--identities",
        "2",
        "--days",
        "1",
        "--faults",
        "none",
        "--json",
        "--picture",
    ]
    said = desk.type(*words, str(drawn), **TIGHT)
    assert (said.exit_code, said.err) == (0, "")
    told = said.json
    assert told["isFresh"] is True
    assert (told["products"], told["identities"], told["lived"]["scale"]) == (30, 2, 1.0)
    assert told["breaksFirst"] == "identities"
    assert told["budgetUsedPercent"] + told["budgetLeftPercent"] == pytest.approx(100)
    assert sum(told["requestsByHour"]) == told["lived"]["requests"]
    assert drawn.read_text(encoding="utf-8").startswith("<svg ")
    assert sorted(path.name for path in desk.folder.iterdir()) == ["drawn.svg"]
