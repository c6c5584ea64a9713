"""`kill -9` at twenty random moments of a crawl, each followed by a restart: in the end as without any."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from e2e.town import Running, Town, a_town, ask, pause

pytestmark = pytest.mark.slow

SHOPS = {"atelier": 60, "lunaire": 40}
QUICK = {
    "claim_seconds": 2,
    "lease_seconds": 12,
    "task_attempt_seconds": 8,
    "sweep_seconds": 1,
    "task_stuck_seconds": 10,
}
SLOW_MARKET = ("--latency", "1000", "--jitter", "700")
FEW = 12
"""Requests at once where there are killers: the crawl is to outlive them, with much under way at any time."""
SLOW_RECEIVER = {"receiver": {"next": [{"path": "PRODUCTS", "fault": "slow", "seconds": 0.4, "times": 60}]}}
"""Taken at once, told late: a delivery whose sender is gone when the answer comes."""


@dataclass(frozen=True)
class Came:
    """What is left of a life, to be compared with another."""

    changes: list[tuple[Any, ...]]
    deliveries: dict[str, int]


def a_life(folder: Path, first: Sequence[float], second: Sequence[float]) -> Came:
    """Two crawls of two shops with changes in between, killed so long after each start. What became of it all."""
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


def killed(town: Town, up: Running, moments: Sequence[float]) -> Running:
    """The one that was started last. Each was killed in the middle of a crawl."""
    for seconds in moments:
        if seconds >= 0:
            up.until_it_says("changes go to")
        pause(abs(seconds))
        assert town.open_things().get("tasks") or town.open_things().get("executions"), "the crawl was over too soon"
        up.kill()
        up = town.up()
    return up


def moments(chance: random.Random, amount: int) -> list[float]:
    """Seconds after it said that it is up, or, below 0, after it was started."""
    early, at_once, later = (-1.5, 0.0), (0.0, 0.3), (0.4, 2.4)
    return [chance.uniform(*chance.choice((early, at_once, later, later))) for _ in range(amount)]


def test_killed_at_twenty_moments_it_comes_to_the_same_as_without(tmp_path: Path) -> None:
    (tmp_path / "killed").mkdir()
    (tmp_path / "left alone").mkdir()
    chance = random.Random(20)
    came = a_life(tmp_path / "killed", moments(chance, 20), moments(chance, 4))
    assert came == a_life(tmp_path / "left alone", [], [])
