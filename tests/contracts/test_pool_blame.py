"""The promises of ports/pool.py about what a report does to its identity: health, standing, tokens, patience."""

from datetime import timedelta

import pytest

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
from sellerwatch.domain.errors import Unknown, WrongVerb
from sellerwatch.domain.identities import IdentityStatus, Verdict
from sellerwatch.ports.pool import WhyNot

ISSUE = {"is_issue": True, "is_token_refused": True}


async def told(pool) -> list[tuple[str, int | None]]:
    return [(event.kind, event.agent_id) for event in await pool.events()]


# health


@pytest.mark.parametrize(
    ("verdict", "health"),
    [(Verdict.RATE_LIMITED, 80), (Verdict.SITE_FAILURE, 90), (Verdict.REJECTED, 95), (Verdict.NEUTRAL, 100)],
)
async def test_a_failure_costs_what_its_kind_costs(world, verdict, health):
    pool = await world.pool(1, min_available_percent=0)
    await use(pool, verdict)
    assert (await standing(pool, 1)).identity.health_score == health
    figures = await pool.figures()
    assert (figures.health_min, figures.health_avg, figures.health_max) == (health, health, health)


async def test_a_success_gives_five_and_no_more_than_a_hundred(world):
    pool = await world.pool(1)
    await ask(pool, 1, Verdict.SITE_FAILURE)
    for health in (95, 100, 100):
        world.clock.go(1)
        await ask(pool, 1)
        assert (await standing(pool, 1)).identity.health_score == health


async def test_health_below_thirty_suspends_and_only_a_person_or_probation_brings_it_back(world):
    pool = await world.pool([an_identity(1, health_score=35), an_identity(2)])
    await ask(pool, 1, Verdict.SITE_FAILURE)
    world.clock.go(48 * HOUR)
    assert await pool.recover_due() == []
    assert (await standing(pool, 1)).identity.health_score == 25
    assert (await standing(pool, 1)).next_free_at is None
    lenient = await world.pool([an_identity(1), an_identity(2)], probation=timedelta(hours=24))
    assert await lenient.recover_due() == [1]
    assert (await standing(pool, 1)).identity.health_score == 70


async def test_who_was_promised_probation_waits_for_a_person_once_there_is_none(world):
    weak = an_identity(1, health_score=20, status=IdentityStatus.SUSPENDED, suspended_at=MORNING)
    pool = await world.pool([weak, an_identity(2)], probation=timedelta(hours=24))
    assert (await standing(pool, 1)).next_free_at == MORNING + timedelta(hours=24)
    strict = await world.pool([weak, an_identity(2)])
    world.clock.go(25 * HOUR)
    assert await strict.recover_due() == []
    assert (await standing(strict, 1)).next_free_at is None


async def test_nothing_that_says_nothing_of_the_identity_is_charged_to_it(world):
    pool = await world.pool(1)
    for _ in range(5):
        await ask(pool, 1, Verdict.NEUTRAL)
        world.clock.go(1)
    one = await standing(pool, 1)
    assert (one.identity.health_score, one.breaker.state, one.identity.usage_count) == (100, "CLOSED", 5)


# 429


async def test_a_429_suspends_at_once_discards_the_token_and_is_told(world):
    pool = await world.pool(2)
    await ask(pool, 1, Verdict.RATE_LIMITED, http_status=429)
    one = await standing(pool, 1)
    assert (one.identity.status, one.identity.token) == (IdentityStatus.SUSPENDED, None)
    assert one.identity.suspended_at == MORNING
    assert await told(pool) == [("SUSPENDED", 1)]
    assert await pool.lease_of(1) is None


async def test_a_suspended_identity_recovers_after_an_hour_with_health_70_and_no_token(world):
    pool = await world.pool(2)
    await ask(pool, 1, Verdict.RATE_LIMITED)
    world.clock.go(HOUR - 1)
    assert await pool.recover_due() == []
    world.clock.go(1)
    assert await pool.recover_due() == [1]
    one = await standing(pool, 1)
    assert (one.identity.status, one.identity.health_score, one.identity.token) == ("AVAILABLE", 70, None)
    assert await told(pool) == [("SUSPENDED", 1), ("RECOVERED", 1)]
    assert (await pool.lease_of(1)).token is None


async def test_lesson_23_429s_alone_never_strand_an_identity(world):
    pool = await world.pool(2)
    for _ in range(20):
        await ask(pool, 1, Verdict.RATE_LIMITED)
        world.clock.go(HOUR)
        assert await pool.recover_due() == [1]


async def test_after_its_429_no_request_before_retry_after_and_suspension_are_over(world):
    pool = await world.pool(2)
    await ask(pool, 1, Verdict.RATE_LIMITED, retry_after=timedelta(hours=3))
    world.clock.go(HOUR)
    assert await pool.recover_due() == [1]
    assert await pool.lease_of(1) is None
    assert (await standing(pool, 1)).paused_until == MORNING + timedelta(hours=3)
    world.clock.go(2 * HOUR)
    assert await pool.lease_of(1)


async def test_a_recovery_by_hand_does_not_shorten_retry_after(world):
    pool = await world.pool(2)
    await ask(pool, 1, Verdict.RATE_LIMITED, retry_after=timedelta(minutes=10))
    await pool.recover(1)
    world.clock.go(599)
    assert await pool.lease_of(1) is None
    world.clock.go(1)
    assert await pool.lease_of(1)


# Retry-After


async def test_who_is_suspended_with_patience_is_paused_for_so_long_and_no_shorter(world):
    pool = await world.pool(3)
    await pool.suspend(1, timedelta(hours=3))
    await pool.suspend(1, timedelta(hours=2))
    await pool.suspend(1)
    assert (await standing(pool, 1)).paused_until == MORNING + timedelta(hours=3)
    world.clock.go(HOUR)
    assert await pool.recover_due() == [1]
    assert await pool.lease_of(1) is None
    world.clock.go(2 * HOUR)
    assert await pool.lease_of(1)


async def test_retry_after_never_shortens_our_own_waiting(world):
    pool = await world.pool(1, hourly_limit=1)
    await ask(pool, 1, retry_after=timedelta(seconds=5))
    assert (await pool.lease(1)).next_at == MORNING + timedelta(seconds=HOUR + 30)
    other = await world.pool([an_identity(2)], min_interval_seconds=10)
    await ask(other, 2, retry_after=timedelta(0))
    world.clock.go(9)
    assert await other.lease_of(2) is None


async def test_a_shorter_retry_after_does_not_replace_a_longer_one(world):
    pool = await world.pool(1)
    lease = await pool.lease_of(1)
    await pool.report([said(lease, retry_after=timedelta(hours=2))])
    assert (await pool.lease(1)).why is WhyNot.PAUSED
    world.clock.go(2 * HOUR)
    await ask(pool, 1, retry_after=timedelta(seconds=60))
    grant = await pool.lease(1)
    assert (grant.why, grant.next_at) == (WhyNot.PAUSED, MORNING + timedelta(hours=2, seconds=60))


async def test_retry_after_is_believed_up_to_a_day(world):
    pool = await world.pool(1)
    await ask(pool, 1, retry_after=timedelta(days=9))
    assert (await standing(pool, 1)).paused_until == MORNING + timedelta(days=1)


async def test_three_identities_told_to_wait_within_a_minute_pause_the_site(world):
    pool = await world.pool(5)
    for agent_id in (1, 2):
        await ask(pool, agent_id, retry_after=timedelta(minutes=5))
    assert await pool.lease_of(4)
    await ask(pool, 3, retry_after=timedelta(minutes=2))
    grant = await pool.lease(1)
    assert (grant.leases, grant.why, grant.next_at) == ((), WhyNot.PAUSED, MORNING + timedelta(minutes=5))
    assert (await pool.outlook()).why is WhyNot.PAUSED


async def test_lesson_34_patience_outlives_whoever_was_asked_for_it(world):
    pool = await world.pool(5)
    for agent_id in (1, 2, 3):
        await ask(pool, agent_id, retry_after=timedelta(minutes=30))
    world.clock.go(1700)
    # Nobody asked for long, and who asks now was not there.
    other = world.seen_by_another()
    assert await other.expire() == 0
    grant = await other.lease(5)
    assert (grant.leases, grant.why, grant.next_at) == ((), WhyNot.PAUSED, MORNING + timedelta(minutes=30))
    await other.load(identities(5))
    assert not (await other.lease(5)).leases
    world.clock.go(100)
    assert len((await other.lease(5)).leases) == 5


async def test_one_identity_told_three_times_or_three_over_minutes_do_not_pause_the_site(world):
    pool = await world.pool(5)
    for agent_id in (1, 1, 1, 2):
        await ask(pool, agent_id, retry_after=timedelta(seconds=5))
        world.clock.go(5)
    world.clock.go(60)
    await ask(pool, 3, retry_after=timedelta(minutes=9))
    assert await pool.lease_of(4)


# tokens


async def test_an_issued_token_is_kept_for_the_next_lease_after_the_minimum_interval(world):
    pool = await world.pool([an_identity(1, token=None)])
    token = a_token("fresh")
    await ask(pool, 1, token=token, is_issue=True)
    assert (await pool.lease(1)).next_at == MORNING + timedelta(seconds=1)
    world.clock.go(1)
    lease = (await pool.lease(1)).leases[0]
    assert (lease.token, lease.token.sealed, lease.token.expires_at) == (token, token.sealed, token.expires_at)


async def test_a_refused_token_is_discarded(world):
    pool = await world.pool(1)
    await ask(pool, 1, Verdict.NEUTRAL, http_status=401, is_token_refused=True)
    world.clock.go(1)
    assert (await pool.lease(1)).leases[0].token is None


async def test_three_answers_without_a_token_in_a_row_block_and_are_told(world):
    pool = await world.pool([an_identity(1, token=None), an_identity(2)])
    for _ in range(3):
        await ask(pool, 1, Verdict.NEUTRAL, http_status=200, **ISSUE)
        world.clock.go(1)
    one = (await standing(pool, 1)).identity
    assert (one.status, one.is_blocked_by_hand) == (IdentityStatus.BLOCKED, False)
    assert await told(pool) == [("BLOCKED", 1)]


async def test_who_is_suspended_and_then_blocked_rests_no_more(world):
    pool = await world.pool([an_identity(1, token=None), an_identity(2)])
    for number in range(3):
        lease = await pool.lease_of(1)
        if number == 2:
            await pool.suspend(1)
        await pool.report([said(lease, Verdict.NEUTRAL, **ISSUE)])
        world.clock.go(1)
    one = (await standing(pool, 1)).identity
    assert (one.status, one.suspended_at) == (IdentityStatus.BLOCKED, None)
    world.clock.go(2 * HOUR)
    assert await pool.recover_due() == []


async def test_a_token_in_between_begins_the_count_anew(world):
    pool = await world.pool([an_identity(1, token=None), an_identity(2)])
    for refused in (True, True, False, True, True):
        other = ISSUE if refused else {"is_issue": True, "token": a_token("new")}
        await ask(pool, 1, Verdict.NEUTRAL, **other)
        world.clock.go(1)
    assert (await standing(pool, 1)).identity.status is IdentityStatus.AVAILABLE


@pytest.mark.parametrize("verdict", [Verdict.SITE_FAILURE, Verdict.RATE_LIMITED])
async def test_no_answer_when_asking_for_a_token_is_charged_to_nobody(world, verdict):
    pool = await world.pool([an_identity(1, token=None), an_identity(2)])
    for _ in range(5):
        await ask(pool, 1, verdict, **ISSUE)
        world.clock.go(HOUR + 60)
        await pool.recover_due()
    one = await standing(pool, 1)
    assert (one.identity.status, one.breaker.state) == ("AVAILABLE", "CLOSED")
    assert one.identity.token_failures == 0


async def test_a_429_when_asking_for_a_token_is_a_429_all_the_same_for_its_next_request(world):
    pool = await world.pool([an_identity(1, token=None), an_identity(2)])
    await ask(pool, 1, Verdict.RATE_LIMITED, is_issue=True)
    one = (await standing(pool, 1)).identity
    assert (one.status, one.health_score) == (IdentityStatus.SUSPENDED, 100)


async def test_a_429_when_a_token_is_refreshed_discards_the_one_it_has(world):
    pool = await world.pool(2)
    await ask(pool, 1, Verdict.RATE_LIMITED, is_issue=True)
    one = (await standing(pool, 1)).identity
    assert (one.status, one.health_score, one.token) == (IdentityStatus.SUSPENDED, 100, None)


async def test_a_rekeyed_token_replaces_the_same_token_only(world):
    pool = await world.pool(1)
    await pool.keep_token(1, a_token("token of 1", key="k2"))
    assert (await standing(pool, 1)).identity.token.sealed.startswith("v1.k2.")
    await pool.keep_token(1, a_token("an older one", key="k3"))
    assert (await standing(pool, 1)).identity.token.sealed.startswith("v1.k2.")
    await pool.discard_token(1)
    await pool.keep_token(1, a_token("token of 1", key="k3"))
    await pool.keep_token(99, a_token("nobody's"))
    assert (await standing(pool, 1)).identity.token is None


async def test_refreshable_are_available_identities_not_lent_whose_token_ends_soon(world):
    soon, late = MORNING + timedelta(hours=1), MORNING + timedelta(hours=9)
    pool = await world.pool(
        [
            an_identity(number, token=a_token(f"t{number}", expires_at=soon + timedelta(seconds=number)))
            for number in range(1, 6)
        ]
        + [an_identity(6, token=a_token("t6", expires_at=late)), an_identity(7, token=None)]
    )
    await pool.lease_of(1)
    await pool.suspend(2)
    await pool.block(3)
    assert await pool.refreshable(MORNING + timedelta(hours=2), 10) == [4, 5]
    assert await pool.refreshable(MORNING + timedelta(hours=2), 1) == [4]
    assert await pool.refreshable(soon, 10) == []


# by hand


async def test_what_an_operator_says_holds_at_once_and_is_told(world):
    pool = await world.pool(4, min_available_percent=0)
    await pool.suspend(1)
    await pool.suspend(1)
    await pool.block(2)
    await pool.recover(1)
    await pool.unblock(2)
    assert await told(pool) == [("SUSPENDED", 1), ("BLOCKED", 2), ("RECOVERED", 1), ("UNBLOCKED", 2)]
    figures = await pool.figures()
    assert (figures.total, figures.available, figures.suspended, figures.blocked) == (4, 4, 0, 0)


@pytest.mark.parametrize("verb", ["suspend", "recover", "block", "unblock", "discard_token"])
async def test_nobody_of_that_number_is_unknown(world, verb):
    pool = await world.pool(1)
    with pytest.raises(Unknown):
        await getattr(pool, verb)(7)


async def test_a_verb_that_its_state_does_not_allow_is_refused_and_changes_nothing(world):
    pool = await world.pool(2)
    await pool.block(2)
    for verb, agent_id in (("recover", 1), ("unblock", 1), ("suspend", 2), ("recover", 2)):
        with pytest.raises(WrongVerb):
            await getattr(pool, verb)(agent_id)
    assert await told(pool) == [("BLOCKED", 2)]


async def test_who_is_blocked_while_suspended_no_longer_rests(world):
    pool = await world.pool(2)
    await pool.suspend(1)
    await pool.block(1)
    assert (await standing(pool, 1)).identity.suspended_at is None
    world.clock.go(2 * HOUR)
    assert await pool.recover_due() == []


async def test_who_is_unblocked_begins_to_count_failed_issues_anew(world):
    pool = await world.pool([an_identity(1, token=None), an_identity(2)])
    for _ in range(3):
        await ask(pool, 1, Verdict.NEUTRAL, **ISSUE)
        world.clock.go(1)
    await pool.unblock(1)
    assert (await standing(pool, 1)).identity.token_failures == 0
    await ask(pool, 1, Verdict.NEUTRAL, **ISSUE)
    assert (await standing(pool, 1)).identity.status is IdentityStatus.AVAILABLE


async def test_a_discarded_token_is_gone_with_the_next_lease(world):
    pool = await world.pool(1)
    await pool.discard_token(1)
    assert (await pool.lease(1)).leases[0].token is None


async def test_who_is_suspended_while_lent_is_not_lent_again(world):
    pool = await world.pool(2)
    lease = await pool.lease_of(1)
    await pool.suspend(1)
    assert (await standing(pool, 1)).leased_until == lease.deadline
    assert await pool.report([said(lease)]) == [True]
    world.clock.go(10)
    assert await pool.lease_of(1) is None
    await pool.recover(1)
    assert await pool.lease_of(1)
