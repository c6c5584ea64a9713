"""A policy on every route, and bodies checked before anything reads them.

Promises: a route says who may come in, or the application is not built; who it is, is asked before the body is looked
at. Bodies: at most 256 KiB, uncompressed, `application/json`, strict (strict.py); where none is expected, none or `{}`.
"""

from collections.abc import Callable, Coroutine
from typing import Any, Final

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.types import Message

from sellerwatch.domain.errors import Invalid
from sellerwatch.entry.api.problems import BadBody
from sellerwatch.entry.api.strict import strict_json
from sellerwatch.entry.api.tokens import NotAllowed, Role, Tokens

BODY_MAX: Final = 256 * 1024
ROLES: Final = "x-roles"
Extra = dict[str, Any]

READERS: Final = frozenset({Role.ADMIN, Role.VIEWER})
WRITERS: Final = frozenset({Role.ADMIN})


def open_to_all() -> Extra:
    return {ROLES: [], "security": []}


def only(roles: frozenset[Role]) -> Extra:
    """What the OpenAPI document says of a route, and what `Guarded` keeps to."""
    return {ROLES: sorted(roles), "security": [{"bearer": []}]}


class Guarded(APIRoute):
    """A route that knows whom it serves."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        roles = allowed(self)

        async def guarded(request: Request) -> Response:
            if roles:
                tokens: Tokens = request.app.state.tokens
                bearer = tokens.read(request.headers.getlist("authorization"))
                if not bearer.roles & roles:
                    raise NotAllowed
            return await handle(await _checked(request, takes_body=self.body_field is not None))

        return guarded


def allowed(route: APIRoute) -> frozenset[Role]:
    """Who may use this route; none: everyone, without a token."""
    extra = route.openapi_extra or {}
    if ROLES not in extra:
        raise Invalid("route", f"{route.methods} {route.path}", "one with a policy (openapi_extra=only(…))")
    return frozenset(Role(name) for name in extra[ROLES])


async def _checked(request: Request, *, takes_body: bool) -> Request:
    """The same request, its body read and found to be in order."""
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise BadBody(415, "a compressed body is not taken")
    body = await _body(request)
    if body:
        _check_body(request, body, takes_body=takes_body)
    is_told = False

    async def receive() -> Message:
        nonlocal is_told
        if is_told:
            return await request.receive()
        is_told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return Request(request.scope, receive)


async def _body(request: Request) -> bytes:
    told = request.headers.get("content-length", "0")
    if told.isascii() and told.isdigit() and (len(told) > 9 or int(told) > BODY_MAX):
        raise BadBody(413, f"the body is larger than {BODY_MAX} bytes")
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > BODY_MAX:
            raise BadBody(413, f"the body is larger than {BODY_MAX} bytes")
    return bytes(body)


def _check_body(request: Request, body: bytes, *, takes_body: bool) -> None:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise BadBody(415, "the body is not application/json")
    try:
        value = strict_json(body)
    except ValueError as error:
        raise BadBody(400, f"the body {error}" if _is_ours(error) else "the body is not JSON") from None
    if not takes_body and value != {}:
        named = [name[:100] for name in value][:50] if isinstance(value, dict) else ()
        raise BadBody(400, "no body is expected here", named)


def _is_ours(error: ValueError) -> bool:
    return type(error) is ValueError
