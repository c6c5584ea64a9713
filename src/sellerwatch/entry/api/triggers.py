"""Triggers from outside: EventBridge, or whoever holds a key."""

from typing import Annotated, Final

from fastapi import Body, FastAPI, Response
from pydantic import WrapValidator

from sellerwatch.domain.errors import Unknown
from sellerwatch.domain.schedules import seller_of_rule
from sellerwatch.entry.api.answers import answer
from sellerwatch.entry.api.guard import MACHINES
from sellerwatch.entry.api.looking import planned
from sellerwatch.entry.api.routes import route
from sellerwatch.entry.api.shapes.crawls import Envelope, NewTrigger, TriggerResponse
from sellerwatch.wiring import House

TRIGGER: Final = "/api/internal/crawling/trigger"
_ENVELOPES: Final = {field.alias or name for name, field in Envelope.model_fields.items()}


def add_routes(app: FastAPI, house: House) -> None:
    @route(app, "POST", TRIGGER, MACHINES, TriggerResponse, 404)
    async def trigger_crawling(body: Annotated[NewTrigger | Envelope, WrapValidator(_one_of_both), Body()]) -> Response:
        """A seller's turn has come. Answered with the execution, also with one that is open or was begun under this key
        before; an inactive seller has none."""
        seller_id, key = (body.seller_id, body.trigger_key) if isinstance(body, NewTrigger) else _read(body)
        opened = await house.trigger.open(seller_id, key)
        if opened.execution is None:
            return answer({"executionId": None, "taskCount": 0})
        execution_id = opened.execution.execution_id
        return answer({"executionId": execution_id, "taskCount": await planned(house, execution_id)})


def _one_of_both(body: object, _: object) -> NewTrigger | Envelope:
    """By its own names, so that what is wrong with it is told of the one it is meant to be."""
    if not isinstance(body, dict):
        return NewTrigger.model_validate(body)
    is_envelope = "detail" in body or ("sellerId" not in body and bool(body.keys() & _ENVELOPES))
    return Envelope.model_validate(body) if is_envelope else NewTrigger.model_validate(body)


def _read(envelope: Envelope) -> tuple[str, str]:
    """Whose turn it is, and the key."""
    named = [envelope.detail.seller_id, *map(seller_of_rule, envelope.resources)]
    seller_id = next((name for name in named if name), None)
    if seller_id is None:
        raise Unknown("seller", "named in detail or by a rule among the resources")
    return seller_id, envelope.key
