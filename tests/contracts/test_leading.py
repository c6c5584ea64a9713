"""The pool that everybody uses, on both engines at once: who lends when, and what Lead makes of what befalls Redis."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from redis.asyncio import Redis

import servers
from contracts.pool_world import MORNING, FakeClock, ask, redis, said, some_limits, sql, standing
from sellerwatch.adapters.bell import AsyncBell
from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.store import SqlStore
from sellerwatch.domain.errors import Unavailable
from sellerwatch.domain.identities import IdentityStatus, Verdict
from sellerwatch.domain.leadership import Engine, LeadRules, Phase, Step
from sellerwatch.domain.recollection import Bucket, Budget
from sellerwatch.flows.identities import Identities
from sellerwatch.flows.lead import Lead
from sellerwatch.ports.pool import WhyNot
from sellerwatch.ports.store import Usage
from sellerwatch.steps.leading import LeadingPool

LIMITS = some_limits()
REACH = timedelta(seconds=LIMITS.window_seconds + LIMITS.guard_seconds)
BUDGET = Budget(LIMITS.hourly_limit, timedelta(seconds=1), REACH, timedelta(seconds=LIMITS.lease_seconds))
RULES = LeadRules(grace=timedelta(seconds=35))
MEMBERS = 5


class Two:
    """A process with both engines."""

    def __init__(self, database: Database, client: Redis, clock: FakeClock) -> None:
        self.clock, self.client = clock, client
        self.store = SqlStore(database)
        self.kept, self.redis = sql(database, clock, LIMITS), redis(client, clock, LIMITS)
        self.pool = LeadingPool({Engine.SQL: self.kept, Engine.REDIS: self.redis}, self.store, clock)
        bell = AsyncBell(clock)
        self.lead = Lead(self.store, self.kept, self.redis, clock, bell, BUDGET, RULES)
        self.identities = Identities(self.store, self.pool, clock, bell, LIMITS.hourly_limit, None, self.pool)

    async def steps(self, seconds: float, *, books: bool = True) -> list[Step]:
        """What Lead does for so long, looking each three seconds."""
        done = []
        for _ in range(int(seconds / 3)):
            self.clock.go(3)
            done.append((await self.lead.run()).step)
            if books:
                try:
                    await self.identities.keep_books()
                except Unavailable:
                    continue
        return [step for step in done if step not in {Step.NOTHING, Step.RENEW}]

    async def who(self) -> Engine | None:
        known = await self.store.read(lambda unit: unit.leaderships.get())
        return known.engine if known.phase is Phase.LEADING else None

    async def alerts(self) -> set[str]:
        now = self.clock.now()
        return {name for name, *_ in await self.store.read(lambda unit: unit.chores.alerts_to_tell(now, 3600))}

    async def log(self, agent_id: int) -> None:
        usage = Usage(agent_id, "/", self.clock.now(), http_status=200, is_success=True)
        await self.store.transact(lambda unit: unit.chores.log_usage([usage]))


@asynccontextmanager
async def two(database: Database, server: servers.Redis, *, is_empty: bool = True) -> AsyncIterator[Two]:
    clock = FakeClock()
    async with Redis.from_url(server.url) as client:
        await client.flushall()
        here = Two(database, client, clock)
        known = await here.store.read(lambda unit: unit.identities.all())
        gone = [each.agent_id for each in known[MEMBERS:]]
        await here.store.transact(lambda unit: unit.identities.retire(gone, MORNING))
        assert (await here.lead.run()).step is Step.BEGIN_REDIS
        await here.identities.load()
        await here.identities.keep_books()
        yield here


@pytest.fixture
async def here(database: Database, redis_server: servers.Redis) -> AsyncIterator[Two]:
    async with two(database, redis_server) as found:
        yield found


async def test_lesson_30_a_flushed_redis_is_given_up_begins_anew_and_knows_what_the_record_knows(here: Two):
    for _ in range(3):
        await ask(here.pool, 1)
        await here.log(1)
        here.clock.go(2)
    await here.steps(3)
    await here.client.flushall()
    assert (await here.pool.lease(1)).why is WhyNot.AWAY
    assert await here.steps(60) == [Step.GIVE_UP, Step.BEGIN_REDIS]
    assert (await here.who(), len((await here.pool.lease(9)).leases)) == (Engine.REDIS, MEMBERS)
    # What the log has, and the few seconds of which nobody kept books.
    assert 70 <= (await standing(here.redis, 1)).remaining <= 76


async def test_nothing_is_lent_by_anybody_until_the_grace_after_a_lead_is_over(here: Two):
    await here.client.flushall()
    await here.lead.run()
    begun = here.clock.at
    while (await here.pool.lease(1)).why is WhyNot.AWAY:
        here.clock.go(1)
        await here.lead.run()
    assert here.clock.at - begun >= RULES.grace


async def test_the_database_takes_over_from_a_redis_that_is_away_and_hands_back(
    database: Database,
):
    with servers.a_mortal_redis() as server:
        async with two(database, server.now) as here:
            await ask(here.pool, 2)
            await here.log(2)
            await here.steps(6)
            server.kill()
            assert await here.steps(60) == [Step.BEGIN_SQL]
            assert await here.alerts() == {"pool_engine"}
            assert (await here.who(), len((await here.pool.lease(9)).leases)) == (Engine.SQL, MEMBERS)
            before = await standing(here.kept, 2)
            server.start()
            assert await here.steps(66) == [Step.HAND_OVER, Step.BEGIN_REDIS]
            await here.pool.look()
            assert (await here.who(), await here.alerts()) == (Engine.REDIS, set())
            # Exactly what the database knew.
            assert (await standing(here.redis, 2)).remaining == before.remaining


async def test_once_redis_is_wanted_no_more_the_database_takes_over(here: Two, database: Database):
    await ask(here.pool, 1)
    await here.log(1)
    await here.steps(3)
    without = Two(database, here.client, here.clock)
    without.lead.elsewhere = None
    await without.kept.load(await without.store.read(lambda unit: unit.identities.all()))
    assert (await without.kept.lease(1)).why is WhyNot.AWAY
    assert Step.BEGIN_SQL in await without.steps(60)
    assert [lease.agent_id for lease in (await without.kept.lease(MEMBERS)).leases] == [2, 3, 4, 5, 1]


async def test_a_process_that_starts_while_redis_holds_nothing_takes_nothing_for_spent(here: Two, database: Database):
    """It would join them all anew, each with the last hour spent, and tell the record so."""
    for agent_id in range(1, MEMBERS + 1):
        await ask(here.pool, agent_id)
        await here.log(agent_id)
        await here.identities.keep_books()
    await here.client.flushall()
    fresh = Two(database, here.client, here.clock)
    assert (await fresh.lead.run()).step is Step.GIVE_UP
    with pytest.raises(Unavailable):
        await fresh.identities.load()
    assert (await fresh.identities.keep_books()).written == 0
    figures = await fresh.pool.figures()
    assert (figures.total, figures.why) == (MEMBERS, WhyNot.AWAY)
    assert await fresh.steps(60) == [Step.BEGIN_REDIS]
    assert len((await here.pool.lease(9)).leases) == MEMBERS
    assert min(each.remaining for each in await here.redis.standings()) >= 70


@pytest.mark.parametrize("unheard", ["standings", "events"])
async def test_books_that_could_not_be_read_to_their_end_are_none(here: Two, unheard: str):
    await here.identities.keep_books()
    before = await here.store.read(lambda unit: unit.leaderships.get())
    here.clock.go(3)
    read = getattr(here.redis, unheard)

    async def away(*_: object):
        raise Unavailable("away for a moment")

    setattr(here.redis, unheard, away)
    assert (await here.identities.keep_books()).written == 0
    assert (await here.store.read(lambda unit: unit.leaderships.get())).books_at == before.books_at
    setattr(here.redis, unheard, read)
    await here.identities.keep_books()
    assert (await here.store.read(lambda unit: unit.leaderships.get())).books_at == here.clock.at


async def test_the_books_say_no_more_than_was_so_before_they_were_read(here: Two):
    """What is logged after the pool was asked must not stand for what it knew to be spent."""
    await ask(here.pool, 1)
    here.clock.go(2)
    began, standings = here.clock.at, here.pool.standings

    async def slowly(*asked):
        found = await standings(*asked)
        here.clock.go(1)
        await ask(here.pool, 1)
        await here.log(1)
        here.clock.go(1)
        return found

    here.identities.pool = SlowPool(here.pool, slowly)
    await here.identities.keep_books()
    traces = await here.store.read(lambda unit: unit.leaderships.traces([1], MORNING, MORNING))
    assert traces[1].bucket == Bucket(1, began)


class SlowPool:
    """Takes its time to show who is in it."""

    def __init__(self, pool, standings) -> None:
        self.events, self.standings, self.forget_events = pool.events, standings, pool.forget_events


async def test_a_while_of_which_no_books_were_kept_is_spent(here: Two):
    for _ in range(30):
        here.clock.go(3)
        await here.lead.run()
    await here.client.flushall()
    await here.steps(60, books=False)
    assert (await here.who(), (await here.pool.lease(1)).why) == (Engine.REDIS, WhyNot.SPENT)


async def test_who_alone_cannot_reach_the_leader_waits(here: Two, database: Database):
    with servers.a_redis() as nobody:
        pass
    async with Redis.from_url(nobody.url) as client:
        alone = Two(database, client, here.clock)
        grant = await alone.pool.lease(1)
        assert (grant.leases, grant.why, grant.next_at) == ((), WhyNot.AWAY, here.clock.at + timedelta(seconds=1))
        assert (await alone.pool.outlook()).why is WhyNot.AWAY
        assert await alone.pool.capacity(60) == 0
        figures = await alone.pool.figures()
        assert (figures.total, figures.why) == (MEMBERS, WhyNot.AWAY)
    assert (await here.pool.lease(1)).leases


@pytest.mark.parametrize("verb", ["clear", "remember", "complete", "renew"])
async def test_a_begin_that_breaks_off_anywhere_is_begun_again_under_a_new_epoch(
    here: Two, database: Database, verb: str
):
    class Breaks(Exception):
        """What a crash is."""

    async def breaks(*_: object) -> bool:
        raise Breaks

    await here.client.flushall()
    await here.steps(48)
    crashing = Two(database, here.client, here.clock)
    setattr(crashing.redis, verb, breaks)
    here.clock.go(60)
    await here.client.flushall()
    with pytest.raises(Breaks):
        await crashing.lead.run()
    assert (await here.pool.lease(1)).why is WhyNot.AWAY
    before = await here.store.read(lambda unit: unit.leaderships.get())
    await here.steps(120)
    after = await here.store.read(lambda unit: unit.leaderships.get())
    assert (after.leads(Engine.REDIS), after.epoch > before.epoch or verb == "renew") == (True, True)
    assert len((await here.pool.lease(9)).leases) == MEMBERS


async def test_who_was_held_up_while_beginning_finds_that_it_was_overtaken(here: Two, database: Database):
    await here.client.flushall()
    await here.lead.run()
    here.clock.go(40)
    slow = Two(database, here.client, here.clock)
    remember = slow.redis.remember

    async def held_up(epoch, memories):
        here.clock.go(70)
        assert (await here.lead.run()).step is Step.BEGIN_REDIS
        return await remember(epoch, memories)

    slow.redis.remember = held_up
    await slow.lead.run()
    known = await here.store.read(lambda unit: unit.leaderships.get())
    assert (known.leads(Engine.REDIS), known.epoch) == (True, 3)
    assert len((await here.pool.lease(9)).leases) == MEMBERS


async def test_what_becomes_of_a_lease_is_told_to_the_engine_that_gave_it(here: Two):
    lease = (await here.pool.lease(1)).leases[0]
    await here.store.transact(lambda unit: unit.leaderships.save(_ending(unit.leaderships.get())))
    await here.pool.look()
    assert await here.pool.report([said(lease)]) == [True]
    assert (await standing(here.redis, lease.agent_id)).leased_until is None


async def test_a_429_told_to_a_ledger_that_was_given_up_suspends_under_the_next(here: Two):
    lease = (await here.pool.lease(1)).leases[0]
    await here.redis.resign()
    assert await here.pool.report([said(lease, Verdict.RATE_LIMITED)]) == [False]
    assert await here.steps(60) == [Step.GIVE_UP, Step.BEGIN_REDIS]
    assert lease.agent_id not in {each.agent_id for each in (await here.pool.lease(9)).leases}
    assert (await standing(here.redis, lease.agent_id)).identity.status is IdentityStatus.SUSPENDED


def _ending(known):
    known.phase, known.until = Phase.ENDING, MORNING
    return known


async def test_a_429_that_nobody_could_be_told_of_suspends_as_soon_as_somebody_can(database: Database):
    with servers.a_mortal_redis() as server:
        async with two(database, server.now) as here:
            lease = (await here.pool.lease(1)).leases[0]
            server.kill()
            plea = said(lease, Verdict.RATE_LIMITED, retry_after=timedelta(hours=2))
            assert await here.pool.report([plea]) == [False]
            asked_at = here.clock.at
            assert here.clock.at >= lease.deadline - timedelta(seconds=1)
            await here.steps(60)
            assert await here.who() is Engine.SQL
            await here.pool.lease(1)
            its = await standing(here.kept, lease.agent_id)
            assert (its.identity.status, its.identity.token) == (IdentityStatus.SUSPENDED, None)
            assert its.paused_until == asked_at + timedelta(hours=2)
