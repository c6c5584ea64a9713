"""`python -m bench.pool`: what a lease costs in Redis, beside the ceiling of the same run, for pools of several sizes.

--sizes 100 1000 10000 100000    how many identities
--seconds 2                      how long each rate is measured
--memory 2000                    how many identities get a full window, to be weighed (0: none)
--limits-to 10000                up to which size the moving window of the library `limits` is measured beside it

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
from limits import RateLimitItemPerHour
from limits.aio.storage import RedisStorage
from limits.aio.strategies import MovingWindowRateLimiter
from redis.asyncio import Redis
from rich.console import Console
from rich.table import Table
from tests.servers import a_redis

from sellerwatch.adapters.chance import SystemChance
from sellerwatch.adapters.redis import RedisPool
from sellerwatch.domain.identities import Identity, SealedToken, Verdict
from sellerwatch.domain.recollection import Above
from sellerwatch.ports.pool import Lease, Limits, Report

CONCURRENCY, STRETCH, FULL = 64, 64, 80
AT_ONCE = 500
LIMITS_TRIES = 2048
PATIENT = {"socket_timeout": 600, "socket_connect_timeout": 600}
"""The machine may be busy with something else."""
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

    def least(self, other: "Cost") -> "Cost":
        return self if self.best_us <= other.best_us else other

    async def of(
        self, client: Redis, ask: Callable[[], Awaitable[object]], times: int, at_once: int = CONCURRENCY
    ) -> None:
        """So many calls, some at a time."""
        left = [times]

        async def work() -> None:
            while left[0] > 0:
                left[0] -= 1
                await ask()

        await client.config_resetstat()
        begin = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(min(at_once, times))))
        self.seconds += time.perf_counter() - begin
        self.calls += times
        told = (await client.info("commandstats"))["cmdstat_evalsha"]
        self.server_us += told["usec"]
        self.best_us = min(self.best_us, told["usec_per_call"])


async def main(options: argparse.Namespace) -> None:
    console = Console(width=150)
    table = Table(title=f"at concurrency {CONCURRENCY}", title_justify="left", caption_justify="left")
    for name in ("identities", "", "lease/s", "of top", "server us", "best us", "of 100's"):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    for name in ("report/s", "of top", "server us", "best us"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("moving window", justify="right", no_wrap=True)
    with a_redis() as server:
        async with Redis.from_url(server.url, max_connections=CONCURRENCY, **PATIENT) as client:
            top, best_of_first = Cost(), dict.fromkeys(("fresh", "99 % spent", "all spent"), 0.0)
            for size in options.sizes:
                for name, of_first in best_of_first.items():
                    costs = await measured(client, size, name, options.seconds)
                    top = costs.top.least(top)
                    best_of_first[name] = of_first or costs.lease.best_us
                    other = await by_limits(client, server.url, size, name) if size <= options.limits_to else ""
                    table.add_row(*row(size, name, costs, best_of_first[name]), other)
            table.caption = f"top: an EVALSHA of one HINCRBY; best {top.best_us:.1f} us on the server"
            console.print(table)
            console.print(await ten(client))
            if options.memory:
                console.print(await weight(client, options.memory))


def row(size: int, name: str, costs: "Costs", of_first: float) -> list[str]:
    lease, report = costs.lease, costs.report
    cells = [f"{size:,}", name, f"{lease.rate:,.0f}", f"{lease.rate / costs.top.rate:.2f}"]
    cells += [f"{lease.mean_us:.1f}", f"{lease.best_us:.1f}", f"{lease.best_us / of_first:.2f}"]
    if not report.calls:
        return [*cells, "", "", "", ""]
    return [
        *cells,
        *(
            f"{report.rate:,.0f}",
            f"{report.rate / costs.top.rate:.2f}",
            f"{report.mean_us:.1f}",
            f"{report.best_us:.1f}",
        ),
    ]


@dataclass
class Costs:
    """Of one pool, and of the ceiling in turns with it: what loads the machine loads them alike."""

    top: Cost
    lease: Cost
    report: Cost


async def measured(client: Redis, size: int, name: str, seconds: float) -> Costs:
    await client.flushall()
    pool = RedisPool(client, SystemChance(), Limits(hourly_limit=80 if name == "fresh" else 1, **OUT_OF_THE_WAY))
    await leads(pool)
    await pool.load([an_identity(number) for number in range(1, size + 1)])
    if name != "fresh":
        await spend(pool, size if name == "all spent" else size * 99 // 100)
    out: list[Lease] = []
    costs = Costs(Cost(), Cost(), Cost())
    sha = await client.script_load(COUNTED)

    async def ceiling() -> None:
        await client.execute_command("EVALSHA", sha, 1, "counted")

    async def one() -> None:
        out.extend((await pool.lease(1)).leases)

    async def told() -> None:
        lease = out.pop()
        await pool.report([Report(lease.lease_id, lease.agent_id, Verdict.SUCCESS)])

    times = min(1024, size) if name == "fresh" else STRETCH
    while costs.lease.seconds < seconds:
        await costs.top.of(client, ceiling, times)
        # What was lent is given back, so that the next stretch finds the same pool.
        await costs.lease.of(client, one, times)
        if name == "fresh" and out and costs.report.calls < 20 * size:
            await costs.report.of(client, told, len(out))
        elif out:
            await pool.cancel([(each.lease_id, each.agent_id) for each in out])
            out.clear()
    return costs


async def leads(pool: RedisPool) -> None:
    assert await pool.clear(1)
    assert await pool.complete(1, Above())
    assert await pool.renew(1, datetime(2100, 1, 1, tzinfo=UTC))


async def by_limits(client: Redis, url: str, size: int, name: str) -> str:
    """The moving window of the library `limits`, one for each identity: who has budget is found by trying at random."""
    await client.flushall()
    limiter = MovingWindowRateLimiter(RedisStorage(f"async+{url}", implementation="redispy", **PATIENT))
    budget = RateLimitItemPerHour(80 if name == "fresh" else 1)
    for begin in range(0, {"fresh": 0, "99 % spent": size * 99 // 100}.get(name, size), CONCURRENCY):
        await asyncio.gather(*(limiter.hit(budget, str(number)) for number in range(begin, begin + CONCURRENCY)))
    chance, cost, found = SystemChance(), Cost(), [0]

    async def attempt() -> None:
        is_hit = await limiter.hit(budget, str(int(chance.random() * size)))
        found[0] += is_hit

    await cost.of(client, attempt, LIMITS_TRIES)
    if not found[0]:
        return f"{cost.mean_us:.1f} us a try, none found"
    return f"{cost.mean_us:.1f} us a try, {cost.server_us / found[0]:,.0f} us a lease"


async def ten(client: Redis) -> str:
    """One call for ten against calls for one, one after the other: by the wall and on the server."""
    await client.flushall()
    pool = RedisPool(client, SystemChance(), Limits(**OUT_OF_THE_WAY))
    await leads(pool)
    await pool.load([an_identity(number) for number in range(1, 10_001)])
    took: dict[int, Cost] = {}
    for count in (1, 10):
        cost = took[count] = Cost()
        for _ in range(16):
            await cost.of(client, lambda count=count: pool.lease(count), 25, at_once=1)
    one, many = took[1], took[10]
    return (
        f"lease(10): {many.best_us:.0f} us on the server, {many.best_us / one.best_us:.2f} times lease(1) "
        f"({one.best_us:.1f} us); by the wall {many.seconds / one.seconds:.2f} times"
    )


async def weight(client: Redis, size: int) -> str:
    await client.flushall()
    pool = RedisPool(client, SystemChance(), Limits(hourly_limit=FULL, **OUT_OF_THE_WAY))
    await leads(pool)
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
    parser.add_argument("--sizes", nargs="+", type=int, default=[100, 1000, 10_000, 100_000])
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--limits-to", type=int, default=10_000)
    parser.add_argument("--memory", type=int, default=2000)
    uvloop.run(main(parser.parse_args()))
