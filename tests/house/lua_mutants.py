"""A program: breaks the pool's Lua scripts one statement at a time, and tells which breaks its contract suite lets pass.

    PYTHONPATH=tests python -m house.lua_mutants                          all of them, which takes half an hour
    PYTHONPATH=tests python -m house.lua_mutants --files calm.lua         those of some files
    PYTHONPATH=tests python -m house.lua_mutants --lines 'take_back()'    those of lines that read so

A statement is taken out whole, a block with all that is in it; with --conditions each condition of a block is taken for
true, too. What does not compile is no mutant. Each one runs in a process of its own, forked from one that has everything
imported, against a redis-server of its own. The suite ends at its first failure; one that hangs has noticed, too.
"""

import argparse
import io
import os
import re
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, Phase, settings

import servers
from sellerwatch.adapters.redis import pool as redis_pool
from sellerwatch.adapters.redis.scripts import PARTS, put_together, sources, used, whole

DOES = "Breaks the pool's Lua scripts one statement at a time: which breaks does its contract suite let pass?"
ROOT = Path(__file__).resolve().parents[2]

SUITE = [
    *("test_pool.py", "test_pool_blame.py", "test_pool_breakers.py", "test_pool_members.py", "test_ledgers.py"),
    *("test_pool_redis.py", "test_pool_rules.py", "test_pool_side_by_side.py"),
]
FIRST = {
    "breakers": "test_pool_breakers.py",
    "gates": "test_pool_breakers.py",
    "report": "test_pool_blame.py",
    "smooth": "test_pool_blame.py",
    "tell": "test_pool_blame.py",
    "recover": "test_pool_blame.py",
    "load": "test_pool_members.py",
    "standings": "test_pool_members.py",
    "events": "test_pool_members.py",
    "remember": "test_ledgers.py",
    "complete": "test_ledgers.py",
    "clear": "test_ledgers.py",
    "renew": "test_pool_redis.py",
    "pulse": "test_pool_redis.py",
}
"""Where a file's mutants are noticed soonest."""
HANGS_AFTER_SECONDS = 300
ENDS = {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}
PROFILE = "mutants"
BLOCK_LINES_MAX = 80
NO_BEGINNING = re.compile(r"(end|else|elseif|until|[)}\]])")
CONDITION = re.compile(r"^(\s*)if .* then$")


@dataclass(frozen=True)
class Mutant:
    file: str
    line: int
    upto: int
    text: str
    becomes: str

    @property
    def said(self) -> str:
        more = f" (+{self.upto - self.line} lines)" if self.upto > self.line else ""
        return f"{self.file}.lua:{self.line}: {self.text.strip()}{more}{self.becomes and ' -> ' + self.becomes.strip()}"

    def applied(self, files: Mapping[str, str]) -> dict[str, str]:
        lines = files[self.file].splitlines()
        lines[self.line - 1 : self.upto] = [self.becomes] if self.becomes else []
        return {**files, self.file: "\n".join(lines)}


def mutants(files: Mapping[str, str], server: servers.Redis) -> Iterator[Mutant]:
    for name, text in files.items():
        # A part is compiled within some script that uses it.
        script = next(each for each in files if each not in PARTS and (each == name or name in used(files[each])))
        lines = text.splitlines()
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.strip().startswith("--"):
                continue
            found = []
            if not NO_BEGINNING.match(line.strip()):
                whole_blocks = (Mutant(name, number, upto, line, "") for upto in range(number, len(lines) + 1))
                found += [next((each for each in whole_blocks if compiles(each, files, script, server)), None)]
            if CONDITION.match(line):
                found += [Mutant(name, number, number, line, f"{CONDITION.match(line)[1]}if true then")]
            yield from (each for each in found if each and each.upto < number + BLOCK_LINES_MAX)


def compiles(mutant: Mutant, files: Mapping[str, str], script: str, server: servers.Redis) -> bool:
    return not server.say("SCRIPT", "LOAD", whole(mutant.applied(files), script)).startswith(b"-")


def is_noticed(files: Mapping[str, str], first: str | None = None) -> bool:
    """Whether the suite fails on these files, in a process of its own."""
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        signal.alarm(HANGS_AFTER_SECONDS)
        redis_pool.sources = lambda: files  # type: ignore[attr-defined]
        os._exit(int(run_suite("-x", first=first)))
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        # Its server outlived it.
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) in ENDS, "the suite itself is broken"
    return status != 0


def run_suite(*how: str, first: str | None = None) -> int:
    suite = [str(ROOT / "tests" / "contracts" / each) for each in dict.fromkeys([first or SUITE[0], *SUITE])]
    ours = (
        "-q",
        "-k",
        "redis or two_engines",
        f"--hypothesis-profile={PROFILE}",
        "-W",
        "ignore:Module already imported",
    )
    without = ("-p", "no:cacheprovider", "-p", "no:xdist")
    with (
        TemporaryDirectory(prefix="sellerwatch-mutants-") as folder,
        redirect_stdout(io.StringIO()),
        redirect_stderr(io.StringIO()),
    ):
        return pytest.main([*suite, *ours, *without, *how, f"--basetemp={folder}/tests"])


def chosen(options: argparse.Namespace, server: servers.Redis) -> list[Mutant]:
    known = sources()
    names = {name.removesuffix(".lua") for name in options.files} or set(known)
    found = [each for each in mutants(known, server) if each.file in names]
    if not options.conditions:
        found = [each for each in found if not each.becomes]
    if options.lines:
        found = [each for each in found if each.text.strip() in options.lines]
    return found


def tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(options: argparse.Namespace) -> int:
    begin = time.monotonic()
    # Whether it fails is all that is asked: nothing is shrunk.
    alike = {"derandomize": True, "database": None, "deadline": None, "suppress_health_check": [*HealthCheck]}
    settings.register_profile(PROFILE, max_examples=options.examples, phases=[Phase.generate], **alike)
    known = dict(sources())
    put_together(known)
    with servers.a_redis() as server:
        some = chosen(options, server)
    # What is imported once need not be imported for each.
    run_suite("--collect-only")
    if is_noticed(known):
        raise SystemExit("the suite fails on the scripts as they are")
    survivors = []
    for number, mutant in enumerate(some, 1):
        was_noticed = is_noticed(mutant.applied(known), FIRST.get(mutant.file))
        if not was_noticed:
            survivors.append(mutant)
        if options.verbose or not was_noticed:
            what, passed = "noticed " if was_noticed else "SURVIVED", time.monotonic() - begin
            tell(f"{number:4} of {len(some)} {passed:6.1f} s  {what}  {mutant.said}")
    tell(f"{len(some)} mutants, {len(some) - len(survivors)} noticed, {len(survivors)} survived")
    return 1 if survivors else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m house.lua_mutants", description=DOES)
    parser.add_argument("--files", nargs="+", default=[], help="of these files only")
    parser.add_argument("--lines", nargs="+", default=[], help="of lines that read so only")
    parser.add_argument("--conditions", action="store_true", help="take conditions for true, too")
    parser.add_argument("--examples", type=int, default=40, help="of Hypothesis' state machines")
    parser.add_argument("--verbose", action="store_true", help="tell of those that were noticed, too")
    raise SystemExit(main(parser.parse_args()))
