"""Every role in processes of its own, on every engine at once: rules that fire, and crawls that come whole.

Strikes at all of them are the soak's (`make soak`).
"""

from pathlib import Path

import pytest

import servers
from e2e.region import PATIENCE, Region, a_region
from e2e.soak import DAY, QUICK, settled
from e2e.town import until

pytestmark = pytest.mark.slow

SHOPS = {"atelier": 40, "lunaire": 25, "maison": 15}


def test_rules_that_fire_crawl_three_shops_whole_and_again_when_something_changed(
    tmp_path: Path, mariadb: servers.MariaDb
) -> None:
    with a_region(tmp_path, mariadb, **QUICK) as region:
        region.sandbox("--seed", "3", "--latency", "60", **SHOPS)
        for role in ("api", "scheduler", "worker", "worker"):
            region.role(role)
        for seller in SHOPS:
            region.does("seller", "add", seller, "--name", seller.title())
        fired(region, 1)
        settled(region)
        assert region.does("schedule", "sync", "--dry-run")

        changes = region.mutate(0.1, seed=5)
        fired(region, 2)
        settled(region)
        versions = region.check_truth()
        changed = {change["itemNo"] for change in changes}
        assert {item for item, version in versions.items() if version == 2} == changed
        assert region.dead_letters() == []


def fired(region: Region, times: int) -> None:
    """Every rule has fired so often, each firing has begun one crawl."""
    assert region.aws is not None
    until(lambda: not region.open_things(), PATIENCE, lambda: f"not announced: {region.open_things()}")
    region.aws.advance(DAY)
    count = "SELECT count(*) FROM crawling_schedule_executions"
    until(lambda: region.count(count) >= times * len(SHOPS), PATIENCE, lambda: f"no crawl began: {region.count(count)}")
