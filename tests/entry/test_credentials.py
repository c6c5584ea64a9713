"""Credentials: a token alone on stdout, a key and its entry, refusals in one line."""

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from doors import ShiftedClock
from sellerwatch.adapters.vault import keys_beside
from sellerwatch.entry.api.tokens import Role, Tokens
from sellerwatch.settings import load, with_kept_keys

SECRET = "a secret of the tests, thirty-two bytes and more"


@pytest.fixture(autouse=True)
def _nobodys_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CONFIG", "DATABASE_URL", "JWT_SECRET", "TOKEN_KEYS"):
        monkeypatch.delenv(f"SELLERWATCH_{name}", raising=False)


def sellerwatch(where: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sellerwatch", *arguments],
        cwd=where,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.parametrize("role", ["admin", "viewer"])
def test_a_token_is_alone_on_stdout_and_believed(tmp_path: Path, role: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SELLERWATCH_JWT_SECRET", SECRET)
    done = sellerwatch(tmp_path, "token", "issue", "--role", role)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 1
    tokens = Tokens(load(overrides={"database_url": "sqlite://", "jwt_secret": SECRET}), ShiftedClock())
    assert tokens.read([f"Bearer {done.stdout.strip()}"]).roles == {Role[role.upper()]}


def test_without_a_secret_the_one_beside_the_database_signs(tmp_path: Path) -> None:
    done = sellerwatch(tmp_path, "token", "issue", "--role", "admin", "--hours", "0.5")
    assert done.returncode == 0
    kept = tmp_path / "sellerwatch.db.jwt-secret"
    assert kept.stat().st_mode & 0o777 == 0o600
    settings = load(overrides={"database_url": f"sqlite:///{tmp_path}/sellerwatch.db"})
    settings = with_kept_keys(settings, keys_beside, bytes)
    assert Tokens(settings, ShiftedClock()).read([f"Bearer {done.stdout.strip()}"]).roles == {Role.ADMIN}
    assert kept.read_text().strip() not in done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "settings", "code", "said"),
    [
        (["--role", "admin"], {"DATABASE_URL": "mysql://u:p@127.0.0.1/x", "TOKEN_KEYS": "k1:" + "A" * 43 + "="}, 1, "JWT_SECRET"),
        (["--role", "admin"], {"JWT_SECRET": "short"}, 1, "JWT_SECRET"),
        (["--role", "admin", "--hours", "25"], {}, 2, "0.001 to 24"),
        (["--role", "admin", "--hours", "0.0001"], {}, 2, "--hours"),
        (["--role", "admin", "--hours", "nan"], {}, 2, "--hours"),
        (["--role", "admin"], {"DATABASE_URL": "sqlite://"}, 1, "JWT_SECRET"),
        (["--role", "root"], {}, 2, "--role"),
        ([], {}, 2, "--role"),
    ],
)  # fmt: skip
def test_what_cannot_be_issued_is_said_on_stderr(
    tmp_path: Path,
    arguments: list[str],
    settings: dict[str, str],
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(f"SELLERWATCH_{name}", value)
    done = sellerwatch(tmp_path, "token", "issue", *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_key_comes_with_the_entry_that_accepts_it(tmp_path: Path) -> None:
    done = sellerwatch(tmp_path, "key", "generate", "--name", "eventbridge")
    key_line, entry_line = done.stdout.splitlines()
    key, entry = key_line.split()[-1], entry_line.split()[-1]
    assert len(key) >= 64
    assert entry == f"eventbridge:{hashlib.sha256(key.encode()).hexdigest()}"
    settings = load(overrides={"database_url": "sqlite://", "api_keys": entry})
    assert settings.api_key_digests["eventbridge"] == hashlib.sha256(key.encode()).digest()
    again = sellerwatch(tmp_path, "key", "generate", "--name", "eventbridge")
    assert key not in again.stdout


def test_a_key_needs_a_decent_name(tmp_path: Path) -> None:
    done = sellerwatch(tmp_path, "key", "generate", "--name", "a:b")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--name" in done.stderr
