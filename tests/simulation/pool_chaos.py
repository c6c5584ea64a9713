"""The pool under fire: 32 workers lease from it while the redis-server that holds it is killed, flushed, paused, cut off.

    PYTHONPATH=tests python -m simulation.pool_chaos --seed 7

A real redis-server, the real LeadingPool, Lead and keeping of books, on a stage where time goes on once everybody who
takes part waits for it. Several processes share the server and the database; the server's clock is not quite theirs.
An oracle stands where the marketplace would: it notes when each request arrives, which is a while after its lease, and
who holds which lease. What it finds wrong is a sentence in `violations`.
"""

import argparse
import asyncio
import heapq
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count, pairwise
from pathlib import Path

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from sellerwatch.adapters.bell import AsyncBell
from sellerwatch.adapters.chance import SeededChance
from sellerwatch.adapters.redis import RedisPool
from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.dialect import engine
from sellerwatch.adapters.sql.pool import SqlPool
from sellerwatch.adapters.sql.schema import upgrade
from sellerwatch.adapters.sql.store import SqlStore
from sellerwatch.domain.errors import Unavailable
from sellerwatch.domain.identities import Verdict
from sellerwatch.domain.leadership import Engine
from sellerwatch.domain.recollection import Budget
from sellerwatch.flows.identities import Identities
from sellerwatch.flows.lead import Lead
from sellerwatch.ports.pool import Lease, Limits, Report, WhyNot
from sellerwatch.ports.store import Usage
from sellerwatch.steps.leading import LeadingPool
from servers import MortalRedis, a_mortal_redis

MORNING = datetime(2026, 3, 2, 6, 0, tzinfo=UTC)
IDENTITIES, PROCESSES, WORKERS = 40, 4, 32
HOUR = 3600.0
LIMITS = Limits(site_requests_per_second=20.0)
SEND_WITHIN_SECONDS, ROUTE_SECONDS = 7.5, 2.0
"""A lease older than that is not sent on; and so long a request is on its way at the most."""
ANSWER_SECONDS = 0.15
"""Of real time: how long a client waits for Redis."""
NOBODYS_PORT = 1
LEADS_AGAIN_WITHIN = 400.0


class Stage:
    """True time, in seconds. Everybody who takes part sleeps here; when all do, it is the earliest one's moment."""

    def __init__(self) -> None:
        self.at = 0.0
        self._parties = 0
        self._asleep: list[tuple[float, int, asyncio.Future[None]]] = []
        self._numbers = count()

    async def sleep(self, seconds: float) -> None:
        # On a grid, so that many wake at one moment and race.
        until = round((self.at + max(seconds, 0.0)) * 4 + 0.5) / 4
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._asleep, (until, next(self._numbers), mine))
        self._go_on()
        await mine

    async def take_part(self, part: Awaitable[None]) -> None:
        try:
            await part
        finally:
            self._parties -= 1
            self._go_on()

    def parts(self, parts: list[Awaitable[None]]) -> list[Awaitable[None]]:
        self._parties += len(parts)
        return [self.take_part(part) for part in parts]

    def _go_on(self) -> None:
        if not self._asleep or len(self._asleep) < self._parties:
            return
        self.at = max(self.at, self._asleep[0][0])
        while self._asleep and self._asleep[0][0] <= self.at:
            heapq.heappop(self._asleep)[2].set_result(None)


@dataclass(frozen=True)
class StageClock:
    stage: Stage
    ahead: float = 0.0

    def now(self) -> datetime:
        return MORNING + timedelta(seconds=self.stage.at + self.ahead)

    def monotonic(self) -> float:
        return self.stage.at

    async def sleep(self, seconds: float) -> None:
        await self.stage.sleep(seconds)

    async def within(self, seconds: float, awaitable):
        return await awaitable


@dataclass
class Held:
    lease: Lease
    at: float
    is_over: bool = False
    """Its holder asks no more with it, whether or not the pool has heard of that."""


@dataclass
class Oracle:
    stage: Stage
    violations: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    arrivals: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    leases: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    held: dict[int, Held] = field(default_factory=dict)
    led: dict[int, Engine] = field(default_factory=dict)
    """Which engine led under which epoch."""

    def lent(self, lease: Lease) -> Held:
        now, before = self.stage.at, self.held.get(lease.agent_id)
        if before and not before.is_over and now < before.at + LIMITS.lease_seconds:
            self.violations.append(f"{lease.agent_id} leased at {now}, and it is out since {before.at}")
        self.counts["leases"] += 1
        self.leases[lease.agent_id].append(now)
        self.held[lease.agent_id] = Held(lease, now)
        return self.held[lease.agent_id]

    def took_back(self, held: Held) -> None:
        """It was never asked with."""
        self.counts["given back"] += 1
        self.leases[held.lease.agent_id].remove(held.at)

    def arrive(self, agent_id: int, seconds: float) -> None:
        self.counts["arrivals"] += 1
        self.arrivals[agent_id].append(self.stage.at + seconds)

    def judge(self) -> None:
        for agent_id, moments in self.arrivals.items():
            moments.sort()
            for first, last in zip(moments, moments[LIMITS.hourly_limit :], strict=False):
                if last - first < HOUR:
                    self.violations.append(f"{agent_id}: 81 arrivals in {last - first:.1f} s, from {first:.1f} on")
        for agent_id, given in self.leases.items():
            for one, other in pairwise(sorted(given)):
                if other - one < LIMITS.min_interval_seconds:
                    self.violations.append(f"{agent_id}: leased at {one} and at {other}")

    @property
    def most(self) -> int:
        """The most arrivals of any identity in any hour."""
        return max(
            (sum(first <= at < first + HOUR for at in its) for its in self.arrivals.values() for first in its),
            default=0,
        )


class Process:
    """What one process has: its own clients, pools and clock."""

    def __init__(self, number: int, stage: Stage, database: Database, server: MortalRedis, seed: int, ahead: float):
        self.number = number
        self.chance = SeededChance(seed * 100 + number)
        self.clock = StageClock(stage)
        self.port = server.now.port
        self.client = Redis.from_url(
            server.now.url,
            socket_timeout=ANSWER_SECONDS,
            socket_connect_timeout=ANSWER_SECONDS,
            retry=Retry(NoBackoff(), 0),
            protocol=2,
        )
        store, bell = SqlStore(database), AsyncBell(self.clock)
        redis_clock = StageClock(stage, ahead)
        self.store = store
        self.redis = RedisPool(self.client, SeededChance(seed * 100 + 50 + number), LIMITS, now=redis_clock.now)
        self.kept = SqlPool(database, self.clock, SeededChance(seed * 100 + 70 + number), LIMITS)
        self.pool = LeadingPool({Engine.SQL: self.kept, Engine.REDIS: self.redis}, store, self.clock)
        reach = timedelta(seconds=LIMITS.window_seconds + LIMITS.guard_seconds)
        second, lease = timedelta(seconds=LIMITS.min_interval_seconds), timedelta(seconds=LIMITS.lease_seconds)
        budget = Budget(LIMITS.hourly_limit, second, reach, lease)
        self.lead = Lead(store, self.kept, self.redis, self.clock, bell, budget)
        self.identities = Identities(store, self.pool, self.clock, bell, LIMITS.hourly_limit, None, self.pool)

    async def cut_off(self) -> None:
        await self._speak_to(NOBODYS_PORT)

    async def join_again(self) -> None:
        await self._speak_to(self.port)

    async def _speak_to(self, port: int) -> None:
        connections = self.client.connection_pool
        connections.connection_kwargs["port"] = port
        for each in [*connections._available_connections, *connections._in_use_connections]:
            each.port = port
        await connections.disconnect()


class Chaos:
    def __init__(self, seed: int, server: MortalRedis, database: Database) -> None:
        self.chance = SeededChance(seed)
        self.stage = Stage()
        self.oracle = Oracle(self.stage)
        self.server = server
        self.database = database
        ahead = (seed % 3 - 1) * 3.0
        self.processes = [Process(number, self.stage, database, server, seed, ahead) for number in range(PROCESSES)]
        self.is_over = False

    async def run(self, faults: list[str] | None = None) -> Oracle:
        store, first = self.processes[0].store, self.processes[0]
        known = await store.read(lambda unit: unit.identities.all())
        await store.transact(
            lambda unit: unit.identities.retire([each.agent_id for each in known[IDENTITIES:]], MORNING)
        )
        await first.lead.run()
        await first.identities.load()
        chosen = faults or self._shuffled(list(FAULTS))
        parts = [self._work(self.processes[number % PROCESSES]) for number in range(WORKERS)]
        for process in self.processes[:2]:
            lead = self._always(3.0, process, lambda process=process: self._lead(process))
            books = self._always(3.0, process, process.identities.keep_books)
            leases = self._always(10.0, process, process.identities.expire_leases)
            parts += [lead, books, leases, self._always(60.0, process, process.identities.recover_due)]
        await asyncio.gather(*self.stage.parts([*parts, self._attack(chosen)]))
        self.oracle.judge()
        for process in self.processes:
            await process.client.aclose()
        return self.oracle

    async def _always(self, seconds: float, process: Process, what: Callable[[], Awaitable[object]]) -> None:
        while not self.is_over:
            with suppress(Unavailable):
                await what()
            await self.stage.sleep(seconds + process.chance.random())

    async def _lead(self, process: Process) -> None:
        await process.lead.run()
        known = await process.store.read(lambda unit: unit.leaderships.get())
        if any(known.leads(each) for each in Engine):
            self.oracle.led[known.epoch] = known.engine

    async def _work(self, process: Process) -> None:
        dice = process.chance.random
        while not self.is_over:
            grant = await process.pool.lease(3 if dice() < 0.3 else 1)
            for each in [self.oracle.lent(lease) for lease in grant.leases]:
                await self._use(process, each)
            if grant.leases:
                await self.stage.sleep(2 * dice())
            else:
                self.oracle.counts[f"none free: {grant.why}"] += 1
                wait = (grant.next_at - process.clock.now()).total_seconds() if grant.next_at else HOUR
                await self.stage.sleep(min(max(wait, 4.0), 45.0) + 2 * dice())

    async def _use(self, process: Process, held: Held) -> None:
        fate, dice = process.chance.random(), process.chance.random
        lease = held.lease
        if fate < 0.03:
            self.oracle.counts["died before sending"] += 1
            return
        if dice() < 0.4:
            await self.stage.sleep(SEND_WITHIN_SECONDS * dice())
        if fate < 0.1 or self.stage.at - held.at > SEND_WITHIN_SECONDS:
            held.is_over = True
            # Whether it was restored nobody knows when the answer is lost.
            self.oracle.took_back(held)
            await process.pool.cancel([(lease.lease_id, lease.agent_id)])
            return
        sent_at, route = process.clock.now(), ROUTE_SECONDS * dice()
        self.oracle.arrive(lease.agent_id, route)
        if fate < 0.13:
            self.oracle.counts["died after sending"] += 1
            return
        await self.stage.sleep(route)
        if dice() < 0.5:
            await self._log(process, lease, sent_at)
            await self._report(process, held)
        else:
            await self._report(process, held)
            await self._log(process, lease, sent_at)

    async def _report(self, process: Process, held: Held) -> None:
        held.is_over = True
        verdict = Verdict.RATE_LIMITED if process.chance.random() < 0.001 else Verdict.SUCCESS
        await process.pool.report([Report(held.lease.lease_id, held.lease.agent_id, verdict)])

    async def _log(self, process: Process, lease: Lease, sent_at: datetime) -> None:
        usage = Usage(lease.agent_id, "/", sent_at, http_status=200, duration_ms=1, is_success=True)
        await process.store.transact(lambda unit: unit.chores.log_usage([usage]))

    # What befalls it, one thing after the other; in between it must come to itself.

    async def _attack(self, faults: list[str]) -> None:
        await self._comes_to_itself("the beginning")
        for name in faults:
            await self.stage.sleep(120 + 400 * self.chance.random())
            await FAULTS[name](self)
            self.oracle.counts[name] += 1
            await self._comes_to_itself(name)
        self.is_over = True

    async def _comes_to_itself(self, after: str) -> None:
        """Redis leads again, somebody is lent, and no lease is past its deadline for longer than the sweep's period."""
        begin, store = self.stage.at, self.processes[0].store
        while not (await store.read(lambda unit: unit.leaderships.get())).leads(Engine.REDIS):
            if self.stage.at - begin > LEADS_AGAIN_WITHIN:
                self.oracle.violations.append(f"after {after} Redis does not lead again")
                break
            await self.stage.sleep(3)
        await self.stage.sleep(15)
        given = self.oracle.counts["leases"]
        while self.oracle.counts["leases"] == given:
            if self.stage.at - begin > HOUR + LIMITS.guard_seconds + LEADS_AGAIN_WITHIN:
                self.oracle.violations.append(f"after {after} nobody is lent")
                break
            await self.stage.sleep(5)
        pool, now = self.processes[0].redis, self.processes[0].clock.now()
        with suppress(Unavailable):
            for each in await pool.standings():
                if each.leased_until and each.leased_until < now - timedelta(seconds=15):
                    self.oracle.violations.append(f"after {after} the lease of {each.identity.agent_id} is lost")

    async def _database_leads(self, after: str) -> None:
        known = await self.processes[0].store.read(lambda unit: unit.leaderships.get())
        if not known.leads(Engine.SQL):
            self.oracle.violations.append(f"{after}: the database has not taken over ({known.phase} {known.engine})")

    async def killed(self) -> None:
        self.server.kill()
        await self.stage.sleep(70)
        await self._database_leads("killed")
        await self.stage.sleep(100)
        self.server.start()

    async def restarted_empty(self) -> None:
        self.server.kill()
        self.server.start()

    async def restarted_with_what_it_had_saved(self) -> None:
        self.server.now.say("SAVE")
        await self.stage.sleep(40)
        self.server.kill()
        self.server.start(empty=False)

    async def flushed(self) -> None:
        self.server.now.say("FLUSHALL")

    async def paused_for_a_moment(self) -> None:
        self.server.pause()
        await self.stage.sleep(6)
        self.server.go_on()

    async def paused_for_long(self) -> None:
        self.server.pause()
        await self.stage.sleep(70)
        self.server.go_on()
        await self._database_leads("paused")

    async def unreachable(self) -> None:
        for process in self.processes:
            await process.cut_off()
        await self.stage.sleep(90)
        await self._database_leads("unreachable")
        for process in self.processes:
            await process.join_again()

    async def unreachable_to_one(self) -> None:
        alone = self.processes[-1]
        await alone.cut_off()
        await self.stage.sleep(60)
        if (await alone.pool.lease(1)).why is not WhyNot.AWAY:
            self.oracle.violations.append("who alone can't reach Redis does not wait")
        await alone.join_again()

    async def evicting(self) -> None:
        self.server.now.say("CONFIG", "SET", "maxmemory-policy", "allkeys-random")
        self.server.now.say("CONFIG", "SET", "maxmemory", "1mb")
        await self.stage.sleep(10)
        self.server.now.say("CONFIG", "SET", "maxmemory", "0")

    async def windows_lost(self) -> None:
        for number in range(1, 4):
            self.server.now.say("DEL", f"sellerwatch:{{main}}:agent:{number}:window")

    def _shuffled(self, names: list[str]) -> list[str]:
        return sorted(names, key=lambda _: self.chance.random())


FAULTS: dict[str, Callable[[Chaos], Awaitable[None]]] = {
    each.__name__.replace("_", " "): each
    for each in (
        *(Chaos.killed, Chaos.restarted_empty, Chaos.restarted_with_what_it_had_saved, Chaos.flushed),
        *(Chaos.paused_for_a_moment, Chaos.paused_for_long, Chaos.unreachable, Chaos.unreachable_to_one),
        *(Chaos.evicting, Chaos.windows_lost),
    )
}


def under_fire(seed: int, faults: list[str] | None = None) -> tuple[Oracle, float]:
    """What the oracle saw, and how many seconds it saw."""
    with tempfile.TemporaryDirectory(prefix="sellerwatch-chaos-") as folder, a_mortal_redis() as server:
        made = engine(f"sqlite:///{Path(folder) / 'chaos.db'}")
        upgrade(made, now=MORNING)
        database = Database(made, inline=True)
        chaos = Chaos(seed, server, database)
        try:
            oracle = asyncio.run(chaos.run(faults))
        finally:
            database.close()
    return oracle, chaos.stage.at


def told(seed: int, oracle: Oracle, seconds: float) -> str:
    led = [oracle.led[epoch] for epoch in sorted(oracle.led)]
    switches = sum(one is not other for one, other in pairwise(led))
    counts = ", ".join(f"{name} {number}" for name, number in oracle.counts.items())
    return (
        f"seed {seed}: {seconds / HOUR:.1f} h, {counts}\n"
        f"  epochs {len(led)}, switches of the engine {switches}, most arrivals of an identity in any hour {oracle.most}, "
        f"violations {len(oracle.violations)}" + "".join(f"\n  ! {each}" for each in oracle.violations)
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m simulation.pool_chaos", description="The pool under fire.")
    parser.add_argument("--seed", type=int, nargs="+", default=[1])
    parser.add_argument("--faults", nargs="+", choices=list(FAULTS))
    options = parser.parse_args()
    failed = False
    for each in options.seed:
        seen, lasted = under_fire(each, options.faults)
        sys.stdout.write(told(each, seen, lasted) + "\n")
        sys.stdout.flush()
        failed = failed or bool(seen.violations)
    raise SystemExit(failed)
