"""What the rows of a report hold: plain values of one moment, of which nothing can be saved back."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Generic, TypeVar

from sellerwatch.domain.changes import FieldChange
from sellerwatch.domain.documents import ChangeKind
from sellerwatch.domain.executions import ExecutionStatus
from sellerwatch.domain.identities import IdentityStatus
from sellerwatch.domain.meaning import MEANING
from sellerwatch.domain.products import ProductStatus
from sellerwatch.domain.schedules import ScheduleStatus
from sellerwatch.domain.sellers import CrawlSource, SellerStatus
from sellerwatch.domain.tasks import TaskKind, TaskStatus

R = TypeVar("R")


class Box(StrEnum):
    PRODUCT = "product"
    TASK = "task"
    SCHEDULER = "scheduler"


@dataclass(frozen=True, slots=True)
class Page(Generic[R]):
    rows: tuple[R, ...]
    page: int
    size: int
    total: int

    @property
    def pages(self) -> int:
        return -(-self.total // self.size)


@dataclass(frozen=True, slots=True)
class SellerRow:
    seller_id: str
    name: str
    crawl_source: CrawlSource
    interval_days: int
    status: SellerStatus
    total_product_count: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    schedule_id: str
    rule_name: str
    expression: str
    status: ScheduleStatus
    next_run_at: datetime | None
    last_triggered_at: datetime | None


@dataclass(frozen=True, slots=True)
class ExecutionRow:
    execution_id: str
    seller_id: str
    status: ExecutionStatus
    total_tasks: int
    completed_tasks: int
    failed_tasks: int
    started_at: datetime
    completed_at: datetime | None
    error_message: str | None
    expected_items: int | None

    @property
    def is_open(self) -> bool:
        return self.status in {ExecutionStatus.STARTED, ExecutionStatus.IN_PROGRESS}

    @property
    def progress_rate(self) -> float:
        return percent(self.completed_tasks + self.failed_tasks, self.total_tasks)

    @property
    def success_rate(self) -> float:
        return percent(self.completed_tasks, self.total_tasks)


@dataclass(frozen=True, slots=True)
class ProductCounts:
    total: int
    complete: int
    delisted: int


@dataclass(frozen=True, slots=True)
class SellerDetail:
    seller: SellerRow
    schedule: ScheduleRow | None
    last_execution: ExecutionRow | None
    products: ProductCounts


@dataclass(frozen=True, slots=True)
class ExecutionDetail:
    execution: ExecutionRow
    tasks: Mapping[TaskStatus, int]
    """Every status, those without a task as 0."""


@dataclass(frozen=True, slots=True)
class TaskRow:
    task_id: str
    execution_id: str
    seller_id: str
    kind: TaskKind
    request_url: str
    item_no: int | None
    page_no: int | None
    status: TaskStatus
    retry_count: int
    abandon_count: int
    error_message: str | None
    created_at: datetime
    published_at: datetime | None
    started_at: datetime | None
    completed_at: datetime | None


@dataclass(frozen=True, slots=True)
class ProductRow:
    number: int
    """Its place in the order of `products_after`."""
    product_id: str
    item_no: int
    seller_id: str
    status: ProductStatus
    version: int
    is_complete: bool
    first_seen_at: datetime
    last_seen_at: datetime | None
    """None: of a past moment it is not kept."""
    last_changed_at: datetime | None
    fields: Mapping[str, Any]
    """The business fields by name, in normal form; those not known yet are left out."""

    def data(self) -> dict[str, Any]:
        """`productData` of the API and of the outgoing event."""
        return MEANING.product_data(self.fields, self.item_no, self.status.value)


@dataclass(frozen=True, slots=True)
class ChangeRow:
    number: int
    """Its place in the order of `all_changes_after`."""
    item_no: int
    seller_id: str
    version: int
    changed_at: datetime
    kinds: tuple[ChangeKind, ...]
    fields: tuple[FieldChange, ...]


@dataclass(frozen=True, slots=True)
class OutboxRow:
    number: int
    """Its place in the order of `outbox_after`."""
    box: Box
    outbox_id: str
    subject: str
    """Whom it is about: an item, a seller's schedule, or a task with its seller."""
    event: str
    version: int | None
    status: str
    retry_count: int
    next_attempt_at: datetime
    error_message: str | None
    created_at: datetime
    sent_at: datetime | None
    quarantine_id: str | None = None
    """HELD only: what it foretells waits there."""


@dataclass(frozen=True, slots=True)
class IdentityRow:
    """An identity as the record has it; how it stands at this moment the pool knows better."""

    agent_id: int
    user_agent_id: str
    user_agent: str
    status: IdentityStatus
    health_score: int
    breaker: str
    remaining: int | None
    token_issued_at: datetime | None
    token_expires_at: datetime | None
    suspended_at: datetime | None
    last_used_at: datetime | None
    requests_per_day: int
    usage_count: int
    success_count: int
    failure_count: int


def percent(part: int, whole: int) -> float:
    return round(part * 100 / whole, 2) if whole else 0.0
