"""Explaining: the first thing that holds a seller, a task or an identity up."""

from fastapi import FastAPI, Response

from sellerwatch.domain.verdicts import Verdict
from sellerwatch.entry.api.answers import answer
from sellerwatch.entry.api.asked import AgentId, SellerId, TaskId
from sellerwatch.entry.api.guard import READERS
from sellerwatch.entry.api.routes import route
from sellerwatch.entry.api.shapes.explain import ExplainResponse
from sellerwatch.entry.console.verdicts import shape
from sellerwatch.wiring import House

_EXPLAIN = "/api/v1/explain"


def add_routes(app: FastAPI, house: House) -> None:
    def told(subject: str, name: str, verdict: Verdict) -> Response:
        return answer(shape(subject, name, verdict, house.clock.now()))

    @route(app, "GET", f"{_EXPLAIN}/sellers/{{sellerId}}", READERS, ExplainResponse, 404)
    async def explain_seller(seller_id: SellerId) -> Response:
        """Why a seller is not crawled, or its changes do not arrive: the first culprit from schedule to delivery."""
        return told("seller", seller_id, await house.explain.seller(seller_id))

    @route(app, "GET", f"{_EXPLAIN}/tasks/{{taskId}}", READERS, ExplainResponse, 404)
    async def explain_task(task_id: TaskId) -> Response:
        """Why a task is not done."""
        return told("task", task_id, await house.explain.task(task_id))

    @route(app, "GET", f"{_EXPLAIN}/user-agents/{{id}}", READERS, ExplainResponse, 404)
    async def explain_identity(agent: AgentId) -> Response:
        """Why an identity makes no requests."""
        return told("agent", agent, await house.explain.identity(agent))
