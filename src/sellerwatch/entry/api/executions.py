"""Executions: one crawl of one seller each."""

from typing import Annotated

from fastapi import FastAPI, Path

from sellerwatch.domain.errors import Unknown
from sellerwatch.entry.api.guard import READERS, only
from sellerwatch.entry.api.reference import told
from sellerwatch.entry.api.shapes import UUID_PATTERN, ExecutionResponse
from sellerwatch.wiring import House


def add_routes(app: FastAPI, house: House) -> None:
    @app.get("/api/v1/executions/{executionId}", openapi_extra=only(READERS), responses=told(404), tags=["executions"])
    async def show_execution(
        execution_id: Annotated[str, Path(alias="executionId", pattern=UUID_PATTERN)],
    ) -> ExecutionResponse:
        """How far a crawl has come."""
        found = await house.reports.execution(execution_id)
        if found is None:
            raise Unknown("execution", execution_id)
        return ExecutionResponse.of(found.execution)
