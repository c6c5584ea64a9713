"""Headers on everything, one log line a request, and the last resort: what nobody caught becomes 500 in the same shape.

Promises: no answer leaves without the security headers; none shows a stack. A log line tells method, path, status and
time, never a header.
"""

from typing import Final

import structlog
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sellerwatch.entry.api import problems
from sellerwatch.ports.time import Clock

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
QUIET: Final = ("/actuator/", "/health/", "/metrics")


class Armour:
    def __init__(self, app: ASGIApp, clock: Clock) -> None:
        self._app, self._clock = app, clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 0
        began = self._clock.monotonic()

        async def armoured(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        log = structlog.get_logger(method=scope["method"], path=scope["path"][:200])
        try:
            await self._app(scope, receive, armoured)
        except ClientDisconnect:
            log.debug("client went away")
            return
        except Exception as error:
            log.exception("request failed", error=type(error).__name__)
            if not status:
                await _last_resort(Request(scope), error, self._clock)(scope, receive, armoured)
        tell = log.debug if scope["path"].startswith(QUIET) else log.info
        tell("request", status=status, ms=round((self._clock.monotonic() - began) * 1000, 1))


def _last_resort(request: Request, error: Exception, clock: Clock) -> ASGIApp:
    return problems.reply(error, request.url.path, request.headers.get("accept-language", ""), clock.now())
