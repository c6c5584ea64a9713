"""`GET /metrics`, and the small door of processes that serve no API: health and metrics, nothing else."""

from collections.abc import Mapping
from typing import Any, Final

from fastapi import FastAPI
from starlette.responses import Response

import sellerwatch
from sellerwatch.entry.api import health
from sellerwatch.entry.api.armour import Armour
from sellerwatch.entry.api.guard import Guarded, open_to_all
from sellerwatch.entry.metrics import Metrics
from sellerwatch.entry.metrics.counting import CONTENT_TYPE
from sellerwatch.entry.metrics.looking import Looking
from sellerwatch.wiring import House

_TEXT: Final[Mapping[int | str, dict[str, Any]]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Prometheus' text format"}
}


def add_routes(app: FastAPI, house: House, counted: Metrics) -> None:
    looking = Looking(house)

    async def metrics() -> Response:
        """Counters and histograms of this process, gauges of the system, in Prometheus' text format."""
        return Response(counted.page(await looking.samples()), media_type=CONTENT_TYPE)

    app.get("/metrics", openapi_extra=open_to_all(), tags=["health"], response_class=Response, responses={**_TEXT})(
        metrics
    )


def watched(house: House, counted: Metrics) -> FastAPI:
    """The door of a worker or a scheduler."""
    app = FastAPI(title="Sellerwatch", version=sellerwatch.__version__, docs_url=None, redoc_url=None, openapi_url=None)
    app.router.route_class = Guarded
    app.add_middleware(Armour, clock=house.clock)
    health.add_routes(app, house)
    add_routes(app, house, counted)
    return app
