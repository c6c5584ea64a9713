"""What is installed: pinned with hashes, from nowhere in particular, and nothing that nobody asked for."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
KINDS = ["requirements", "requirements-audit", "requirements-dev", "requirements-setup"]
PIN = re.compile(r"^([a-z0-9-]+)==([^ ;]+)(?: ; [^\\]+)? \\$")
HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}(?: \\)?$")


def asked(kind: str) -> set[str]:
    lines = (ROOT / f"{kind}.in").read_text().splitlines()
    return {re.split(r"[<>=;! \[]", line)[0].lower() for line in lines if line and not line.startswith("#")}


def pinned(kind: str) -> dict[str, str]:
    lines = (ROOT / f"{kind}.lock").read_text().splitlines()
    return {found[1]: found[2] for line in lines if (found := PIN.match(line))}


@pytest.mark.parametrize("kind", KINDS)
def test_a_lock_holds_pins_and_hashes_and_names_no_host(kind: str) -> None:
    lines = (ROOT / f"{kind}.lock").read_text().splitlines()
    assert [line for line in lines if not PIN.match(line) and not HASH.match(line)] == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_lock_pins_all_that_was_asked_for(kind: str) -> None:
    assert asked(kind) <= set(pinned(kind))


def test_the_locks_agree_where_they_overlap() -> None:
    run, dev = pinned("requirements"), pinned("requirements-dev")
    assert {name: dev[name] for name in run.keys() & dev.keys()} == {
        name: run[name] for name in run.keys() & dev.keys()
    }


def test_the_package_asks_for_what_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["dynamic"] == ["dependencies"]
    assert project["tool"]["setuptools"]["dynamic"]["dependencies"] == {"file": ["requirements.in"]}


def test_the_house_imports_only_what_it_asked_for() -> None:
    """A library that comes only because another one needs it goes when that one changes its mind."""
    homes = packages_distributions()
    unasked: set[str] = set()
    for module in (ROOT / "src" / "sellerwatch").rglob("*.py"):
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            for top in {name.split(".")[0] for name in names} - sys.stdlib_module_names - {"sellerwatch"}:
                if not {home.lower().replace("_", "-") for home in homes.get(top, [])} & asked("requirements"):
                    unasked.add(f"{module.name}: {top}")
    assert unasked == set()


def test_no_file_names_a_registry_or_a_place_on_one_machine() -> None:
    kept = [*ROOT.glob("requirements*"), ROOT / "pyproject.toml", ROOT / "Makefile", ROOT / ".ci" / "run"]
    told = re.compile(
        r"https?://|--(?:find-links|index-url|extra-index-url|trusted-host)|file:/|/home/|/root/|/opt/|/tmp/"
    )
    assert {path.name: found for path in kept if (found := told.findall(path.read_text()))} == {}
