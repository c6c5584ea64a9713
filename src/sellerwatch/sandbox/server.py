"""The sandbox on a socket: a small HTTP/1.1 server with keep-alive, made to be faster than what it is asked by.

It keeps the order of requests on a connection, waits what a reply says it should wait, and closes where a reply says the
connection drops. It has no limits on time: put it on a loopback address.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import cast

import httptools

from sellerwatch.sandbox.reply import Reply, refusal
from sellerwatch.sandbox.sandbox import Sandbox

_REASONS = {status.value: status.phrase for status in HTTPStatus}
_BODY_MAX = 16 * 1024 * 1024


@asynccontextmanager
async def serve(
    sandbox: Sandbox, clock: Callable[[], float], host: str = "127.0.0.1", port: int = 0
) -> AsyncIterator[str]:
    """The address under which the sandbox answers, until the block ends. `clock` gives seconds since the epoch."""
    loop = asyncio.get_running_loop()
    open_ones: set[_Connection] = set()
    server = await loop.create_server(lambda: _Connection(sandbox, clock, open_ones), host, port, backlog=1024)
    try:
        yield f"http://{host}:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for connection in tuple(open_ones):
            connection.close()
        await server.wait_closed()


class _Connection(asyncio.Protocol):
    """One client. Replies leave in the order of the requests, however long one of them waits."""

    def __init__(self, sandbox: Sandbox, clock: Callable[[], float], open_ones: "set[_Connection]") -> None:
        self._sandbox = sandbox
        self._clock = clock
        self._open_ones = open_ones
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._waiting: deque[tuple[Reply, bool]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._target = b""
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._size = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._open_ones.add(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's name and signature
        self._open_ones.discard(self)
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError:
            self._transport.abort()
            raise
        except httptools.HttpParserError:
            self._queue(refusal(400, "not HTTP"), keep=False)

    def on_message_begin(self) -> None:
        self._target, self._headers, self._body, self._size = b"", {}, [], 0

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        known = self._headers.get(key)
        self._headers[key] = text if known is None else f"{known}{'; ' if key == 'cookie' else ', '}{text}"

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        if self._size <= _BODY_MAX:
            self._body.append(body)

    def on_message_complete(self) -> None:
        keep = self._parser.should_keep_alive()
        if self._size > _BODY_MAX:
            self._queue(refusal(413, "too large"), keep=False)
            return
        method = self._parser.get_method().decode("latin-1")
        reply = self._sandbox.answer(
            method, self._target.decode("latin-1"), self._headers, b"".join(self._body), self._clock()
        )
        self._queue(reply, keep=keep)

    def _queue(self, reply: Reply, *, keep: bool) -> None:
        self._waiting.append((reply, keep))
        if self._timer is None:
            self._flush()

    def _flush(self) -> None:
        self._timer = None
        while self._waiting and self._transport is not None:
            reply, keep = self._waiting[0]
            if reply.delay > 0:
                delay, reply.delay = reply.delay, 0.0
                self._timer = asyncio.get_running_loop().call_later(delay, self._flush)
                return
            self._waiting.popleft()
            self._send(self._transport, reply, keep=keep)

    def _send(self, transport: asyncio.Transport, reply: Reply, *, keep: bool) -> None:
        if not reply.drop or reply.body:
            transport.write(_head(reply, keep=keep) + reply.body)
        if reply.drop or not keep:
            self._waiting.clear()
            transport.close()


def _head(reply: Reply, *, keep: bool) -> bytes:
    lines = [f"HTTP/1.1 {reply.status} {_REASONS.get(reply.status, 'Unknown')}\r\n"]
    sized = False
    for name, value in reply.headers:
        sized = sized or name == "content-length"
        lines.append(f"{name}: {value}\r\n")
    if not sized:
        lines.append(f"content-length: {len(reply.body)}\r\n")
    lines.append("\r\n" if keep else "connection: close\r\n\r\n")
    return "".join(lines).encode("latin-1")
