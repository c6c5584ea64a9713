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


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


@pytest.mark.parametrize("module", MODULES, ids=shown)
def test_a_module_says_what_it_is(module: Path) -> None:
    assert ast.get_docstring(tree(module)), "opens without a docstring"


# A migration is a page of history: written once, never divided.
@pytest.mark.parametrize("module", [module for module in MODULES if "versions" not in module.parts], ids=shown)
def test_a_module_is_read_in_one_sitting(module: Path) -> None:
    lines = len(module.read_text(encoding="utf-8").splitlines())
    assert lines <= LINES_MAX, f"{lines} lines: it holds two things"


@pytest.mark.parametrize("module", MODULES, ids=shown)
def test_names_say_what_a_thing_is(module: Path) -> None:
    assert module.stem not in EMPTY_ROOMS
    classes = [node.name for node in ast.walk(tree(module)) if isinstance(node, ast.ClassDef)]
    assert [name for name in classes if EMPTY_WORDS.search(name)] == []


@pytest.mark.parametrize("module", PYTHON, ids=shown)
def test_nothing_of_ours_is_mocked(module: Path) -> None:
    imported: set[str] = set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    assert not {name for name in imported if name.split(".")[0] == "mock" or name.startswith("unittest.mock")}


@pytest.mark.parametrize("module", PYTHON, ids=shown)
def test_no_error_is_swallowed_unnamed_and_no_work_is_left_lying(module: Path) -> None:
    bare = [node.lineno for node in ast.walk(tree(module)) if isinstance(node, ast.ExceptHandler) and node.type is None]
    assert bare == []
    # Put together here, so that this file may be read by its own rule.
    left = re.compile(r"#.*\b(" + "|".join(("TO" + "DO", "FIX" + "ME")) + r")\b")
    assert not left.search(module.read_text(encoding="utf-8"))


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
