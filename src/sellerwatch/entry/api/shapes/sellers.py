"""Sellers and what is crawled of them."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from sellerwatch.domain.schedules import ScheduleStatus
from sellerwatch.domain.sellers import INTERVAL_DAYS_MAX, INTERVAL_DAYS_MIN, NAME_MAX
from sellerwatch.entry.api.asked import NOT_BLANK_PATTERN, SELLER_PATTERN
from sellerwatch.entry.api.shapes import TIME, Given, Taken, like
from sellerwatch.entry.api.shapes.crawls import ExecutionResponse


def integral(value: object) -> object:
    """In JSON 3.0 is the same number as 3."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Days = Annotated[int, Field(ge=INTERVAL_DAYS_MIN, le=INTERVAL_DAYS_MAX), BeforeValidator(integral)]


class NewSeller(Taken):
    model_config = like(sellerId="atelier", name="Atelier", crawlingIntervalDays=1, source="MINI_SHOP", crawlNow=False)

    seller_id: str = Field(alias="sellerId", pattern=SELLER_PATTERN, description="the marketplace's own id")
    name: str = Field(min_length=1, max_length=NAME_MAX, pattern=NOT_BLANK_PATTERN, description="not blank")
    crawling_interval_days: Days = Field(1, alias="crawlingIntervalDays")
    source: Literal["MINI_SHOP", "SEARCH"] = Field("MINI_SHOP", description="where its items are listed")
    crawl_now: bool = Field(False, alias="crawlNow", description="begin a crawl at once, not after the first interval")


class NewInterval(Taken):
    model_config = like(crawlingIntervalDays=3)

    crawling_interval_days: Days = Field(alias="crawlingIntervalDays")


class SellerResponse(Given):
    seller_id: str = Field(examples=["atelier"])
    name: str = Field(examples=["Atelier"])
    status: Literal["ACTIVE", "INACTIVE"]
    crawling_interval_days: int = Field(examples=[1])
    total_product_count: int = Field(description="as the marketplace told it last", examples=[1200])
    created_at: str = Field(description="ISO 8601, UTC", examples=[TIME])
    updated_at: str = Field(examples=[TIME])


class Schedule(Given):
    rule_name: str = Field(examples=["mustit-crawler-atelier"])
    expression: str = Field(examples=["rate(1 day)"])
    status: ScheduleStatus = Field(description="FAILED: its last change did not get through to EventBridge")
    next_run_at: str | None = Field(examples=[TIME])
    last_triggered_at: str | None = Field(examples=[TIME])


class ProductCounts(Given):
    total: int = Field(examples=[1200])
    complete: int = Field(description="all of whose documents were seen", examples=[1198])
    delisted: int = Field(examples=[2])


class SellerDetailResponse(SellerResponse):
    schedule: Schedule | None
    last_execution: ExecutionResponse | None
    product_counts: ProductCounts


class DelistedResponse(Given):
    delisted: int = Field(ge=0, description="how many products went", examples=[40])
