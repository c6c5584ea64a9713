"""What goes in and what comes out, field by field. Unknown fields and values of another type are refused."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from sellerwatch.domain.products import shown_at
from sellerwatch.domain.sellers import INTERVAL_DAYS_MAX, INTERVAL_DAYS_MIN, NAME_MAX, Seller
from sellerwatch.ports.reports import ExecutionRow

SELLER_PATTERN = r"^[A-Za-z0-9._-]{1,64}$"
UUID_PATTERN = r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"


class Taken(BaseModel):
    """A body as it is taken: nothing is guessed and nothing is ignored."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Given(BaseModel):
    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=True)


class NewSeller(Taken):
    seller_id: str = Field(
        alias="sellerId", pattern=SELLER_PATTERN, description="the marketplace's own id", examples=["atelier"]
    )
    name: str = Field(min_length=1, max_length=NAME_MAX)
    crawling_interval_days: int = Field(1, alias="crawlingIntervalDays", ge=INTERVAL_DAYS_MIN, le=INTERVAL_DAYS_MAX)
    source: Literal["MINI_SHOP", "SEARCH"] = "MINI_SHOP"
    crawl_now: bool = Field(False, alias="crawlNow", description="begin a crawl at once, not after the first interval")


class SellerResponse(Given):
    seller_id: str
    name: str
    status: Literal["ACTIVE", "INACTIVE"]
    crawling_interval_days: int
    total_product_count: int
    created_at: str = Field(description="ISO 8601, UTC")
    updated_at: str

    @classmethod
    def of(cls, seller: Seller) -> "SellerResponse":
        return cls(
            seller_id=seller.seller_id,
            name=seller.name,
            status=seller.status.value,
            crawling_interval_days=seller.interval_days,
            total_product_count=seller.total_product_count,
            created_at=shown_at(seller.created_at),
            updated_at=shown_at(seller.updated_at),
        )


class CrawlResponse(Given):
    execution_id: str
    task_count: int | None = Field(description="its first tasks; null when they are not known within 3 seconds")


class ExecutionResponse(Given):
    execution_id: str
    seller_id: str
    status: Literal["STARTED", "IN_PROGRESS", "COMPLETED", "FAILED"]
    total_tasks: int
    completed_tasks: int
    failed_tasks: int
    progress_rate: float = Field(description="percent of its tasks that have ended")
    success_rate: float = Field(description="percent of its tasks that succeeded")
    started_at: str
    completed_at: str | None
    error_message: str | None

    @classmethod
    def of(cls, row: ExecutionRow) -> "ExecutionResponse":
        return cls(
            execution_id=row.execution_id,
            seller_id=row.seller_id,
            status=row.status.value,
            total_tasks=row.total_tasks,
            completed_tasks=row.completed_tasks,
            failed_tasks=row.failed_tasks,
            progress_rate=row.progress_rate,
            success_rate=row.success_rate,
            started_at=shown_at(row.started_at),
            completed_at=_shown(row.completed_at),
            error_message=row.error_message,
        )


class ComponentHealth(Given):
    status: Literal["UP", "DOWN"]
    detail: str | None = None


class Health(Given):
    status: Literal["UP", "DOWN"]
    components: dict[str, ComponentHealth]


class Alive(Given):
    status: Literal["UP"]


class FieldProblem(Given):
    field: str
    message: str


class Problem(Given):
    """RFC 9457, with the fields that operators asked for."""

    model_config = ConfigDict(extra="allow", alias_generator=to_camel, populate_by_name=True)

    type: str
    title: str
    status: int
    detail: str
    error_code: str
    message: str = Field(description="in Korean or English, after Accept-Language")
    timestamp: str
    path: str
    errors: list[FieldProblem] | None = None


def _shown(at: datetime | None) -> str | None:
    return shown_at(at) if at else None
