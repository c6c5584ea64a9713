"""Explaining: the first thing that holds a seller, a task or an identity up."""

from typing import Annotated

from fastapi import FastAPI, Path

from sellerwatch.domain.verdicts import Culprit, Stage, Verdict
from sellerwatch.entry.api.guard import READERS, only
from sellerwatch.entry.api.reference import told
from sellerwatch.entry.api.shapes import SELLER_PATTERN, UUID_PATTERN, Given
from sellerwatch.entry.console.verdicts import shape
from sellerwatch.wiring import House


class Walked(Given):
    stage: Stage
    is_clear: bool
    text: str


class ExplainResponse(Given):
    subject: str
    id: str
    at: str
    culprit: Culprit
    stage: Stage
    text: str
    since: str | None
    clears_at: str | None
    needs_a_person: bool
    advice: str | None
    walked: list[Walked]


def add_routes(app: FastAPI, house: House) -> None:
    def response(subject: str, name: str, verdict: Verdict) -> ExplainResponse:
        return ExplainResponse.model_validate(shape(subject, name, verdict, house.clock.now()))

    @app.get("/api/v1/explain/sellers/{sellerId}", openapi_extra=only(READERS), responses=told(404), tags=["explain"])
    async def explain_seller(
        seller_id: Annotated[str, Path(alias="sellerId", pattern=SELLER_PATTERN)],
    ) -> ExplainResponse:
        """Why a seller is not crawled, or its changes do not arrive: the first culprit from schedule to delivery."""
        return response("seller", seller_id, await house.explain.seller(seller_id))

    @app.get("/api/v1/explain/tasks/{taskId}", openapi_extra=only(READERS), responses=told(404), tags=["explain"])
    async def explain_task(task_id: Annotated[str, Path(alias="taskId", pattern=UUID_PATTERN)]) -> ExplainResponse:
        """Why a task is not done."""
        return response("task", task_id, await house.explain.task(task_id))

    @app.get("/api/v1/explain/user-agents/{id}", openapi_extra=only(READERS), responses=told(404), tags=["explain"])
    async def explain_identity(agent: Annotated[str, Path(alias="id", pattern=UUID_PATTERN)]) -> ExplainResponse:
        """Why an identity makes no requests."""
        return response("agent", agent, await house.explain.identity(agent))
