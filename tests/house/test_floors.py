"""The floors of the house: kept as they are, and refused when someone breaks through one.

A planted violation goes into a copy of the package, and the contract that must refuse it is named: a contract that
refuses everything, or nothing, fails here.
"""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def lint_imports(where: Path, *contracts: str) -> subprocess.CompletedProcess[str]:
    chosen = [part for contract in contracts for part in ("--contract", contract)]
    return subprocess.run(
        [
            sys.executable,
            "-c",
            "from importlinter.cli import lint_imports_command as run; run()",
            "--no-cache",
            *chosen,
        ],
        cwd=where,
        # A copy is not measured: COVERAGE_* would count its files as Sellerwatch's.
        env={name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
        | {"PYTHONPATH": str(where / "src"), "NO_COLOR": "1", "COLUMNS": "400"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@dataclass(frozen=True)
class Planted:
    contract: str
    name: str
    files: dict[str, str]


VIOLATIONS = {
    "a room looks upstairs": Planted(
        "floors",
        "each room looks only downstairs",
        {"domain/planted.py": "import sellerwatch.wiring\n"},
    ),
    "a tool knows a story": Planted(
        "floors",
        "each room looks only downstairs",
        {"flows/planted.py": "", "adapters/planted.py": "import sellerwatch.flows.planted\n"},
    ),
    "a story knows a tool": Planted(
        "floors",
        "each room looks only downstairs",
        {"adapters/planted.py": "", "flows/planted.py": "import sellerwatch.adapters.planted\n"},
    ),
    "a story knows the settings": Planted(
        "floors", "each room looks only downstairs", {"flows/planted.py": "import sellerwatch.settings\n"}
    ),
    "a room without a floor": Planted(
        "floors",
        "each room looks only downstairs",
        {"planted/__init__.py": ""},
    ),
    "a module beside the rooms": Planted(
        "floors",
        "each room looks only downstairs",
        {"planted.py": ""},
    ),
    "two rooms in a ring": Planted(
        "cycles",
        "no two rooms import each other",
        {"domain/one.py": "import sellerwatch.domain.two\n", "domain/two.py": "import sellerwatch.domain.one\n"},
    ),
    "a flow calls a flow": Planted(
        "flows",
        "a flow never calls a flow",
        {"flows/one.py": "", "flows/two.py": "from sellerwatch.flows import one\n"},
    ),
    "an adapter calls an adapter": Planted(
        "adapters",
        "an adapter never calls another adapter",
        {
            "adapters/one.py": "",
            "adapters/two/__init__.py": "",
            "adapters/two/deep.py": "import sellerwatch.adapters.one\n",
        },
    ),
    "an adapter decides": Planted(
        "deciding",
        "adapters, settings and the sandbox decide nothing",
        {"steps/planted.py": "", "adapters/planted.py": "import sellerwatch.steps.planted\n"},
    ),
    "the sandbox decides": Planted(
        "deciding",
        "adapters, settings and the sandbox decide nothing",
        {"steps/planted.py": "", "sandbox/planted.py": "import sellerwatch.steps.planted\n"},
    ),
    "a framework in the domain": Planted("pure", "know no framework", {"domain/planted.py": "import pydantic\n"}),
    "a framework in a port": Planted("pure", "know no framework", {"ports/planted.py": "import msgspec\n"}),
    "a framework in a step": Planted("pure", "know no framework", {"steps/planted.py": "import structlog\n"}),
    "a framework in a flow": Planted("pure", "know no framework", {"flows/planted.py": "import aiohttp\n"}),
    "SQL in another adapter": Planted(
        "sql", "SQL is spoken in adapters.sql only", {"adapters/planted.py": "from sqlalchemy import select\n"}
    ),
    "SQL in a door": Planted("sql", "SQL is spoken in adapters.sql only", {"entry/planted.py": "import alembic\n"}),
    "HTTP out of a door": Planted("http-out", "HTTP goes out from adapters", {"entry/planted.py": "import aiohttp\n"}),
    "AWS in another adapter": Planted(
        "aws", "AWS is spoken to in adapters.aws.connection only", {"adapters/planted.py": "import botocore\n"}
    ),
    "Prometheus in another door": Planted(
        "metrics", "only one module knows Prometheus' client", {"entry/planted.py": "import prometheus_client\n"}
    ),
    "OpenTelemetry in another adapter": Planted(
        "traces", "only one module knows OpenTelemetry", {"adapters/planted.py": "import opentelemetry.trace\n"}
    ),
    "a door in the sandbox": Planted("doors", "only doors speak", {"sandbox/planted.py": "import fastapi\n"}),
    "a terminal in an adapter": Planted("doors", "only doors speak", {"adapters/planted.py": "import rich\n"}),
}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    return tmp_path


def test_the_house_keeps_its_floors() -> None:
    answer = lint_imports(ROOT)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert " 0 broken." in answer.stdout


def test_every_contract_has_a_planted_violation() -> None:
    written = (ROOT / "pyproject.toml").read_text()
    contracts = {line.split('"')[1] for line in written.splitlines() if line.startswith('id = "')}
    assert contracts == {planted.contract for planted in VIOLATIONS.values()}


@pytest.mark.slow
@pytest.mark.parametrize("planted", VIOLATIONS.values(), ids=VIOLATIONS)
def test_a_planted_violation_is_refused(planted: Planted, copy: Path) -> None:
    for path, text in planted.files.items():
        file = copy / "src" / "sellerwatch" / path
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)

    after = lint_imports(copy, planted.contract)

    assert after.returncode == 1, after.stdout + after.stderr
    assert " 1 broken." in after.stdout, after.stdout + after.stderr
    assert any(planted.name in line and " BROKEN" in line for line in after.stdout.splitlines())
    rooms = (Path(path.removesuffix("/__init__.py")).stem for path in planted.files)
    assert any(room in after.stdout for room in rooms), "it is broken, but by something else"


ROOMS = ["domain", "ports", "steps", "flows", "adapters", "sandbox", "entry"]
OUTSIDE = {
    "datetime": "import datetime\n\nMOMENT = datetime.datetime.now(datetime.UTC)\n",
    "utcnow": "from datetime import datetime\n\nMOMENT = datetime.utcnow()\n",
    "today": "from datetime import date\n\nDAY = date.today()\n",
    "time": "from time import time\n\nMOMENT = time()\n",
    "monotonic": "import time\n\nMOMENT = time.monotonic()\n",
    "perf_counter": "import time as t\n\nMOMENT = t.perf_counter()\n",
    "sleep": "import time\n\ntime.sleep(1)\n",
    "waiting": "import asyncio\n\nWAITING = asyncio.sleep(1)\n",
    "random": "import random\n\nNUMBER = random.random()\n",
    "uuid1": "import uuid\n\nNAME = uuid.uuid1()\n",
    "uuid4": "from uuid import uuid4\n\nNAME = uuid4()\n",
    "environ": "import os\n\nHOME = os.environ\n",
    "getenv": "from os import getenv\n\nHOME = getenv('HOME')\n",
    "mock": "from unittest.mock import Mock\n\nFAKE = Mock()\n",
}


def files_that_reach_outside(where: Path) -> set[str]:
    answer = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--no-cache", "--select", "TID251", "--output-format", "json", "."],
        cwd=where,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert answer.returncode in {0, 1}, answer.stderr
    return {Path(finding["filename"]).relative_to(where.resolve()).as_posix() for finding in json.loads(answer.stdout)}


def test_clock_chance_and_environment_are_refused_outside_their_rooms(copy: Path) -> None:
    house = copy / "src" / "sellerwatch"
    planted = {house / room / f"planted_{name}.py": text for room in ROOMS for name, text in OUTSIDE.items()}
    for file, text in planted.items():
        file.write_text(text)
    assert files_that_reach_outside(copy) == {file.relative_to(copy).as_posix() for file in planted}


def test_they_are_at_home_in_their_rooms(copy: Path) -> None:
    for room in ("adapters/clock.py", "adapters/chance.py", "settings.py"):
        (copy / "src" / "sellerwatch" / room).write_text("\n".join(OUTSIDE.values()))
    assert files_that_reach_outside(copy) == set()


def test_the_house_reaches_for_them_nowhere_else() -> None:
    assert files_that_reach_outside(ROOT) == set()
