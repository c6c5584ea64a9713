"""Towns: real houses lived through bad days, the same each time, and the checkers that look on catch what they should."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from sellerwatch.entry.up import run_up
from sellerwatch.simulation.faults import KINDS, drawn
from sellerwatch.simulation.place import Outcome, Scenario
from sellerwatch.simulation.story import shrunk
from sellerwatch.simulation.town import lived, scenario_of
from simulation.mistakes import MISTAKES, QUIET, Mistake, made

TELL = """
from sellerwatch.entry.up import run_up
from sellerwatch.simulation.town import lived, scenario_of
outcome = lived(scenario_of(7), run_up)
print(outcome.fingerprint, outcome.steps, outcome.violations)
"""


def told_by_a_process(hash_seed: str) -> str:
    told = subprocess.run(
        [sys.executable, "-c", TELL],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return told.stdout


@pytest.mark.slow
def test_the_same_seed_tells_the_same_story_in_another_process_with_another_hash_seed() -> None:
    first = told_by_a_process("1")
    assert first.endswith("[]\n")
    assert told_by_a_process("2") == first


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 8, 13])
def test_bad_days_violate_nothing_and_settle(seed: int) -> None:
    outcome = lived(scenario_of(seed), run_up)
    assert outcome.violations == []
    assert outcome.requests > 50
    assert sum(outcome.happened.values()) > 0


def test_a_quiet_day_leaves_nothing_open_and_nothing_wrong() -> None:
    outcome = lived(QUIET, run_up)
    assert outcome.violations == []
    assert outcome.crossings > 100


@pytest.mark.slow
@pytest.mark.parametrize("die_at", range(20, 400, 76))
def test_a_process_may_die_at_any_crossing(die_at: int) -> None:
    outcome = lived(replace(QUIET, die_at=die_at), run_up)
    assert outcome.violations == []
    assert any(line.endswith("is dead") for line in outcome.timeline)


def test_each_fault_draws_a_rate_of_its_own_and_half_of_them_none() -> None:
    assert len(KINDS) >= 60
    assert len({kind.name for kind in KINDS}) == len(KINDS)
    rates = drawn(3)
    assert 0 < len(rates) < len(KINDS)
    chosen = set(list(rates)[::2])
    assert drawn(3, chosen) == {name: rate for name, rate in rates.items() if name in chosen}


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.about)
def test_a_deliberate_mistake_is_caught(mistake: Mistake) -> None:
    assert mistake.invariant in {violation.partition(":")[0] for violation in made(mistake).violations}


def test_a_story_that_went_wrong_is_made_smaller() -> None:
    lives: list[Scenario] = []

    def live(scenario: Scenario) -> Outcome:
        lives.append(scenario)
        goes_wrong = {"html", "drop"} <= scenario.rates.keys()
        return Outcome(scenario, violations=["I2: it is lost"] if goes_wrong else [])

    rates = dict.fromkeys(["html", "drop", "slow", "cut", "error"], 1.0)
    found = live(replace(QUIET, shops={"shop1": 8, "shop2": 3}, hours=16, houses=3, rates=rates))
    smallest = shrunk(found, live).scenario
    assert set(smallest.rates) == {"html", "drop"}
    assert sum(smallest.shops.values()) == 1
    assert (smallest.houses, smallest.hours) == (1, 1.0)
    assert len(lives) < 80
