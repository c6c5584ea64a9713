"""Figures over many rows: what runs, what waits, what failed, and a day of crawling."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime

from sellerwatch.domain.sellers import SellerStatus
from sellerwatch.domain.tasks import TaskStatus
from sellerwatch.ports.reports.rows import Box, ExecutionRow, ProductCounts

LIFE_SECONDS = 30.0
LATE_ALERT = "loop_late"
LISTED_MAX = 50


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
class Runs:
    """Who is alive, and when everything that runs by itself last did."""

    at: datetime
    processes: tuple[ProcessRow, ...]
    sweeps: tuple[SweepRow, ...]
    late: frozenset[str]
    """What is told of as late already."""


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
