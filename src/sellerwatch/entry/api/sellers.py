"""Sellers and their crawls."""

from typing import Any, Literal

from fastapi import FastAPI, Request, Response

from sellerwatch.domain.documents import ChangeKind
from sellerwatch.domain.errors import Unknown
from sellerwatch.domain.sellers import CrawlSource, Seller, SellerStatus
from sellerwatch.entry.api.answers import answer, paged, tagged
from sellerwatch.entry.api.asked import PageNo, PageSize, SellerId
from sellerwatch.entry.api.guard import READERS, WRITERS
from sellerwatch.entry.api.looking import check_seller, planned
from sellerwatch.entry.api.routes import route
from sellerwatch.entry.api.shapes import Page
from sellerwatch.entry.api.shapes.crawls import CrawlResponse, ExecutionResponse
from sellerwatch.entry.api.shapes.sellers import (
    DelistedResponse,
    NewInterval,
    NewSeller,
    SellerDetailResponse,
    SellerResponse,
)
from sellerwatch.entry.console import shapes
from sellerwatch.ports.reports import SellerRow
from sellerwatch.wiring import House

_SELLERS, _SELLER = "/api/v1/sellers", "/api/v1/sellers/{sellerId}"


def add_routes(app: FastAPI, house: House) -> None:
    @route(app, "POST", _SELLERS, WRITERS, SellerResponse, 409, status=201, tells=("Location",))
    async def register_seller(body: NewSeller) -> Response:
        """Register a seller; its first crawl is one interval from now, or at once with `crawlNow`."""
        seller = await house.sellers.register(
            body.seller_id,
            body.name,
            crawl_source=CrawlSource(body.source),
            interval_days=body.crawling_interval_days,
        )
        if body.crawl_now:
            await house.trigger.crawl_now(seller.seller_id)
        return answer(_seller(seller), 201, Location=f"{_SELLERS}/{seller.seller_id}")

    @route(app, "GET", _SELLERS, READERS, Page[SellerResponse])
    async def list_sellers(
        status: Literal["ACTIVE", "INACTIVE"] | None = None, page: PageNo = 0, size: PageSize = 20
    ) -> Response:
        """The sellers, by id."""
        wanted = SellerStatus(status) if status else None
        return paged(await house.reports.sellers(status=wanted, page=page, size=size), _seller)

    @route(app, "GET", _SELLER, READERS, SellerDetailResponse, 304, 404, tells=("ETag",))
    async def show_seller(request: Request, seller_id: SellerId) -> Response:
        """A seller with its schedule, its last crawl and how many products are known."""
        found = await house.reports.seller(seller_id)
        if found is None:
            raise Unknown("seller", seller_id)
        shape = shapes.seller_detail(found)
        del shape["source"]
        return tagged(request, shape)

    @route(app, "PATCH", f"{_SELLER}/interval", WRITERS, SellerResponse, 404)
    async def change_interval(seller_id: SellerId, body: NewInterval) -> Response:
        """Crawl a seller every so many days. Its next crawl is that long after its schedule's last trigger, or now when
        that is over."""
        return answer(_seller(await house.sellers.change_interval(seller_id, body.crawling_interval_days)))

    @route(app, "POST", f"{_SELLER}/activate", WRITERS, SellerResponse, 404)
    async def activate_seller(seller_id: SellerId) -> Response:
        """Crawl a seller again; harmless when it is ACTIVE."""
        return answer(_seller(await house.sellers.activate(seller_id)))

    @route(app, "POST", f"{_SELLER}/deactivate", WRITERS, SellerResponse, 404)
    async def deactivate_seller(seller_id: SellerId) -> Response:
        """Crawl a seller no more: tasks that wait become FAILED (`seller inactive`) when their turn comes. Harmless when it
        is INACTIVE."""
        return answer(_seller(await house.sellers.deactivate(seller_id)))

    @route(app, "POST", f"{_SELLER}/confirm-delisting", WRITERS, DelistedResponse, 404, 409)
    async def confirm_delisting(seller_id: SellerId) -> Response:
        """Let the products go that the last crawl did not show, although they are much of the shop."""
        await check_seller(house, seller_id)
        changes = await house.decide.confirm_delisting(seller_id)
        return answer({"delisted": sum(ChangeKind.DELISTED in change.kinds for change in changes)})

    @route(app, "POST", f"{_SELLER}/crawl", WRITERS, CrawlResponse, 404, 409, status=202, tells=("Location",))
    async def crawl_seller(seller_id: SellerId) -> Response:
        """Begin a crawl now. Refused while the seller is inactive or being crawled; then `executionId` names the crawl
        that is open."""
        execution_id = (await house.trigger.crawl_now(seller_id)).execution_id
        shape = {"executionId": execution_id, "taskCount": await planned(house, execution_id)}
        return answer(shape, 202, Location=f"/api/v1/executions/{execution_id}")

    @route(app, "GET", f"{_SELLER}/executions", READERS, Page[ExecutionResponse], 404)
    async def list_executions(seller_id: SellerId, page: PageNo = 0, size: PageSize = 20) -> Response:
        """A seller's crawls, the newest first."""
        found = await house.reports.executions(seller_id, page=page, size=size)
        if not found.total:
            await check_seller(house, seller_id)
        return paged(found, shapes.execution)


def _seller(row: SellerRow | Seller) -> dict[str, Any]:
    shape = shapes.seller(row)
    del shape["source"]
    return shape
