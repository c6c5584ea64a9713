"""The walk of docs/api.md, command by command, against a process of its own."""

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.town import a_town

PAGE = Path(__file__).parents[2] / "docs" / "api.md"
KEY = "swk_of-the-walk-0123456789abcdef0123456789"
TOLD = re.compile(r"^(.*?)\s+# → (\d+) ?(.*)$")


def commands(page: str) -> list[str]:
    return [line for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL) for line in block.splitlines()]


def script(lines: list[str], port: int) -> str:
    """Each command that promises an answer is followed by a look at it; the first broken promise ends all."""
    said = ["set -u", f"KEY={KEY}"]
    for line in (each.replace("127.0.0.1:8080", f"127.0.0.1:{port}") for each in lines):
        promise = TOLD.match(line)
        if promise is None:
            said.append(line)
            continue
        command, status, part = promise.groups()
        said.append(f"SEEN=$({command}); check {status} '{part}' \"$SEEN\" || exit 1")
    check = """
check() {
  [ "$(printf '%s' "$3" | tail -n 1)" = "$1" ] && printf '%s' "$3" | grep -qF -- "$2" && return 0
  printf 'expected %s %s, seen: %s\\n' "$1" "$2" "$3" >&2; return 1
}"""
    return "\n".join([check, *said, "echo walked"])


def test_the_page_promises_an_answer_for_every_endpoint_it_shows() -> None:
    lines = commands(PAGE.read_text(encoding="utf-8"))
    promises = [promise for line in lines if (promise := TOLD.match(line))]
    assert len(promises) >= 25
    assert {promise[2] for promise in promises} >= {"200", "201", "202", "304", "400", "401", "404", "409"}


@pytest.mark.slow
def test_the_walk_answers_as_the_page_says(tmp_path: Path) -> None:
    entry = f"walk:{hashlib.sha256(KEY.encode()).hexdigest()}"
    with a_town(tmp_path, api_keys=entry) as town:
        up = town.start("up", "--sandbox", "--port", "0", "--sandbox-port", "0", "--sandbox-sellers", "atelier=30")
        address = next(word for word in up.until_it_says("/docs").split() if word.startswith("http"))
        walk = script(commands(PAGE.read_text(encoding="utf-8")), int(address.rpartition(":")[2]))
        settings = {f"SELLERWATCH_{name}": value for name, value in town.settings.items()}
        programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-c", walk],
            cwd=tmp_path,
            env={**os.environ, **settings, "PATH": programs},
            capture_output=True,
            text=True,
            check=False,
            timeout=90,
        )
        assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["walked"]), done.stderr + up.says()[-2000:]
