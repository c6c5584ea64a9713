"""What the commands have in common, and those about the house itself: help, errors, status, agents, db."""

import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_group

from builders import NOON, a_seller, at
from desk import Desk
from sellerwatch.adapters.clock import SystemClock
from sellerwatch.domain.errors import Invalid
from sellerwatch.entry.cli.listed import LISTED
from sellerwatch.entry.cli.options import moment_of
from sellerwatch.entry.console.text import age, grouped, visible
from sellerwatch.ports.store import Unit


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_help_shows_every_command_and_comes_without_a_command_too(desk: Desk) -> None:
    said = desk.type("--help")
    assert (said.exit_code, desk.type().out) == (0, said.out)
    for listed in LISTED:
        assert f"  {listed.name} " in said.out


@pytest.mark.parametrize("listed", LISTED, ids=lambda listed: listed.name)
def test_what_is_listed_is_there_and_says_the_same(listed: "tuple[str, str, str, bool]", desk: Desk) -> None:
    name, module, about, is_group = listed
    group = get_group(import_module(f"sellerwatch.entry.cli.{module}").app)
    found = group if is_group else group.commands[name]
    assert str(found.help).startswith(about)
    assert desk.type(name, "--help").exit_code == 0


def commands_of(found: Any) -> Iterator[Any]:
    inner = getattr(found, "commands", None)
    yield from [found] if inner is None else (one for each in inner.values() for one in commands_of(each))


@pytest.mark.parametrize("listed", LISTED, ids=lambda listed: listed.name)
def test_every_command_has_a_sentence_and_an_example(listed: "tuple[str, str, str, bool]") -> None:
    name, module, _, is_group = listed
    group = get_group(import_module(f"sellerwatch.entry.cli.{module}").app)
    for command in commands_of(group if is_group else group.commands[name]):
        assert str(command.help).split("\n\n", 1)[0].rstrip().endswith("."), command.name
        assert f"sellerwatch {name}" in str(command.epilog), command.name


def test_a_mistyped_command_is_wrong_use_and_told_its_neighbour(desk: Desk) -> None:
    said = desk.type("selle")
    assert said.exit_code == 2
    assert "Did you mean 'seller'" in said.err


def test_every_setting_that_is_refused_has_its_line(desk: Desk) -> None:
    said = desk.type("status", SELLERWATCH_CONCURENCY="3", SELLERWATCH_PAGE_SIZE="none")
    assert said.exit_code == 1
    assert len(said.problems) == 2
    assert "did you mean SELLERWATCH_CONCURRENCY?" in said.err


def test_a_file_of_settings_is_read(desk: Desk) -> None:
    file = desk.folder / "settings.toml"
    file.write_text("page_size = 'none'\n")
    assert "PAGE_SIZE" in desk.type("--config", str(file), "status").err


def test_a_broken_database_is_one_line(desk: Desk) -> None:
    desk.file.write_bytes(b"this is no database" * 100)
    said = desk.type("seller", "list")
    refused = Invalid("SELLERWATCH_DATABASE_URL", str(desk.file), "a SQLite database")
    assert (said.exit_code, said.problems) == (1, [f"error: {refused}"])


def test_with_debug_an_error_shows_where_it_comes_from(desk: Desk) -> None:
    desk.file.write_bytes(b"this is no database" * 100)
    assert "not a SQLite database" in str(desk.type("--debug", "seller", "list").raised)


def test_the_status_tells_what_runs_what_waits_and_what_failed(desk: Desk) -> None:
    def plant(unit: Unit) -> None:
        unit.sellers.add(a_seller())
        unit.chores.raise_alert("delivery_failed", "critical", "nobody took\x1b it", {}, NOON)

    desk.plant(plant)
    drawn = desk.type("status").out
    assert "nothing is running · 1 seller, 1 active" in drawn
    assert "nobody took\\x1b it" in drawn
    assert "100 identities: 100 available" in drawn
    found = desk.type("status", "--json").json
    assert (found["sellers"]["ACTIVE"], found["queue"]["dead"]) == (1, 0)
    assert found["alerts"][0]["name"] == "delivery_failed"


def test_the_status_stays_on_the_screen_until_it_is_interrupted(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[float] = []

    async def sleep(_: SystemClock, seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(SystemClock, "sleep", sleep)
    desk.plant(lambda unit: unit.sellers.add(a_seller()))
    said = desk.type("status", "--watch", "--every", "3")
    assert (said.exit_code, looks) == (0, [3, 3])
    assert "1 seller, 1 active" in said.out


def test_identities_that_need_attention_come_first(desk: Desk) -> None:
    desk.plant(lambda _: None)
    assert desk.type("agents", "suspend", "7").out == "identity 7 is suspended\n"
    refused = desk.type("agents", "block", "9", "999")
    assert (refused.exit_code, refused.out) == (1, "identity 9 is blocked\n")
    assert len(refused.problems) == 1
    found = desk.type("agents", "status", "--json").json
    assert (found["totalCount"], found["suspendedCount"], found["blockedCount"]) == (100, 1, 1)
    assert [one["agentId"] for one in found["identities"]][:3] == [9, 7, 1]
    drawn = desk.type("agents", "status").out
    assert "40 of 100 (--all)" in drawn
    assert "100 identities: 98 available, 1 suspended, 1 blocked" in drawn
    assert desk.type("agents", "recover", "7").exit_code == 0
    assert desk.type("agents", "unblock", "9").exit_code == 0
    assert desk.type("agents", "recover", "7").exit_code == 1
    assert desk.type("agents", "status", "--json").json["activeCount"] == 100


def test_identities_are_added_and_retired(desk: Desk) -> None:
    desk.plant(lambda _: None)
    assert desk.type("agents", "seed").out == "0 identities added, 100 known already\n"
    file = desk.folder / "agents.txt"
    file.write_bytes(b"# ours\nMozilla/5.0 (New)\n\nMozilla/5.0 (\xff)\nMozilla/5.0 (New)\n")
    said = desk.type("agents", "add", str(file))
    assert (said.exit_code, said.out) == (1, "1 identity added, 1 known already\n")
    assert len(said.problems) == 1
    assert said.problems[0].startswith(f"{file}:4: not 1 to 500 printable ASCII characters")
    assert desk.type("agents", "retire", "101").out == "1 identity retired\n"
    refused = desk.type("agents", "retire", "4711")
    assert (refused.exit_code, refused.out, refused.problems) == (1, "", ["error: 4711 is not in the pool"])
    refused = desk.type("agents", "retire", "100", "4711", "4712")
    assert (refused.out, refused.problems) == ("1 identity retired\n", ["error: 2 of the 3 are not in the pool"])
    assert desk.type("agents", "rekey").out == "0 tokens sealed anew\n"


def test_the_database_is_made_checked_and_taken_back(desk: Desk) -> None:
    assert desk.type("db", "downgrade", "base").exit_code == 1
    assert desk.type("db", "upgrade").exit_code == 0
    assert desk.type("db", "check").out == "the database is as it should be\n"
    assert "SQLite has no partitions" in desk.type("db", "partitions").out
    with sqlite3.connect(desk.file) as connection:
        connection.execute("DROP TABLE alerts")
    connection.close()
    said = desk.type("db", "check")
    assert (said.exit_code, said.problems) == (1, ["table alerts is missing"])
    unknown = desk.type("db", "downgrade", "nonsense")
    assert unknown.exit_code == 1
    assert len(unknown.problems) == 1


def test_what_is_old_is_pruned_without_a_marketplace(desk: Desk) -> None:
    desk.plant(lambda unit: unit.chores.show_life("gone", "worker", "host", 1, "1", NOON))
    said = desk.type("db", "prune")
    assert (said.exit_code, said.out) == (0, "1 row deleted\n")


@pytest.mark.parametrize(
    ("typed", "moment"),
    [
        ("90min", at(-5400)),
        ("999999d", datetime.min.replace(tzinfo=UTC)),
        ("2d", at(-2 * 86400)),
        ("2026-03-02T12:00:00.123456", NOON),
        ("2026-03-02T21:00:00.123456+09:00", NOON),
    ],
)
def test_a_moment_is_typed_as_a_time_or_as_so_long_ago(typed: str, moment: object) -> None:
    assert moment_of(typed, NOON) == moment


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("명품 é 🙂", "명품 é 🙂"),
        ("a\x1b[31mb\r\n\t\x9b", "a\\x1b[31mb\\x0d\\x0a\\x09\\x9b"),
        ("\u202eevil\u200b\u2066", "\\u202eevil\\u200b\\u2066"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_what_would_not_be_seen_is_made_visible(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_ages_and_numbers_are_short() -> None:
    assert [age(seconds) for seconds in (None, -1, 0, 119, 120, 7200, 172800)] == [
        "–",
        "0 s",
        "0 s",
        "119 s",
        "2 min",
        "2 h",
        "2 d",
    ]
    assert grouped(1234567) == "1\u202f234\u202f567"
