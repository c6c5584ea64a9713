"""`kill -9` at twenty random moments of a crawl, each followed by a restart: in the end as without any."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from e2e.town import Running, Town, a_town, ask, pause, until

pytestmark = pytest.mark.slow

SHOPS = {"atelier": 60, "lunaire": 40}
QUICK = {
    "claim_seconds": 2,
    "lease_seconds": 12,
    "task_attempt_seconds": 8,
    "sweep_seconds": 1,
    "task_stuck_seconds": 10,
}
SLOW_MARKET = ("--latency", "400", "--jitter", "300")
FEW = 12
"""Requests at once where there are killers: the crawl is to outlive them, with much under way at any time."""
SLOW_RECEIVER = {"receiver": {"next": [{"path": "PRODUCTS", "fault": "slow", "seconds": 0.4, "times": 30}]}}
"""Taken at once, told late: a delivery whose sender is gone when the answer comes."""


SUCCESSES = "SELECT count(*) FROM crawler_tasks WHERE status = 'SUCCESS'"


@dataclass(frozen=True)
class Moment:
    """When one is killed: so many seconds after it was started, after it said that it is up, or after it did so much."""

    after: str
    seconds: float
    tasks: int = 0

    def wait(self, town: Town, up: Running) -> None:
        if self.after == "up":
            up.until_it_says("changes go to")
        if self.after == "work":
            wanted = town.count(SUCCESSES) + self.tasks
            until(lambda: town.count(SUCCESSES) >= wanted, 60, up.says)
        pause(self.seconds)


@dataclass(frozen=True)
class Came:
    """What is left of a life, to be compared with another."""

    changes: list[tuple[Any, ...]]
    deliveries: dict[str, int]


def a_life(folder: Path, first: Sequence[Moment], second: Sequence[Moment]) -> Came:
    """Two crawls of two shops with changes in between, killed at these moments. What became of it all."""
    is_killed = bool(first or second)
    with a_town(folder, concurrency=FEW if is_killed else 100, **QUICK) as town:
        town.sandbox("--seed", "5", *(SLOW_MARKET if is_killed else ()), **SHOPS)
        if is_killed:
            ask(f"{town.market}/__faults", SLOW_RECEIVER)
        up = town.up()
        up.until_it_says("changes go to")
        for seller in SHOPS:
            town.does("seller", "add", seller, "--name", seller.title(), "--crawl")
        up = killed(town, up, first)
        town.until_settled(150, up)
        town.check(set(), deliveries=100)
        changed = {change["itemNo"] for change in town.mutate(0.15, seed=3)}
        for seller in SHOPS:
            town.does("crawl", seller)
        up = killed(town, up, second)
        town.until_settled(150, up)
        town.check(changed, deliveries=100 + len(changed))
        received = town.stats()["receiver"]
        names = ("deliveries", "PRODUCT_CREATED", "PRODUCT_UPDATED", "PRODUCT_DELISTED")
        return Came(town.changes(), {name: received[name] for name in names})


def killed(town: Town, up: Running, moments: Sequence[Moment]) -> Running:
    """The one that was started last. Each was killed in the middle of a crawl."""
    for moment in moments:
        moment.wait(town, up)
        assert town.open_things().get("executions"), f"the crawl was over before {moment}"
        up.kill()
        up = town.up()
    return up


def moments(chance: random.Random, amount: int) -> list[Moment]:
    """A quarter of them before it is up, a quarter as soon as it is, the others at work."""
    kinds = [
        lambda: Moment("start", chance.uniform(0, 1.5)),
        lambda: Moment("up", chance.uniform(0, 0.5)),
        lambda: Moment("work", chance.uniform(0, 0.4), chance.randint(1, 6)),
        lambda: Moment("work", chance.uniform(0, 0.4), chance.randint(1, 6)),
    ]
    chosen = [kinds[number % len(kinds)]() for number in range(amount)]
    chance.shuffle(chosen)
    return chosen


def test_killed_at_twenty_moments_it_comes_to_the_same_as_without(tmp_path: Path) -> None:
    (tmp_path / "killed").mkdir()
    (tmp_path / "left alone").mkdir()
    chance = random.Random(20)
    came = a_life(tmp_path / "killed", moments(chance, 20), moments(chance, 4))
    assert came == a_life(tmp_path / "left alone", [], [])
