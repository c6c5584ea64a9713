"""Products, and how they came to be so."""

from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response

from sellerwatch.domain.errors import Unknown
from sellerwatch.entry.api.answers import paged, tagged
from sellerwatch.entry.api.asked import (
    Cursor,
    ItemNo,
    Moment,
    PageNo,
    PageSize,
    SellerFilter,
    Switch,
    cursor_of,
    read_cursor,
)
from sellerwatch.entry.api.guard import READERS
from sellerwatch.entry.api.routes import route
from sellerwatch.entry.api.shapes import CursorPage
from sellerwatch.entry.api.shapes.products import ChangeResponse, ProductResponse
from sellerwatch.entry.console import shapes
from sellerwatch.ports.reports import Page, ProductRow
from sellerwatch.wiring import House

_PRODUCT = "/api/v1/products/{itemNo}"
Complete = Annotated[
    Switch | None, Query(description="only those all of whose documents were seen, or only the others")
]
ChangedSince = Annotated[
    Moment | None, Query(alias="changedSince", description="changed then or later", examples=["2026-11-18T12:00:00Z"])
]
At = Annotated[Moment | None, Query(description="as it was at that moment", examples=["2026-11-18T12:00:00Z"])]


def add_routes(app: FastAPI, house: House) -> None:
    @route(app, "GET", "/api/v1/products", READERS, CursorPage[ProductResponse])
    async def list_products(
        seller_id: SellerFilter = None,
        complete: Complete = None,
        changed_since: ChangedSince = None,
        page: PageNo = 0,
        size: PageSize = 20,
        cursor: Cursor = None,
    ) -> Response:
        """Products in the order in which they were found; by `cursor` all of them, however many."""
        if cursor is None:
            found = await house.reports.products(
                seller_id=seller_id, complete=complete, changed_since=changed_since, page=page, size=size
            )
        else:
            after, page, total = read_cursor(cursor)
            rows = await house.reports.products_after(
                after, size, seller_id=seller_id, complete=complete, changed_since=changed_since
            )
            found = Page(tuple(rows), page, size, total)
        last = found.rows[-1].number if found.rows else 0
        return paged(found, shapes.product, nextCursor=_next(found, last))

    @route(app, "GET", _PRODUCT, READERS, ProductResponse, 304, 404, tells=("ETag",))
    async def show_product(request: Request, item_no: ItemNo, at: At = None) -> Response:
        """A product as it is known now, or as it was."""
        found = await house.reports.product(item_no, at)
        return tagged(request, shapes.product(_known(found, item_no)))

    @route(app, "GET", f"{_PRODUCT}/changes", READERS, CursorPage[ChangeResponse], 404)
    async def list_changes(item_no: ItemNo, page: PageNo = 0, size: PageSize = 20, cursor: Cursor = None) -> Response:
        """A product's changes, the oldest first."""
        if cursor is None:
            found = await house.reports.changes(item_no, page=page, size=size)
        else:
            after, page, total = read_cursor(cursor)
            found = Page(tuple(await house.reports.changes_after(item_no, after, size)), page, size, total)
        if not found.rows:
            _known(await house.reports.product(item_no), item_no)
        last = found.rows[-1].version if found.rows else 0
        return paged(found, shapes.change, nextCursor=_next(found, last))


def _known(found: ProductRow | None, item_no: int) -> ProductRow:
    if found is None:
        raise Unknown("product", item_no)
    return found


def _next(found: Page[Any], last: int) -> str | None:
    """A page that is not full is the last one, for now."""
    return cursor_of(last, found.page + 1, found.total) if len(found.rows) == found.size else None
