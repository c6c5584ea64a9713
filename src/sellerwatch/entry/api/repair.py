"""Repair: what could not be sent, and what was received too often."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Final, Literal

from fastapi import Body, FastAPI, Query, Response
from pydantic import BeforeValidator, Field

from sellerwatch.domain.errors import Conflict, Unknown
from sellerwatch.entry.api.answers import answer, paged
from sellerwatch.entry.api.asked import OutboxId, PageNo, PageSize, whole
from sellerwatch.entry.api.guard import READERS, WRITERS
from sellerwatch.entry.api.routes import route
from sellerwatch.entry.api.shapes import Page as PageShape
from sellerwatch.entry.api.shapes.repair import DeadLetterResponse, OutboxResponse, Redrive, RedriveResponse
from sellerwatch.entry.console import shapes
from sellerwatch.flows.decide import Decided
from sellerwatch.ports.reports import Box, OutboxRow, Page
from sellerwatch.wiring import House

LETTERS_DEEP: Final = 99
"""Queues hand out dead letters from the first one on: those on later pages cost those before them."""
BoxStatus = Literal["WAITING", "SENDING", "COMPLETED", "FAILED", "HELD", "PENDING", "PROCESSING", "SENT"]
LetterPage = Annotated[
    Annotated[int, Field(ge=0, le=LETTERS_DEEP), BeforeValidator(whole)], Query(description="from 0")
]


def add_routes(app: FastAPI, house: House) -> None:
    async def known(outbox_id: str) -> OutboxRow:
        found = await house.reports.outbox_row(outbox_id)
        if found is None:
            raise Unknown("outbox row", outbox_id)
        return found

    @route(app, "GET", "/api/v1/outbox", READERS, PageShape[OutboxResponse])
    async def list_outbox(
        box: Box = Box.PRODUCT, status: BoxStatus | None = None, page: PageNo = 0, size: PageSize = 20
    ) -> Response:
        """What is to be sent, was sent, or could not be: to the product server, into the queue, to the schedule. The
        product and scheduler boxes know WAITING, SENDING, COMPLETED, FAILED and HELD, the task box PENDING,
        PROCESSING, SENT and FAILED."""
        return paged(await house.reports.outbox(box, status=status, page=page, size=size), shapes.outbox)

    @route(app, "POST", "/api/v1/outbox/{id}/retry", WRITERS, OutboxResponse, 404, 409)
    async def retry_outbox(outbox_id: OutboxId) -> Response:
        """Send a FAILED row again. What the receiver has in a newer version since is COMPLETED instead."""
        await known(outbox_id)
        if refused := (await house.repair.retry([outbox_id])).refused:
            raise Conflict("WRONG_STATE", refused[0])
        return answer(shapes.outbox(await known(outbox_id)))

    async def decided(outbox_id: str, verb: Callable[[Sequence[str]], Awaitable[Decided]]) -> Response:
        if (await known(outbox_id)).box is not Box.PRODUCT:
            raise Conflict("WRONG_STATE", f"outbox row {outbox_id} is of no product: it is never held")
        if refused := (await verb([outbox_id])).refused:
            raise Conflict("WRONG_STATE", refused[0])
        return answer(shapes.outbox(await known(outbox_id)))

    @route(app, "POST", "/api/v1/outbox/{id}/release", WRITERS, OutboxResponse, 404, 409)
    async def release_outbox(outbox_id: OutboxId) -> Response:
        """Let a HELD row go on its way. One that a quarantine holds takes the whole quarantine with it."""
        return await decided(outbox_id, house.decide.release)

    @route(app, "POST", "/api/v1/outbox/{id}/discard", WRITERS, OutboxResponse, 404, 409)
    async def discard_outbox(outbox_id: OutboxId) -> Response:
        """Never send a HELD row. One that a quarantine holds takes the whole quarantine with it."""
        return await decided(outbox_id, house.decide.discard)

    @route(app, "GET", "/api/v1/dead-letters", READERS, PageShape[DeadLetterResponse])
    async def list_dead_letters(page: LetterPage = 0, size: PageSize = 20) -> Response:
        """Messages that were received too often, or could not be understood."""
        letters = await house.repair.dead_letters((page + 1) * size)
        shown = tuple(letters[page * size :])
        total = (await house.queue.depth()).dead
        return paged(Page(shown, page, size, max(total, len(letters))), shapes.dead_letter)

    @route(app, "POST", "/api/v1/dead-letters/redrive", WRITERS, RedriveResponse)
    async def redrive_dead_letters(body: Annotated[Redrive | None, Body()] = None) -> Response:
        """Put dead letters, those named or all, back into the queue as new messages."""
        return answer({"redriven": await house.repair.redrive(body.letter_ids if body else None)})
