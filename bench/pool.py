"""`python -m bench.pool`: what a lease costs in Redis, beside the ceiling of the same run, for pools of several sizes.

--sizes 100 10000 100000    how many identities
--seconds 2                 how long each rate is measured
--memory 2000               how many identities get a full window, to be weighed (0: none)

The ceiling is an EVALSHA that does one HINCRBY: same server, same client, same concurrency. Server time is Redis' own
(INFO commandstats): the mean, and the best of many short stretches, which a busy machine spoils least.
"""

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import uvloop
from redis.asyncio import Redis
from rich.console import Console
from rich.table import Table
from tests.servers import a_redis

from sellerwatch.adapters.chance import SystemChance
from sellerwatch.adapters.redis import RedisPool
from sellerwatch.domain.identities import Identity, SealedToken, Verdict
from sellerwatch.ports.pool import Lease, Limits, Report

CONCURRENCY, STRETCH, FULL = 64, 64, 80
AT_ONCE = 500
MOMENT = datetime(2026, 3, 2, tzinfo=UTC)
OUT_OF_THE_WAY = {
    "min_interval_seconds": 0.0,
    "lease_seconds": 3600.0,
    "concurrency": 1_000_000,
    "site_requests_per_second": 1e9,
    "min_available_percent": 0.0,
}
COUNTED = "return redis.call('HINCRBY', KEYS[1], 'one', 1)"


@dataclass
class Cost:
    """Of many calls: how many, how long they took by the wall, and on the server."""

    calls: int = 0
    seconds: float = 0.0
    server_us: float = 0.0
    best_us: float = float("inf")

    @property
    def rate(self) -> float:
        return self.calls / self.seconds if self.seconds else 0.0

    @property
    def mean_us(self) -> float:
        return self.server_us / self.calls if self.calls else 0.0

    async def of(self, client: Redis, ask: Callable[[], Awaitable[object]], times: int) -> None:
        """So many calls, CONCURRENCY at a time."""
        left = [times]

        async def work() -> None:
            while left[0] > 0:
                left[0] -= 1
                await ask()

        await client.config_resetstat()
        begin = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(min(CONCURRENCY, times))))
        self.seconds += time.perf_counter() - begin
        self.calls += times
        told = (await client.info("commandstats"))["cmdstat_evalsha"]
        self.server_us += told["usec"]
        self.best_us = min(self.best_us, told["usec_per_call"])


async def main(options: argparse.Namespace) -> None:
    console, table = Console(), Table(title=f"leases at concurrency {CONCURRENCY}", title_justify="left")
    for name in (
        "identities",
        "",
        "a second",
        "of ceiling",
        "server us",
        "best us",
        "report/s",
        "of ceiling",
        "best us",
    ):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    with a_redis() as server:
        async with Redis.from_url(server.url, max_connections=CONCURRENCY) as client:
            await ceiling(client, 0.5)
            for size in options.sizes:
                for name in ("fresh", "99 % spent", "all spent"):
                    top = await ceiling(client, options.seconds / 2)
                    lease, report = await measured(client, size, name, options.seconds)
                    table.add_row(
                        f"{size:,}",
                        name,
                        f"{lease.rate:,.0f}",
                        f"{lease.rate / top.rate:.2f}",
                        f"{lease.mean_us:.1f}",
                        f"{lease.best_us:.1f}",
                        f"{report.rate:,.0f}" if report.calls else "",
                        f"{report.rate / top.rate:.2f}" if report.calls else "",
                        f"{report.best_us:.1f}" if report.calls else "",
                    )
            top = await ceiling(client, options.seconds / 2)
            table.caption = f"ceiling: {top.rate:,.0f} a second, server {top.mean_us:.1f} us, best {top.best_us:.1f}"
            console.print(table)
            console.print(await ten(client))
            if options.memory:
                console.print(await weight(client, options.memory))


async def ceiling(client: Redis, seconds: float) -> Cost:
    sha, cost = await client.script_load(COUNTED), Cost()
    while cost.seconds < seconds:
        await cost.of(client, lambda: client.execute_command("EVALSHA", sha, 1, "counted"), STRETCH * 8)
    return cost


async def measured(client: Redis, size: int, name: str, seconds: float) -> tuple[Cost, Cost]:
    await client.flushall()
    pool = RedisPool(client, SystemChance(), Limits(hourly_limit=80 if name == "fresh" else 1, **OUT_OF_THE_WAY))
    await pool.load([an_identity(number) for number in range(1, size + 1)])
    if name != "fresh":
        await spend(pool, size if name == "all spent" else size * 99 // 100)
    out: list[Lease] = []
    lease, report = Cost(), Cost()

    async def one() -> None:
        out.extend((await pool.lease(1)).leases)

    async def told() -> None:
        one = out.pop()
        await pool.report([Report(one.lease_id, one.agent_id, Verdict.SUCCESS)])

    times = min(1024, size) if name == "fresh" else STRETCH
    while lease.seconds < seconds:
        # What was lent is given back, so that the next stretch finds the same pool.
        await lease.of(client, one, times)
        if name == "fresh" and out and report.calls < 20 * size:
            await report.of(client, told, len(out))
        elif out:
            await pool.cancel([(each.lease_id, each.agent_id) for each in out])
            out.clear()
    return lease, report


async def ten(client: Redis) -> str:
    """One call for ten against ten calls for one, by the wall and one after the other."""
    await client.flushall()
    pool = RedisPool(client, SystemChance(), Limits(**OUT_OF_THE_WAY))
    await pool.load([an_identity(number) for number in range(1, 10_001)])
    took = {}
    for count in (1, 10):
        best = float("inf")
        for _ in range(8):
            begin = time.perf_counter()
            for _ in range(50):
                await pool.lease(count)
            best = min(best, (time.perf_counter() - begin) / 50)
        took[count] = best * 1e6
    return f"lease(10): {took[10]:.0f} us by the wall, {took[10] / took[1]:.2f} times lease(1) ({took[1]:.0f} us)"


async def weight(client: Redis, size: int) -> str:
    await client.flushall()
    pool = RedisPool(client, SystemChance(), Limits(hourly_limit=FULL, **OUT_OF_THE_WAY))
    empty = (await client.info("memory"))["used_memory"]
    identities = [an_identity(number) for number in range(1, size + 1)]
    await pool.load(identities)
    for _ in range(FULL):
        await spend(pool, size)
    await client.delete("sellerwatch:{main}:rate", "sellerwatch:{main}:events")
    full = (await client.info("memory"))["used_memory"]
    shown = sum(len(each.user_agent) + len(each.token.sealed) for each in identities if each.token)
    kept = (full - empty) / size
    return f"memory: {kept:.0f} bytes an identity with {FULL} leases, {kept - shown / size:.0f} besides token and User-Agent"


async def spend(pool: RedisPool, many: int) -> None:
    while many > 0:
        leases = (await pool.lease(min(AT_ONCE, many))).leases
        assert leases, "nobody is free"
        await pool.report([Report(each.lease_id, each.agent_id, Verdict.SUCCESS) for each in leases])
        many -= len(leases)


def an_identity(number: int) -> Identity:
    sealed = SealedToken(f"v1.k1.{'A' * 320}", f"{number:064x}", MOMENT, MOMENT)
    name = (
        f"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.{number}.0 Safari/537.36"
    )
    return Identity(number, f"00000000-0000-7000-8000-{number:012x}", name, token=sealed)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.pool", description="What a lease costs in Redis.")
    parser.add_argument("--sizes", nargs="+", type=int, default=[100, 10_000, 100_000])
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--memory", type=int, default=2000)
    uvloop.run(main(parser.parse_args()))
