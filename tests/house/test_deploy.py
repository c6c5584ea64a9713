"""What operators start from fits what it starts: settings, commands and files exist, and nothing runs with more than it needs."""

import re
import subprocess
from pathlib import Path

import pytest
import typer.core
import yaml
from typer.main import get_command

from sellerwatch.entry.cli import app
from sellerwatch.settings import load

ROOT = Path(__file__).parents[2]
OURS = ("prepare", "api", "scheduler", "worker", "operator")


def secrets() -> dict[str, str]:
    said = subprocess.run(["sh", ROOT / "deploy" / "new-secrets"], capture_output=True, text=True, check=True)
    return dict(line.split("=", 1) for line in said.stdout.splitlines())


@pytest.fixture(scope="module")
def compose() -> dict:
    text = (ROOT / "compose.yaml").read_text()
    known = secrets()
    return yaml.safe_load(re.sub(r"\$\{(\w+):\?[^}]*\}", lambda found: known[found[1]], text))


def test_new_secrets_are_new_each_time() -> None:
    one, other = secrets(), secrets()
    assert one.keys() == other.keys()
    assert not set(one.values()) & set(other.values())


@pytest.mark.parametrize("name", OURS)
def test_every_process_is_given_settings_that_are_accepted(
    compose: dict, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, value in compose["services"][name]["environment"].items():
        monkeypatch.setenv(key, value)
    settings = load()
    assert settings.marketplace_url == "http://sandbox:8090"
    assert settings.database_url.startswith("mariadb://")


def test_every_process_is_started_with_a_command_that_exists(compose: dict) -> None:
    known = get_command(app)
    assert isinstance(known, typer.core.TyperGroup)
    for name in ("api", "scheduler", "worker", "sandbox", "operator"):
        command, *arguments = compose["services"][name]["command"]
        found = known.get_command(typer.Context(known), command)
        assert found is not None, command
        options = {option for parameter in found.params for option in parameter.opts}
        assert {argument for argument in arguments if argument.startswith("--")} <= options, name


@pytest.mark.parametrize("name", [*OURS, "sandbox"])
def test_a_process_may_write_nowhere_and_gain_nothing(compose: dict, name: str) -> None:
    service = compose["services"][name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]


def test_only_the_api_is_reached_from_outside_and_only_from_this_machine(compose: dict) -> None:
    ports = {name: service["ports"] for name, service in compose["services"].items() if "ports" in service}
    assert ports == {"api": ["127.0.0.1:8080:8080"]}


def test_a_stop_is_given_the_time_that_a_graceful_one_takes(compose: dict) -> None:
    grace = int(compose["services"]["worker"]["stop_grace_period"].removesuffix("s"))
    assert grace > load().shutdown_seconds


def test_the_image_is_built_from_files_that_are_there_and_runs_as_nobody_special() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    allowed = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    copied = [word for line in lines if re.match(r"COPY (?!--from)", line) for word in line.split()[1:-1]]
    assert copied
    for name in copied:
        assert (ROOT / name).exists(), name
        assert any(Path(name).match(pattern) for pattern in allowed), f"{name} does not reach the build"
    stages = re.split(r"^FROM ", "\n".join(lines), flags=re.MULTILINE)[1:]
    for stage in stages[1:]:
        user = re.search(r"^USER (\d+)$", stage, re.MULTILINE)
        assert user is not None, stage
        assert int(user[1]) > 0


def test_every_metric_and_page_that_the_page_on_deploying_names_exists() -> None:
    page = (ROOT / "docs" / "deploy.md").read_text()
    metrics = (ROOT / "docs" / "metrics.md").read_text()
    named = set(re.findall(r"sellerwatch_[a-z_]+", page))
    assert named
    assert {name for name in named if f"`{name}" not in metrics} == set()
    for target in re.findall(r"\]\(([a-z.-]+\.md)\)", page):
        assert (ROOT / "docs" / target).exists(), target
