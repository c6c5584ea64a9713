"""What doors ask about: read only, each question a fixed number of statements however much there is to tell.

The answers are rows: plain values of one moment, of which nothing can be saved back. A page is numbered from 0; what
is read with `after` continues behind the row of that number, so that all of a large table can be read while it grows:
every row that exists during the whole reading is told once. Unavailable when the database is away; an unknown name
gives None or an empty page, never an error.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar

from sellerwatch.domain.changes import FieldChange
from sellerwatch.domain.documents import ChangeKind
from sellerwatch.domain.executions import ExecutionStatus
from sellerwatch.domain.meaning import product_data
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
    last_seen_at: datetime
    last_changed_at: datetime | None
    fields: Mapping[str, Any]
    """The business fields by name, in normal form; those not known yet are left out."""

    def data(self) -> dict[str, Any]:
        """`productData` of the API and of the outgoing event."""
        return product_data(self.fields, self.item_no, self.status.value)


@dataclass(frozen=True, slots=True)
class ChangeRow:
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


@dataclass(frozen=True, slots=True)
class IdentityRow:
    """An identity as the record has it; how it stands at this moment the pool knows better."""

    agent_id: int
    user_agent_id: str
    user_agent: str
    status: str
    is_retired: bool
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


@dataclass(frozen=True, slots=True)
class ProcessRow:
    owner: str
    role: str
    host: str
    pid: int
    version: str
    started_at: datetime
    seen_at: datetime


@dataclass(frozen=True, slots=True)
class BoxFigures:
    by_status: Mapping[str, int]
    oldest_at: datetime | None
    """When the oldest row was written that has neither arrived nor been given up."""


@dataclass(frozen=True, slots=True)
class AlertRow:
    name: str
    severity: str
    text: str
    since: datetime
    times: int
    last_sent_at: datetime | None


@dataclass(frozen=True, slots=True)
class BreakerRow:
    scope: str
    state: str
    failure_count: int
    opened_at: datetime | None
    retry_at: datetime | None


@dataclass(frozen=True, slots=True)
class SweepRow:
    name: str
    last_run_at: datetime | None
    last_found: int
    last_error: str | None


@dataclass(frozen=True, slots=True)
class Overview:
    """What runs, what waits, what failed."""

    at: datetime
    sellers: Mapping[SellerStatus, int]
    processes: tuple[ProcessRow, ...]
    """Those that showed life within `LIFE_SECONDS`."""
    executions_open: tuple[ExecutionRow, ...]
    """The longest open first, at most `LISTED_MAX`."""
    tasks: Mapping[TaskStatus, int]
    """Open ones, and those of the last day that have ended."""
    outboxes: Mapping[Box, BoxFigures]
    raws: Mapping[str, int]
    products: ProductCounts
    alerts: tuple[AlertRow, ...]
    """Open ones, the longest open first."""
    breakers: tuple[BreakerRow, ...]
    """Of the pool, the site and the product server, as recorded; those never used are not told."""
    identity_breakers_open: int
    sweeps: tuple[SweepRow, ...]


LIFE_SECONDS = 30.0
LISTED_MAX = 50


@dataclass(frozen=True, slots=True)
class CrawlingFigures:
    """A day's crawling: of tasks created in it, and of products as they are."""

    seller_id: str | None
    date: date
    success_rate: float
    progress_rate: float
    total: int
    completed: int
    failed: int

    @property
    def in_progress(self) -> int:
        return self.total - self.completed - self.failed


class Reports(Protocol):
    async def sellers(self, *, status: SellerStatus | None = None, page: int = 0, size: int = 20) -> Page[SellerRow]:
        """By id."""

    async def seller(self, seller_id: str) -> SellerDetail | None: ...

    async def executions(self, seller_id: str | None = None, *, page: int = 0, size: int = 20) -> Page[ExecutionRow]:
        """Of one seller, or of all; the newest first."""

    async def execution(self, execution_id: str) -> ExecutionDetail | None: ...

    async def tasks(
        self, execution_id: str, *, status: TaskStatus | None = None, page: int = 0, size: int = 20
    ) -> Page[TaskRow]:
        """In the order in which they came to be."""

    async def overview(self, at: datetime) -> Overview: ...

    async def product(self, item_no: int) -> ProductRow | None: ...

    async def products(
        self,
        *,
        seller_id: str | None = None,
        complete: bool | None = None,
        changed_since: datetime | None = None,
        page: int = 0,
        size: int = 20,
    ) -> Page[ProductRow]: ...

    async def products_after(
        self,
        number: int,
        count: int,
        *,
        seller_id: str | None = None,
        complete: bool | None = None,
        changed_since: datetime | None = None,
    ) -> Sequence[ProductRow]:
        """The next ones behind that number, in its order; from 0 on, all of them."""

    async def changes(self, item_no: int, *, page: int = 0, size: int = 20) -> Page[ChangeRow]:
        """Of one item, by version."""

    async def changes_after(self, item_no: int, version: int, count: int) -> Sequence[ChangeRow]:
        """Of one item, the next versions after that one."""

    async def outbox(self, box: Box, *, status: str | None = None, page: int = 0, size: int = 20) -> Page[OutboxRow]:
        """The oldest first."""

    async def outbox_after(
        self, box: Box, number: int, count: int, *, status: str, since: datetime | None = None
    ) -> Sequence[OutboxRow]:
        """The next ones of that status behind that number, written since that moment."""

    async def identities(self, *, retired: bool = False) -> Sequence[IdentityRow]:
        """By number; with `retired` those too."""

    async def crawling(self, seller_id: str | None, day: date, start: datetime, end: datetime) -> CrawlingFigures:
        """Of the day that begins and ends at these moments. When its tasks are forgotten, what was noted of it."""


def percent(part: int, whole: int) -> float:
    return round(part * 100 / whole, 2) if whole else 0.0
