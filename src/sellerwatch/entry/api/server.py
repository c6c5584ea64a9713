"""The server: uvicorn on a socket, in the event loop that is there, stopping when it is told and not by signals.

Promises: a request that is not complete within eight seconds, or whose head is larger than 64 KB, ends its connection,
while others are served; what is no HTTP is answered as any other mistake. Refuses an address that is taken, in one line.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, Final

import uvicorn
from starlette.responses import Response
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from sellerwatch.domain.errors import Unavailable
from sellerwatch.entry.api.armour import malformed
from sellerwatch.ports.time import Chance, Clock

REQUEST_SECONDS: Final = 8.0
HEAD_MAX: Final = 64 * 1024
BACKLOG: Final = 2048


@asynccontextmanager
async def served(
    app: ASGIApp, host: str, port: int, clock: Clock, chance: Chance, *, shutdown_seconds: float = 5.0
) -> AsyncIterator[str]:
    """The address under which `app` answers, until the block ends; what is under way then may still finish."""
    listening = _listening(host, port)
    config = uvicorn.Config(
        app,
        http=partial(Impatient, malformed=partial(malformed, clock, chance)),  # type: ignore[arg-type]  # is only called
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_graceful_shutdown=max(1, round(shutdown_seconds)),
    )
    server = _Server(config)
    running = asyncio.create_task(server.serve(sockets=[listening]))
    ready = asyncio.create_task(server.ready.wait())
    try:
        await asyncio.wait({running, ready}, return_when=asyncio.FIRST_COMPLETED)
        shown = f"[{host}]" if ":" in host else host
        yield f"http://{shown}:{listening.getsockname()[1]}"
    finally:
        ready.cancel()
        server.should_exit = True
        await running
        listening.close()


class Impatient(HttpToolsProtocol):
    """A connection whose requests must come in whole, in time and with a head of decent size."""

    _timer: asyncio.TimerHandle | None = None
    _head = 0

    def __init__(self, *, malformed: Callable[[], Response], **uvicorns: Any) -> None:
        super().__init__(**uvicorns)
        self._malformed = malformed

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._hurry()

    def connection_lost(self, exc: Exception | None) -> None:
        self._rest()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        # Also what begins no request, a line break say: it ends uvicorn's own wait for the next one.
        self._hurry()
        super().data_received(data)

    def on_message_begin(self) -> None:
        self._head = 0
        self._hurry()
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._weigh(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._weigh(len(name) + len(value))
        super().on_header(name, value)

    def on_message_complete(self) -> None:
        self._rest()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - the parser's own words are nobody's business
        answer = self._malformed()
        head = b"".join(b"%s: %s\r\n" % line for line in answer.raw_headers)
        self.transport.write(b"HTTP/1.1 400 Bad Request\r\n%sconnection: close\r\n\r\n%s" % (head, bytes(answer.body)))
        self.transport.close()

    def _weigh(self, size: int) -> None:
        self._head += size
        if self._head > HEAD_MAX:
            self.transport.abort()

    def _hurry(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(REQUEST_SECONDS, self._give_up)

    def _rest(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._timer = None
        self.transport.abort()


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self.ready.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the process's own affair."""
        yield


def _listening(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
    except (OSError, OverflowError) as error:
        raise Unavailable(f"{host}:{port} cannot be listened on: {error}") from None
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.setblocking(False)
    except (OSError, OverflowError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise Unavailable(f"{host}:{port} cannot be listened on: {reason}; choose another --port") from None
    return listening
