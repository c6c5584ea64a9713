"""One connection: a request goes out, bytes come in, a reply or a failure comes of them.

Promises: whatever the bytes and however they are cut, a request ends as a reply or as NoReply, and what is kept of
them is bounded: head, trailers and the wrapping of chunks as well as the body. A connection is free for a next request
only when the last reply was whole, the other side keeps it too, and not a byte came after it.
Refuses (by llhttp's strict rules, and its own): lengths that are doubled or contradict a transfer encoding, encodings
other than chunked, versions other than 1.x, folded headers, bare line feeds, an upgrade that nobody asked for.
"""

import asyncio
from typing import Final, Never, cast

import httptools

from sellerwatch.ports.wire import NoAnswerWhy, NoReply, RawReply

WRAPPING_BYTES: Final = 64 << 10
"""What may come that is no body: head, interim heads, trailers."""
CHUNK_WRAPPING_BYTES: Final = 32
"""And with each chunk: its size, its extensions."""
HEADERS_MAX: Final = 100
INTERIM_MAX: Final = 8
ERROR_BODY_BYTES: Final = 1 << 20
"""What is read of an answer that is no success."""
BODILESS: Final = (204, 304)


class _Stopped(Exception):
    """Out of a callback: the parser need not go on."""


class Connection(asyncio.Protocol):
    """A connection to the origin; one request after another."""

    __slots__ = (
        "_announced",
        "_answer",
        "_body",
        "_chunks",
        "_failure",
        "_fed",
        "_headers",
        "_interim",
        "_is_body_needed",
        "_is_complete",
        "_is_kept",
        "_is_open",
        "_limit",
        "_loop",
        "_parser",
        "_size",
        "_status",
        "_transport",
        "idle_since",
        "lost",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._is_open = self._is_kept = True
        self._answer: asyncio.Future[RawReply] | None = None
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self.idle_since = 0.0
        self.lost: asyncio.Future[None] = loop.create_future()
        """Done when nothing is left of it."""

    @property
    def is_free(self) -> bool:
        return self._is_open and self._answer is None

    def ask(self, request: bytes, max_bytes: int, *, is_body_needed: bool) -> asyncio.Future[RawReply]:
        """Send a request; what comes back is the future's."""
        self._answer = answer = self._loop.create_future()
        self._limit, self._is_body_needed = max_bytes, is_body_needed
        self._status = self._fed = self._size = self._chunks = self._interim = 0
        self._headers: list[tuple[str, str]] = []
        self._body: bytes | bytearray = b""
        self._announced = -1
        self._is_complete = False
        self._failure: NoReply | None = None
        if self._is_open:
            self._transport.write(request)
        else:
            self._fail(NoReply(NoAnswerWhy.CONNECTION, "the connection was lost before anything was sent"))
        return answer

    def expire(self, seconds: float) -> None:
        """The time of the request is over."""
        self._fail(NoReply(NoAnswerWhy.TIMEOUT, f"no complete answer within {seconds:.1f} s"))

    def end(self) -> None:
        """At once, whatever is under way."""
        if self._is_open:
            self._is_open = False
            self._transport.abort()

    # what the loop says

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._answer is None or self._parser is None:
            # Nobody asked: what would come next could be taken for the reply to another request.
            self.end()
            return
        self._fed += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._is_kept = False
            self._failure = self._failure or NoReply(NoAnswerWhy.CONNECTION, "what came back is not HTTP")
        if self._is_complete:
            self._succeed()
        elif self._failure is not None:
            self._fail(self._failure)
        elif self._fed - self._size > WRAPPING_BYTES + CHUNK_WRAPPING_BYTES * self._chunks:
            self._fail(NoReply(NoAnswerWhy.CONNECTION, "more headers than a reply may have"))

    def eof_received(self) -> None:
        if self._answer is not None and self._status and self._announced < 0:
            self._is_kept = False
            self._succeed()
        else:
            self._fail(NoReply(NoAnswerWhy.CONNECTION, "the connection ended before the reply did"))

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_open = False
        self._fail(NoReply(NoAnswerWhy.CONNECTION, f"the connection was lost: {type(exc).__name__}"))
        # Parser and connection hold each other.
        self._parser = None
        if not self.lost.done():
            self.lost.set_result(None)

    # what the parser says

    def on_message_begin(self) -> None:
        if self._is_complete:
            raise _Stopped

    def on_header(self, name: bytes, value: bytes) -> None:
        # After the head has ended these are trailers, which nobody asked for.
        if not self._status:
            self._headers.append((name.decode("latin-1").lower(), value.decode("latin-1").rstrip(" \t")))

    def on_headers_complete(self) -> None:
        parser = cast("httptools.HttpResponseParser", self._parser)
        status, headers = parser.get_status_code(), self._headers
        if status < 200:
            self._pass(status)
            return
        version = parser.get_http_version()
        if version not in {"1.1", "1.0"} or len(headers) > HEADERS_MAX or self._fed > WRAPPING_BYTES:
            self._check_head(version)
        limit = self._limit
        if not 200 <= status < 300:
            limit = self._limit = min(limit, ERROR_BODY_BYTES)
        self._status = status
        for name, value in headers:
            if name == "content-length":
                self._announced = int(value)
                if self._announced > limit and status not in BODILESS:
                    self._stop(NoAnswerWhy.TOO_LARGE, f"more than {limit} bytes")
            elif name == "transfer-encoding":
                self._announced = limit
                if value.lower() != "chunked" or version == "1.0":
                    self._status = 0
                    self._stop(NoAnswerWhy.CONNECTION, "a transfer encoding that was not asked for")

    def on_chunk_header(self) -> None:
        self._chunks += 1

    def on_body(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._limit:
            self._stop(NoAnswerWhy.TOO_LARGE, f"more than {self._limit} bytes")
        if not self._body:
            self._body = piece
            return
        # Not a list of pieces: of a million chunks of two bytes each it would be a hundred times the body.
        if isinstance(self._body, bytes):
            self._body = bytearray(self._body)
        self._body += piece

    def on_message_complete(self) -> None:
        if not self._status:
            return
        self._is_complete = True
        # A body may follow although there can be none: it would be taken for the next reply.
        is_clear = self._status not in BODILESS or self._announced <= 0
        self._is_kept = is_clear and cast("httptools.HttpResponseParser", self._parser).should_keep_alive()

    # what comes of it

    def _pass(self, status: int) -> None:
        """An interim reply: the real one is still to come."""
        self._interim += 1
        if 100 <= status != 101 and self._interim <= INTERIM_MAX:
            self._headers = []
            return
        self._stop(NoAnswerWhy.CONNECTION, "an interim reply that was not asked for")

    def _check_head(self, version: str) -> None:
        if version not in {"1.1", "1.0"}:
            self._stop(NoAnswerWhy.CONNECTION, "another version of HTTP")
        # Body may have come with it: only the head is counted.
        size = sum(len(name) + len(value) + 4 for name, value in self._headers)
        if len(self._headers) > HEADERS_MAX or size > WRAPPING_BYTES:
            self._stop(NoAnswerWhy.CONNECTION, "more headers than a reply may have")

    def _stop(self, why: NoAnswerWhy, detail: str) -> Never:
        self._failure = NoReply(why, detail)
        raise _Stopped

    def _succeed(self) -> None:
        answer = cast("asyncio.Future[RawReply]", self._answer)
        reply = RawReply(self._status, self._headers, bytes(self._body))
        self._forget()
        # An answer that came before the whole of the question: the rest of it would be in the way.
        if not self._is_kept or self._transport.get_write_buffer_size():
            self.end()
        if not answer.done():
            answer.set_result(reply)

    def _fail(self, failure: NoReply) -> None:
        self.end()
        answer = self._answer
        if answer is None:
            return
        status, headers = self._status, self._headers
        self._forget()
        if answer.done():
            return
        if status and not (self._is_body_needed and 200 <= status < 300):
            # That it was refused must be told, whatever came after.
            answer.set_result(RawReply(status, headers, b""))
        else:
            answer.set_exception(failure)

    def _forget(self) -> None:
        self._answer, self._headers, self._body, self._failure = None, [], b"", None
