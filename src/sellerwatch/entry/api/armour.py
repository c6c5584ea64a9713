"""Headers on everything, a log line, and the last resort: what nobody caught becomes 500 in the same shape.

Promises: no answer leaves without the security headers and the request's id; none shows a stack. An id that came in
decent form is kept, any other replaced; it stands on every log line of the request. The last of these tells who asked,
method, path, status and time, never another header; who looked at something and saw it leaves none.
"""

import re
from typing import Any, Final

import structlog
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bound_contextvars

from sellerwatch.entry.api import problems
from sellerwatch.ports.time import Chance, Clock

HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "Strict-Transport-Security": "max-age=31536000",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_WORN: Final = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
REQUEST_ID: Final = b"x-request-id"
_DECENT = re.compile(rb"[A-Za-z0-9._:-]{1,128}")


class Armour:
    def __init__(self, app: ASGIApp, clock: Clock, chance: Chance) -> None:
        self._app, self._clock, self._chance = app, clock, chance

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = self._id_of(scope)
        with bound_contextvars(request_id=request_id):
            await self._answered(scope, receive, send, request_id)

    def _id_of(self, scope: Scope) -> str:
        given = [value for name, value in scope["headers"] if name == REQUEST_ID]
        if len(given) == 1 and _DECENT.fullmatch(given[0]):
            return str(given[0], "ascii")
        return self._chance.uuid7(self._clock.now())

    async def _answered(self, scope: Scope, receive: Receive, send: Send, request_id: str) -> None:
        status = 0
        began = self._clock.monotonic()

        async def armoured(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                told = {name for name, _ in message["headers"]}
                message["headers"] += [each for each in _WORN if each[0] not in told]
                message["headers"].append((REQUEST_ID, request_id.encode()))
            await send(message)

        try:
            await self._app(scope, receive, armoured)
        except ClientDisconnect:
            _log(scope).debug("client went away")
            return
        except Exception as error:
            log = _log(scope)
            log.exception("request failed", error=type(error).__name__)
            if not status:
                await _last_resort(Request(scope), error, self._clock)(scope, receive, armoured)
        if scope["method"] == "GET" and status < 400:
            return  # looked at, nothing more: lines of these would hide the others
        who = {"who": name} if (name := scope.get("state", {}).get("who")) else {}
        ms = round((self._clock.monotonic() - began) * 1000, 1)
        _log(scope).info("request", status=status, ms=ms, **who)


def malformed(clock: Clock, chance: Chance) -> Response:
    """The answer to what is no HTTP, and so never comes as far as an application."""
    at = clock.now()
    answer = problems.reply(HTTPException(400), "", "", at)
    answer.headers.update({**HEADERS, str(REQUEST_ID, "ascii"): chance.uuid7(at)})
    return answer


def _log(scope: Scope) -> Any:
    return structlog.get_logger(method=scope["method"], path=scope["path"][:200])


def _last_resort(request: Request, error: Exception, clock: Clock) -> ASGIApp:
    return problems.reply(error, request.url.path, request.headers.get("accept-language", ""), clock.now())
