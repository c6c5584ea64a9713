"""Two processes, each of them everything, on one MariaDB: a shop is known whole, and again after one was killed."""

from pathlib import Path

import pytest

import servers
from e2e.town import PATIENCE, a_town, until

pytestmark = pytest.mark.slow

SHOPS = {"atelier": 60, "lunaire": 20}


def test_two_processes_share_the_work_and_the_one_that_is_left_ends_it(
    tmp_path: Path, mariadb: servers.MariaDb
) -> None:
    with a_town(tmp_path, mariadb, claim_seconds=5, sweep_seconds=1, lease_seconds=10) as town:
        town.does("db", "upgrade")
        town.sandbox("--seed", "11", **SHOPS)
        ups = [town.up() for _ in range(2)]
        for up in ups:
            up.until_it_says("changes go to")
        for seller in SHOPS:
            town.does("seller", "add", seller, "--name", seller.title())
        crawl(town, list(SHOPS))
        town.until_settled(PATIENCE, ups[0])
        town.check(set(), deliveries=80)

        changes = town.mutate(0.1, seed=7)
        before = town.count("SELECT count(*) FROM crawl_executions")
        crawl(town, list(SHOPS))
        many = before + 30
        until(
            lambda: town.count("SELECT count(*) FROM crawl_executions") > many, PATIENCE, lambda: "nothing is crawled"
        )
        ups[0].kill()
        town.until_settled(PATIENCE, ups[1])
        assert town.bad_things() == {}
        town.check({change["itemNo"] for change in changes}, deliveries=80 + len({c["itemNo"] for c in changes}))
        assert "the database is as it should be" in town.does("db", "check")
        assert "p_future" in town.does("db", "partitions")
        said = next(line for line in town.type("doctor").out.splitlines() if "database" in line)
        assert "MariaDB" in said
        assert "writable, READ COMMITTED, UTC, strict, schema up to date" in said


def crawl(town, sellers) -> None:
    for seller in sellers:
        town.does("crawl", seller)
