"""The application: all routes in the frame.

Promises: it is built only when every route has a policy and the key that tokens are checked with is of its algorithm.
"""

from typing import Final

from fastapi import FastAPI

from sellerwatch.entry.api import (
    executions,
    explain,
    health,
    metrics,
    products,
    quarantines,
    reference,
    repair,
    sellers,
    triggers,
    user_agents,
)
from sellerwatch.entry.api.api_keys import ApiKeys
from sellerwatch.entry.api.frame import framed
from sellerwatch.entry.api.guard import BURST_SECONDS, Gate
from sellerwatch.entry.api.limits import Allowance
from sellerwatch.entry.api.tokens import Tokens
from sellerwatch.entry.metrics import Metrics
from sellerwatch.wiring import House

ROOMS: Final = (sellers, executions, products, user_agents, repair, quarantines, explain, triggers, health)


def api(house: House, counted: Metrics | None = None) -> FastAPI:
    """The REST door of this house."""
    app = framed(house.clock, house.chance)
    per_second = house.settings.api_requests_per_second
    app.state.gate = Gate(
        Tokens(house.settings, house.clock, house.issuer),
        ApiKeys(house.settings, house.clock),
        Allowance(house.clock, per_second, per_second * BURST_SECONDS),
    )
    for room in ROOMS:
        room.add_routes(app, house)
    metrics.add_routes(app, house, counted or Metrics())
    reference.add_routes(app)
    return app
