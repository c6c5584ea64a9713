"""The manners of the house: each module says what it is, stays short, keeps to its words, and wakes nobody at import."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HOUSE = ROOT / "src" / "sellerwatch"
MODULES = sorted(HOUSE.rglob("*.py"))
PYTHON = [*MODULES, *sorted((ROOT / "tests").rglob("*.py")), *sorted((ROOT / "bench").rglob("*.py"))]
WATCH = Path(__file__).with_name("watch.py")
LINES_MAX = 400
EMPTY_WORDS = re.compile(
    r"(Manager|Service|Helper|Util|Utils|Handler|Processor|Coordinator|Facade|Factory|Provider|Impl|Dto|DTO)$"
)
EMPTY_ROOMS = {"common", "misc", "util", "utils", "helpers", "manager", "service", "services", "base", "core"}


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def tree(path: Path) -> ast.Module:
    return ast.parse(text(path), filename=str(path))


def test_a_module_says_what_it_is_and_names_say_what_a_thing_is() -> None:
    silent, empty = [], []
    for module in MODULES:
        read = tree(module)
        silent += [shown(module)] if not ast.get_docstring(read) else []
        names = [node.name for node in ast.walk(read) if isinstance(node, ast.ClassDef)]
        empty += [(shown(module), name) for name in names if EMPTY_WORDS.search(name)]
    assert silent == [], "they open without a docstring"
    assert empty == []
    assert [shown(module) for module in MODULES if module.stem in EMPTY_ROOMS] == []


def test_a_module_is_read_in_one_sitting() -> None:
    # A migration is a page of history: written once, never divided.
    lines = {shown(module): len(text(module).splitlines()) for module in MODULES if "versions" not in module.parts}
    assert {module: count for module, count in lines.items() if count > LINES_MAX} == {}, "each holds two things"


def imported(module: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def test_nothing_of_ours_is_mocked() -> None:
    speak_of_it = [module for module in PYTHON if "mock" in text(module)]
    every = [(shown(module), name) for module in speak_of_it for name in imported(module)]
    assert [each for each in every if each[1].split(".")[0] == "mock" or each[1].startswith("unittest.mock")] == []


def undecided(read: ast.AST) -> list[int]:
    """Lines of assertions that are content with an end either way."""
    ends = {"SUCCESS", "COMPLETED"}

    def words(node: ast.AST) -> set[str]:
        attributes = {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}
        names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
        texts = {one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)}
        return attributes | names | texts

    found = []
    for node in ast.walk(read):
        if not isinstance(node, ast.Assert):
            continue
        for part in ast.walk(node.test):
            is_one_of = isinstance(part, ast.Compare) and isinstance(part.ops[0], ast.In)
            some = part.comparators[0] if is_one_of else part if isinstance(part, ast.BoolOp) else None
            is_or = isinstance(part, ast.BoolOp) and isinstance(part.op, ast.Or)
            if some is not None and (is_one_of or is_or) and words(some) & ends and "FAILED" in words(some):
                found.append(node.lineno)
    return found


def test_lesson_53_no_test_is_content_with_success_or_failure() -> None:
    tests = [module for module in PYTHON if module.is_relative_to(ROOT / "tests") and "FAILED" in text(module)]
    assert [(shown(module), line) for module in tests for line in undecided(tree(module))] == []


@pytest.mark.parametrize(
    "line",
    [
        "assert task.status in (TaskStatus.SUCCESS, TaskStatus.FAILED)",
        "assert status in {'COMPLETED', 'FAILED'}",
        "assert status == SUCCESS or status == FAILED",
    ],
)
def test_lesson_53_such_a_test_is_seen(line: str) -> None:
    assert undecided(ast.parse(line)) == [1]
    assert undecided(ast.parse("assert status is SUCCESS and other is FAILED")) == []


def test_no_error_is_swallowed_unnamed_and_no_work_is_left_lying() -> None:
    bare = re.compile(r"^\s*except\s*(:|\\)", re.MULTILINE)
    assert [shown(module) for module in PYTHON if bare.search(text(module))] == []
    # Put together here, so that this file may be read by its own rule.
    left = re.compile(r"#.*\b(" + "|".join(("TO" + "DO", "FIX" + "ME")) + r")\b")
    assert [shown(module) for module in PYTHON if left.search(text(module))] == []


def importable() -> list[str]:
    """All but what alembic runs as scripts."""
    names = [".".join(module.relative_to(HOUSE.parent).with_suffix("").parts) for module in MODULES]
    names = [name.removesuffix(".__init__") for name in names if "migrations." not in name]
    return [name for name in names if all(part.isidentifier() for part in name.split("."))]


def watched(house: Path, modules: list[str]) -> str:
    answer = subprocess.run(
        [sys.executable, "-P", str(WATCH), str(house), *modules],
        env={name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        stdin=subprocess.DEVNULL,
    )
    assert answer.returncode == 0, answer.stderr[-4000:]
    return answer.stdout


def test_nothing_happens_at_import() -> None:
    assert watched(HOUSE, importable()) == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        "import os; HOME = os.environ['PATH']",
        "import os; HOME = os.getenv('PATH', '')",
        "import pathlib; TEXT = pathlib.Path(__file__).read_text()",
        "open('/dev/null', 'w').close()",
        "import socket; socket.getaddrinfo('localhost', 1)",
        "import sqlite3; sqlite3.connect(':memory:')",
        "import threading; threading.Thread(target=print, args=('',)).start()",
        "import subprocess; subprocess.run(['true'])",
        "import tempfile; tempfile.mkdtemp()",
    ],
)
def test_the_watch_sees_what_happens_at_import(line: str, tmp_path: Path) -> None:
    house = tmp_path / "planted"
    house.mkdir()
    (house / "__init__.py").write_text("import json, aiohttp, pydantic\n")
    (house / "awake.py").write_text(line + "\n")
    assert watched(house, ["planted"]) == ""
    assert "awake.py:1" in watched(house, ["planted.awake"])
