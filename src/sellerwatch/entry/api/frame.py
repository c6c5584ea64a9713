"""An application without routes: every error in one shape, the headers around everything, a policy asked of each route.

Promises: whichever port of ours somebody is at, what is not there is 404 and what takes another method is 405, told like
any other error.
"""

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match

import sellerwatch
from sellerwatch.domain.errors import SellerwatchError
from sellerwatch.entry.api import problems
from sellerwatch.entry.api.armour import Armour
from sellerwatch.entry.api.document import TITLE
from sellerwatch.entry.api.guard import Guarded
from sellerwatch.entry.api.routes import operation_id
from sellerwatch.ports.time import Chance, Clock

ERRORS = (SellerwatchError, RequestValidationError, HTTPException)


def framed(clock: Clock, chance: Chance) -> FastAPI:
    async def told(request: Request, error: Exception) -> Response:
        answer = problems.reply(error, request.url.path, request.headers.get("accept-language", ""), clock.now())
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
    app.add_middleware(Armour, clock=clock, chance=chance)
    return app


def _methods(app: FastAPI, request: Request) -> set[str]:
    """All that this address takes: each of its methods is a route of its own."""
    found: set[str] = set()
    for route in app.routes:
        if isinstance(route, APIRoute) and route.matches(request.scope)[0] is not Match.NONE:
            found |= route.methods or set()
    return found
