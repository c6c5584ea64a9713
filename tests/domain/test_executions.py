"""Executions: their counters, their end, and what their list came to."""

from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from builders import NOON, an_execution, at
from sellerwatch.domain.errors import WrongVerb
from sellerwatch.domain.executions import LIST_ROUNDS_MAX, Execution, ExecutionStatus, ListState, list_verdict


class TheLifeOfAnExecution(RuleBasedStateMachine):
    """Its tasks come and go as the steps would have it: counted where they end, never twice."""

    @initialize(retries=st.integers(0, 3))
    def begin(self, retries: int) -> None:
        self.execution = an_execution(status=ExecutionStatus.STARTED)
        self.retries = retries
        self.tasks_open = self.put_offs = 0
        self.ended: tuple[ExecutionStatus, object, str | None] | None = None

    def tell(self, verb: str, *arguments: object, **named: object) -> bool:
        before = deepcopy(self.execution)
        try:
            getattr(self.execution, verb)(*arguments, **named)
        except WrongVerb:
            assert self.execution == before
            return False
        return True

    @rule(tasks=st.integers(0, 4))
    def plan(self, tasks: int) -> None:
        if self.tell("plan", tasks, tasks * 500, NOON):
            self.tasks_open = tasks
            assert self.execution.is_open == bool(tasks)
            assert self.execution.error_message is None

    @rule()
    def put_off(self) -> None:
        if self.tell("put_off", "timeout", self.retries, at(60), NOON):
            self.put_offs += 1
            assert self.execution.is_open == (self.put_offs <= self.retries)

    @rule()
    def wait(self) -> None:
        before = self.execution.plan_attempts
        self.tell("wait", at(60))
        assert self.execution.plan_attempts == before

    @rule(tasks=st.integers(0, 3))
    def grow(self, tasks: int) -> None:
        if self.tell("grow", tasks):
            self.tasks_open += tasks

    @rule(succeeded=st.integers(0, 3), failed=st.integers(0, 3))
    def tasks_end(self, succeeded: int, failed: int) -> None:
        succeeded = min(succeeded, self.tasks_open)
        failed = min(failed, self.tasks_open - succeeded)
        self.execution.count(succeeded, failed)
        self.tasks_open -= succeeded + failed

    @rule(is_complete=st.booleans())
    def end_list(self, is_complete: bool) -> None:
        if self.tell("end_list", is_complete=is_complete):
            assert self.execution.is_open

    @rule()
    def complete(self) -> None:
        was_running = self.execution.status is ExecutionStatus.IN_PROGRESS
        assert self.execution.complete_if_done(at(9)) == (was_running and not self.tasks_open)

    @rule()
    def settle_list(self) -> None:
        if self.tell("settle_list"):
            assert not self.execution.is_open

    @rule()
    def cancel(self) -> None:
        if self.tell("cancel", self.tasks_open, at(9)):
            self.tasks_open = 0
            assert (self.execution.status, self.execution.error_message) == (ExecutionStatus.FAILED, "cancelled")

    @invariant()
    def its_counters_are_its_tasks(self) -> None:
        assert self.execution.open_tasks == self.tasks_open >= 0

    @invariant()
    def its_rates_are_shares_of_a_hundred(self) -> None:
        execution = self.execution
        assert 0 <= execution.success_rate <= execution.progress_rate <= 100
        assert execution.total_tasks or execution.progress_rate == execution.success_rate == 0

    @invariant()
    def ended_it_stays_ended(self) -> None:
        execution = self.execution
        assert execution.is_open == (execution.completed_at is None)
        assert execution.plan_attempts == self.put_offs <= self.retries + 1
        if execution.is_open:
            return
        assert execution.list_state is not ListState.OPEN
        assert execution.next_attempt_at is None
        end = execution.status, execution.completed_at, execution.error_message
        self.ended = self.ended or end
        assert end == self.ended
        assert execution.status is not ExecutionStatus.COMPLETED or not self.tasks_open


TestTheLifeOfAnExecution = TheLifeOfAnExecution.TestCase


def test_started_is_written_with_nothing_counted_and_asked_for_at_once() -> None:
    execution = Execution.start("e", "s", "nord", "run", NOON)
    assert (execution.status, execution.total_tasks, execution.next_attempt_at) == (ExecutionStatus.STARTED, 0, NOON)


def test_an_empty_shop_is_completed_at_once_and_its_list_is_whole() -> None:
    execution = an_execution(status=ExecutionStatus.STARTED)
    execution.plan(0, 0, at(1))
    assert (execution.status, execution.completed_at) == (ExecutionStatus.COMPLETED, at(1))
    assert (execution.list_state, execution.progress_rate) == (ListState.COMPLETE, 0.0)


def test_what_was_put_off_and_then_planned_bears_no_error_of_before() -> None:
    execution = an_execution(status=ExecutionStatus.STARTED)
    execution.put_off("timeout", 3, at(60), NOON)
    assert execution.error_message == "timeout"
    execution.plan(1, 5, at(61))
    assert (execution.error_message, execution.next_attempt_at) == (None, None)


def test_waiting_is_not_an_attempt_and_the_last_attempt_fails_with_its_error() -> None:
    execution = an_execution(status=ExecutionStatus.STARTED)
    for _ in range(50):
        execution.wait(at(5))
    for _ in range(3):
        execution.put_off("timeout", 3, at(60), NOON)
    assert execution.is_open
    execution.put_off("HTTP 503", 3, at(60), at(99))
    assert (execution.status, execution.error_message) == (ExecutionStatus.FAILED, "HTTP 503")
    assert (execution.list_state, execution.completed_at) == (ListState.INCOMPLETE, at(99))


def test_a_cancel_that_is_refused_counts_nothing() -> None:
    execution = an_execution(total_tasks=2, completed_tasks=2)
    execution.complete_if_done(at(1))
    with pytest.raises(WrongVerb):
        execution.cancel(5, at(2))
    assert execution.failed_tasks == 0


@pytest.mark.parametrize("is_complete", [True, False])
def test_absences_are_drawn_from_a_list_once_and_never_again(is_complete: bool) -> None:
    execution = an_execution(total_tasks=1, completed_tasks=1)
    execution.end_list(is_complete=is_complete)
    execution.complete_if_done(at(1))
    execution.settle_list()
    with pytest.raises(WrongVerb):
        execution.end_list(is_complete=True)
    assert execution.list_state is ListState.SETTLED


def test_a_crawl_whose_list_never_ended_proves_no_absence() -> None:
    execution = an_execution(total_tasks=1, failed_tasks=1)
    assert execution.complete_if_done(at(1))
    assert execution.list_state is ListState.INCOMPLETE


def test_an_execution_that_fails_proves_no_absence_whatever_its_list_was() -> None:
    execution = an_execution(total_tasks=3)
    execution.end_list(is_complete=True)
    execution.fail("broken", at(1))
    assert execution.list_state is ListState.INCOMPLETE


@pytest.mark.parametrize(
    ("total", "completed", "failed", "progress", "success"),
    [(0, 0, 0, 0.0, 0.0), (3, 1, 0, 33.33, 33.33), (3, 1, 1, 66.67, 33.33), (3, 3, 0, 100.0, 100.0), (7, 0, 7, 100, 0)],
)
def test_the_rates_are_computed_and_rounded_to_two_decimals(
    total: int, completed: int, failed: int, progress: float, success: float
) -> None:
    execution = an_execution(total_tasks=total, completed_tasks=completed, failed_tasks=failed)
    assert (execution.progress_rate, execution.success_rate) == (progress, success)


@pytest.mark.parametrize(
    ("listed", "expected", "has_failed_pages", "rounds", "verdict"),
    [
        (500, 500, False, 1, (ListState.COMPLETE, False)),
        (501, 500, False, 1, (ListState.COMPLETE, False)),
        (0, 0, False, 1, (ListState.COMPLETE, False)),
        (17, None, False, 1, (ListState.COMPLETE, False)),
        (499, 500, False, 1, (ListState.OPEN, True)),
        (499, 500, False, 2, (ListState.OPEN, True)),
        (499, 500, False, 3, (ListState.INCOMPLETE, False)),
        (500, 500, True, 1, (ListState.INCOMPLETE, False)),
        (0, 500, True, 1, (ListState.INCOMPLETE, False)),
        (17, None, True, 1, (ListState.INCOMPLETE, False)),
    ],
)
def test_the_list_is_whole_looked_at_again_or_not_taken_for_the_truth(
    listed: int, expected: int | None, has_failed_pages: bool, rounds: int, verdict: tuple[ListState, bool]
) -> None:
    found = list_verdict(listed=listed, expected=expected, has_failed_pages=has_failed_pages, rounds=rounds)
    assert found == verdict


@given(st.integers(0, 9), st.none() | st.integers(0, 9), st.booleans(), st.integers(1, LIST_ROUNDS_MAX))
def test_a_list_is_never_whole_with_fewer_items_than_it_says_or_with_a_page_that_failed(
    listed: int, expected: int | None, has_failed_pages: bool, rounds: int
) -> None:
    state, is_due = list_verdict(listed=listed, expected=expected, has_failed_pages=has_failed_pages, rounds=rounds)
    if state is ListState.COMPLETE:
        assert not has_failed_pages
        assert expected is None or listed >= expected
    assert is_due == (state is ListState.OPEN)
    assert not (is_due and rounds >= LIST_ROUNDS_MAX)
