"""What a scenario measures of its own process, and how it tells: CPU seconds, wall seconds, peak memory, as JSON."""

import asyncio
import json
import resource
import sys
import time
from collections.abc import Coroutine
from dataclasses import asdict, dataclass, field
from pathlib import Path

import uvloop


@dataclass(slots=True)
class Lap:
    """One crawl: what it cost and what came of it."""

    name: str
    products: int
    delivered: int = 0
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0

    @property
    def cpu_per_1000(self) -> float:
        return self.cpu_seconds * 1000 / self.products


@dataclass(slots=True)
class Account:
    """What a scenario found."""

    laps: list[Lap] = field(default_factory=list)
    peak_mb: float = 0.0
    note: str = ""


class Meter:
    """`with Meter(lap): ...` fills in the lap."""

    def __init__(self, lap: Lap) -> None:
        self._lap = lap

    def __enter__(self) -> Lap:
        self._cpu, self._wall = _cpu_seconds(), time.perf_counter()
        return self._lap

    def __exit__(self, *_: object) -> None:
        self._lap.cpu_seconds = _cpu_seconds() - self._cpu
        self._lap.wall_seconds = time.perf_counter() - self._wall


def run(scenario: Coroutine[None, None, Account]) -> Account:
    """On uvloop, as in production; all scenarios alike."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(scenario)


def tell(account: Account) -> None:
    """To the process that started this one: the account is the last line."""
    account.peak_mb = _peak_mb()
    sys.stdout.write(json.dumps(asdict(account)) + "\n")


def told(line: str) -> Account:
    known = json.loads(line)
    return Account([Lap(**lap) for lap in known["laps"]], known["peak_mb"], known["note"])


def _cpu_seconds() -> float:
    """Of all threads of this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _peak_mb() -> float:
    # Linux keeps the parent's peak in ru_maxrss of a process it started; VmHWM is of this program alone.
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
