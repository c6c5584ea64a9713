"""What the pool's contract tests stand on: a clock that is moved by hand, identities, reports, and every engine.

An engine is a function from (where it keeps it, clock, limits) to a Pool; two pools that it opens are one pool seen by
two processes. Limits are those of a test's story; what it is not about is out of the way.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from redis.asyncio import Redis

import servers
from builders import an_id
from sellerwatch.adapters.chance import SeededChance
from sellerwatch.adapters.redis import RedisPool
from sellerwatch.adapters.sql import tables
from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.dialect import engine as opened
from sellerwatch.adapters.sql.dialect import for_dialect
from sellerwatch.adapters.sql.pool import SqlPool
from sellerwatch.adapters.sql.store import SqlStore
from sellerwatch.domain.identities import Identity, SealedToken, Verdict
from sellerwatch.domain.leadership import Engine, Leadership, Phase
from sellerwatch.domain.recollection import Above
from sellerwatch.ports.pool import Lease, Limits, Pool, Report, Standing

MORNING = datetime(2026, 3, 2, 6, 0, tzinfo=UTC)
HOUR = 3600
FOR_EVER = datetime(2100, 1, 1, tzinfo=UTC)


class FakeClock:
    """Stands still until it is moved, or somebody waits."""

    def __init__(self) -> None:
        self.at = MORNING

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return (self.at - MORNING).total_seconds()

    async def sleep(self, seconds: float) -> None:
        self.go(seconds)

    async def within(self, seconds, awaitable):
        return await awaitable

    def go(self, seconds: float) -> datetime:
        self.at += timedelta(seconds=seconds)
        return self.at


@dataclass
class World:
    clock: FakeClock
    engine: Callable[[Limits], Pool]
    database: Database | None = None
    """None: Redis'."""

    @property
    def name(self) -> Engine:
        return Engine.SQL if self.database else Engine.REDIS

    async def begin(self, epoch: int) -> None:
        """As whoever keeps the lead says it."""
        await self._decide(Leadership(epoch, self.name, Phase.BEGINNING, self.clock.now()))

    async def lead(self, epoch: int) -> None:
        await self._decide(Leadership(epoch, self.name, Phase.LEADING))
        if self.name is Engine.REDIS:
            assert await self.seen_by_another().renew(epoch, FOR_EVER)

    async def _decide(self, leadership: Leadership) -> None:
        if self.database:
            await SqlStore(self.database).transact(lambda unit: unit.leaderships.save(leadership))

    async def pool(self, members: int | list[Identity] = 3, **limits: Any) -> Pool:
        pool = self.seen_by_another(**limits)
        await pool.load(identities(members) if isinstance(members, int) else members)
        return pool

    def seen_by_another(self, **limits: Any) -> Pool:
        return self.engine(some_limits(**limits))


def some_limits(**limits: Any) -> Limits:
    return Limits(**{"site_requests_per_second": 1000.0, "concurrency": 1000} | limits)


_seeds = count(1)


def sql(database: Database, clock: FakeClock, limits: Limits) -> Pool:
    return SqlPool(database, clock, SeededChance(next(_seeds)), limits)


def redis(client: Redis, clock: FakeClock, limits: Limits) -> Pool:
    return RedisPool(client, SeededChance(next(_seeds)), limits, now=clock.now)


ENGINES = ("sql", "redis")


@asynccontextmanager
async def a_client(server: servers.Redis) -> AsyncIterator[Redis]:
    """Of an empty Redis that leads."""
    async with Redis.from_url(server.url) as client:
        await client.flushall()
        await begun(redis(client, FakeClock(), some_limits()))
        yield client


async def begun(pool: RedisPool, epoch: int = 1) -> None:
    assert await pool.clear(epoch)
    assert await pool.complete(epoch, Above())
    assert await pool.renew(epoch, FOR_EVER)


@asynccontextmanager
async def afresh(name: str, server: servers.Redis, clock: FakeClock | None = None) -> AsyncIterator[World]:
    """An engine with nothing in it, for tests that begin many times over."""
    clock = clock or FakeClock()
    if name == "redis":
        async with a_client(server) as client:
            yield World(clock, lambda limits: redis(client, clock, limits))
        return
    made = opened("sqlite://")
    with made.begin() as connection:
        held = for_dialect(tables.metadata, "sqlite")
        held.create_all(connection, [held.tables[each] for each in held.tables if each.startswith("pool_")])
    database = Database(made, inline=True)
    yield World(clock, lambda limits: sql(database, clock, limits), database)
    database.close()


@contextmanager
def held(run: Callable[[Any], Any], managed: AbstractAsyncContextManager[World]) -> Iterator[World]:
    """For state machines, which are not async: `run` runs a coroutine to its end."""
    world = run(managed.__aenter__())
    try:
        yield world
    finally:
        run(managed.__aexit__(None, None, None))


def identities(count: int) -> list[Identity]:
    return [an_identity(number) for number in range(1, count + 1)]


def an_identity(agent_id: int, **other: Any) -> Identity:
    """With a token, unless told otherwise."""
    known = {
        "user_agent_id": an_id(agent_id),
        "user_agent": f"Browser/{agent_id}.0",
        "token": a_token(f"token of {agent_id}"),
    }
    return Identity(agent_id, **known | other)


def a_token(
    name: str = "token", *, expires_at: datetime = MORNING + timedelta(hours=6), key: str = "k1"
) -> SealedToken:
    return SealedToken(f"v1.{key}.{'A' * 48}", an_id(name), MORNING, expires_at)


def said(lease: Lease, verdict: Verdict = Verdict.SUCCESS, **other: Any) -> Report:
    return Report(lease.lease_id, lease.agent_id, verdict, **other)


async def standing(pool: Pool, agent_id: int) -> Standing:
    return next(each for each in await pool.standings() if each.identity.agent_id == agent_id)


async def use(pool: Pool, verdict: Verdict = Verdict.SUCCESS, **other: Any) -> int:
    """Lease one, say what became of it, and who it was."""
    grant = await pool.lease(1)
    assert grant.leases, (grant.why, grant.next_at)
    assert await pool.report([said(grant.leases[0], verdict, **other)]) == [True]
    return grant.leases[0].agent_id


async def ask(pool: Pool, agent_id: int, verdict: Verdict = Verdict.SUCCESS, **other: Any) -> None:
    """One request of this identity."""
    lease = await pool.lease_of(agent_id)
    assert lease, f"{agent_id} cannot be leased"
    assert await pool.report([said(lease, verdict, **other)]) == [True]
