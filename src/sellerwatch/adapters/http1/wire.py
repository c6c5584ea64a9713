"""A wire to one origin: connections are kept, the last one used first, and each carries one request at a time.

Promises: what ports.wire says. A connection that the other side closed while it was idle, that said something unasked,
or that was idle for long, carries nothing more; a request that fails on a kept one is a failure and is not sent again,
because the other side may have counted it. Cancelling a request ends its connection.
"""

import asyncio
import re
import ssl
from collections import deque
from collections.abc import Mapping
from typing import Final

from sellerwatch.adapters.http1.connection import Connection
from sellerwatch.adapters.http1.origin import Origin
from sellerwatch.ports.wire import NoAnswerWhy, NoReply, RawReply

KEEPALIVE_SECONDS: Final = 15.0
_TARGET: Final = re.compile(r"/[!-~]*", re.ASCII)
_HEADERS: Final = re.compile(
    r"(?:(?!(?i:host|content-length|transfer-encoding|connection):)[!#$%&'*+\-.^_`|~0-9A-Za-z]+: [\t -~]*\r\n)*",
    re.ASCII,
)


class Http1:
    """ports.wire.Wire. How many requests are under way at once is the caller's to say."""

    def __init__(self, origin: str, *, allow_plain_http: bool = False, tls: ssl.SSLContext | None = None) -> None:
        self._origin = Origin(origin, allow_plain_http=allow_plain_http, tls=tls)
        self._host = f" HTTP/1.1\r\nHost: {self._origin.name}\r\n"
        self._open: set[Connection] = set()
        self._idle: deque[Connection] = deque()
        self._sweeping: asyncio.TimerHandle | None = None
        self._closings = 0

    async def send(
        self,
        target: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        connect_timeout: float,
        total_seconds: float,
        max_bytes: int,
        is_body_needed: bool = True,
    ) -> RawReply:
        """One GET, or one POST of `body`."""
        request = self._written(target, headers, body)
        loop = asyncio.get_running_loop()
        began = loop.time()
        connection = self._kept(began) or await self._opened(loop, min(connect_timeout, total_seconds))
        timer = loop.call_at(began + total_seconds, connection.expire, total_seconds)
        try:
            return await connection.ask(request, max_bytes, is_body_needed=is_body_needed)
        finally:
            timer.cancel()
            if connection.is_free:
                self._keep(connection, loop)
            else:
                connection.end()

    async def close(self) -> None:
        """End every connection; a later request opens a new one."""
        self._closings += 1
        if self._sweeping is not None:
            self._sweeping.cancel()
            self._sweeping = None
        self._idle.clear()
        ending = tuple(self._open)
        for connection in ending:
            connection.end()
        for connection in ending:
            await connection.lost
        self._open.difference_update(ending)

    def _written(self, target: str, headers: Mapping[str, str], body: bytes | None) -> bytes:
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        if lines.count("\n") != len(headers) or not _HEADERS.fullmatch(lines) or not _TARGET.fullmatch(target):
            raise NoReply(
                NoAnswerWhy.CONNECTION, "nothing was sent: a header or the target holds what may not be there"
            )
        if body is None:
            return f"GET {target}{self._host}{lines}\r\n".encode("ascii")
        return f"POST {target}{self._host}{lines}Content-Length: {len(body)}\r\n\r\n".encode("ascii") + body

    def _kept(self, now: float) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_free:
                if now - connection.idle_since < KEEPALIVE_SECONDS:
                    return connection
                connection.end()
        return None

    def _keep(self, connection: Connection, loop: asyncio.AbstractEventLoop) -> None:
        connection.idle_since = loop.time()
        self._idle.append(connection)
        if self._sweeping is None:
            self._sweeping = loop.call_later(KEEPALIVE_SECONDS, self._sweep, loop)

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """The last one used goes out first, so those at the other end may never be asked for again."""
        while self._idle and loop.time() - self._idle[0].idle_since >= KEEPALIVE_SECONDS:
            self._idle.popleft().end()
        self._sweeping = loop.call_later(KEEPALIVE_SECONDS, self._sweep, loop) if self._idle else None

    async def _opened(self, loop: asyncio.AbstractEventLoop, seconds: float) -> Connection:
        closings = self._closings
        try:
            connection = await self._origin.connected(lambda: Connection(loop), seconds)
        except TimeoutError:
            failure = NoReply(NoAnswerWhy.TIMEOUT, f"no connection within {seconds:g} s")
        except (OSError, ValueError) as error:
            # Only its kind: the texts of these errors hold addresses.
            failure = NoReply(NoAnswerWhy.CONNECTION, f"no connection: {type(error).__name__}")
        else:
            if closings == self._closings:
                self._open.add(connection)
                connection.lost.add_done_callback(lambda _: self._open.discard(connection))
                return connection
            connection.end()
            failure = NoReply(NoAnswerWhy.CONNECTION, "closed before it was sent")
        # Raised out here, so that it bears no trace of the error behind it.
        raise failure
