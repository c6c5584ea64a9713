"""The promises of ports/pool.py about breakers: the pool's, the site's and each identity's, and what opens and closes them."""

from datetime import timedelta

import pytest

from contracts.pool_world import HOUR, MORNING, an_identity, ask, said, standing, use
from sellerwatch.domain.breakers import BreakerState
from sellerwatch.domain.identities import Verdict
from sellerwatch.ports.pool import WhyNot

OPEN = 600
CLOSED, OPENED, HALF = BreakerState.CLOSED, BreakerState.OPEN, BreakerState.HALF_OPEN


async def ways(pool, scope: str) -> list[tuple[BreakerState, BreakerState]]:
    transitions = [event.transition for event in await pool.events()]
    return [(each.from_state, each.to_state) for each in transitions if each and each.scope == scope]


async def fail(pool, count: int, verdict: Verdict = Verdict.SITE_FAILURE) -> None:
    leases = (await pool.lease(count)).leases
    assert len(leases) == count
    await pool.report([said(lease, verdict) for lease in leases])


# the pool's


async def test_too_few_available_open_the_breaker_of_the_pool(world):
    pool = await world.pool(10)
    for agent_id in range(1, 9):
        await pool.suspend(agent_id)
    assert (await pool.figures()).pool_breaker.state is CLOSED
    await pool.suspend(9)
    grant = await pool.lease(1)
    assert (grant.leases, grant.why, grant.next_at) == ((), WhyNot.CIRCUIT_OPEN, MORNING + timedelta(seconds=OPEN))
    assert await ways(pool, "POOL") == [(CLOSED, OPENED)]
    assert (await pool.events())[-1].reason == "1 of 10 identities available"
    assert await pool.capacity(60) == 0


async def test_who_is_blocked_by_hand_does_not_count(world):
    pool = await world.pool(10)
    for agent_id in range(1, 10):
        await pool.block(agent_id)
    assert (await pool.lease(1)).leases
    await pool.block(10)
    figures = await pool.figures()
    assert (figures.pool_breaker.state, figures.why, figures.next_available_at) == (OPENED, WhyNot.EMPTY, None)
    assert (await pool.events())[-1].reason == "the pool is empty"


async def test_an_empty_pool_is_open_until_somebody_is_in_it(world):
    pool = await world.pool([])
    assert (await pool.figures()).pool_breaker.state is OPENED
    await pool.load([an_identity(1)])
    assert (await pool.lease(1)).leases


async def test_past_its_time_out_one_trial_at_a_time_and_its_success_closes(world):
    pool = await world.pool(10)
    for agent_id in range(1, 10):
        await pool.suspend(agent_id)
    for agent_id in range(1, 6):
        await pool.recover(agent_id)
    world.clock.go(OPEN)
    assert (await pool.outlook()).free == 1
    grant = await pool.lease(5)
    assert [lease.is_trial for lease in grant.leases] == [True]
    assert (grant.why, grant.next_at) == (WhyNot.CIRCUIT_OPEN, grant.leases[0].deadline)
    assert (await pool.lease(1)).why is WhyNot.CIRCUIT_OPEN
    await pool.report([said(grant.leases[0])])
    assert len((await pool.lease(3)).leases) == 3
    assert await ways(pool, "POOL") == [(CLOSED, OPENED), (OPENED, HALF), (HALF, CLOSED)]


async def test_the_failure_of_the_trial_opens_again(world):
    pool = await world.pool(10)
    for agent_id in range(1, 10):
        await pool.suspend(agent_id)
    world.clock.go(OPEN)
    await use(pool, Verdict.REJECTED)
    grant = await pool.lease(1)
    assert (grant.why, grant.next_at) == (WhyNot.CIRCUIT_OPEN, MORNING + timedelta(seconds=2 * OPEN))


async def test_while_the_rate_is_low_it_stays_half_open_and_is_looked_at_after_each_recovery(world):
    pool = await world.pool(10)
    for agent_id in range(1, 10):
        await pool.suspend(agent_id)
    world.clock.go(OPEN)
    for _ in range(3):
        await use(pool)
        assert (await pool.figures()).pool_breaker.state is HALF
        world.clock.go(1)
    await pool.recover(4)
    assert (await pool.figures()).pool_breaker.state is CLOSED


async def test_a_recovery_alone_does_not_close_what_no_trial_has_tried(world):
    pool = await world.pool(10)
    for agent_id in range(1, 10):
        await pool.suspend(agent_id)
    world.clock.go(OPEN)
    lease = (await pool.lease(1)).leases[0]
    await pool.recover(4)
    assert (await pool.figures()).pool_breaker.state is HALF
    await pool.report([said(lease)])
    assert (await pool.figures()).pool_breaker.state is CLOSED


async def test_a_trial_that_is_cancelled_or_lost_leaves_room_for_the_next(world):
    pool = await world.pool(10)
    for agent_id in range(1, 9):
        await pool.suspend(agent_id)
    await pool.suspend(9)
    await pool.recover(9)
    world.clock.go(OPEN)
    first = (await pool.lease(1)).leases[0]
    await pool.cancel([(first.lease_id, first.agent_id)])
    second = (await pool.lease(1)).leases[0]
    assert second.is_trial
    world.clock.go(30)
    third = (await pool.lease(1)).leases[0]
    assert third.is_trial
    assert await pool.report([said(second)]) == [False]
    breaker = (await pool.figures()).pool_breaker
    assert (breaker.state, breaker.half_open_at) == (HALF, MORNING + timedelta(seconds=OPEN))
    assert await ways(pool, "POOL") == [(CLOSED, OPENED), (OPENED, HALF)]
    world.clock.go(30)
    assert await pool.expire() == 1
    assert (await pool.figures()).pool_breaker.trial_id is None


async def test_what_a_trial_proved_counts_until_it_opens_again(world):
    pool = await world.pool(10)
    for _ in range(2):
        for agent_id in range(1, 10):
            await pool.suspend(agent_id)
        world.clock.go(OPEN)
        lease = (await pool.lease(1)).leases[0]
        for agent_id in range(1, 10):
            await pool.recover(agent_id)
        assert (await pool.figures()).pool_breaker.state is HALF
        await pool.report([said(lease)])
        assert (await pool.figures()).pool_breaker.state is CLOSED


async def test_a_breaker_that_a_recovery_closed_knows_of_no_trial(world):
    pool = await world.pool(10)
    for agent_id in range(1, 10):
        await pool.suspend(agent_id)
    world.clock.go(OPEN)
    await use(pool)
    world.clock.go(1)
    late = (await pool.lease(1)).leases[0]
    await pool.recover(4)
    breaker = (await pool.figures()).pool_breaker
    assert (breaker.state, breaker.trial_id, breaker.trial_until) == (CLOSED, None, None)
    assert await pool.report([said(late, Verdict.REJECTED)]) == [True]
    assert (await pool.figures()).pool_breaker.state is CLOSED


async def test_the_trial_of_a_breaker_that_opened_meanwhile_decides_nothing(world):
    pool = await world.pool(10)
    for agent_id in range(1, 10):
        await pool.suspend(agent_id)
    world.clock.go(OPEN)
    lease = (await pool.lease(1)).leases[0]
    for agent_id in range(1, 11):
        await pool.block(agent_id)
    assert (await pool.figures()).pool_breaker.state is OPENED
    for agent_id in range(1, 11):
        await pool.unblock(agent_id)
    assert await pool.report([said(lease)]) == [True]
    assert (await pool.figures()).pool_breaker.state is OPENED


async def test_all_suspended_tells_when_the_first_comes_back(world):
    pool = await world.pool(3, min_available_percent=0)
    for agent_id in (1, 2, 3):
        await ask(pool, agent_id, Verdict.RATE_LIMITED)
        world.clock.go(60)
    outlook = await pool.outlook()
    assert (outlook.free, outlook.why, outlook.next_at) == (0, WhyNot.SUSPENDED, MORNING + timedelta(hours=1))
    world.clock.go(HOUR)
    assert (await pool.outlook()).next_at > world.clock.now()


async def test_all_suspended_for_a_person_to_look_at_tells_of_no_moment(world):
    pool = await world.pool([an_identity(1, health_score=32)])
    await ask(pool, 1, Verdict.REJECTED)
    assert (await pool.lease(1)).next_at is None


# the site's


async def test_more_than_half_of_twenty_requests_failing_open_the_breaker_of_the_site(world):
    pool = await world.pool(50)
    await fail(pool, 10, Verdict.SUCCESS)
    await fail(pool, 9)
    assert (await pool.figures()).site_breaker.state is CLOSED
    await fail(pool, 2)
    figures = await pool.figures()
    assert (figures.site_breaker.state, figures.site_breaker.opened_at) == (OPENED, MORNING)
    transition = (await pool.events())[-1].transition
    assert (transition.failure_count, transition.reason) == (11, "11 of 21 requests of the last minute failed")
    grant = await pool.lease(1)
    assert (grant.leases, grant.why, grant.next_at) == ((), WhyNot.CIRCUIT_OPEN, MORNING + timedelta(seconds=OPEN))


@pytest.mark.parametrize(("verdict", "said_of_it"), [("SITE_FAILURE", "failed"), ("RATE_LIMITED", "answered 429")])
async def test_a_site_that_fails_all_of_a_sudden_is_noticed_before_any_identity_is_blamed(world, verdict, said_of_it):
    pool = await world.pool(40)
    for _ in range(31):
        await fail(pool, 20, Verdict.SUCCESS)
        world.clock.go(2)
    failed = 0
    while (await pool.figures()).site_breaker.state is CLOSED:
        await fail(pool, 2, Verdict(verdict))
        failed += 2
        world.clock.go(0.2)
    assert 20 <= failed <= 40
    assert (await ways(pool, "IDENTITY"), (await pool.figures()).health_min >= 80) == ([], True)
    [opened] = [event for event in await pool.events() if event.transition and event.transition.scope == "SITE"]
    assert (opened.reason, opened.transition.failure_count) == (f"22 of the last 42 requests {said_of_it}", 22)


async def test_a_few_failures_among_the_latest_requests_do_not_open_the_breaker_of_the_site(world):
    pool = await world.pool(40)
    for _ in range(15):
        await fail(pool, 6, Verdict.SUCCESS)
        await fail(pool, 4)
        world.clock.go(2)
    assert (await pool.figures()).site_breaker.state is CLOSED


async def test_fewer_than_twenty_requests_say_nothing_of_the_site(world):
    pool = await world.pool(50)
    await fail(pool, 19)
    assert (await pool.figures()).site_breaker.state is CLOSED


async def test_what_failed_more_than_a_minute_ago_no_longer_counts(world):
    pool = await world.pool(50)
    await fail(pool, 15)
    world.clock.go(66)
    await fail(pool, 15)
    assert (await pool.figures()).site_breaker.state is CLOSED


async def test_429s_across_many_identities_open_the_breaker_of_the_site(world):
    pool = await world.pool(100)
    await fail(pool, 9, Verdict.SUCCESS)
    await fail(pool, 11, Verdict.RATE_LIMITED)
    assert (await pool.figures()).site_breaker.state is OPENED


async def test_an_outage_costs_no_identity_its_health_however_many_were_in_flight(world):
    pool = await world.pool(60)
    leases = (await pool.lease(60)).leases
    await pool.report([said(lease, Verdict.SITE_FAILURE) for lease in leases[:30]])
    await pool.report([said(lease, Verdict.SITE_FAILURE) for lease in leases[30:]])
    figures = await pool.figures()
    assert (figures.health_min, figures.available) == (100, 60)
    assert await ways(pool, "SITE") == [(CLOSED, OPENED)]
    assert await ways(pool, "IDENTITY") == []


async def test_lesson_28_one_incident_counts_once(world):
    pool = await world.pool(60)
    late = (await pool.lease(30)).leases
    await fail(pool, 21)
    world.clock.go(25)
    assert await pool.report([said(lease, Verdict.SITE_FAILURE) for lease in late]) == [True] * 30
    assert (await pool.figures()).site_breaker.opened_at == MORNING
    assert (await pool.figures()).site_breaker.retry_at() == MORNING + timedelta(seconds=OPEN)


async def test_after_the_time_out_the_trial_decides_about_the_site(world):
    pool = await world.pool(60)
    await fail(pool, 21)
    world.clock.go(OPEN)
    await use(pool, Verdict.SITE_FAILURE)
    assert (await pool.lease(1)).next_at == MORNING + timedelta(seconds=2 * OPEN)
    world.clock.go(OPEN)
    await use(pool)
    assert (await pool.figures()).site_breaker.state is CLOSED
    assert len((await pool.lease(20)).leases) == 20
    assert await ways(pool, "SITE") == [
        *((CLOSED, OPENED), (OPENED, HALF), (HALF, OPENED), (OPENED, HALF), (HALF, CLOSED))
    ]


async def test_lesson_31_a_herd_is_not_let_through_when_the_site_may_be_tried_again(world):
    pool, other = await world.pool(60), world.seen_by_another()
    await fail(pool, 21)
    world.clock.go(OPEN)
    assert len((await pool.lease(30)).leases) == 1
    assert (await other.lease(30)).why is WhyNot.CIRCUIT_OPEN


async def test_one_probe_of_the_site_at_a_time_over_all_processes_and_a_dead_one_holds_up_nobody(world):
    pool, other = await world.pool(60), world.seen_by_another()
    await fail(pool, 21)
    for _ in range(3):
        world.clock.go(OPEN)
        [probe] = (await pool.lease(9)).leases
        grant = await other.lease(9)
        assert (grant.leases, grant.why, grant.next_at) == ((), WhyNot.CIRCUIT_OPEN, probe.deadline)
        # Whoever held it is gone; at its deadline somebody else may try.
        world.clock.at = probe.deadline
        [next_probe] = (await other.lease(9)).leases
        assert next_probe.is_trial
        assert (await pool.lease(9)).why is WhyNot.CIRCUIT_OPEN
        assert await pool.report([said(probe)]) == [False]
        assert (await pool.figures()).site_breaker.state is HALF
        assert await other.report([said(next_probe, Verdict.SITE_FAILURE)]) == [True]
        assert (await pool.figures()).site_breaker.state is OPENED


async def test_what_was_asked_during_an_outage_is_charged_to_nobody_afterwards(world):
    pool = await world.pool(60, lease_seconds=2000)
    late = (await pool.lease(30)).leases
    await fail(pool, 21)
    world.clock.go(OPEN)
    await use(pool)
    await pool.report([said(lease, Verdict.SITE_FAILURE) for lease in late])
    figures = await pool.figures()
    assert (figures.site_breaker.state, figures.health_min) == (CLOSED, 100)


async def test_what_led_to_the_opening_is_not_counted_again_after_the_closing(world):
    pool = await world.pool(90, breaker_open_seconds=10.0)
    await fail(pool, 21)
    world.clock.go(10)
    await use(pool)
    await fail(pool, 5)
    assert (await pool.figures()).site_breaker.state is CLOSED


async def test_an_answer_that_says_nothing_leaves_the_site_half_open(world):
    pool = await world.pool(60)
    await fail(pool, 21)
    world.clock.go(OPEN)
    await use(pool, Verdict.NEUTRAL)
    assert (await pool.figures()).site_breaker.state is HALF
    assert [lease.is_trial for lease in (await pool.lease(9)).leases] == [True]


async def test_a_refusal_says_nothing_of_the_site(world):
    pool = await world.pool(60)
    await fail(pool, 21)
    world.clock.go(OPEN)
    await use(pool, Verdict.REJECTED)
    assert (await pool.figures()).site_breaker.state is HALF
    assert [lease.is_trial for lease in (await pool.lease(9)).leases] == [True]


async def test_no_failure_to_issue_counts_while_the_site_fails(world):
    pool = await world.pool([an_identity(number, token=None) for number in range(1, 31)])
    leases = (await pool.lease(30)).leases
    await pool.report([said(lease, Verdict.SITE_FAILURE, is_issue=True) for lease in leases[:25]])
    refused = [said(lease, Verdict.REJECTED, is_issue=True, is_token_refused=True) for lease in leases[25:]]
    await pool.report(refused)
    one = await standing(pool, leases[25].agent_id)
    assert (one.identity.token_failures, one.identity.health_score, one.breaker.failure_count) == (0, 100, 0)


# each identity's


async def test_three_failures_in_a_row_open_the_breaker_of_the_identity(world):
    pool = await world.pool(5)
    for verdict in (Verdict.REJECTED, Verdict.SUCCESS, Verdict.REJECTED, Verdict.SITE_FAILURE, Verdict.REJECTED):
        assert (await standing(pool, 1)).breaker.state is CLOSED
        await ask(pool, 1, verdict)
        world.clock.go(1)
    one = await standing(pool, 1)
    assert (one.breaker.state, one.next_free_at) == (OPENED, MORNING + timedelta(seconds=4 + OPEN))
    assert await pool.lease_of(1) is None
    assert (await pool.lease(9)).leases[0].agent_id == 2


async def test_past_its_time_out_the_identity_is_tried_once_and_success_closes(world):
    pool = await world.pool(5)
    for _ in range(3):
        await ask(pool, 1, Verdict.REJECTED)
        world.clock.go(1)
    world.clock.go(OPEN)
    lease = await pool.lease_of(1)
    assert lease.is_trial
    await pool.report([said(lease)])
    assert (await standing(pool, 1)).breaker.state is CLOSED
    assert await ways(pool, "IDENTITY") == [(CLOSED, OPENED), (OPENED, HALF), (HALF, CLOSED)]


async def test_a_breaker_that_closed_counts_anew(world):
    pool = await world.pool(5)
    for _ in range(3):
        await ask(pool, 1, Verdict.REJECTED)
        world.clock.go(1)
    world.clock.go(OPEN)
    await ask(pool, 1)
    for _ in range(2):
        world.clock.go(1)
        await ask(pool, 1, Verdict.REJECTED)
    one = await standing(pool, 1)
    assert (one.breaker.state, one.breaker.failure_count) == (CLOSED, 2)


@pytest.mark.parametrize("verdict", [Verdict.SUCCESS, Verdict.REJECTED])
async def test_who_is_lent_before_the_time_out_of_other_limits_is_over_decides_nothing(world, verdict):
    pool = await world.pool(5, breaker_open_seconds=10.0)
    for _ in range(3):
        await ask(pool, 1, Verdict.REJECTED)
        world.clock.go(1)
    world.clock.go(10)
    patient = world.seen_by_another(breaker_open_seconds=600.0)
    await ask(patient, 1, verdict)
    its = (await standing(patient, 1)).breaker
    assert (its.state, its.failure_count) == (OPENED, 3)


async def test_the_failed_trial_of_an_identity_opens_its_breaker_again(world):
    pool = await world.pool(5)
    for _ in range(3):
        await ask(pool, 1, Verdict.REJECTED)
        world.clock.go(1)
    world.clock.go(OPEN)
    await ask(pool, 1, Verdict.REJECTED)
    one = await standing(pool, 1)
    assert (one.breaker.state, one.next_free_at) == (OPENED, world.clock.now() + timedelta(seconds=OPEN))


async def test_a_lost_trial_of_an_identity_is_followed_by_another(world):
    pool, other = await world.pool(5), world.seen_by_another()
    for _ in range(3):
        await ask(pool, 1, Verdict.REJECTED)
        world.clock.go(1)
    world.clock.go(OPEN)
    lost = await pool.lease_of(1)
    assert lost.is_trial
    assert await other.lease_of(1) is None
    world.clock.at = lost.deadline
    assert (await standing(other, 1)).breaker.state is HALF
    second = await other.lease_of(1)
    assert second.is_trial
    assert await other.report([said(second)]) == [True]
    assert (await standing(other, 1)).breaker.state is CLOSED


async def test_a_cancelled_trial_of_an_identity_is_followed_by_another(world):
    pool = await world.pool(5)
    for _ in range(3):
        await ask(pool, 1, Verdict.REJECTED)
        world.clock.go(1)
    world.clock.go(OPEN)
    first = await pool.lease_of(1)
    await pool.cancel([(first.lease_id, 1)])
    second = await pool.lease_of(1)
    assert second.is_trial
    await pool.report([said(second)])
    assert (await standing(pool, 1)).breaker.state is CLOSED
