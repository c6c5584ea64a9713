"""The contract suite of the pool notices what is missing in a Lua script; all of it is tried by house/lua_mutants.py."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOME = (
    "if now >= leads then return { now, 'AWAY', now + 1000000, {} } end",
    "set(member, 'lease', nil)",
    "if its[1] ~= ARGV[3] or not its[2] then return 0 end",
)


@pytest.mark.slow
def test_a_line_less_in_a_lua_script_fails_the_contract_suite() -> None:
    command = [sys.executable, "-m", "house.lua_mutants", "--examples", "5", "--verbose", "--lines", *SOME]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout
    assert f"{len(SOME)} mutants, {len(SOME)} noticed, 0 survived" in done.stdout
