"""Right and wrong use: what is wrong with an option by itself is exit 2 and names it, what fails when done is exit 1."""

import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

import sellerwatch
from desk import Desk
from sellerwatch.adapters.clock import SystemClock
from sellerwatch.entry.cli.run import LIFE_SECONDS, LOOK_SECONDS
from sellerwatch.ports.time import Clock


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("seller add x --name X --interval 31", "--interval"),
        ("seller add x --name X --interval 0", "--interval"),
        ("seller add a:b --name X", "ID"),
        ("seller interval x 31", "DAYS"),
        ("seller list --size 0", "--size"),
        ("seller import nofile", "CSV"),
        ("agents report --date x", "--date"),
        ("outbox list --status foo", "--status"),
        ("outbox list --box task --status HELD", "--status"),
        ("outbox retry --since zz", "--since"),
        ("outbox retry", "ID… or --since: give one of the two\n"),
        ("outbox retry x --since 6h", "give one of the two, not both"),
        ("raw reprocess --since zz", "--since"),
        ("product export --since 0001-01-01T00:00+14:00", "--since"),
        ("product show 1 --at zz", "--at"),
        ("product history 1 --between 1d zz", "--between"),
        ("deliver reconcile nofile", "FILE|URL"),
        ("token issue --role admin --hours 25", "--hours"),
        ("key generate --name a:b", "--name"),
        ("sandbox --sellers x=y", "--sellers"),
        ("up --sandbox --sandbox-sellers x=y", "--sandbox-sellers"),
        ("sandbox --rates html=often", "--rates"),
        ("sandbox --rates nonsense=1", "--rates"),
        ("sandbox --error-rate 90 --rates html=20", "at most 100 percent together"),
        ("sandbox --secret short", "--secret"),
        ("worker --port 99999", "--port"),
        ("crawl", "SELLER or --cancel: give one of the two\n"),
        ("crawl x --cancel y", "not both"),
        ("simulate --faults nonsense", "--faults"),
        ("simulate --faults ,", "--faults"),
        ("demo --sellers 100 --products 1000", "--sellers × --products"),
    ],
)
def test_what_is_wrong_with_an_option_by_itself_is_wrong_use(desk: Desk, words: str, named: str) -> None:
    said = desk.type(*words.split())
    assert (said.exit_code, said.out) == (2, "")
    assert named in said.err
    assert "crawlingIntervalDays" not in said.err
    assert list(desk.folder.iterdir()) == []


def test_a_crawl_that_nobody_works_on_is_given_up_after_a_while_and_stays_open(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead = timedelta()
    now = SystemClock.now

    async def sleep(_: Clock, seconds: float) -> None:
        nonlocal ahead
        ahead += timedelta(seconds=seconds)

    monkeypatch.setattr(SystemClock, "now", lambda clock: now(clock) + ahead)
    monkeypatch.setattr(SystemClock, "sleep", sleep)
    desk.type("seller", "add", "dmont", "--name", "D. Mont")
    said = desk.type("crawl", "dmont", "--wait")
    assert said.exit_code == 1
    assert "error: no worker has shown life for 30 s" in said.err
    assert LIFE_SECONDS <= ahead.total_seconds() <= LIFE_SECONDS + 2 * LOOK_SECONDS
    assert desk.type("seller", "show", "dmont", "--json").json["lastExecution"]["status"] == "STARTED"


@pytest.mark.parametrize("role", ["up", "worker", "scheduler"])
def test_who_crawls_or_plans_is_not_started_without_a_marketplace(desk: Desk, role: str) -> None:
    said = desk.type(role, "--port", "0")
    assert (said.exit_code, said.out, len(said.problems)) == (1, "", 1)
    assert said.problems[0].startswith("error: SELLERWATCH_MARKETPLACE_URL is missing; give ")


def test_a_folder_that_is_not_there_is_told_under_the_settings_whole_name(desk: Desk) -> None:
    said = desk.type("status", SELLERWATCH_DATABASE_URL="sqlite:////nodir/x.db")
    assert said.problems[0].startswith("error: ")
    said = desk.type("db", "upgrade", SELLERWATCH_DATABASE_URL="sqlite:////nodir/x.db")
    assert said.problems == ["error: SELLERWATCH_DATABASE_URL: '/nodir/x.db' is not in a folder that exists"]


def test_a_crawl_without_tasks_is_cancelled_in_plain_words(desk: Desk) -> None:
    begun = desk.type("seller", "add", "dmont", "--name", "D. Mont", "--crawl").out.split()[-1]
    assert desk.type("crawl", "--cancel", begun).out == f"execution {begun} is cancelled\n"


def test_every_help_has_one_look_and_cuts_nothing(desk: Desk) -> None:
    for words in (["crawl"], ["doctor"], ["up"], ["simulate"], ["product"], ["outbox"], []):
        told = desk.type(*words, "--help", COLUMNS="80").out
        assert not set(told) & set("╭│╰─"), words
        assert "..." not in told.partition("Commands:")[2], words
    assert "carried it." in desk.type("product", "--help", COLUMNS="80").out


def test_the_version_is_told_also_as_a_module(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sellerwatch", "--version"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{sellerwatch.__version__}\n", "")
