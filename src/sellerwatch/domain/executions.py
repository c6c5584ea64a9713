"""Executions: one crawl of one seller.

    start ─▶ STARTED ── plan ─▶ IN_PROGRESS ── (no task left open) ─▶ COMPLETED
                │                    │
                '────── fail ────────┴── cancel ─▶ FAILED

STARTED is written before anything is asked of the marketplace. The counters follow the tasks in the transaction
that changes them; a crawl whose list could not be had whole is INCOMPLETE and ends no listing.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sellerwatch.domain.documents import DocumentKind
from sellerwatch.domain.errors import WrongVerb

LIST_ROUNDS_MAX = 3
LIST_ROUND = 10_000
"""Page numbers of the second round over a list begin here, of the third at twice this."""


class ExecutionStatus(StrEnum):
    STARTED = "STARTED"
    IN_PROGRESS = "IN_PROGRESS"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


class ListState(StrEnum):
    """What is known of the seller's list in this execution."""

    OPEN = "OPEN"
    COMPLETE = "COMPLETE"
    INCOMPLETE = "INCOMPLETE"
    UNCONFIRMED = "UNCONFIRMED"
    """Drawing its absences would delist too much of the shop at once: a person is asked, or the next crawl."""
    SETTLED = "SETTLED"
    """Its absences have been drawn; nothing more follows from this list."""


@dataclass(slots=True)
class Execution:
    execution_id: str
    schedule_id: str
    seller_id: str
    trigger_key: str
    status: ExecutionStatus
    started_at: datetime
    total_tasks: int = 0
    completed_tasks: int = 0
    failed_tasks: int = 0
    completed_at: datetime | None = None
    error_message: str | None = None
    plan_attempts: int = 0
    next_attempt_at: datetime | None = None
    expected_items: int | None = None
    list_state: ListState = ListState.OPEN
    same_lists: int = 0
    """Entries of its lists that were the same to the byte, and so led to no document."""
    same_details: int = 0
    same_options: int = 0
    full_pages: int = 0
    """Pages of its lists that should have been full, by the list's own count."""
    full_page_entries: int = 0

    @classmethod
    def start(cls, execution_id: str, schedule_id: str, seller_id: str, trigger_key: str, at: datetime) -> "Execution":
        return cls(execution_id, schedule_id, seller_id, trigger_key, ExecutionStatus.STARTED, at, next_attempt_at=at)

    @property
    def is_open(self) -> bool:
        return self.status in {ExecutionStatus.STARTED, ExecutionStatus.IN_PROGRESS}

    @property
    def open_tasks(self) -> int:
        return self.total_tasks - self.completed_tasks - self.failed_tasks

    @property
    def progress_rate(self) -> float:
        return _percent(self.completed_tasks + self.failed_tasks, self.total_tasks)

    @property
    def success_rate(self) -> float:
        return _percent(self.completed_tasks, self.total_tasks)

    def plan(self, tasks: int, expected_items: int | None, at: datetime) -> None:
        """Its first tasks exist. An empty shop has none and is COMPLETED at once."""
        self._only(ExecutionStatus.STARTED, "plan")
        self.status, self.total_tasks, self.expected_items = ExecutionStatus.IN_PROGRESS, tasks, expected_items
        self.next_attempt_at = self.error_message = None
        if not tasks:
            self.end_list(is_complete=True)
            self._end(ExecutionStatus.COMPLETED, at)

    def put_off(self, error: str, retries_max: int, next_at: datetime, at: datetime) -> None:
        """The count could not be had. After the last retry: FAILED with the error."""
        self._only(ExecutionStatus.STARTED, "put_off")
        self.plan_attempts += 1
        if self.plan_attempts > retries_max:
            self.fail(error, at)
        else:
            self.error_message, self.next_attempt_at = error, next_at

    def wait(self, until: datetime) -> None:
        """No identity, or a breaker is open: not an attempt."""
        self._only(ExecutionStatus.STARTED, "wait")
        self.next_attempt_at = until

    def grow(self, tasks: int) -> None:
        """Follow-up tasks came to exist."""
        self._only(ExecutionStatus.IN_PROGRESS, "grow")
        self.total_tasks += tasks

    def count(self, succeeded: int, failed: int) -> None:
        """Tasks of it ended. Ended by an operator meanwhile, it still counts what comes in."""
        self.completed_tasks += succeeded
        self.failed_tasks += failed

    def saw_same(self, kind: DocumentKind) -> None:
        """A document of it was known to the byte, or was not asked for because its list entry was."""
        match kind:
            case DocumentKind.MINI_SHOP:
                self.same_lists += 1
            case DocumentKind.DETAIL:
                self.same_details += 1
            case DocumentKind.OPTION:
                self.same_options += 1

    def saw_full_page(self, entries: int) -> None:
        self.full_pages, self.full_page_entries = self.full_pages + 1, self.full_page_entries + entries

    def end_list(self, *, is_complete: bool) -> None:
        """All of its pages have ended. What an ended execution's list came to stays as it was drawn."""
        if not self.is_open:
            raise WrongVerb("execution", self.execution_id, self.status, "end_list")
        self.list_state = ListState.COMPLETE if is_complete else ListState.INCOMPLETE

    def settle_list(self) -> None:
        """The absences of its list have been drawn."""
        if self.is_open or self.list_state is ListState.OPEN:
            raise WrongVerb("execution", self.execution_id, f"{self.status}, list {self.list_state}", "settle_list")
        self.list_state = ListState.SETTLED

    def ask_for_confirmation(self) -> None:
        """Its absences wait for a person's word."""
        if self.is_open or self.list_state is not ListState.COMPLETE:
            raise WrongVerb(
                "execution", self.execution_id, f"{self.status}, list {self.list_state}", "ask_for_confirmation"
            )
        self.list_state = ListState.UNCONFIRMED

    def complete_if_done(self, at: datetime) -> bool:
        if self.status is not ExecutionStatus.IN_PROGRESS or self.open_tasks:
            return False
        if self.list_state is ListState.OPEN:
            self.end_list(is_complete=False)
        self._end(ExecutionStatus.COMPLETED, at)
        return True

    def fail(self, error: str, at: datetime) -> None:
        self._break_off("fail", error, at)

    def cancel(self, cancelled_tasks: int, at: datetime) -> None:
        """An operator ends it; its open tasks were cancelled in the same transaction."""
        self._break_off("cancel", "cancelled", at)
        self.failed_tasks += cancelled_tasks

    def _break_off(self, verb: str, error: str, at: datetime) -> None:
        if not self.is_open:
            raise WrongVerb("execution", self.execution_id, self.status, verb)
        self.error_message = error
        self.end_list(is_complete=False)
        self._end(ExecutionStatus.FAILED, at)

    def _end(self, status: ExecutionStatus, at: datetime) -> None:
        self.status, self.completed_at, self.next_attempt_at = status, at, None

    def _only(self, status: ExecutionStatus, verb: str) -> None:
        if self.status is not status:
            raise WrongVerb("execution", self.execution_id, self.status, verb)


@dataclass(frozen=True, slots=True)
class Counted:
    """Tasks, by what became of them."""

    succeeded: int = 0
    failed: int = 0
    open: int = 0

    @property
    def planned(self) -> int:
        return self.succeeded + self.failed + self.open


@dataclass(frozen=True, slots=True)
class Balance:
    """One execution's line in the ledger: what its counters say, and what its tasks come to."""

    execution_id: str
    seller_id: str
    said: Counted
    found: Counted

    @property
    def is_even(self) -> bool:
        """Planned = succeeded + failed + open, each as it is said."""
        return self.said == self.found

    def __str__(self) -> str:
        told = (f"{each.planned} = {each.succeeded} + {each.failed} + {each.open}" for each in (self.said, self.found))
        return "its counters say {}, its tasks are {} (planned = succeeded + failed + open)".format(*told)


def list_verdict(*, listed: int, expected: int | None, has_failed_pages: bool, rounds: int) -> tuple[ListState, bool]:
    """All pages asked for have ended: what the list is now, and whether another round over it is due.

    Items move between pages while a list is read: some are seen twice and some never. Fewer items than the list
    says it has are looked for again, a few times, and then not taken for the truth.
    """
    if has_failed_pages:
        return ListState.INCOMPLETE, False
    if expected is None or listed >= expected:
        return ListState.COMPLETE, False
    if rounds < LIST_ROUNDS_MAX:
        return ListState.OPEN, True
    return ListState.INCOMPLETE, False


def _percent(part: int, whole: int) -> float:
    return round(part * 100 / whole, 2) if whole else 0.0
