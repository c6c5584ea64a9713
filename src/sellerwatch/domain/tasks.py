"""Tasks: one request to make each; attempts: one try of a task each.

    WAITING ─▶ PUBLISHED ─▶ RUNNING ─▶ SUCCESS
       │           │           ├─────▶ RETRY ─▶ PUBLISHED     while retries are left; waiting costs none
       │           │           └─────▶ FAILED                 retries used up, or the failure is permanent
       │           ├─────────────────▶ RETRY                  its message was lost
       └───────────┴─────────────────▶ FAILED                 cancelled, or never to be published

A claim is an attempt's id with an owner and a deadline. Whoever's claim has run out may be doubled by a new attempt;
what they write afterwards is refused, because the task no longer bears their attempt.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sellerwatch.domain.addresses import Addresses
from sellerwatch.domain.errors import WrongVerb
from sellerwatch.domain.ids import derived

NO_ITEM, NO_PAGE = 0, -1
LIST_PRIORITY, ITEM_PRIORITY = 0, 1


class TaskKind(StrEnum):
    SEARCH = "SEARCH"
    MINI_SHOP = "MINI_SHOP"
    DETAIL = "DETAIL"
    OPTION = "OPTION"

    @property
    def is_list(self) -> bool:
        return self in _LISTS


_LISTS = frozenset({TaskKind.SEARCH, TaskKind.MINI_SHOP})


class TaskStatus(StrEnum):
    WAITING = "WAITING"
    PUBLISHED = "PUBLISHED"
    RUNNING = "RUNNING"
    RETRY = "RETRY"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"


CLOSED = frozenset({TaskStatus.SUCCESS, TaskStatus.FAILED})
OPEN = frozenset(TaskStatus) - CLOSED


class AttemptStatus(StrEnum):
    RUNNING = "RUNNING"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    ABANDONED = "ABANDONED"


class Blame(StrEnum):
    """Why an attempt did not succeed, as far as the task is concerned."""

    TRANSIENT = "TRANSIENT"
    """Timeout, connection, 429, 5xx, unreadable body: costs a retry."""
    PERMANENT = "PERMANENT"
    """404 or 410 on an item, 400, a refused address: no retry would help."""
    NOT_ITS_OWN = "NOT_ITS_OWN"
    """No identity free, circuit open, shutdown: costs nothing."""


@dataclass(slots=True)
class Task:
    task_id: str
    execution_id: str
    seller_id: str
    kind: TaskKind
    request_url: str
    item_no: int
    page_no: int
    status: TaskStatus
    created_at: datetime
    retry_count: int = 0
    abandon_count: int = 0
    attempt_id: str | None = None
    claimed_by: str | None = None
    claimed_until: datetime | None = None
    error_message: str | None = None
    published_at: datetime | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None

    @property
    def is_open(self) -> bool:
        return self.status not in CLOSED

    @property
    def priority(self) -> int:
        return LIST_PRIORITY if self.kind.is_list else ITEM_PRIORITY

    @property
    def message_group(self) -> str:
        """Order where it matters, parallel where it does not."""
        return self.seller_id if self.kind.is_list else f"{self.seller_id}:{self.item_no}"

    def publish(self, at: datetime) -> None:
        """The queue accepted its message. A worker may have been quicker: then this changes nothing."""
        if self.status in {TaskStatus.WAITING, TaskStatus.RETRY}:
            self.status = TaskStatus.PUBLISHED
            self.published_at = at

    def claim(self, attempt_id: str, owner: str, until: datetime, at: datetime) -> None:
        """Begin an attempt. WAITING and RETRY may be claimed too: the message arrived before the mark did."""
        if not self.is_open or self.has_live_claim(at):
            raise self._refusal("claim")
        if self.published_at is None:
            self.published_at = at
        self.status, self.attempt_id, self.claimed_by, self.claimed_until = TaskStatus.RUNNING, attempt_id, owner, until
        self.started_at, self.error_message = at, None

    def has_live_claim(self, at: datetime) -> bool:
        return self.status is TaskStatus.RUNNING and self.claimed_until is not None and self.claimed_until > at

    def is_held_by(self, attempt_id: str) -> bool:
        """The fence: only the attempt that the task bears may end it."""
        return self.status is TaskStatus.RUNNING and self.attempt_id == attempt_id

    def succeed(self, at: datetime) -> None:
        self._only_running("succeed")
        self._close(TaskStatus.SUCCESS, at)

    def miss(self, blame: Blame, error: str, retries_max: int, at: datetime) -> None:
        """The attempt did not succeed: RETRY while that may help, else FAILED."""
        self._only_running("miss")
        self.error_message = error
        if blame is Blame.TRANSIENT and self.retry_count < retries_max:
            self.retry_count += 1
            self._release()
        elif blame is Blame.NOT_ITS_OWN:
            self._release()
        else:
            self._close(TaskStatus.FAILED, at)

    def abandon(self, abandons_max: int, at: datetime) -> None:
        """Its worker vanished: no retry is counted, but not for ever."""
        if self.status is not TaskStatus.RUNNING and self.status is not TaskStatus.PUBLISHED:
            raise self._refusal("abandon")
        self.abandon_count += 1
        if self.abandon_count > abandons_max:
            self.error_message = f"given up after {abandons_max} vanished workers or lost messages"
            self._close(TaskStatus.FAILED, at)
        else:
            self._release()

    def cancel(self, reason: str, at: datetime) -> None:
        """Seller inactive, execution cancelled, message unpublishable: it will not be made."""
        if not self.is_open:
            raise self._refusal("cancel")
        self.error_message = reason
        self._close(TaskStatus.FAILED, at)

    def _release(self) -> None:
        self.status = TaskStatus.RETRY
        self.attempt_id = self.claimed_by = self.claimed_until = None

    def _close(self, status: TaskStatus, at: datetime) -> None:
        self.status, self.completed_at = status, at
        self.claimed_by = self.claimed_until = None

    def _only_running(self, verb: str) -> None:
        if self.status is not TaskStatus.RUNNING:
            raise self._refusal(verb)

    def _refusal(self, verb: str) -> WrongVerb:
        return WrongVerb("task", self.task_id, self.status, verb)


@dataclass(slots=True)
class Attempt:
    """`crawl_executions`: one try, with what came of it."""

    attempt_id: str
    task_id: str
    seller_id: str
    agent_id: int
    status: AttemptStatus
    started_at: datetime
    http_status: int | None = None
    duration_ms: int | None = None
    response_bytes: int | None = None
    response_summary: str | None = None
    error_message: str | None = None
    completed_at: datetime | None = None


def new_task(
    execution_id: str,
    seller_id: str,
    kind: TaskKind,
    request_url: str,
    addresses: Addresses,
    at: datetime,
    *,
    item_no: int = NO_ITEM,
    page_no: int = NO_PAGE,
) -> Task:
    """A task is named by its execution, kind, item and page: asked for twice, it is the same one."""
    return Task(
        task_id=derived(execution_id, f"task/{kind}/{item_no}/{page_no}"),
        execution_id=execution_id,
        seller_id=seller_id,
        kind=kind,
        request_url=addresses.check(kind, request_url),
        item_no=item_no,
        page_no=page_no,
        status=TaskStatus.WAITING,
        created_at=at,
    )


def list_tasks(
    execution_id: str,
    seller_id: str,
    count: int,
    page_size: int,
    addresses: Addresses,
    at: datetime,
    *,
    first_no: int = 0,
) -> list[Task]:
    """One MINI_SHOP task per page. `first_no` tells the rounds over a list apart (executions.LIST_ROUND)."""
    return [
        new_task(
            execution_id,
            seller_id,
            TaskKind.MINI_SHOP,
            addresses.mini_shop(seller_id, page, page_size),
            addresses,
            at,
            page_no=first_no + page,
        )
        for page in range(-(-count // page_size))
    ]


def item_tasks(execution_id: str, seller_id: str, item_no: int, addresses: Addresses, at: datetime) -> list[Task]:
    """What a list entry leads to: the item's detail and its options."""
    detail, option = addresses.detail(item_no), addresses.option(item_no)
    return [
        new_task(execution_id, seller_id, TaskKind.DETAIL, detail, addresses, at, item_no=item_no),
        new_task(execution_id, seller_id, TaskKind.OPTION, option, addresses, at, item_no=item_no),
    ]
