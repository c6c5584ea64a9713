"""Every role in processes of its own, on every engine at once: rules that fire, crawls that come whole, and strikes at all.

For longer, and by chance: the soak (`make soak`).
"""

import random
from pathlib import Path

import pytest

import servers
from e2e.region import a_region
from e2e.soak import QUICK, fired, settled, strike
from e2e.town import pause

pytestmark = pytest.mark.slow

SHOPS = {"atelier": 24, "lunaire": 12, "maison": 6}
STRIKES = (
    "kill worker",
    "redis flushed",
    "kill scheduler",
    "mariadb",
    "kill api",
    "queue",
    "redis lost",
    "kill worker",
)
WHILE_IT_CRAWLS = {"site_requests_per_second": 10, "identity_window_guard": 12}
"""Slow enough to be struck in its middle; and nobody waits longer than need be before another engine leads."""


def test_rules_that_fire_crawl_three_shops_whole_and_again_while_everything_is_struck(
    tmp_path: Path, mariadb: servers.MariaDb
) -> None:
    with a_region(tmp_path, mariadb, **QUICK, **WHILE_IT_CRAWLS) as region:
        region.sandbox("--seed", "3", "--latency", "60", **SHOPS)
        for role in ("api", "scheduler", "worker", "worker"):
            region.role(role)
        for seller in SHOPS:
            region.does("seller", "add", seller, "--name", seller.title())
        fired(region, len(SHOPS))
        settled(region)
        assert region.does("schedule", "sync", "--dry-run")

        changes = region.mutate(0.1, seed=5)
        chance = random.Random(5)
        fired(region, 2 * len(SHOPS))
        for what in STRIKES:
            pause(1)
            strike(region, what, chance)
            region.supervise()
        settled(region)
        versions = region.check_truth()
        changed = {change["itemNo"] for change in changes}
        assert {item for item, version in versions.items() if version == 2} == changed
        assert region.dead_letters() == []
        # Redis was given up, and whoever leads since was told by the record what it had known.
        assert region.count("SELECT epoch FROM pool_leader WHERE phase = 'LEADING'") > 1
