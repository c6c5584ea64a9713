"""The promises of ports/pool.py about members, figures, standings and events."""

from datetime import timedelta

from contracts.pool_world import (
    HOUR,
    MORNING,
    a_token,
    an_identity,
    ask,
    identities,
    said,
    standing,
    use,
)
from sellerwatch.domain.identities import IdentityStatus, Verdict

# load


async def test_new_members_come_as_they_are(world):
    resting = an_identity(
        3, status=IdentityStatus.SUSPENDED, suspended_at=MORNING - timedelta(minutes=59), health_score=80
    )
    blocked = an_identity(4, status=IdentityStatus.BLOCKED, is_blocked_by_hand=True)
    pool = await world.pool([an_identity(1), an_identity(2, health_score=44, usage_count=7), resting, blocked])
    figures = await pool.figures()
    assert (figures.total, figures.available, figures.suspended, figures.blocked) == (4, 2, 1, 1)
    assert (await standing(pool, 2)).identity.usage_count == 7
    world.clock.go(60)
    assert await pool.recover_due() == [3]


async def test_known_members_keep_what_the_pool_knows_but_take_their_user_agent(world):
    pool = await world.pool(2)
    await ask(pool, 1, Verdict.SITE_FAILURE)
    await pool.load([an_identity(1, user_agent_id="x" * 36, health_score=1), an_identity(2)])
    one = await standing(pool, 1)
    assert (one.identity.health_score, one.identity.user_agent_id) == (90, "x" * 36)
    assert one.identity.failure_count == 1
    assert await pool.lease_of(1) is None


async def test_those_no_longer_there_leave_when_their_lease_ends(world):
    pool = await world.pool(3)
    lease = await pool.lease_of(1)
    await pool.load([an_identity(3)])
    assert (await pool.figures()).total == 1
    assert await pool.report([said(lease)]) == [True]
    world.clock.go(5)
    assert [each.agent_id for each in (await pool.lease(9)).leases] == [3]
    assert await pool.lease_of(1) is None


async def test_who_comes_back_within_the_hour_has_not_forgotten_what_it_spent(world):
    pool = await world.pool(2, hourly_limit=1)
    await ask(pool, 1)
    await pool.load([an_identity(2)])
    await pool.load(identities(2))
    assert [each.agent_id for each in (await pool.lease(2)).leases] == [2]
    world.clock.go(HOUR + 30)
    assert await pool.lease_of(1)


async def test_loading_twice_changes_nothing(world):
    pool = await world.pool(3)
    await use(pool)
    await pool.lease_of(2)
    await pool.suspend(3)
    before = await pool.standings(), await pool.events()
    await pool.load(identities(3))
    assert (await pool.standings(), await pool.events()) == before


async def test_a_member_that_is_to_leave_and_stays_after_all_stays(world):
    pool = await world.pool(2)
    lease = await pool.lease_of(1)
    await pool.load([an_identity(2)])
    await pool.load(identities(2))
    await pool.report([said(lease)])
    world.clock.go(1)
    assert (await pool.figures()).total == 2
    assert await pool.lease_of(1)


# figures


async def test_the_figures_are_what_an_operator_sees(world):
    pool = await world.pool(
        [an_identity(1, health_score=40), an_identity(2, health_score=90), an_identity(3), an_identity(4)],
        hourly_limit=10,
    )
    await pool.suspend(3)
    await pool.block(4)
    await pool.lease(1)
    figures = await pool.figures()
    assert (figures.total, figures.available, figures.suspended, figures.blocked, figures.leased) == (4, 2, 1, 1, 1)
    assert (figures.health_min, figures.health_avg, figures.health_max) == (40, 82.5, 100)
    assert (figures.remaining_requests, figures.available_rate) == (19, 50.0)
    assert (figures.next_available_at, figures.why) == (MORNING, None)


async def test_what_remains_in_a_large_pool_is_judged_by_some_of_it(world):
    bare = [an_identity(number, token=None) for number in range(301, 401)]
    pool = await world.pool([*identities(300), *bare])
    assert (await pool.figures()).remaining_requests == 400 * 80


async def test_what_remains_comes_back_with_the_window(world):
    pool = await world.pool(1, hourly_limit=10)
    for _ in range(3):
        await use(pool)
        world.clock.go(10)
    assert ((await pool.figures()).remaining_requests, (await standing(pool, 1)).remaining) == (7, 7)
    world.clock.go(HOUR)
    assert ((await pool.figures()).remaining_requests, (await standing(pool, 1)).remaining) == (8, 8)


# standings


async def test_a_revision_grows_with_every_change_and_standings_come_in_its_order(world):
    pool = await world.pool(3)
    seen = max(each.revision for each in await pool.standings())
    await ask(pool, 3)
    await ask(pool, 1, Verdict.RATE_LIMITED)
    changed = await pool.standings(seen)
    assert [each.identity.agent_id for each in changed] == [3, 1]
    assert [each.identity.agent_id for each in await pool.standings(seen, 1)] == [3]
    assert await pool.standings(changed[-1].revision) == []


async def test_a_standing_is_the_identity_as_the_pool_knows_it(world):
    pool = await world.pool(1)
    lease = await pool.lease_of(1)
    one = await standing(pool, 1)
    assert (one.identity.user_agent, one.identity.token) == ("Browser/1.0", a_token("token of 1"))
    assert (one.leased_until, one.next_free_at) == (lease.deadline, MORNING + timedelta(seconds=1))
    assert (one.remaining, one.paused_until) == (79, None)


# events


async def test_events_are_kept_in_order_until_they_are_forgotten(world):
    pool = await world.pool(3, min_available_percent=0)
    for agent_id in (1, 2, 3):
        await pool.suspend(agent_id)
    numbers = [event.number for event in await pool.events()]
    assert numbers == sorted(numbers)
    assert len(await pool.events(count=2)) == 2
    await pool.forget_events(numbers[1])
    assert [event.agent_id for event in await pool.events()] == [3]
    assert [event.agent_id for event in await pool.events(after=numbers[2])] == []
    await pool.recover(1)
    assert (await pool.events())[-1].number > numbers[2]


async def test_an_event_says_when_who_and_why(world):
    pool = await world.pool(5)
    world.clock.go(7)
    await ask(pool, 2, Verdict.RATE_LIMITED)
    event = (await pool.events())[0]
    assert (event.at, event.agent_id, event.reason) == (MORNING + timedelta(seconds=7), 2, "answered 429")
    assert event.transition is None
