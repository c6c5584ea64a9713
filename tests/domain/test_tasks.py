"""Tasks: what a retry costs, what waiting doesn't, and that what is closed stays closed."""

from copy import deepcopy
from datetime import timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from builders import ADDRESSES, NOON, a_publication, a_task, an_execution, an_id, at
from sellerwatch.domain.errors import Invalid, WrongVerb
from sellerwatch.domain.executions import LIST_ROUND
from sellerwatch.domain.outbox import Publication, TaskOutboxStatus
from sellerwatch.domain.tasks import (
    CLOSED,
    OPEN,
    Blame,
    Task,
    TaskKind,
    TaskStatus,
    item_tasks,
    list_tasks,
    new_task,
)

EXECUTION = an_execution()


class TheLifeOfATask(RuleBasedStateMachine):
    """Any verbs in any order, as sweeps, workers, operators and late messages would have them."""

    @initialize(retries=st.integers(0, 3), abandons=st.integers(0, 4))
    def begin(self, retries: int, abandons: int) -> None:
        self.retries, self.abandons = retries, abandons
        self.task = a_task(7)
        self.named = (self.task.task_id, self.task.execution_id, self.task.request_url, self.task.item_no)
        self.now = NOON
        self.attempts = 0
        self.transient = self.vanished = 0
        self.end: Task | None = None

    def tell(self, verb: str, *arguments: object) -> bool:
        """Whether the task let itself be told; refused, it is as it was."""
        before = deepcopy(self.task)
        try:
            getattr(self.task, verb)(*arguments)
        except WrongVerb:
            assert self.task == before
            return False
        if self.task.status in CLOSED and self.end is None:
            self.end = deepcopy(self.task)
        return True

    @rule(seconds=st.integers(0, 200))
    def time_passes(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    @rule()
    def publish(self) -> None:
        self.tell("publish", self.now)

    @rule(seconds=st.integers(1, 60))
    def claim(self, seconds: int) -> None:
        was_held = self.task.has_live_claim(self.now)
        self.attempts += 1
        attempt_id = an_id(f"attempt {self.attempts}")
        if self.tell("claim", attempt_id, "worker-1", self.now + timedelta(seconds=seconds), self.now):
            assert not was_held
            assert self.task.is_held_by(attempt_id)
            assert self.task.error_message is None

    @rule()
    def succeed(self) -> None:
        self.tell("succeed", self.now)

    @rule(blame=st.sampled_from(Blame))
    def miss(self, blame: Blame) -> None:
        before = self.task.retry_count
        if not self.tell("miss", blame, "HTTP 500", self.retries, self.now):
            return
        if blame is Blame.NOT_ITS_OWN:
            assert (self.task.status, self.task.retry_count) == (TaskStatus.RETRY, before)
        if blame is Blame.PERMANENT:
            assert (self.task.status, self.task.retry_count) == (TaskStatus.FAILED, before)
        if blame is Blame.TRANSIENT:
            self.transient += 1
            assert self.task.status is (TaskStatus.RETRY if before < self.retries else TaskStatus.FAILED)

    @rule()
    def abandon(self) -> None:
        before = self.task.retry_count
        if self.tell("abandon", self.abandons, self.now):
            self.vanished += 1
            assert self.task.retry_count == before
            assert self.task.is_open == (self.vanished <= self.abandons)

    @precondition(lambda self: self.attempts > 3)
    @rule()
    def cancel(self) -> None:
        self.tell("cancel", "cancelled", self.now)

    @invariant()
    def its_counts_keep_to_their_bounds(self) -> None:
        assert 0 <= self.task.retry_count <= self.retries
        assert self.task.retry_count <= self.transient
        assert self.task.abandon_count == self.vanished <= self.abandons + 1

    @invariant()
    def it_is_claimed_when_and_only_when_it_runs(self) -> None:
        is_running = self.task.status is TaskStatus.RUNNING
        assert is_running == (self.task.claimed_by is not None) == (self.task.claimed_until is not None)
        assert not is_running or self.task.attempt_id
        assert self.task.status is not TaskStatus.RETRY or self.task.attempt_id is None

    @invariant()
    def it_has_ended_when_and_only_when_it_is_closed(self) -> None:
        assert (self.task.completed_at is not None) == (self.task.status in CLOSED) == (not self.task.is_open)

    @invariant()
    def closed_it_stays_as_it_is(self) -> None:
        assert self.end is None or self.task == self.end

    @invariant()
    def it_stays_the_task_it_was(self) -> None:
        task = self.task
        assert (task.task_id, task.execution_id, task.request_url, task.item_no) == self.named


TestTheLifeOfATask = TheLifeOfATask.TestCase


def test_a_status_is_open_or_closed_and_never_both() -> None:
    assert set(TaskStatus) == OPEN | CLOSED
    assert not OPEN & CLOSED


@pytest.mark.parametrize("retries", range(5))
def test_so_many_retries_are_so_many_attempts_and_one_more(retries: int) -> None:
    task, attempts = a_task(7), 0
    while task.is_open:
        attempts += 1
        task.claim(an_id(attempts), "worker-1", at(60), NOON)
        task.miss(Blame.TRANSIENT, "HTTP 500", retries, NOON)
    assert (attempts, task.status, task.error_message) == (retries + 1, TaskStatus.FAILED, "HTTP 500")


def test_waiting_costs_no_retry_however_long_it_lasts() -> None:
    task = a_task(7)
    for attempt in range(1000):
        task.claim(an_id(attempt), "worker-1", at(60), NOON)
        task.miss(Blame.NOT_ITS_OWN, "no identity free", 0, NOON)
    assert (task.status, task.retry_count, task.abandon_count) == (TaskStatus.RETRY, 0, 0)


def test_a_live_claim_is_respected_to_its_last_moment_and_not_beyond() -> None:
    task = a_task(7, state=TaskStatus.RUNNING)
    with pytest.raises(WrongVerb):
        task.claim(an_id("other"), "worker-2", at(120), at(59.999))
    task.claim(an_id("other"), "worker-2", at(120), at(60))
    assert task.is_held_by(an_id("other"))


def test_who_lost_the_claim_no_longer_holds_the_task() -> None:
    task = a_task(7, state=TaskStatus.RUNNING)
    first = task.attempt_id or ""
    task.claim(an_id("other"), "worker-2", at(200), at(61))
    assert not task.is_held_by(first)
    task.abandon(30, at(300))
    assert not task.is_held_by(an_id("other"))


def test_a_message_that_arrived_before_the_mark_counts_as_published() -> None:
    task = a_task(7)
    task.claim(an_id("attempt"), "worker-1", at(60), NOON)
    assert task.published_at == NOON
    task.publish(at(5))
    assert (task.status, task.published_at) == (TaskStatus.RUNNING, NOON)


def test_a_task_asked_for_twice_is_the_same_one() -> None:
    once = item_tasks(EXECUTION.execution_id, "shop-1", 42, ADDRESSES, NOON)
    again = item_tasks(EXECUTION.execution_id, "shop-1", 42, ADDRESSES, at(9))
    assert [task.task_id for task in once] == [task.task_id for task in again]
    others = item_tasks(an_id("other run"), "shop-1", 42, ADDRESSES, NOON)
    others += item_tasks(EXECUTION.execution_id, "shop-1", 43, ADDRESSES, NOON)
    assert {task.task_id for task in once}.isdisjoint(task.task_id for task in others)


@pytest.mark.parametrize(
    ("count", "pages"), [(0, 0), (1, 1), (499, 1), (500, 1), (501, 2), (1000, 2), (20_000, 40), (20_001, 41)]
)
def test_a_shop_has_a_page_for_every_five_hundred_items_and_none_when_it_is_empty(count: int, pages: int) -> None:
    tasks = list_tasks(EXECUTION.execution_id, "shop-1", count, 500, ADDRESSES, NOON)
    assert [task.page_no for task in tasks] == list(range(pages))
    assert len({task.task_id for task in tasks}) == pages


def test_the_rounds_over_a_list_ask_for_the_same_pages_as_tasks_of_their_own() -> None:
    first = list_tasks(EXECUTION.execution_id, "shop-1", 1200, 500, ADDRESSES, NOON)
    second = list_tasks(EXECUTION.execution_id, "shop-1", 1200, 500, ADDRESSES, NOON, first_no=LIST_ROUND)
    assert [task.request_url for task in first] == [task.request_url for task in second]
    assert {task.task_id for task in first}.isdisjoint(task.task_id for task in second)


@pytest.mark.parametrize("kind", TaskKind)
def test_a_task_is_not_made_for_an_address_of_another_kind_or_host(kind: TaskKind) -> None:
    urls = {
        TaskKind.MINI_SHOP: ADDRESSES.mini_shop("shop-1", 0, 500),
        TaskKind.SEARCH: ADDRESSES.search("shop-1"),
        TaskKind.DETAIL: ADDRESSES.detail(7),
        TaskKind.OPTION: ADDRESSES.option(7),
    }
    assert new_task(EXECUTION.execution_id, "shop-1", kind, urls[kind], ADDRESSES, NOON).request_url == urls[kind]
    for other, url in urls.items():
        for refused in [url.replace("shop.test", "evil.test")] + ([url] if other is not kind else []):
            with pytest.raises(Invalid):
                new_task(EXECUTION.execution_id, "shop-1", kind, refused, ADDRESSES, NOON)


def test_lists_go_in_order_by_seller_and_items_in_parallel() -> None:
    page, detail = a_task(), a_task(42)
    assert (page.message_group, detail.message_group) == ("shop-1", "shop-1:42")
    assert page.priority < detail.priority
    assert Publication.of(page, NOON).message_group == "shop-1"


def test_a_publication_under_way_keeps_its_id_until_it_was_accepted() -> None:
    row = a_publication(a_task(7))
    first = row.dedup_id
    assert first == f"outbox-{row.task_id}-1"
    row.status = type(row.status).PROCESSING
    row.refused("no reply", 3, at(5))
    assert row.dedup_id == first
    row.status = type(row.status).PROCESSING
    row.sent(at(6))
    row.again(at(7))
    assert row.dedup_id == f"outbox-{row.task_id}-2"
    assert (row.idempotency_key, row.retry_count) == (f"outbox-{row.task_id}", 0)


def test_a_publication_whose_attempt_ended_before_its_mark_had_been_accepted() -> None:
    row = a_publication(a_task(7), status=TaskOutboxStatus.PROCESSING, claimed_by="relay-1", claimed_until=at(30))
    row.again(at(7))
    assert (row.status, row.dedup_id) == (TaskOutboxStatus.PENDING, f"outbox-{row.task_id}-2")
    assert (row.claimed_by, row.claimed_until, row.next_attempt_at) == (None, None, at(7))
