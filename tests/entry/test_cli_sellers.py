"""What `sellerwatch seller` promises: outcomes, exit codes, one clear line for what is wrong."""

import sqlite3
from pathlib import Path

import pytest

from desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk.furnished(tmp_path)


@pytest.fixture
def bare(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_the_first_seller_makes_the_database(bare: Desk) -> None:
    said = bare.type("seller", "add", "dmont", "--name", "D. Mont", "--interval", "2", "--source", "search", "--crawl")
    assert (said.exit_code, said.err) == (0, "")
    assert "seller dmont is registered and crawled every 2 days" in said.out
    found = bare.type("seller", "show", "dmont", "--json").json
    assert (found["source"], found["crawlingIntervalDays"]) == ("SEARCH", 2)
    assert (found["schedule"]["expression"], found["lastExecution"]["status"]) == ("rate(2 days)", "STARTED")


def test_a_database_that_does_not_exist_is_not_made_by_looking(bare: Desk) -> None:
    said = bare.type("seller", "list")
    assert (said.exit_code, said.problems) == (
        1,
        [f"error: there is no database {bare.file} yet: run `sellerwatch db upgrade`"],
    )
    assert list(bare.folder.iterdir()) == []


def test_a_database_of_another_version_is_refused_with_what_to_do(bare: Desk) -> None:
    assert bare.type("db", "upgrade").exit_code == 0
    assert bare.type("db", "downgrade", "base").exit_code == 0
    said = bare.type("seller", "list")
    assert said.exit_code == 1
    assert said.problems == ["error: the database is at no revision at all: run `sellerwatch db upgrade`"]


def test_what_a_seller_may_be_told_is_done(desk: Desk) -> None:
    desk.type("seller", "add", "dmont", "--name", "D. Mont")
    assert desk.type("seller", "rename", "dmont", "Maison").out == "seller dmont is called Maison\n"
    assert desk.type("seller", "interval", "dmont", "1").out == "seller dmont is crawled every 1 day\n"
    for _ in range(2):
        assert desk.type("seller", "deactivate", "dmont").out == "seller dmont is INACTIVE\n"
    assert [one["name"] for one in desk.type("seller", "list", "--status", "inactive", "--json").json] == ["Maison"]
    assert desk.type("seller", "activate", "dmont").out == "seller dmont is ACTIVE\n"
    refused = desk.type("seller", "remove", "dmont")
    assert refused.problems == ["error: seller dmont is ACTIVE: deactivate it before removing it"]
    desk.type("seller", "deactivate", "dmont")
    assert desk.type("seller", "remove", "dmont").exit_code == 0
    assert desk.type("seller", "list", "--json").json == []


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["add", "dmont", "--name", "again"], "error: seller dmont is registered already"),
        (["show", "nobody"], "error: no seller nobody"),
        (["rename", "nobody", "x"], "error: no seller nobody"),
    ],
)
def test_what_is_refused_is_one_line_and_exit_1(desk: Desk, words: list[str], problem: str) -> None:
    desk.type("seller", "add", "dmont", "--name", "D. Mont")
    said = desk.type("seller", *words)
    assert (said.exit_code, said.problems, said.out) == (1, [problem], "")


@pytest.mark.parametrize(
    "words", [["add"], ["add", "x"], ["interval", "x", "often"], ["shov"], ["list", "--size", "0"]]
)
def test_wrong_use_is_exit_2(desk: Desk, words: list[str]) -> None:
    assert desk.type("seller", *words).exit_code == 2


def test_a_name_can_not_play_with_the_terminal(desk: Desk) -> None:
    desk.type("seller", "add", "dmont", "--name", "a\x1b[31m[red]b\u202ec 명품")
    assert "a\\x1b[31m[red]b\\u202ec 명품" in desk.type("seller", "list").out
    said = desk.type("seller", "list", "--json")
    assert "\x1b" not in said.out
    assert "\u202e" not in said.out
    assert said.json[0]["name"] == "a\x1b[31m[red]b\u202ec 명품"


def test_a_long_list_says_which_part_of_it_was_shown(desk: Desk) -> None:
    for name in "abc":
        desk.type("seller", "add", name, "--name", name)
    said = desk.type("seller", "list", "--page", "1", "--size", "2")
    assert "3 to 3 of 3 (--page, --size)" in said.out


def test_a_bad_row_of_an_import_is_named_and_the_others_go_on(desk: Desk) -> None:
    file = desk.folder / "sellers.csv"
    file.write_text(
        "\ufeffSeller_Id,name,interval,source\n"
        'dmont,"D.\nMont",2,search\n'
        "\n"
        "a b,Blank,1,\n"
        "few,cells\n"
        "days,Days,often,\n"
        "seldom,Seldom,31,\n"
        "odd,Odd,,elsewhere\n"
        "dmont,Again,,\n"
        "last,Last,,\n",
        encoding="utf-8",
    )
    said = desk.type("seller", "import", str(file))
    assert (said.exit_code, said.out) == (1, "2 sellers registered\n")
    assert said.problems == [
        f"{file}:5: id: 'a b' is not 1 to 64 of A-Z a-z 0-9 . _ -",
        f"{file}:6: 2 cells where there are 4 columns",
        f"{file}:7: interval: 'often' is not a number of days, 1 to 30",
        f"{file}:8: interval: 31 is not 1 to 30",
        f"{file}:9: source: 'elsewhere' is not mini_shop or search",
        f"{file}:10: seller dmont is registered already",
    ]
    found = desk.type("seller", "list", "--json").json
    assert [(one["sellerId"], one["source"], one["crawlingIntervalDays"]) for one in found] == [
        ("dmont", "SEARCH", 2),
        ("last", "MINI_SHOP", 1),
    ]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"id,nom\nx,y\n", "column: 'nom' is not one of id, name, interval, source"),
        (b"id\nx\n", "columns: 'id' is not complete without name"),
        (b"", "columns: '' is not complete without id and name"),
        (b"id,name,id\n", "is not a list of different columns"),
        (b"id,name\nfine,Fine\n\xff\xfe,x\n", "not UTF-8 from here on"),
        (b'id,name\n"x" y,z\n', "not CSV from here on"),
    ],
)
def test_a_file_that_is_no_roster_is_refused_with_its_line(desk: Desk, content: bytes, problem: str) -> None:
    file = desk.folder / "sellers.csv"
    file.write_bytes(content)
    said = desk.type("seller", "import", str(file))
    assert said.exit_code == 1
    [line] = said.problems
    assert problem in line
    assert f"{file}:" in line


def test_lesson_14_a_seller_that_cannot_be_read_whole_is_listed_as_it_stands_among_the_others(desk: Desk) -> None:
    for seller_id in ("a", "b"):
        desk.type("seller", "add", seller_id, "--name", seller_id)
    with sqlite3.connect(desk.file) as file:
        file.execute("UPDATE sellers SET crawl_source = 'WEIRD' WHERE seller_id = 'a'")
    said = desk.type("seller", "list")
    assert (said.exit_code, said.err) == (0, "")
    assert [(one["sellerId"], one["source"]) for one in desk.type("seller", "list", "--json").json] == [
        ("a", "WEIRD"),
        ("b", "MINI_SHOP"),
    ]
    assert desk.type("seller", "show", "a").exit_code == 0
    assert desk.type("status").exit_code == 0
