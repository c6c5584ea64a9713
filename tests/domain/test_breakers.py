"""Breakers: one trial at a time, one incident counted once, strangers heard by nobody."""

from copy import deepcopy
from datetime import timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from builders import NOON, at
from sellerwatch.domain.breakers import Breaker, BreakerScope, BreakerState, Transition

TIMEOUT = timedelta(seconds=600)
DRAWN = {
    (BreakerState.CLOSED, BreakerState.OPEN),
    (BreakerState.OPEN, BreakerState.HALF_OPEN),
    (BreakerState.HALF_OPEN, BreakerState.CLOSED),
    (BreakerState.HALF_OPEN, BreakerState.OPEN),
    (BreakerState.OPEN, BreakerState.CLOSED),
}
"""The last one by hand only."""


def a_breaker(threshold: int = 3) -> Breaker:
    return Breaker(BreakerScope.IDENTITY, threshold, TIMEOUT, agent_id=7)


def half_open(trial: str = "trial") -> Breaker:
    breaker = a_breaker()
    breaker.trip(NOON, "many failures")
    breaker.begin_trial(trial, at(630), at(600))
    return breaker


class TheLifeOfABreaker(RuleBasedStateMachine):
    """Requests go out when they are admitted, and sometimes when they aren't; answers come late, twice or never."""

    @initialize(threshold=st.integers(1, 4))
    def begin(self, threshold: int) -> None:
        self.breaker = a_breaker(threshold)
        self.now = NOON
        self.sent = 0
        self.tellings: list[Transition] = []

    def took(self, transition: Transition | None, before: Breaker) -> None:
        if transition is None:
            assert self.breaker.state is before.state
            return
        assert (transition.from_state, transition.to_state) == (before.state, self.breaker.state)
        assert (transition.from_state, transition.to_state) in DRAWN
        assert (transition.at, transition.agent_id) == (self.now, 7)
        self.tellings.append(transition)

    @rule(seconds=st.sampled_from([0, 1, 29, 30, 31, 599, 600, 601]))
    def time_passes(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    @rule()
    def send(self) -> None:
        before = deepcopy(self.breaker)
        self.sent += 1
        self.took(self.breaker.begin_trial(f"request {self.sent}", self.now + timedelta(seconds=30), self.now), before)
        is_trial = before.state is not BreakerState.CLOSED and before.admits(self.now)
        assert (self.breaker.trial_id == f"request {self.sent}") == is_trial
        assert is_trial or self.breaker == before

    @rule(which=st.integers(1, 6), may_close=st.booleans())
    def succeed(self, which: int, may_close: bool) -> None:
        before, request = deepcopy(self.breaker), f"request {which}"
        self.took(self.breaker.success(request, self.now, may_close=may_close), before)
        if before.state is not BreakerState.CLOSED and before.trial_id != request:
            assert self.breaker == before

    @rule(which=st.integers(1, 6))
    def fail(self, which: int) -> None:
        before, request = deepcopy(self.breaker), f"request {which}"
        self.took(self.breaker.failure(request, self.now, "HTTP 500"), before)
        if before.state is not BreakerState.CLOSED and before.trial_id != request:
            assert self.breaker == before

    @rule(which=st.integers(1, 6))
    def forget(self, which: int) -> None:
        before = deepcopy(self.breaker)
        self.breaker.forget_trial(f"request {which}")
        assert before.trial_id == f"request {which}" or self.breaker == before

    @rule()
    def trip(self) -> None:
        before = deepcopy(self.breaker)
        self.took(self.breaker.trip(self.now, "many failures"), before)
        assert self.breaker.state is BreakerState.OPEN

    @rule()
    def close(self) -> None:
        before = deepcopy(self.breaker)
        self.took(self.breaker.close(self.now, "by hand"), before)
        assert self.breaker.state is BreakerState.CLOSED

    @invariant()
    def a_trial_is_under_way_only_while_half_open(self) -> None:
        assert self.breaker.trial_id is None or self.breaker.state is BreakerState.HALF_OPEN
        assert (self.breaker.trial_id is None) == (self.breaker.trial_until is None)

    @invariant()
    def it_counts_below_its_threshold_while_closed(self) -> None:
        assert self.breaker.state is not BreakerState.CLOSED or self.breaker.failure_count < self.breaker.threshold

    @invariant()
    def its_transitions_make_one_unbroken_story(self) -> None:
        states = [BreakerState.CLOSED, *(telling.to_state for telling in self.tellings)]
        assert [telling.from_state for telling in self.tellings] == states[:-1]
        assert states[-1] is self.breaker.state

    @invariant()
    def closed_it_admits_and_otherwise_says_when_it_will(self) -> None:
        retry_at = self.breaker.retry_at()
        if self.breaker.state is BreakerState.CLOSED:
            assert retry_at is None
        assert self.breaker.admits(self.now) == (retry_at is None or retry_at <= self.now)
        assert retry_at is None or self.breaker.admits(retry_at)


TestTheLifeOfABreaker = TheLifeOfABreaker.TestCase


@pytest.mark.parametrize("threshold", [1, 2, 3, 10])
def test_so_many_failures_in_a_row_open_it_and_one_fewer_does_not(threshold: int) -> None:
    breaker = a_breaker(threshold)
    for number in range(threshold - 1):
        assert breaker.failure(str(number), NOON, "HTTP 500") is None
    opened = breaker.failure("last", NOON, "HTTP 500")
    assert opened is not None
    assert (opened.from_state, opened.to_state, opened.failure_count) == ("CLOSED", "OPEN", threshold)


def test_a_success_between_failures_begins_the_count_anew() -> None:
    breaker = a_breaker(3)
    for number in range(30):
        breaker.failure(str(number), NOON, "HTTP 500")
        breaker.failure(str(number), NOON, "HTTP 500")
        breaker.success(str(number), NOON)
    assert (breaker.state, breaker.failure_count) == (BreakerState.CLOSED, 0)


def test_one_incident_counts_once_however_many_requests_were_in_flight() -> None:
    breaker = a_breaker(3)
    told = [breaker.failure(f"request {number}", at(number), "HTTP 500") for number in range(80)]
    assert sum(transition is not None for transition in told) == 1
    assert (breaker.failure_count, breaker.opened_at) == (3, at(2))


def test_open_it_admits_nothing_before_its_time_and_one_trial_at_it() -> None:
    breaker = a_breaker()
    breaker.trip(NOON, "many failures")
    assert not breaker.admits(at(599.999999))
    assert breaker.begin_trial("early", at(700), at(599)) is None
    assert (breaker.state, breaker.trial_id) == (BreakerState.OPEN, None)
    assert breaker.admits(at(600))
    assert breaker.begin_trial("trial", at(630), at(600)) is not None
    assert not breaker.admits(at(601))


def test_a_second_request_never_takes_the_place_of_the_trial_under_way() -> None:
    breaker = half_open()
    assert breaker.begin_trial("second", at(640), at(610)) is None
    assert (breaker.trial_id, breaker.trial_until) == ("trial", at(630))
    assert breaker.failure("second", at(611), "HTTP 500") is None
    assert breaker.success("second", at(611)) is None
    assert breaker.state is BreakerState.HALF_OPEN


def test_a_trial_whose_holder_vanished_makes_room_for_another() -> None:
    breaker = half_open()
    assert breaker.admits(at(630))
    breaker.begin_trial("second", at(660), at(630))
    assert breaker.trial_id == "second"
    assert breaker.success("trial", at(631)) is None
    closed = breaker.success("second", at(632))
    assert closed is not None
    assert closed.to_state is BreakerState.CLOSED


def test_forgetting_a_strangers_trial_changes_nothing() -> None:
    breaker = half_open()
    before = deepcopy(breaker)
    breaker.forget_trial("another's")
    assert breaker == before
    breaker.forget_trial("trial")
    assert breaker.admits(at(601))


def test_a_trial_that_succeeds_too_early_leaves_it_half_open_for_the_next() -> None:
    breaker = half_open()
    assert breaker.success("trial", at(601), may_close=False) is None
    assert (breaker.state, breaker.trial_id) == (BreakerState.HALF_OPEN, None)
    assert breaker.admits(at(601))


def test_a_trial_that_fails_opens_it_for_the_whole_time_again() -> None:
    breaker = half_open()
    opened = breaker.failure("trial", at(605), "HTTP 500")
    assert opened is not None
    assert breaker.retry_at() == at(605) + TIMEOUT
