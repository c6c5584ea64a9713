"""Quarantines: crawls that looked like drift, and what a person decides of them."""

from collections.abc import Awaitable, Callable, Sequence

from fastapi import FastAPI, Response

from sellerwatch.domain.errors import Conflict, Unknown
from sellerwatch.domain.quarantines import QuarantineStatus
from sellerwatch.entry.api.answers import answer, paged
from sellerwatch.entry.api.asked import PageNo, PageSize, QuarantineId
from sellerwatch.entry.api.guard import READERS, WRITERS
from sellerwatch.entry.api.routes import route
from sellerwatch.entry.api.shapes import Page
from sellerwatch.entry.api.shapes.quarantines import QuarantineResponse
from sellerwatch.entry.console.trust import quarantine_shape
from sellerwatch.flows.decide import Decided
from sellerwatch.ports.reports import QuarantineRow
from sellerwatch.wiring import House

_QUARANTINES, _QUARANTINE = "/api/v1/quarantines", "/api/v1/quarantines/{id}"


def add_routes(app: FastAPI, house: House) -> None:
    async def known(quarantine_id: str) -> QuarantineRow:
        found = await house.reports.quarantine(quarantine_id)
        if found is None:
            raise Unknown("quarantine", quarantine_id)
        return found

    async def decided(quarantine_id: str, verb: Callable[[Sequence[str]], Awaitable[Decided]]) -> Response:
        await known(quarantine_id)
        if refused := (await verb([quarantine_id])).refused:
            raise Conflict("WRONG_STATE", refused[0])
        return answer(quarantine_shape(await known(quarantine_id)))

    @route(app, "GET", _QUARANTINES, READERS, Page[QuarantineResponse])
    async def list_quarantines(
        status: QuarantineStatus | None = None, page: PageNo = 0, size: PageSize = 20
    ) -> Response:
        """Crawls that were kept from the products, the newest first. OPEN ones wait for a person, or for a later crawl."""
        return paged(await house.reports.quarantines(status=status, page=page, size=size), quarantine_shape)

    @route(app, "GET", _QUARANTINE, READERS, QuarantineResponse, 404)
    async def show_quarantine(quarantine_id: QuarantineId) -> Response:
        """One of them, and why it is held."""
        return answer(quarantine_shape(await known(quarantine_id)))

    @route(app, "POST", f"{_QUARANTINE}/release", WRITERS, QuarantineResponse, 404, 409)
    async def release_quarantine(quarantine_id: QuarantineId) -> Response:
        """It is how things are: its documents are absorbed, its changes told, and from then on it is what is usual."""
        return await decided(quarantine_id, house.decide.release)

    @route(app, "POST", f"{_QUARANTINE}/discard", WRITERS, QuarantineResponse, 404, 409)
    async def discard_quarantine(quarantine_id: QuarantineId) -> Response:
        """It is nonsense: its documents are done with, and nobody is told."""
        return await decided(quarantine_id, house.decide.discard)
