"""What doors ask about: read only, each question a fixed number of statements however much there is to tell.

The answers are rows: plain values of one moment, of which nothing can be saved back. A page is numbered from 0; what
is read with `after` continues behind the row of that number, so that all of a large table can be read while it grows:
every row that exists during the whole reading is told once. Unavailable when the database is away; an unknown name
gives None or an empty page, never an error.
"""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Protocol

from sellerwatch.domain.identities import IdentityStatus
from sellerwatch.domain.politeness import Politeness
from sellerwatch.domain.quarantines import QuarantineStatus
from sellerwatch.domain.sellers import SellerStatus
from sellerwatch.domain.tasks import TaskStatus
from sellerwatch.ports.reports.figures import (
    LATE_ALERT,
    LIFE_SECONDS,
    LISTED_MAX,
    AlertRow,
    BoxFigures,
    BreakerRow,
    CrawlingFigures,
    Overview,
    ProcessRow,
    Runs,
    SweepRow,
)
from sellerwatch.ports.reports.history import LAGS_MAX, DeliveryRow, Difference, Lags, ProofRow, VersionRow
from sellerwatch.ports.reports.rows import (
    Box,
    ChangeRow,
    ExecutionDetail,
    ExecutionRow,
    IdentityRow,
    OutboxRow,
    Page,
    ProductCounts,
    ProductRow,
    ScheduleRow,
    SellerDetail,
    SellerRow,
    TaskRow,
    percent,
)
from sellerwatch.ports.reports.trust import DriftReport, DriftRow, QuarantineRow, SuppressedRow

__all__ = [
    "LAGS_MAX",
    "LATE_ALERT",
    "LIFE_SECONDS",
    "LISTED_MAX",
    "AlertRow",
    "Box",
    "BoxFigures",
    "BreakerRow",
    "ChangeRow",
    "CrawlingFigures",
    "DeliveryRow",
    "Difference",
    "DriftReport",
    "DriftRow",
    "ExecutionDetail",
    "ExecutionRow",
    "IdentityRow",
    "Lags",
    "OutboxRow",
    "Overview",
    "Page",
    "ProcessRow",
    "ProductCounts",
    "ProductRow",
    "ProofRow",
    "QuarantineRow",
    "Reports",
    "Runs",
    "ScheduleRow",
    "SellerDetail",
    "SellerRow",
    "SuppressedRow",
    "SweepRow",
    "TaskRow",
    "VersionRow",
    "percent",
]


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

    async def runs(self, at: datetime) -> Runs:
        """Of the overview what tells who is late: a few rows, to be asked for often."""

    async def product(self, item_no: int, at: datetime | None = None) -> ProductRow | None:
        """As it is, or as it was at that moment: with the last version that was there by then. None before the first:
        of a product that is not complete no past is kept."""

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

    async def all_changes_after(
        self, number: int, count: int, *, seller_id: str | None = None, since: datetime | None = None
    ) -> Sequence[ChangeRow]:
        """Of all products, the next ones behind that number, in its order; those of that seller then, made since."""

    async def versions_after(self, item_no: int, version: int, count: int) -> Sequence[VersionRow]:
        """The same with what proved each and which delivery carried it."""

    async def difference(self, item_no: int, start: datetime, end: datetime) -> Difference | None:
        """What the product became between the two; None for an unknown one. Before its first version it was nothing."""

    async def lags(self, since: datetime) -> Lags:
        """Of the newest deliveries that were confirmed, among the events written since that moment."""

    async def outbox(self, box: Box, *, status: str | None = None, page: int = 0, size: int = 20) -> Page[OutboxRow]:
        """The oldest first."""

    async def outbox_after(
        self, box: Box, number: int, count: int, *, status: str, since: datetime | None = None
    ) -> Sequence[OutboxRow]:
        """The next ones of that status behind that number, written since that moment."""

    async def outbox_row(self, outbox_id: str) -> OutboxRow | None:
        """Of whichever box."""

    async def identities(
        self, *, status: IdentityStatus | None = None, page: int = 0, size: int = 20
    ) -> Page[IdentityRow]:
        """By number, without those retired."""

    async def identity(self, name: int | str) -> IdentityRow | None:
        """By its number or its `user_agent_id`, unless retired."""

    async def quarantines(
        self, *, status: QuarantineStatus | None = None, page: int = 0, size: int = 20
    ) -> Page[QuarantineRow]:
        """The newest first."""

    async def quarantine(self, quarantine_id: str) -> QuarantineRow | None: ...

    async def drift(self, since: datetime) -> DriftReport:
        """From that day on."""

    async def crawling(self, seller_id: str | None, day: date, start: datetime, end: datetime) -> CrawlingFigures:
        """Of the day that begins and ends at these moments. When its tasks are forgotten, what was noted of it."""

    async def politeness(self, start: datetime, end: datetime) -> Politeness:
        """Of the requests that left between the two, by the log of usage, in one pass over it; what the log has
        forgotten (`USAGE_RETENTION_MONTHS`) is not told."""
