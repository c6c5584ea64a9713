"""Being told to stop, being two, and neighbours that are away: with real processes, signals and sockets."""

import os
import signal
import time
from pathlib import Path

import pytest

from e2e.town import SECRET, Running, Town, a_free_port, a_town, ask, until

pytestmark = pytest.mark.slow

SUCCESSES = "SELECT count(*) FROM crawler_tasks WHERE status = 'SUCCESS'"
LEASES = "SELECT count(*) FROM pool_identities WHERE lease_id IS NOT NULL"
RUNNING = "SELECT count(*) FROM crawler_tasks WHERE status = 'RUNNING'"
ATTEMPTS = "SELECT count(*) FROM crawl_executions WHERE status = 'RUNNING'"
ALIVE = "SELECT count(*) FROM processes"
ROBOTS = 1
"""It is asked for once, for all processes."""
ASIDE = {"TOKEN", "ROBOTS"}
CHARGED = "SELECT coalesce(sum(retry_count), 0) FROM crawler_tasks"
SHOPS = {"atelier": 60, "lunaire": 40}
REQUESTS = 2 * (1 + 1) + 2 * 100
"""Of one crawl: each shop's count and its one page, and two documents of every item; tokens come on top."""


def begin(town: Town, *words: str, **shops: int) -> Running:
    """A sandbox, `up`, and a crawl of every shop under way."""
    shops = shops or SHOPS
    town.sandbox("--seed", "3", *words, **shops)
    up = town.up()
    up.until_it_says("changes go to")
    add(town, *shops)
    return up


def add(town: Town, *sellers: str) -> None:
    for seller in sellers:
        town.does("seller", "add", seller, "--name", seller.title(), "--crawl")


def until_done(town: Town, tasks: int) -> None:
    until(lambda: town.count(SUCCESSES) >= tasks, 60, lambda: f"{town.count(SUCCESSES)} tasks are done, not {tasks}")


def stopped(up: Running, seconds: float) -> None:
    began = time.monotonic()
    up.signal()
    assert up.ended() == 0, up.says()
    assert time.monotonic() - began < seconds
    assert up.out.read_text(encoding="utf-8").endswith("stopped\n")
    assert "Traceback" not in up.says()


def nothing_is_held(town: Town) -> None:
    assert {what: town.count(what) for what in (LEASES, RUNNING, ATTEMPTS, ALIVE)} == dict.fromkeys(
        (LEASES, RUNNING, ATTEMPTS, ALIVE), 0
    )


def hang(town: Town) -> None:
    """From now on no answer comes; a dozen requests are waiting for theirs."""
    ask(f"{town.market}/__faults", {"next": [{"path": "*", "fault": "slow", "seconds": 9, "times": 500}]})
    done = town.count(SUCCESSES)

    def hangs() -> bool:
        nonlocal done
        before, done = done, town.count(SUCCESSES)
        return before == done and town.count(RUNNING) >= 12

    until(hangs, 30, lambda: f"{town.count(RUNNING)} tasks run")


def finish(town: Town) -> None:
    """By another process, from what the first one left."""
    ask(f"{town.market}/__faults", {"clear": True})
    up = town.up()
    town.until_settled(120, up)
    town.check(set(), deliveries=sum(town.stats()["shops"].values()))
    assert town.count(CHARGED) == 0
    stopped(up, 10)


def test_told_to_stop_in_the_middle_of_a_crawl_it_finishes_what_runs_and_loses_nothing(tmp_path: Path) -> None:
    with a_town(tmp_path, concurrency=20, shutdown_seconds=10) as town:
        up = begin(town, "--latency", "800", "--jitter", "400")
        until_done(town, 30)
        stopped(up, 10)
        assert town.open_things()["tasks"] > 50
        nothing_is_held(town)
        finish(town)
        requests = town.stats()["requests"]["byKind"]
        assert sum(sum(kind.values()) for name, kind in requests.items() if name not in ASIDE) == REQUESTS


def test_what_does_not_end_in_time_is_handed_back(tmp_path: Path) -> None:
    with a_town(tmp_path, concurrency=20, shutdown_seconds=2) as town:
        up = begin(town)
        until_done(town, 10)
        hang(town)
        stopped(up, 8)
        nothing_is_held(town)
        finish(town)


def test_a_second_signal_ends_it_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    with a_town(
        tmp_path, concurrency=20, claim_seconds=2, lease_seconds=12, task_attempt_seconds=8, sweep_seconds=1
    ) as town:
        up = begin(town)
        until_done(town, 10)
        hang(town)
        up.signal()
        until(lambda: "stopping" in up.says(), 10, up.says)
        began = time.monotonic()
        up.signal(signal.SIGINT)
        assert up.ended() == 128 + signal.SIGINT
        assert time.monotonic() - began < 3
        finish(town)


def test_two_processes_on_one_file_share_the_work_and_do_none_of_it_twice(tmp_path: Path) -> None:
    with a_town(tmp_path, concurrency=20) as town:
        first = begin(town, "--latency", "300", atelier=60)
        second = town.up()
        second.until_it_says("changes go to")
        town.until_settled(90, first)
        town.check(set(), deliveries=60)
        seen = town.stats()
        tokens = sum(visitor["tokens"] for visitor in seen["identities"].values())
        assert seen["requests"]["total"] == 2 + 2 * 60 + tokens + ROBOTS
        assert seen["receiver"]["repeats"] == 0
        assert town.count(ALIVE) == 2
        stopped(first, 10)
        stopped(second, 10)
        nothing_is_held(town)


def test_waiting_for_a_crawl_ends_as_the_crawl_does(tmp_path: Path) -> None:
    with a_town(tmp_path, trigger_retries=0) as town:
        begin(town, atelier=5, lunaire=3)
        town.until_settled()
        well = town.type("crawl", "atelier", "--wait")
        assert (well.code, well.err) == (0, "")
        assert "atelier: COMPLETED, 11 tasks done" in well.out
        ask(f"{town.market}/__faults", {"rates": {"html": 100}})
        badly = town.type("crawl", "atelier", "--wait")
        assert badly.code == 1
        assert "error: the crawl of atelier FAILED: " in badly.err
        assert badly.err.count("\n") == 1
        unknown = town.type("crawl", "nobody", "--wait")
        assert (unknown.code, unknown.err.count("\n")) == (1, 1)
        assert "nobody" in unknown.err
        assert town.type("crawl", "--wait").code == 2


def test_waiting_for_a_crawl_that_nobody_works_at_ends_too(tmp_path: Path) -> None:
    with a_town(tmp_path) as town:
        town.does("seller", "add", "atelier", "--name", "Atelier")
        waited = town.type("crawl", "atelier", "--wait")
        assert waited.code == 1
        assert waited.err.count("\n") == 1
        assert "sellerwatch up" in waited.err


def test_a_port_that_is_taken_is_told_in_one_line(tmp_path: Path) -> None:
    with a_town(tmp_path) as town:
        town.sandbox(atelier=1)
        port = int(town.market.rpartition(":")[2])
        for again in (
            town.up(port=port),
            town.start("sandbox", "--port", str(port)),
            town.start("up", "--sandbox", "--port", "0", "--sandbox-port", str(port)),
        ):
            assert again.ended() == 1
            assert again.out.read_text(encoding="utf-8") == ""
            told = again.err.read_text(encoding="utf-8")
            assert told.count("\n") == 1, told
            assert told.startswith("error: ")
            assert f":{port}" in told


def test_neighbours_that_are_gone_for_a_while_are_found_again(tmp_path: Path) -> None:
    """The marketplace in the middle of a crawl, the product server from the start."""
    with a_town(tmp_path, concurrency=20, breaker_open_seconds=3) as town:
        port, other = a_free_port(), a_free_port()
        sandbox = town.sandbox("--seed", "3", "--latency", "300", port=port, **SHOPS)
        town.set(product_server_url=f"http://127.0.0.1:{other}/products")
        up = town.up()
        up.until_it_says("changes go to")
        add(town, *SHOPS)
        until_done(town, 60)
        assert town.stats()["violations"] == 0
        sandbox.kill()
        until_told(town, "site breaker OPEN")
        until(lambda: "product_server_away" in town.does("status", "--json"), 30, up.says)
        town.sandbox("--seed", "3", "--latency", "300", port=port, **SHOPS)
        server = town.start("sandbox", "--port", str(other), "--seed", "3", "--sellers", "", "--secret", SECRET)
        server.until_it_says("MARKETPLACE_URL=")
        town.until_settled(150, up)
        all_is_there(town)
        received = ask(f"http://127.0.0.1:{other}/__stats")["receiver"]
        assert (received["deliveries"], received["products"], received["mismatches"]) == (100, 100, 0)
        assert "product_server_away" not in town.does("status", "--json")


def test_a_marketplace_that_does_not_answer_for_a_while_is_waited_for(tmp_path: Path) -> None:
    with a_town(tmp_path, concurrency=20, breaker_open_seconds=3, read_timeout=1) as town:
        server = town.sandbox(nobody=0)
        product_server_url = town.settings["PRODUCT_SERVER_URL"]
        sandbox = town.sandbox("--seed", "3", "--latency", "300", **SHOPS)
        town.set(product_server_url=product_server_url)
        up = town.up()
        up.until_it_says("changes go to")
        add(town, *SHOPS)
        until_done(town, 30)
        os.kill(sandbox.pid, signal.SIGSTOP)
        until_told(town, "site breaker OPEN")
        os.kill(sandbox.pid, signal.SIGCONT)
        town.until_settled(150, up)
        all_is_there(town)
        assert town.stats()["violations"] == 0
        assert server.is_alive()


def until_told(town: Town, what: str) -> None:
    until(lambda: what in town.does("status"), 60, lambda: f"{what!r} is not told: {town.does('status')}")


def all_is_there(town: Town) -> None:
    assert town.bad_things() == {}
    products = town.products()
    assert products.keys() == town.truths().keys()
    assert all(product["complete"] and product["version"] == 1 for product in products.values())
    assert town.count("SELECT count(*) FROM user_agent_pool WHERE status = 'BLOCKED'") == 0
