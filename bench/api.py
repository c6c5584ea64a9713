"""`python -m bench.api`: requests a second and the slowest percent of the REST API, beside the framework's own hello.

--seconds 1.5     how long each endpoint is asked in a round
--rounds 5        how many rounds; the middle one counts
--sellers 300     how many sellers there are, each with a schedule and an ended crawl
--identities 1000 how many identities the pool has
--profile         the server under pyinstrument, a text report into a temporary file; its figures are not comparable

The server is a process of its own on SQLite, as `sellerwatch api` is; hello is FastAPI's first example on the same
server and event loop, on another port of the same process. The caller keeps CONNECTIONS busy. Every round asks all of
them in turn, so that a busy machine spoils all alike; CPU is the server's own.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import uvloop
from rich.console import Console
from rich.table import Table

CONNECTIONS = 16
TICK = 0.01
"""What the system counts CPU in."""
SELLER = "shop-0150"


@dataclass
class Asked:
    """One endpoint, over the rounds."""

    name: str
    path: str
    rates: list[float] = field(default_factory=list)
    slowest_ms: list[float] = field(default_factory=list)
    cpu_us: list[float] = field(default_factory=list)


async def serve(file: str, sellers: int, identities: int, report: str) -> None:
    """The server's side: everything planted, both applications up, their addresses and a token told on stdout."""
    from datetime import timedelta  # noqa: PLC0415 - the caller needs none of this

    from fastapi import FastAPI  # noqa: PLC0415
    from tests.builders import a_schedule, a_seller, an_execution  # noqa: PLC0415

    from sellerwatch.domain.executions import ExecutionStatus  # noqa: PLC0415
    from sellerwatch.entry import log  # noqa: PLC0415
    from sellerwatch.entry.api.app import api  # noqa: PLC0415
    from sellerwatch.entry.api.server import served  # noqa: PLC0415
    from sellerwatch.entry.api.tokens import Role, issue  # noqa: PLC0415
    from sellerwatch.settings import load  # noqa: PLC0415
    from sellerwatch.wiring import build  # noqa: PLC0415

    settings = load(overrides={"database_url": f"sqlite:///{file}", "api_requests_per_second": 1_000_000})
    house = build(settings)
    log.set_up(house.settings, house.clock)
    house.upgrade()

    def plant(unit) -> None:
        for number in range(sellers):
            seller_id = f"shop-{number:04}"
            unit.sellers.add(a_seller(seller_id))
            unit.schedules.add(a_schedule(seller_id))
            unit.executions.add(an_execution(seller_id, status=ExecutionStatus.COMPLETED))

    await house.store.transact(plant)
    await house.identities.add(f"Mozilla/5.0 (of the bench; {number})" for number in range(identities))
    hello = FastAPI(openapi_url=None)

    @hello.get("/hello")
    async def say_hello() -> dict[str, str]:
        return {"message": "Hello World"}

    token = issue(house.settings, Role.VIEWER, timedelta(hours=1), house.clock, house.chance)
    at = ("127.0.0.1", 0, house.clock, house.chance)
    async with served(api(house), *at) as ours, served(hello, *at) as theirs:
        print(json.dumps({"ours": ours, "theirs": theirs, "token": token}), flush=True)
        with profiled(report):
            await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await house.close()


@contextmanager
def profiled(report: str) -> Iterator[None]:
    if not report:
        yield
        return
    from pyinstrument import Profiler  # noqa: PLC0415 - only here

    with Profiler(async_mode="disabled") as profiler:
        yield
    Path(report).write_text(profiler.output_text(show_all=True, unicode=True), encoding="utf-8")


async def ask(address: str, path: str, token: str, seconds: float) -> tuple[int, list[float]]:
    """How many answers came, and how long each took."""
    host, port = address.removeprefix("http://").split(":")
    request = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    ends = time.perf_counter() + seconds
    took: list[float] = []

    async def keep_asking() -> None:
        reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 22)
        while (began := time.perf_counter()) < ends:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), head[:200]
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
            await reader.readexactly(length)
            took.append(time.perf_counter() - began)
        writer.close()

    await asyncio.gather(*(keep_asking() for _ in range(CONNECTIONS)))
    return len(took), took


def cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(options: argparse.Namespace, report: str) -> list[Asked]:
    asked = [
        Asked("hello (FastAPI's own)", "/hello"),
        Asked("GET /sellers/{id}", f"/api/v1/sellers/{SELLER}"),
        Asked("GET /sellers?size=100", "/api/v1/sellers?size=100"),
        Asked(f"pool of {options.identities}", "/api/v1/user-agents/status"),
        Asked("GET /metrics", "/metrics"),
    ]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "bench.api", "--serve", f"{folder}/bench.db", report]
        command += ["--sellers", str(options.sellers), "--identities", str(options.identities)]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SELLERWATCH_")}
        environment |= {"SELLERWATCH_LOG_FORMAT": "json"}
        with subprocess.Popen(  # noqa: ASYNC220 - begun before anything is measured
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        ) as server:
            assert server.stdout
            told = json.loads(server.stdout.readline())
            for _ in range(options.rounds):
                for each in asked:
                    address = told["theirs"] if each.path == "/hello" else told["ours"]
                    cpu = cpu_of(server.pid)
                    count, took = await ask(address, each.path, told["token"], options.seconds)
                    each.rates.append(count / options.seconds)
                    each.slowest_ms.append(statistics.quantiles(took, n=100)[98] * 1000)
                    each.cpu_us.append(max(cpu_of(server.pid) - cpu, TICK) / count * 1e6)
            assert server.stdin
            server.stdin.close()
    return asked


def show(asked: list[Asked]) -> None:
    table = Table(title=f"{CONNECTIONS} connections, SQLite", title_justify="left")
    table.add_column("", no_wrap=True)
    for name in ("requests/s", "of hello", "p99 ms", "CPU µs", "hello's CPU ÷ its"):
        table.add_column(name, justify="right")
    hello = asked[0]
    for each in asked:
        rate, cpu = statistics.median(each.rates), statistics.median(each.cpu_us)
        # Of the same round, so that what else ran then spoils both.
        ratio = statistics.median(mine / base for mine, base in zip(each.rates, hello.rates, strict=True))
        share = statistics.median(base / mine for mine, base in zip(each.cpu_us, hello.cpu_us, strict=True))
        p99 = statistics.median(each.slowest_ms)
        table.add_row(each.name, f"{rate:,.0f}", f"{ratio:.2f}", f"{p99:.1f}", f"{cpu:.0f}", f"{share:.2f}")
    Console().print(table)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.api", description="What a request of the API costs.")
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sellers", type=int, default=300)
    parser.add_argument("--identities", type=int, default=1000)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--serve", nargs=2, metavar=("FILE", "REPORT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        file, report = options.serve
        uvloop.run(serve(file, options.sellers, options.identities, report))
        return 0
    report = tempfile.mktemp(prefix="sellerwatch-profile-", suffix=".txt") if options.profile else ""
    show(uvloop.run(measure(options, report)))
    if report:
        print(f"profile: {report}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
