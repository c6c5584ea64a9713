"""The application: all routes, their errors in one shape, the headers around them.

Promises: it is built only when every route has a policy and the key that tokens are checked with is of its algorithm.
"""

from typing import Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match

import sellerwatch
from sellerwatch.domain.errors import SellerwatchError
from sellerwatch.entry.api import (
    executions,
    explain,
    health,
    metrics,
    problems,
    products,
    reference,
    repair,
    sellers,
    triggers,
    user_agents,
)
from sellerwatch.entry.api.api_keys import ApiKeys
from sellerwatch.entry.api.armour import Armour
from sellerwatch.entry.api.document import TITLE
from sellerwatch.entry.api.guard import BURST_SECONDS, Gate, Guarded
from sellerwatch.entry.api.limits import Allowance
from sellerwatch.entry.api.routes import operation_id
from sellerwatch.entry.api.tokens import Tokens
from sellerwatch.entry.metrics import Metrics
from sellerwatch.wiring import House

ROOMS: Final = (sellers, executions, products, user_agents, repair, explain, triggers, health)
ERRORS: Final = (SellerwatchError, RequestValidationError, HTTPException)


def api(house: House, counted: Metrics | None = None) -> FastAPI:
    """The REST door of this house."""

    async def told(request: Request, error: Exception) -> Response:
        answer = problems.reply(error, request.url.path, request.headers.get("accept-language", ""), house.clock.now())
        if answer.status_code == 405:
            answer.headers["Allow"] = ", ".join(sorted(_methods(app, request)))
        return answer

    app = FastAPI(
        title=TITLE,
        version=sellerwatch.__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        generate_unique_id_function=operation_id,
        redirect_slashes=False,
        exception_handlers=dict.fromkeys(ERRORS, told),
    )
    app.router.route_class = Guarded
    per_second = house.settings.api_requests_per_second
    app.state.gate = Gate(
        Tokens(house.settings, house.clock, house.issuer),
        ApiKeys(house.settings, house.clock),
        Allowance(house.clock, per_second, per_second * BURST_SECONDS),
    )
    app.add_middleware(Armour, clock=house.clock, chance=house.chance)
    for room in ROOMS:
        room.add_routes(app, house)
    metrics.add_routes(app, house, counted or Metrics())
    reference.add_routes(app)
    return app


def _methods(app: FastAPI, request: Request) -> set[str]:
    """All that this address takes: each of its methods is a route of its own."""
    found: set[str] = set()
    for route in app.routes:
        if isinstance(route, APIRoute) and route.matches(request.scope)[0] is not Match.NONE:
            found |= route.methods or set()
    return found
