"""A policy on every route: who may come in, how often, and with what.

Promises: a route says who may come in, or the application is not built. Asked in this order: who it is, whether that
may do it, whether not too often; only then query and body are looked at (bodies.py).
"""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

from fastapi import Request, Response
from fastapi.routing import APIRoute

from sellerwatch.domain.errors import Invalid
from sellerwatch.entry.api.api_keys import ApiKeys
from sellerwatch.entry.api.bodies import check_query, checked, has_body
from sellerwatch.entry.api.limits import Allowance, TooMany
from sellerwatch.entry.api.tokens import NotAllowed, Role, Tokens

ROLES: Final = "x-roles"
INTERNAL: Final = "INTERNAL"
BURST_SECONDS: Final = 2.0
Extra = dict[str, Any]

READERS: Final = frozenset({Role.ADMIN.value, Role.VIEWER.value})
WRITERS: Final = frozenset({Role.ADMIN.value})
MACHINES: Final = frozenset({INTERNAL})
EVERYONE: Final[frozenset[str]] = frozenset()


@dataclass(frozen=True, slots=True)
class Gate:
    """Who is let in."""

    tokens: Tokens
    api_keys: ApiKeys
    allowance: Allowance

    async def check(self, request: Request, allowed: frozenset[str]) -> None:
        if allowed == MACHINES:
            address = request.client.host if request.client else ""
            request.state.who = mark = self.api_keys.read(request.scope["headers"], address)
        else:
            bearer = await self.tokens.who(request.headers.getlist("authorization"))
            request.state.who, mark = bearer.subject, bearer.mark
            if not bearer.roles & allowed:
                raise NotAllowed
        if wait := self.allowance.take(mark):
            raise TooMany(wait)


def policy(allowed: frozenset[str]) -> Extra:
    """What the OpenAPI document says of a route, and what `Guarded` keeps to. EVERYONE: without a credential."""
    scheme = "key" if allowed == MACHINES else "bearer"
    return {ROLES: sorted(allowed), "security": [{scheme: []}] if allowed else []}


class Guarded(APIRoute):
    """A route that knows whom it serves."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        roles = allowed(self)
        takes_body = self.body_field is not None
        names = frozenset(parameter.alias for parameter in self.dependant.query_params)

        async def guarded(request: Request) -> Response:
            if roles:
                gate: Gate = request.app.state.gate
                await gate.check(request, roles)
            check_query(request, names)
            if not has_body(request):
                return await handle(request)
            return await handle(await checked(request, takes_body=takes_body))

        return guarded


def allowed(route: APIRoute) -> frozenset[str]:
    """Who may use this route; none: everyone, without a credential."""
    extra = route.openapi_extra or {}
    if ROLES not in extra:
        raise Invalid("route", f"{route.methods} {route.path}", "one with a policy (openapi_extra=policy(…))")
    return frozenset(extra[ROLES])
