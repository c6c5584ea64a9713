"""Sellers and their crawls."""

from typing import Annotated, Final

from fastapi import FastAPI, Path, Response

from sellerwatch.domain.executions import ExecutionStatus
from sellerwatch.domain.sellers import CrawlSource
from sellerwatch.entry.api.guard import WRITERS, only
from sellerwatch.entry.api.reference import told
from sellerwatch.entry.api.shapes import SELLER_PATTERN, CrawlResponse, NewSeller, SellerResponse
from sellerwatch.ports.store import Unit
from sellerwatch.wiring import House

PLAN_SECONDS: Final = 3.0
LOOK_SECONDS: Final = 0.05


def add_routes(app: FastAPI, house: House) -> None:
    @app.post("/api/v1/sellers", status_code=201, openapi_extra=only(WRITERS), responses=told(409), tags=["sellers"])
    async def register_seller(body: NewSeller, response: Response) -> SellerResponse:
        """Register a seller; its first crawl is one interval from now, or at once with `crawlNow`."""
        seller = await house.sellers.register(
            body.seller_id,
            body.name,
            crawl_source=CrawlSource(body.source),
            interval_days=body.crawling_interval_days,
        )
        if body.crawl_now:
            await house.trigger.crawl_now(seller.seller_id)
        response.headers["Location"] = f"/api/v1/sellers/{seller.seller_id}"
        return SellerResponse.of(seller)

    @app.post(
        "/api/v1/sellers/{sellerId}/crawl",
        status_code=202,
        openapi_extra=only(WRITERS),
        responses=told(404, 409),
        tags=["sellers"],
    )
    async def crawl_seller(
        seller_id: Annotated[str, Path(alias="sellerId", pattern=SELLER_PATTERN)], response: Response
    ) -> CrawlResponse:
        """Begin a crawl now. Refused while the seller is inactive or being crawled."""
        execution = await house.trigger.crawl_now(seller_id)
        response.headers["Location"] = f"/api/v1/executions/{execution.execution_id}"
        task_count = await _planned(house, execution.execution_id)
        return CrawlResponse(execution_id=execution.execution_id, task_count=task_count)


async def _planned(house: House, execution_id: str) -> int | None:
    """How many tasks the execution began with, when that is known soon enough."""

    async def look() -> int | None:
        while True:
            count = await house.store.read(lambda unit: _first_tasks(unit, execution_id))
            if count is not None:
                return count
            await house.clock.sleep(LOOK_SECONDS)

    try:
        return await house.clock.within(PLAN_SECONDS, look())
    except TimeoutError:
        return None


def _first_tasks(unit: Unit, execution_id: str) -> int | None:
    """None while it is STARTED. Follow-ups that came meanwhile are not counted."""
    execution = unit.executions.get(execution_id)
    if execution is None or execution.status is ExecutionStatus.STARTED:
        return None
    pages = unit.tasks.list_pages(execution_id)
    began = min((page.created_at for page in pages), default=None)
    return sum(page.created_at == began for page in pages)
