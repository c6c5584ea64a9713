"""The demonstration: all of it at work, and an account that would notice if it were not."""

import io
import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from rich.console import Console

from doors import ShiftedClock, door, logs
from sellerwatch.domain.errors import Conflict, Invalid
from sellerwatch.entry.account import account
from sellerwatch.entry.cli.run import shops_of
from sellerwatch.entry.demo import DATABASE, conditions_of, demo
from sellerwatch.entry.stage import Stage
from sellerwatch.sandbox.conditions import Conditions
from sellerwatch.sandbox.sandbox import Sandbox
from sellerwatch.settings import load


@pytest.fixture(autouse=True)
def _logs() -> Iterator[None]:
    with logs(load(overrides={"database_url": "sqlite://"}), ShiftedClock()):
        yield


@pytest.mark.slow
async def test_everything_is_found_delivered_and_accounted_for(tmp_path: Path) -> None:
    told = io.StringIO()
    shown = await demo(2, 15, tmp_path / "kept", Stage(Console(file=told, width=200)), seed=3)
    assert shown.is_right, told.getvalue()
    found = {check.what: check.found for check in shown.checks}
    assert found["products found = products in the sandbox"] == "30"
    assert found["products changed in the sandbox"] == "2"
    assert found["events at the product server"] == "32"
    assert found["violations counted by the sandbox"] == "0"
    assert int(found["requests per identity in any hour"]) <= 80
    assert "everything is there" in told.getvalue()
    assert "first crawl" in told.getvalue()
    with sqlite3.connect(tmp_path / "kept" / DATABASE) as kept:
        assert kept.execute("SELECT count(*) FROM products WHERE is_complete").fetchone() == (30,)
    kept.close()
    with pytest.raises(Conflict, match="another folder"):
        await demo(1, 1, tmp_path / "kept", Stage(Console(file=told)))


@pytest.mark.slow
async def test_on_a_terminal_the_progress_is_drawn(tmp_path: Path) -> None:
    told = io.StringIO()
    shown = await demo(1, 3, None, Stage(Console(file=told, width=120, force_terminal=True)))
    assert shown.is_right, told.getvalue()
    assert "━" in told.getvalue()
    assert "✓" in told.getvalue()


async def test_an_account_notices_what_is_missing(tmp_path: Path) -> None:
    sandbox = Sandbox(Conditions(shops={"atelier": 3}))
    changes = sandbox.mutate(0.5, seed=1)
    for number in range(81):
        sandbox.market.gate.admit("an identity", float(number))
    async with door(tmp_path) as at:
        checks = await account(at.house.reports, sandbox, changes)
    wrong = {check.what for check in checks if not check.is_right}
    assert wrong == {
        "products found = products in the sandbox",
        "every field equal to the truth",
        "changes delivered = changes made",
        "events at the product server",
        "requests per identity in any hour",
        "violations counted by the sandbox",
    }
    told = io.StringIO()
    Stage(Console(file=told, width=200)).close(checks, 81, 1.0)
    assert "something is missing" in told.getvalue()
    assert "and 5" in told.getvalue() or "WRONG" in told.getvalue()


@pytest.mark.parametrize(("sellers", "products"), [(0, 1), (1, 0), (10, 200), (1, 100_000)])
def test_what_a_hundred_identities_cannot_ask_for_in_an_hour_is_refused(sellers: int, products: int) -> None:
    with pytest.raises(Invalid):
        conditions_of(sellers, products, 1)


def test_three_sellers_of_two_hundred_products_fit() -> None:
    conditions = conditions_of(3, 200, 1)
    assert (sum(conditions.shops.values()), conditions.hourly_limit) == (600, 80)


@pytest.mark.parametrize(
    ("text", "shops"),
    [
        ("atelier=1200,lunaire=600", {"atelier": 1200, "lunaire": 600}),
        ("1200, 600", {"shop-1": 1200, "shop-2": 600}),
        ("a=0", {"a": 0}),
        ("", {}),
    ],
)
def test_shops_are_named_or_counted(text: str, shops: dict[str, int]) -> None:
    assert shops_of(text) == shops


@pytest.mark.parametrize("text", ["a=b", "a=-1", "a=1,a=2", "a=1=x", "a", "a=١"])
def test_shops_that_are_neither_are_refused(text: str) -> None:
    with pytest.raises(Invalid, match="shops"):
        shops_of(text)


@contextmanager
def running(where: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "sellerwatch", *arguments],
        cwd=where,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(30)
        for stream in (process.stdout, process.stderr):
            assert stream
            stream.close()


def said(process: subprocess.Popen[str], what: str) -> str:
    """The first line with that in it."""
    assert process.stdout
    for line in process.stdout:
        if what in line:
            return line
    assert process.stderr
    raise AssertionError(f"never said {what!r}: {process.stderr.read()}")


def done(where: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sellerwatch", *arguments],
        cwd=where,
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.slow
def test_the_whole_system_runs_in_one_process_and_stops_when_it_is_told(tmp_path: Path) -> None:
    with running(
        tmp_path, "up", "--sandbox", "--port", "0", "--sandbox-port", "0", "--sandbox-sellers", "atelier=5"
    ) as up:
        address = said(up, " api ").split()[1]
        said(up, "changes go to")
        with urlopen(f"{address}/actuator/health", timeout=10) as answer:
            assert json.load(answer)["status"] == "UP"
        assert done(tmp_path, "seller", "add", "atelier", "--name", "A").returncode == 0
        crawled = done(tmp_path, "crawl", "atelier", "--wait")
        assert crawled.returncode == 0, crawled.stderr
        assert "COMPLETED" in crawled.stdout
        token = done(tmp_path, "token", "issue", "--role", "viewer").stdout.strip()
        execution = crawled.stdout.split()[1]
        request = Request(f"{address}/api/v1/executions/{execution}", headers={"Authorization": f"Bearer {token}"})
        with urlopen(request, timeout=10) as answer:
            assert json.load(answer)["status"] == "COMPLETED"
        examined = done(tmp_path, "doctor", "--json")
        assert {each["state"] for each in json.loads(examined.stdout)} <= {"ok", "note"}, examined.stdout
        assert examined.returncode == 0
        up.send_signal(signal.SIGTERM)
        assert said(up, "stopped")
        assert up.wait(30) == 0


@pytest.mark.slow
def test_the_sandbox_runs_alone(tmp_path: Path) -> None:
    with running(tmp_path, "sandbox", "--port", "0", "--sellers", "3") as sandbox:
        address = said(sandbox, "MARKETPLACE_URL").strip().partition("=")[2]
        with urlopen(f"{address}/__stats", timeout=10) as answer:
            assert json.load(answer)["shops"] == {"shop-1": 3}
        sandbox.send_signal(signal.SIGINT)
        assert said(sandbox, "stopped")
        assert sandbox.wait(30) == 0


@pytest.mark.slow
def test_a_second_signal_stops_at_once() -> None:
    stubborn = """
import asyncio
from sellerwatch.entry.process import with_signals

async def never_stop():
    stop = asyncio.Event()
    with_signals(stop)
    print("ready", flush=True)
    await stop.wait()
    print("asked", flush=True)
    await asyncio.Event().wait()

asyncio.run(never_stop())
"""
    process = subprocess.Popen([sys.executable, "-c", stubborn], stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "asked\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 128 + signal.SIGINT


@pytest.mark.slow
def test_what_cannot_run_says_why_in_a_line(tmp_path: Path) -> None:
    for arguments, what in [
        (["up", "--port", "0"], "SELLERWATCH_MARKETPLACE_URL"),
        (["worker"], "SELLERWATCH_MARKETPLACE_URL"),
        (["doctor"], "error"),
    ]:
        tried = done(tmp_path, *arguments)
        assert tried.returncode == 1, arguments
        if what != "error":
            assert what in tried.stderr
            assert tried.stderr.count("\n") == 1
        assert "Traceback" not in tried.stderr
    for arguments, what in [
        (["demo", "--sellers", "50"], "identities"),
        (["demo", "--sellers", "0"], "--sellers"),
        (["sandbox", "--sellers", "a=b"], "--sellers"),
        (["crawl"], "SELLER"),
    ]:
        tried = done(tmp_path, *arguments)
        assert (tried.returncode, what in tried.stderr) == (2, True), arguments
