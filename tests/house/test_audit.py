"""`make audit`: every lock is audited, and what could not be audited is never taken for good."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("auditor", "code", "told"),
    [
        ("echo No known vulnerabilities found", 0, "requirements.lock: No known vulnerabilities found"),
        (
            "echo Found 1 known vulnerability; echo yarl 1.0 X-1; exit 1",
            2,
            "requirements.lock: Found 1 known vulnerability",
        ),
        ("echo Traceback; echo ConnectionError: no such host; exit 1", 2, "not audited, no advisory database answers"),
        ("echo ERROR: yarl: Dependency not found; exit 1", 2, "not audited, no advisory database answers"),
    ],
)
def test_an_audit_that_finds_something_or_could_not_ask_fails(
    tmp_path: Path, auditor: str, code: int, told: str
) -> None:
    fake = tmp_path / "pip-audit"
    fake.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n{auditor}\n')
    fake.chmod(0o755)
    done = subprocess.run(
        ["make", "--silent", "audit", f"AUDITOR={fake}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == code
    assert told in done.stdout + done.stderr
    asked = (tmp_path / "asked").read_text().splitlines()
    assert all("--strict" in line and "--require-hashes" in line for line in asked)
    if "not audited" in told:
        assert (len(asked), done.stderr.count("not audited")) == (1, 1)
    else:
        assert len(asked) == len(list(ROOT.glob("requirements*.lock")))
