"""`GET /metrics`, and the small door of processes that serve no API: health and metrics, nothing else."""

from typing import Any, Final

from fastapi import FastAPI
from starlette.responses import PlainTextResponse, Response

from sellerwatch.entry.api import health
from sellerwatch.entry.api.frame import framed
from sellerwatch.entry.api.guard import EVERYONE
from sellerwatch.entry.api.routes import route
from sellerwatch.entry.metrics import Metrics
from sellerwatch.entry.metrics.counting import CONTENT_TYPE
from sellerwatch.entry.metrics.looking import Looking
from sellerwatch.wiring import House

_TEXT: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "content": {"text/plain": {"schema": {"type": "string", "examples": ["sellerwatch_products 1200"]}}},
        "description": "Prometheus' text format",
    }
}


def add_routes(app: FastAPI, house: House, counted: Metrics) -> None:
    looking = Looking(house)

    @route(app, "GET", "/metrics", EVERYONE, None, others=_TEXT, answers=PlainTextResponse)
    async def metrics() -> Response:
        """Counters and histograms of this process, gauges of the system, in Prometheus' text format."""
        return Response(counted.page(await looking.samples()), media_type=CONTENT_TYPE)


def watched(house: House, counted: Metrics) -> FastAPI:
    """The door of a worker or a scheduler."""
    app = framed(house.clock, house.chance)
    health.add_routes(app, house)
    add_routes(app, house, counted)
    return app
