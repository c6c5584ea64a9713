"""The promises of ports/leading.py: a ledger that begins anew, what it is told, and who lends when nobody may."""

from datetime import timedelta

from contracts.pool_world import (
    HOUR,
    MORNING,
    a_token,
    an_identity,
    ask,
    said,
    standing,
)
from sellerwatch.domain.breakers import Breaker, BreakerScope, BreakerState
from sellerwatch.domain.identities import IdentityStatus
from sellerwatch.domain.recollection import Above, Memory
from sellerwatch.ports.pool import WhyNot


async def anew(world, memories=(), above=None, epoch: int = 2, **limits):
    pool = world.seen_by_another(**limits)
    await world.begin(epoch)
    assert await pool.clear(epoch)
    assert await pool.remember(epoch, list(memories))
    assert await pool.complete(epoch, above or Above())
    await world.lead(epoch)
    return pool


def leased(*seconds_ago: float) -> tuple:
    return tuple(MORNING - timedelta(seconds=each) for each in sorted(seconds_ago, reverse=True))


async def test_what_was_leased_counts(world):
    pool = await anew(world, [Memory(an_identity(1), leased(*range(10, 3010, 1000)))], hourly_limit=3)
    grant = await pool.lease(1)
    assert (grant.why, grant.next_at) == (WhyNot.SPENT, MORNING + timedelta(seconds=HOUR + 30 - 2010))
    world.clock.at = grant.next_at
    assert (await pool.lease(1)).leases


async def test_what_was_leased_a_moment_ago_keeps_its_distance(world):
    pool = await anew(world, [Memory(an_identity(1), leased(0.4))])
    assert (await pool.lease(1)).next_at == MORNING + timedelta(seconds=0.6)


async def test_what_was_leased_by_a_clock_that_is_ahead_counts(world):
    pool = await anew(world, [Memory(an_identity(1), leased(5, -2, -4))], hourly_limit=3)
    assert not (await pool.lease(1)).leases
    assert (await standing(pool, 1)).remaining == 0
    world.clock.go(HOUR + 20)
    assert not (await pool.lease(1)).leases
    world.clock.go(10 + 4)
    assert (await pool.lease(1)).leases


async def test_what_is_left_of_a_budget_follows_from_what_was_leased(world):
    pool = await anew(world, [Memory(an_identity(1), leased(*range(5, 55))), Memory(an_identity(2), ())])
    assert [each.remaining for each in await pool.standings()] == [30, 80]
    assert (await pool.figures()).remaining_requests == 110


async def test_who_is_paused_stays_paused_and_who_rests_rests(world):
    paused = Memory(an_identity(1), (), MORNING + timedelta(hours=2))
    resting = an_identity(2, status=IdentityStatus.SUSPENDED, suspended_at=MORNING, health_score=80, token=None)
    pool = await anew(world, [paused, Memory(resting, ())], min_available_percent=0.0)
    assert (await pool.lease(1)).why is WhyNot.PAUSED
    world.clock.go(HOUR)
    assert await pool.recover_due() == [2]
    assert (await pool.lease(2)).leases[0].agent_id == 2


async def test_breakers_stay_as_they_were(world):
    its = Breaker(BreakerScope.IDENTITY, 3, timedelta(minutes=10), 1, BreakerState.OPEN, 3, MORNING)
    site = Breaker(BreakerScope.SITE, 20, timedelta(minutes=10), None, BreakerState.OPEN, 20, MORNING)
    memories = [Memory(an_identity(1), (), breaker=its), Memory(an_identity(2), ())]
    pool = await anew(world, memories, Above(site=site))
    grant = await pool.lease(1)
    assert (grant.why, grant.next_at) == (WhyNot.CIRCUIT_OPEN, MORNING + timedelta(minutes=10))
    assert (await standing(pool, 1)).breaker.state is BreakerState.OPEN


async def test_the_sites_pause_goes_on(world):
    pool = await anew(world, [Memory(an_identity(1), ())], Above(paused_until=MORNING + timedelta(minutes=7)))
    assert (await pool.lease(1)).next_at == MORNING + timedelta(minutes=7)


async def test_tokens_and_faces_come_along(world):
    pool = await anew(
        world, [Memory(an_identity(1, token=a_token("kept")), ()), Memory(an_identity(2, token=None), ())]
    )
    one, other = (await pool.lease(2)).leases
    assert (one.user_agent, one.token) == ("Browser/1.0", a_token("kept"))
    assert other.token is None


async def test_of_what_was_before_nothing_is_left(world):
    pool = await world.pool(5)
    lease = (await pool.lease(1)).leases[0]
    before = (await pool.standings())[-1].revision
    pool = await anew(world, [Memory(an_identity(9), ())])
    assert await pool.report([said(lease)]) == [False]
    [only] = await pool.standings(before)
    assert only.identity.agent_id == 9
    assert (await pool.figures()).total == 1
    assert [each.agent_id for each in (await pool.lease(3)).leases] == [9]


async def test_who_had_left_before_is_remembered_as_he_is_now(world):
    pool = await world.pool(3, hourly_limit=2)
    await ask(pool, 1)
    await pool.load([an_identity(2), an_identity(3)])
    world.clock.go(10)
    pool = await anew(world, [Memory(an_identity(1, token=a_token("another")), ())], hourly_limit=2)
    assert (await standing(pool, 1)).remaining == 2
    assert (await pool.lease_of(1)).token == a_token("another")


async def test_numbers_of_events_go_on_above_the_old_ones(world):
    pool = await world.pool(2)
    await pool.suspend(1)
    old = (await pool.events())[-1].number
    pool = await anew(world, [Memory(an_identity(each), ()) for each in (1, 2)])
    await pool.suspend(1)
    assert [event.agent_id for event in await pool.events(old)] == [1]


async def test_while_it_begins_nothing_is_lent(world):
    pool = await world.pool(3)
    await world.begin(2)
    assert await pool.clear(2)
    assert await pool.remember(2, [Memory(an_identity(1), ())])
    grant = await pool.lease(1)
    assert (grant.leases, grant.why) == ((), WhyNot.AWAY)
    outlook = await pool.outlook()
    assert (outlook.free, outlook.why) == (0, WhyNot.AWAY)
    assert await pool.capacity(60) == 0
    assert await pool.lease_of(1) is None
    assert (await pool.figures()).why is WhyNot.AWAY


async def test_an_older_epoch_changes_nothing(world):
    pool = await anew(world, [Memory(an_identity(1), ())], epoch=5)
    assert not await pool.clear(4)
    assert not await pool.remember(4, [Memory(an_identity(2), ())])
    assert not await pool.complete(4, Above(paused_until=MORNING + timedelta(hours=1)))
    assert [each.agent_id for each in (await pool.lease(5)).leases] == [1]


async def test_to_remember_twice_is_to_remember_once(world):
    pool = world.seen_by_another()
    await world.begin(2)
    assert await pool.clear(2)
    memories = [Memory(an_identity(1), leased(5, 6, 7))]
    assert await pool.remember(2, memories)
    assert await pool.remember(2, memories)
    assert await pool.complete(2, Above())
    await world.lead(2)
    assert (await standing(pool, 1)).remaining == 77
    assert (await pool.figures()).total == 1


async def test_a_ledger_of_many_is_forgotten_whole(world):
    pool = await world.pool(1203)
    assert (await pool.figures()).total == 1203
    pool = await anew(world, [Memory(an_identity(number), ()) for number in range(2000, 2345)])
    assert (await pool.figures()).total == 345


async def test_who_joins_having_asked_within_the_hour_has_nothing_left(world):
    used = an_identity(1, last_used_at=MORNING - timedelta(minutes=10))
    pool = await world.pool([used, an_identity(2, last_used_at=MORNING - timedelta(hours=2))])
    assert [lease.agent_id for lease in (await pool.lease(2)).leases] == [2]
    world.clock.at = MORNING + timedelta(minutes=50, seconds=30)
    assert {lease.agent_id for lease in (await pool.lease(2)).leases} == {1, 2}
