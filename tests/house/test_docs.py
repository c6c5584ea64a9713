"""Docs that can go stale are compared with what they speak of."""

import re
from pathlib import Path

from sellerwatch.domain.meaning import MEANING
from sellerwatch.entry.cli.listed import LISTED
from sellerwatch.entry.console.fields import fields_page

ROOT = Path(__file__).parents[2]
HOUSE = ROOT / "src" / "sellerwatch"


def test_every_room_stands_in_the_architecture_once() -> None:
    table = (ROOT / "ARCHITECTURE.md").read_text().split("## The walk")[0]
    rooms = {path.name + "/" for path in HOUSE.iterdir() if (path / "__init__.py").exists()}
    rooms |= {path.name for path in HOUSE.glob("*.py") if path.name != "__init__.py"}
    assert set(re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)) == rooms


def test_every_alert_stands_in_the_runbook_and_ends() -> None:
    sources = "\n".join(path.read_text() for path in (HOUSE / "flows").glob("*.py"))
    sources += "\n".join(path.read_text() for path in (HOUSE / "steps").glob("*.py"))
    sources += (HOUSE / "ports" / "store" / "keeping.py").read_text()
    sources += (HOUSE / "ports" / "reports" / "figures.py").read_text()
    raised = set(re.findall(r'"([a-z]+(?:_[a-z]+)+)[:"]', sources))
    told = set(re.findall(r"^\| \[`([a-z_]+)", (ROOT / "docs" / "runbook.md").read_text(), re.MULTILINE))
    assert told <= raised, "the runbook knows alerts that nobody raises"
    calls = re.findall(r'raise_alert\(\s*f?"([a-z_]+)', sources)
    assert set(calls) <= told


def test_every_command_of_the_readme_exists() -> None:
    commands = set(re.findall(r"^sellerwatch ([a-z]+)", (ROOT / "README.md").read_text(), re.MULTILINE))
    assert commands <= {listed.name for listed in LISTED}


def test_the_page_of_fields_is_what_the_table_says() -> None:
    assert (ROOT / "docs" / "fields.md").read_text(encoding="utf-8") == fields_page(MEANING)


def test_every_call_to_aws_stands_in_the_policies() -> None:
    sources = "\n".join(path.read_text() for path in (HOUSE / "adapters" / "aws").glob("*.py"))
    calls = set(re.findall(r'(?:call|_by_tens)\(\s*"([a-z_]+)"', sources))
    actions = {"".join(word.capitalize() for word in call.removesuffix("_batch").split("_")) for call in calls}
    told = set(re.findall(r'"(?:sqs|events):([A-Za-z]+)"', (ROOT / "docs" / "aws.md").read_text()))
    assert actions == told
