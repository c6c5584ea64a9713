"""The promises of ports/pool.py about leases: budget, site, order, reports, and what is told when none is free."""

from datetime import timedelta

import pytest

from contracts.pool_world import HOUR, MORNING, a_token, an_identity, said, standing, use
from sellerwatch.domain.identities import Verdict
from sellerwatch.ports.pool import Report, WhyNot


def agents(grant) -> list[int]:
    return [lease.agent_id for lease in grant.leases]


# budget


async def test_lesson_20_an_identity_has_exactly_its_limit_in_a_window(world):
    pool = await world.pool(1, hourly_limit=80)
    for _ in range(80):
        await use(pool)
        world.clock.go(1)
    grant = await pool.lease(1)
    assert (grant.leases, grant.why) == ((), WhyNot.SPENT)
    assert grant.next_at == MORNING + timedelta(seconds=HOUR + 30)


async def test_lesson_20_the_window_slides_and_is_never_reset(world):
    pool = await world.pool(1, hourly_limit=3)
    given = []
    for _ in range(3 * HOUR // 10):
        if (await pool.lease(1)).leases:
            given.append(world.clock.now())
        world.clock.go(10)
    assert len(given) == 9
    assert all(
        later - earlier >= timedelta(seconds=HOUR + 30) for earlier, later in zip(given, given[3:], strict=False)
    )


async def test_the_log_reaches_back_further_than_the_window_by_the_guard(world):
    pool = await world.pool(1, hourly_limit=1, guard_seconds=30)
    await use(pool)
    world.clock.go(HOUR + 29.999999)
    assert not (await pool.lease(1)).leases
    world.clock.go(0.000001)
    assert (await pool.lease(1)).leases


async def test_two_leases_of_one_identity_are_a_minimum_interval_apart(world):
    pool = await world.pool(1, min_interval_seconds=1)
    await use(pool)
    world.clock.go(0.999999)
    grant = await pool.lease(1)
    assert (grant.leases, grant.why, grant.next_at) == ((), WhyNot.SPENT, MORNING + timedelta(seconds=1))
    world.clock.go(0.000001)
    assert (await pool.lease(1)).leases


async def test_a_request_that_was_long_on_its_way_is_followed_an_interval_after_its_report(world):
    pool = await world.pool(1, min_interval_seconds=1)
    lease = (await pool.lease(1)).leases[0]
    world.clock.go(0.9)
    assert await pool.report([said(lease)]) == [True]
    told_at = world.clock.at
    for step in (0.2, 0.7):
        world.clock.go(step)
        await pool.load([an_identity(1)])
        assert (await pool.lease(1)).next_at == told_at + timedelta(seconds=1)
    world.clock.go(0.1)
    # What failed was on its way as long.
    lease = (await pool.lease(1)).leases[0]
    world.clock.go(5)
    await pool.report([said(lease, Verdict.SITE_FAILURE)])
    world.clock.go(0.9)
    assert not (await pool.lease(1)).leases
    world.clock.go(0.1)
    assert (await pool.lease(1)).leases


async def test_an_hourly_limit_of_zero_means_nobody_may_ask(world):
    pool = await world.pool(3, hourly_limit=0)
    grant = await pool.lease(1)
    assert (grant.leases, grant.why, grant.next_at) == ((), WhyNot.EMPTY, None)
    assert await pool.lease_of(1) is None
    assert await pool.capacity(60) == 0
    paced = await world.pool(3, hourly_limit=0, is_paced_evenly=True)
    assert not (await paced.lease(1)).leases


async def test_a_limit_of_a_million_is_given_as_any_other(world):
    pool = await world.pool(2, hourly_limit=1_000_000, min_interval_seconds=0)
    for _ in range(200):
        await use(pool)
    assert (await pool.figures()).remaining_requests == 2_000_000 - 200


async def test_a_lost_lease_stays_spent(world):
    pool = await world.pool(1, hourly_limit=1)
    await pool.lease(1)
    world.clock.go(31)
    assert (await pool.lease(1)).next_at == MORNING + timedelta(seconds=HOUR + 30)


async def test_a_lower_limit_holds_for_what_was_spent_before(world):
    pool = await world.pool(1, hourly_limit=10)
    for _ in range(5):
        await use(pool)
        world.clock.go(1)
    stricter = await world.pool(1, hourly_limit=5)
    assert not (await stricter.lease(1)).leases
    looser = await world.pool(1, hourly_limit=6)
    assert (await looser.lease(1)).leases


async def test_evenly_paced_the_budget_is_spread_over_the_window(world):
    pool = await world.pool(1, hourly_limit=80, is_paced_evenly=True)
    given = []
    while len(given) < 80:
        grant = await pool.lease(1)
        given.append(world.clock.now())
        await pool.report([said(grant.leases[0])])
        world.clock.at = (await pool.lease(1)).next_at
    assert (given[-1] - given[0]).total_seconds() == pytest.approx(79 * (HOUR + 30) / 80, abs=1)


async def test_evenly_paced_what_was_rested_is_caught_up_without_a_burst(world):
    pool = await world.pool(1, hourly_limit=60, guard_seconds=0, is_paced_evenly=True)
    await use(pool)
    world.clock.go(600)
    moments = []
    for _ in range(6):
        await use(pool)
        moments.append(world.clock.now())
        world.clock.at = (await pool.lease(1)).next_at
    assert moments[-1] - moments[0] == timedelta(seconds=150)


# site


async def test_at_most_concurrency_leases_are_out_at_once(world):
    pool = await world.pool(5, concurrency=3)
    grant = await pool.lease(5)
    assert (len(grant.leases), grant.why) == (3, WhyNot.SITE_BUSY)
    assert grant.next_at == grant.leases[0].deadline
    await pool.report([said(grant.leases[0])])
    assert len((await pool.lease(5)).leases) == 1


async def test_no_more_than_the_rate_of_the_site_go_out_in_any_second(world):
    pool = await world.pool(50, site_requests_per_second=10)
    assert len((await pool.lease(4)).leases) == 4
    world.clock.go(0.5)
    grant = await pool.lease(50)
    assert (len(grant.leases), grant.why, grant.next_at) == (6, WhyNot.SITE_RATE, MORNING + timedelta(seconds=1))
    world.clock.go(0.499999)
    assert not (await pool.lease(50)).leases
    world.clock.go(0.000001)
    grant = await pool.lease(50)
    assert (len(grant.leases), grant.next_at) == (4, MORNING + timedelta(seconds=1.5))


async def test_a_rate_below_one_a_second_is_a_longer_wait(world):
    pool = await world.pool(5, site_requests_per_second=0.25)
    grant = await pool.lease(5)
    assert (len(grant.leases), grant.next_at) == (1, MORNING + timedelta(seconds=4))


async def test_who_spaces_out_leases_no_sooner_than_so_long_after_the_last_lease_of_anybody(world):
    pool = await world.pool(9, site_requests_per_second=3)
    pool.space_out(5)
    assert len((await pool.lease(3)).leases) == 1
    world.clock.go(4.9)
    assert (await pool.lease(1)).why is WhyNot.SITE_RATE
    # Who was not told goes by the limits, and what that one leased counts.
    assert len((await world.seen_by_another(site_requests_per_second=3).lease(3)).leases) == 3
    world.clock.go(4.9)
    grant = await pool.lease(1)
    assert (grant.leases, grant.next_at) == ((), world.clock.now() + timedelta(seconds=0.1))
    assert await pool.capacity(100) == 20
    # No wish, or a smaller one than the limits have, changes nothing.
    for seconds in (0, 0.1):
        pool.space_out(seconds)
        assert len((await pool.lease(1)).leases) == 1


async def test_lesson_33_rotating_identities_does_not_switch_off_the_ceiling_of_the_site(world):
    pool, other = await world.pool(100, site_requests_per_second=10), world.seen_by_another(site_requests_per_second=10)
    given = 0
    for _ in range(100):
        given += len((await pool.lease(3)).leases) + len((await other.lease(3)).leases)
        world.clock.go(0.05)
    assert given == 50


# order


async def test_who_has_been_free_longest_goes_first(world):
    pool = await world.pool(3)
    assert agents(await pool.lease(2)) == [1, 2]
    world.clock.go(5)
    assert agents(await pool.lease(1)) == [3]
    world.clock.go(100)
    await pool.expire()
    assert agents(await pool.lease(3)) == [1, 2, 3]


async def test_lesson_26_those_without_a_token_come_after_those_with_one_and_are_lent_as_such(world):
    pool = await world.pool([an_identity(1, token=None), an_identity(2), an_identity(3, token=None), an_identity(4)])
    grant = await pool.lease(3)
    assert agents(grant) == [2, 4, 1]
    assert [lease.token is not None for lease in grant.leases] == [True, True, False]


async def test_a_lease_bears_the_identity_its_token_and_its_deadline(world):
    pool = await world.pool(1, lease_seconds=20)
    lease = (await pool.lease(1)).leases[0]
    assert (lease.user_agent, lease.token, lease.is_trial) == ("Browser/1.0", a_token("token of 1"), False)
    assert (lease.leased_at, lease.deadline) == (MORNING, MORNING + timedelta(seconds=20))


async def test_suspended_and_blocked_identities_are_never_lent(world):
    pool = await world.pool(5)
    await pool.suspend(1)
    await pool.block(2)
    assert agents(await pool.lease(5)) == [3, 4, 5]


async def test_lesson_21_one_free_identity_among_many_spent_ones_is_found(world):
    pool = await world.pool(200, hourly_limit=1)
    lent = agents(await pool.lease(199))
    assert len(set(lent)) == 199
    assert agents(await pool.lease(10)) == [*(set(range(1, 201)) - set(lent))]


async def test_one_call_leases_different_identities(world):
    pool = await world.pool(20)
    assert sorted(agents(await pool.lease(50))) == list(range(1, 21))
    assert (await pool.lease(0)).leases == ()


# reports


async def test_an_identity_has_at_most_one_lease_at_a_time(world):
    pool = await world.pool(1)
    lease = (await pool.lease(1)).leases[0]
    world.clock.go(10)
    grant = await pool.lease(1)
    assert (grant.leases, grant.why, grant.next_at) == ((), WhyNot.BUSY, lease.deadline)


async def test_only_the_holder_of_the_lease_reports_and_once(world):
    pool = await world.pool(2)
    first, second = (await pool.lease(2)).leases
    stranger = Report(second.lease_id, first.agent_id, Verdict.RATE_LIMITED)
    unknown = Report(first.lease_id, 99, Verdict.RATE_LIMITED)
    assert await pool.report([stranger, unknown, said(first), said(first, Verdict.RATE_LIMITED)]) == [
        *(False, False, True, False)
    ]
    assert await pool.report([said(first, Verdict.RATE_LIMITED)]) == [False]
    assert (await pool.figures()).suspended == 0


async def test_a_late_report_changes_nothing_also_when_nobody_took_the_lease_back(world):
    pool = await world.pool(1)
    lease = (await pool.lease(1)).leases[0]
    world.clock.go(30)
    assert await pool.report([said(lease, Verdict.RATE_LIMITED)]) == [False]
    assert await pool.cancel([(lease.lease_id, 1)]) == 0
    assert await pool.expire() == 1
    assert (await standing(pool, 1)).identity.health_score == 100


async def test_lesson_24_an_identity_lent_again_is_not_returned_by_its_former_holder(world):
    pool = await world.pool(1)
    first = (await pool.lease(1)).leases[0]
    world.clock.go(31)
    second = (await pool.lease(1)).leases[0]
    assert await pool.report([said(first)]) == [False]
    assert await pool.cancel([(first.lease_id, 1)]) == 0
    assert (await pool.figures()).leased == 1
    assert await pool.report([said(second)]) == [True]


async def test_a_lease_past_its_deadline_is_taken_back_by_itself_and_told(world):
    pool = await world.pool(2)
    await pool.lease(2)
    world.clock.go(29)
    assert await pool.expire() == 0
    world.clock.go(1)
    assert len((await pool.lease(2)).leases) == 2
    assert [(event.kind, event.agent_id) for event in await pool.events()] == [
        ("LEASE_EXPIRED", 1),
        ("LEASE_EXPIRED", 2),
    ]
    assert (await pool.figures()).leased == 2


async def test_a_lease_ends_when_it_is_reported(world):
    pool = await world.pool(1)
    await use(pool)
    figures = await pool.figures()
    assert figures.leased == 0
    one = await standing(pool, 1)
    assert (one.leased_until, one.identity.usage_count, one.identity.success_count) == (None, 1, 1)
    assert one.identity.last_used_at == MORNING


async def test_uses_are_counted_anew_each_day_and_cancelled_leases_are_no_uses(world):
    pool = await world.pool(1)
    world.clock.go(18 * HOUR - 10)
    counted = []
    for seconds in (1, 1, 8, 1, 24 * HOUR):
        await use(pool)
        counted.append((await standing(pool, 1)).identity.requests_per_day)
        world.clock.go(seconds)
    lease = (await pool.lease(1)).leases[0]
    await pool.cancel([(lease.lease_id, lease.agent_id)])
    counted.append((await standing(pool, 1)).identity.requests_per_day)
    assert counted == [1, 2, 3, 1, 2, 2]
    assert (await standing(pool, 1)).identity.usage_count == 5


# cancel


async def test_a_cancelled_lease_restores_the_budget_and_the_turn(world):
    pool = await world.pool(2, hourly_limit=1)
    lease = (await pool.lease(1)).leases[0]
    assert await pool.cancel([(lease.lease_id, lease.agent_id)]) == 1
    assert (await pool.figures()).remaining_requests == 2
    assert agents(await pool.lease(2)) == [1, 2]
    assert not (await pool.lease(1)).leases


async def test_a_cancelled_lease_gives_back_the_place_under_the_ceiling_of_the_site(world):
    pool = await world.pool(9, site_requests_per_second=3)
    early = (await pool.lease(1)).leases[0]
    world.clock.go(0.4)
    late = (await pool.lease(2)).leases
    assert await pool.cancel([(late[0].lease_id, late[0].agent_id)]) == 1
    assert len((await pool.lease(5)).leases) == 1
    assert await pool.cancel([(early.lease_id, early.agent_id)]) == 1
    assert len((await pool.lease(5)).leases) == 1
    world.clock.go(0.6)
    # What was given at 0.4 still counts: three of them.
    assert not (await pool.lease(5)).leases
    world.clock.go(0.4)
    assert len((await pool.lease(5)).leases) == 3


async def test_evenly_paced_a_cancelled_lease_gives_back_its_turn(world):
    pool = await world.pool(1, hourly_limit=60, guard_seconds=0, is_paced_evenly=True)
    await use(pool)
    world.clock.go(60)
    for _ in range(3):
        lease = (await pool.lease(1)).leases[0]
        assert await pool.cancel([(lease.lease_id, 1)]) == 1
    await use(pool)
    assert (await pool.lease(1)).next_at == MORNING + timedelta(seconds=120)


async def test_a_lease_is_cancelled_once_and_by_its_holder(world):
    pool = await world.pool(2)
    first, second = (await pool.lease(2)).leases
    one = (first.lease_id, first.agent_id)
    assert await pool.cancel([one, one, (first.lease_id, second.agent_id), ("nobody's", 7)]) == 1
    assert await pool.report([said(first)]) == [False]
    assert (await pool.figures()).leased == 1


# when


async def test_an_empty_pool_says_that_only_a_person_can_help(world):
    pool = await world.pool([])
    grant = await pool.lease(1)
    assert (grant.leases, grant.why, grant.next_at) == ((), WhyNot.EMPTY, None)


async def test_a_pool_that_nobody_loaded_gives_nothing(world):
    pool = world.seen_by_another()
    assert (await pool.lease(3)).why is WhyNot.EMPTY
    assert (await pool.outlook()).why is WhyNot.EMPTY
    assert (await pool.figures()).total == 0
    assert await pool.report([Report("x", 1, Verdict.SUCCESS)]) == [False]


async def test_the_outlook_tells_how_many_are_free_without_leasing(world):
    pool = await world.pool(5, concurrency=4)
    assert (await pool.outlook()).free == 4
    leases = (await pool.lease(4)).leases
    assert ((await pool.outlook()).free, (await pool.outlook()).why) == (0, WhyNot.SITE_BUSY)
    await pool.report([said(lease) for lease in leases])
    assert (await pool.outlook()).free == 1
    world.clock.go(1)
    assert (await pool.outlook()).free == 4


async def test_the_outlook_counts_leases_that_are_past_their_deadline_as_over(world):
    pool = await world.pool(2)
    await pool.lease(2)
    world.clock.go(31)
    assert (await pool.outlook()).free == 2


async def test_asking_at_the_moment_that_was_told_helps(world):
    pool = await world.pool(3, hourly_limit=4, site_requests_per_second=2, concurrency=2)
    given = 0
    for _ in range(60):
        grant = await pool.lease(3)
        await pool.report([said(lease) for lease in grant.leases])
        given += len(grant.leases)
        grant = await pool.lease(1)
        if grant.leases:
            await pool.report([said(lease) for lease in grant.leases])
            given += 1
            continue
        assert grant.next_at > world.clock.now()
        world.clock.at = grant.next_at
        assert (await pool.outlook()).free >= 1
    assert given > 24


async def test_lesson_29_the_time_never_goes_back(world):
    pool = await world.pool(2, hourly_limit=2)
    world.clock.go(100)
    assert await use(pool) == 1
    world.clock.go(-100)
    assert await pool.lease_of(1) is None
    assert (await pool.lease(1)).leases[0].leased_at == MORNING + timedelta(seconds=100)
    grant = await pool.lease(1)
    assert (grant.leases, grant.next_at) == ((), MORNING + timedelta(seconds=101))
    world.clock.go(101)
    assert (await pool.lease(1)).leases[0].leased_at == MORNING + timedelta(seconds=101)


async def test_capacity_is_bounded_by_what_is_scarce(world):
    by_budget = await world.pool(3, hourly_limit=5)
    assert await by_budget.capacity(60) == 15
    by_rate = world.seen_by_another(hourly_limit=80, site_requests_per_second=2)
    assert await by_rate.capacity(10) == 20
    by_interval = world.seen_by_another(hourly_limit=80, min_interval_seconds=10)
    assert await by_interval.capacity(60) == 3 * 7


async def test_capacity_is_that_of_an_even_pace(world):
    pool = await world.pool(3, hourly_limit=60, guard_seconds=0, is_paced_evenly=True)
    assert await pool.capacity(600) == 3 * 11


async def test_capacity_begins_when_the_pause_of_the_site_is_over(world):
    pool = await world.pool(9, site_requests_per_second=2)
    for agent_id in (1, 2, 3):
        world.clock.go(1)
        await pool.report([said(await pool.lease_of(agent_id), retry_after=timedelta(seconds=100))])
    assert await pool.capacity(99) == 0
    assert await pool.capacity(110) == 2 * 10


async def test_capacity_is_one_while_a_breaker_is_tried(world):
    pool = await world.pool(10)
    for agent_id in range(1, 10):
        await pool.suspend(agent_id)
    assert await pool.capacity(900) == 0
    world.clock.go(600)
    assert await pool.capacity(900) == 1
    lease = (await pool.lease(1)).leases[0]
    assert await pool.capacity(900) == 0
    await pool.report([said(lease)])
    assert await pool.capacity(900) == 0
    world.clock.go(1)
    assert await pool.capacity(900) == 1


async def test_capacity_knows_what_is_spent_and_what_comes_back(world):
    pool = await world.pool(2, hourly_limit=1)
    for _ in range(2):
        await use(pool)
    assert await pool.capacity(60) == 0
    world.clock.go(HOUR)
    assert await pool.capacity(60) == 2


# lease_of


async def test_one_identity_is_leased_by_the_same_rules(world):
    pool = await world.pool(3, hourly_limit=2)
    lease = await pool.lease_of(2)
    assert (lease.agent_id, lease.token) == (2, a_token("token of 2"))
    assert await pool.lease_of(2) is None
    await pool.report([said(lease)])
    assert await pool.lease_of(2) is None
    world.clock.go(1)
    await pool.report([said(await pool.lease_of(2))])
    world.clock.go(1)
    assert await pool.lease_of(2) is None
    await pool.suspend(3)
    assert await pool.lease_of(3) is None
    assert await pool.lease_of(99) is None


async def test_what_one_process_does_every_other_sees(world):
    pool, other = await world.pool(2), world.seen_by_another()
    lease = (await pool.lease(1)).leases[0]
    assert agents(await other.lease(2)) == [2]
    assert await other.report([said(lease)]) == [True]
    assert await pool.report([said(lease)]) == [False]
