"""The application: all routes, their errors in one shape, the headers around them.

Promises: it is built only when every route has a policy and the key that tokens are checked with is of its algorithm.
"""

from typing import Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

import sellerwatch
from sellerwatch.domain.errors import SellerwatchError
from sellerwatch.entry.api import executions, explain, health, metrics, problems, reference, sellers
from sellerwatch.entry.api.armour import Armour
from sellerwatch.entry.api.guard import Guarded
from sellerwatch.entry.api.tokens import Tokens
from sellerwatch.entry.metrics import Metrics
from sellerwatch.wiring import House

ERRORS: Final = (SellerwatchError, RequestValidationError, HTTPException)


def api(house: House, counted: Metrics | None = None) -> FastAPI:
    """The REST door of this house."""

    async def told(request: Request, error: Exception) -> Response:
        return problems.reply(error, request.url.path, request.headers.get("accept-language", ""), house.clock.now())

    app = FastAPI(
        title=reference.TITLE,
        version=sellerwatch.__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        exception_handlers=dict.fromkeys(ERRORS, told),
    )
    app.router.route_class = Guarded
    app.state.tokens = Tokens(house.settings, house.clock)
    app.add_middleware(Armour, clock=house.clock)
    for room in (sellers, executions, explain, health):
        room.add_routes(app, house)
    metrics.add_routes(app, house, counted or Metrics())
    reference.add_routes(app)
    return app
