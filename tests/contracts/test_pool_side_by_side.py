"""The pool in the database and the pool in Redis, one clock, the same calls in whatever order: the same answers.

Compared after each call: who is lent, why nobody is and until when, what reports and verbs answer, and then the figures,
every standing and every event. Ids of leases, numbers of revisions and epochs are each engine's own.
"""

import asyncio
import re
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from contracts.pool_world import MORNING, FakeClock, a_token, afresh, an_identity, held, some_limits
from sellerwatch.domain.errors import Refused
from sellerwatch.domain.identities import IdentityStatus, Verdict
from sellerwatch.ports.pool import Report

MEMBERS = 9
NUMBERS = st.integers(1, MEMBERS + 1)
LIMITS = {
    "hourly_limit": 5,
    "window_seconds": 60.0,
    "guard_seconds": 2.5,
    "lease_seconds": 7.0,
    "concurrency": 6,
    "site_requests_per_second": 5.0,
    "breaker_open_seconds": 20.0,
    "min_available_percent": 30.0,
}
STORIES = (
    {},
    {"is_paced_evenly": True, "hourly_limit": 7},
    {"site_failure_percent": 10.0, "hourly_limit": 40, "site_requests_per_second": 50.0, "min_interval_seconds": 0.1},
    {"site_requests_per_second": 0.4, "probation": timedelta(minutes=30), "identity_failure_threshold": 1},
    {"hourly_limit": 1, "min_available_percent": 0.0, "concurrency": 2},
    {"min_interval_seconds": 0.0, "hourly_limit": 30, "site_requests_per_second": 3.5, "concurrency": 30},
)
WAITS = st.sampled_from([None, None, None, timedelta(0), timedelta(seconds=3), timedelta(minutes=2), timedelta(days=3)])


def some_members():
    resting = {"status": IdentityStatus.SUSPENDED, "suspended_at": MORNING - timedelta(minutes=40)}
    blocked = {"status": IdentityStatus.BLOCKED, "is_blocked_by_hand": True}
    kinds = {2: {"token": None}, 4: {"health_score": 35}, 5: {"token": None}, 7: resting, 8: blocked}
    return [an_identity(number, **kinds.get(number, {})) for number in range(1, MEMBERS + 1)]


class SideBySide(RuleBasedStateMachine):
    server = None

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.runner = self.stack.enter_context(asyncio.Runner())
        self.clock = FakeClock()
        self.worlds = [
            self.stack.enter_context(held(self.runner.run, afresh(name, self.server, self.clock)))
            for name in ("sql", "redis")
        ]
        # (the lease of one, the lease of the other): out or over, nobody knows.
        self.pairs = []

    @initialize(story=st.sampled_from(STORIES))
    def begin(self, story) -> None:
        # How long what went out is remembered above a new ceiling is not promised; so the ceiling stays.
        self.ceiling = {"site_requests_per_second": (LIMITS | story)["site_requests_per_second"]}
        self.follow(story)
        self.both(lambda pool: pool.load(some_members()))

    def follow(self, story) -> None:
        limits = some_limits(**LIMITS | story | self.ceiling)
        self.pools = [world.engine(limits) for world in self.worlds]

    def each(self, call) -> list:
        """What each of the two answers, or how it refuses."""
        return [self.runner.run(answer(call, pool)) for pool in self.pools]

    def both(self, call):
        one, other = self.each(call)
        assert one == other
        return one

    def lent(self, one, other) -> None:
        assert [shown(lease) for lease in one] == [shown(lease) for lease in other]
        self.pairs += zip(one, other, strict=True)

    @rule(count=st.integers(1, 10))
    def lease(self, count: int) -> None:
        one, other = self.each(lambda pool: pool.lease(count))
        self.lent(one.leases, other.leases)
        assert (one.why, one.next_at) == (other.why, other.next_at)

    @rule(agent_id=NUMBERS)
    def lease_of(self, agent_id: int) -> None:
        one, other = self.each(lambda pool: pool.lease_of(agent_id))
        assert (one is None) == (other is None)
        if one is not None:
            self.lent([one], [other])

    def chosen(self, data):
        """Mostly late ones first: what is out, and now and then what is long over."""
        recent = self.pairs[-12:]
        return data.draw(st.lists(st.sampled_from(range(len(recent))), min_size=1, max_size=8)), recent

    @precondition(lambda self: self.pairs)
    @rule(data=st.data(), all_alike=st.sampled_from([None, None, *Verdict]))
    def report(self, data, all_alike) -> None:
        numbers, recent = self.chosen(data)
        said = [self.a_report(data, all_alike) for _ in numbers]
        batches = [
            [
                replace(report, lease_id=recent[number][side].lease_id, agent_id=recent[number][side].agent_id)
                for number, report in zip(numbers, said, strict=True)
            ]
            for side in range(2)
        ]
        answers = [self.runner.run(pool.report(batch)) for pool, batch in zip(self.pools, batches, strict=True)]
        assert answers[0] == answers[1]

    def a_report(self, data, verdict) -> Report:
        verdict = verdict or data.draw(st.sampled_from([Verdict.SUCCESS, *Verdict]))
        is_refused, is_issue = data.draw(st.booleans()), data.draw(st.sampled_from([False, False, True]))
        fresh = data.draw(st.sampled_from([None, None, "new", "newer"])) if not is_refused else None
        token = fresh and a_token(fresh, expires_at=self.clock.at + timedelta(hours=len(fresh)))
        retry_after = data.draw(WAITS)
        return Report("", 0, verdict, 200, retry_after, token, is_refused and is_issue, is_issue)

    @rule(verdict=st.sampled_from(Verdict), rounds=st.integers(1, 6), batch=st.sampled_from([2, 9]))
    def many_are_answered_alike(self, verdict: Verdict, rounds: int, batch: int) -> None:
        for _ in range(rounds):
            self.lease(batch)
            pairs, self.pairs = self.pairs[-batch:], self.pairs[:-batch]
            answers = [
                self.runner.run(
                    pool.report([Report(pair[side].lease_id, pair[side].agent_id, verdict) for pair in pairs])
                )
                for side, pool in enumerate(self.pools)
            ]
            assert answers[0] == answers[1]
            self.clock.go(1.5)

    @precondition(lambda self: self.pairs)
    @rule(data=st.data())
    def cancel(self, data) -> None:
        numbers, recent = self.chosen(data)
        given = [
            [(recent[number][side].lease_id, recent[number][side].agent_id) for number in numbers] for side in (0, 1)
        ]
        one, other = [self.runner.run(pool.cancel(ids)) for pool, ids in zip(self.pools, given, strict=True)]
        assert one == other

    @rule(agent_id=NUMBERS, verb=st.sampled_from(["suspend", "recover", "block", "unblock", "discard_token"]))
    def by_hand(self, agent_id: int, verb: str) -> None:
        self.both(lambda pool: getattr(pool, verb)(agent_id))

    @rule(agent_id=NUMBERS)
    def keep_token(self, agent_id: int) -> None:
        self.both(lambda pool: pool.keep_token(agent_id, a_token(f"token of {agent_id}", key="k2")))

    @rule(left_out=st.sets(NUMBERS, max_size=4), story=st.sampled_from([None, None, *STORIES]))
    def load(self, left_out, story) -> None:
        if story is not None:
            self.follow(story)
        members = [each for each in some_members() if each.agent_id not in left_out]
        self.both(lambda pool: pool.load(members))

    @rule(tenths=st.one_of(st.integers(1, 20), st.integers(1, 700), st.sampled_from([36_000, 90_000])))
    def time_passes(self, tenths: int) -> None:
        self.clock.go(tenths / 10)

    @rule()
    def time_passes_as_told(self) -> None:
        outlook = self.both(lambda pool: pool.outlook())
        if outlook.next_at is not None:
            self.clock.at = max(self.clock.at, outlook.next_at)

    @rule()
    def sweep(self) -> None:
        self.both(lambda pool: pool.expire())
        self.both(lambda pool: pool.recover_due())

    @rule(seconds=st.sampled_from([0.0, 1.0, 30.0, 600.0]), hours=st.integers(1, 7))
    def look(self, seconds: float, hours: int) -> None:
        self.both(lambda pool: pool.capacity(seconds))
        self.both(lambda pool: pool.refreshable(MORNING + timedelta(hours=hours), 3))

    @invariant()
    def they_show_the_same(self) -> None:
        if not hasattr(self, "pools"):
            return
        one, other = self.each(lambda pool: pool.figures())
        assert same_figures(one) == same_figures(other)
        one, other = self.each(lambda pool: pool.standings())
        assert same_standings(one) == same_standings(other)
        one, other = self.each(lambda pool: pool.events())
        assert same_events(one) == same_events(other)
        for pool, told in zip(self.pools, (one, other), strict=True):
            if told:
                self.runner.run(pool.forget_events(told[-1].number))

    def teardown(self) -> None:
        self.stack.close()


async def answer(call, pool):
    try:
        return await call(pool)
    except Refused as refusal:
        return (type(refusal), str(refusal))


def shown(lease):
    token = lease.token and (lease.token.sealed, lease.token.fingerprint, lease.token.expires_at)
    return (lease.agent_id, lease.user_agent, token, lease.leased_at, lease.deadline, lease.is_trial)


def without_id(breaker):
    return replace(breaker, trial_id=breaker.trial_id and "some lease")


def same_figures(figures):
    return replace(
        figures, pool_breaker=without_id(figures.pool_breaker), site_breaker=without_id(figures.site_breaker)
    )


def same_standings(standings):
    alike = [replace(each, revision=0, breaker=without_id(each.breaker)) for each in standings]
    return sorted(alike, key=lambda each: each.identity.agent_id)


def same_events(events):
    # Above the bits of its epoch, an event's number is its place.
    return [
        replace(each, number=each.number % 2**32, reason=re.sub(r"^lease \S+", "lease", each.reason)) for each in events
    ]


@pytest.mark.slow
def test_the_two_engines_give_the_same_answers(redis_server):
    machine = type("Machine", (SideBySide,), {"server": redis_server})
    run_state_machine_as_test(machine, settings=settings(stateful_step_count=40))
