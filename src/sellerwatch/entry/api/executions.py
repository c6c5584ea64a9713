"""Executions: one crawl of one seller each; and what a day of crawling came to."""

from typing import Any

from fastapi import FastAPI, Request, Response

from sellerwatch.domain.days import bounds
from sellerwatch.domain.errors import Unknown
from sellerwatch.domain.tasks import TaskStatus
from sellerwatch.entry.api.answers import answer, paged, tagged
from sellerwatch.entry.api.asked import Day, ExecutionId, PageNo, PageSize, SellerFilter
from sellerwatch.entry.api.guard import READERS, WRITERS
from sellerwatch.entry.api.looking import check_seller
from sellerwatch.entry.api.routes import route
from sellerwatch.entry.api.shapes import Page
from sellerwatch.entry.api.shapes.crawls import CrawlingResponse, ExecutionResponse, TaskResponse
from sellerwatch.entry.console import shapes
from sellerwatch.ports.reports import CrawlingFigures, ExecutionDetail, TaskRow
from sellerwatch.wiring import House

_EXECUTION = "/api/v1/executions/{executionId}"


def add_routes(app: FastAPI, house: House) -> None:
    async def known(execution_id: str) -> ExecutionDetail:
        found = await house.reports.execution(execution_id)
        if found is None:
            raise Unknown("execution", execution_id)
        return found

    @route(app, "GET", _EXECUTION, READERS, ExecutionResponse, 304, 404, tells=("ETag",))
    async def show_execution(request: Request, execution_id: ExecutionId) -> Response:
        """How far a crawl has come."""
        return tagged(request, shapes.execution((await known(execution_id)).execution))

    @route(app, "GET", f"{_EXECUTION}/tasks", READERS, Page[TaskResponse], 404)
    async def list_tasks(
        execution_id: ExecutionId, status: TaskStatus | None = None, page: PageNo = 0, size: PageSize = 20
    ) -> Response:
        """A crawl's tasks, in the order in which they came to be."""
        found = await house.reports.tasks(execution_id, status=status, page=page, size=size)
        if not found.total:
            await known(execution_id)
        return paged(found, task_shape)

    @route(app, "POST", f"{_EXECUTION}/cancel", WRITERS, ExecutionResponse, 404, 409)
    async def cancel_execution(execution_id: ExecutionId) -> Response:
        """End a crawl: its open tasks become FAILED (`cancelled`). Refused when it has ended."""
        await house.repair.cancel_execution(execution_id)
        return answer(shapes.execution((await known(execution_id)).execution))

    @route(app, "GET", "/api/v1/metrics/crawling", READERS, CrawlingResponse, 404)
    async def show_crawling(seller_id: SellerFilter = None, date: Day | None = None) -> Response:
        """What a day of crawling came to, of one seller or of all; without a date today."""
        zone = house.settings.timezone
        day = date or house.clock.now().astimezone(zone).date()
        figures = await house.reports.crawling(seller_id, day, *bounds(day, zone))
        if seller_id is not None and not figures.total:
            await check_seller(house, seller_id)
        return answer(crawling_shape(figures))


def task_shape(row: TaskRow) -> dict[str, Any]:
    return {
        "taskId": row.task_id,
        "executionId": row.execution_id,
        "sellerId": row.seller_id,
        "taskType": row.kind.value,
        "requestUrl": row.request_url,
        "itemNo": row.item_no,
        "pageNo": row.page_no,
        "status": row.status.value,
        "retryCount": row.retry_count,
        "errorMessage": row.error_message,
        "createdAt": shapes.time(row.created_at),
        "publishedAt": shapes.time(row.published_at),
        "startedAt": shapes.time(row.started_at),
        "completedAt": shapes.time(row.completed_at),
    }


def crawling_shape(figures: CrawlingFigures) -> dict[str, Any]:
    return {
        "sellerId": figures.seller_id,
        "date": figures.date.isoformat(),
        "successRate": figures.success_rate,
        "progressRate": figures.progress_rate,
        "taskStats": {
            "total": figures.total,
            "completed": figures.completed,
            "failed": figures.failed,
            "inProgress": figures.in_progress,
        },
    }
