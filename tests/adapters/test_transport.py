"""HTTP to the marketplace as it is on the wire, against a server that says and does anything."""

import asyncio
import gzip
import ssl
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Callable
from functools import partial

import pytest

from sellerwatch.adapters.chance import SeededChance
from sellerwatch.adapters.http1.origin import checked_tls
from sellerwatch.adapters.http1.wire import Http1
from sellerwatch.adapters.marketplace.inflate import SMALL_BYTES, inflate
from sellerwatch.adapters.marketplace.transport import HttpTransport
from sellerwatch.domain.errors import Invalid
from sellerwatch.ports.wire import NoAnswerWhy, NoReply, RawReply

MB = 1 << 20


def noise(count: int) -> bytes:
    return SeededChance(count).token_bytes(count)


OK = b"HTTP/1.1 200 OK\r\n"


class Wire:
    """A server that answers each request with bytes as they stand; what is None ends the connection."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        self.script: Callable[[int], list[bytes | float | None]] = lambda _: [OK + b"Content-Length: 2\r\n\r\nok"]
        self.connections = 0
        self.never = asyncio.Event()

    async def serve(self, reader, writer) -> None:
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                self.requests.append(head)
                for piece in self.script(len(self.requests)):
                    if piece is None:
                        return
                    if isinstance(piece, float):
                        await asyncio.wait({asyncio.ensure_future(self.never.wait())}, timeout=piece)
                        continue
                    writer.write(piece)
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@pytest.fixture
async def wire() -> AsyncIterator[Wire]:
    wire = Wire()
    server = await asyncio.start_server(wire.serve, "127.0.0.1", 0)
    wire.port = server.sockets[0].getsockname()[1]
    wire.url = f"http://127.0.0.1:{wire.port}"
    yield wire
    wire.never.set()
    server.close()


@pytest.fixture
async def transport(wire) -> AsyncIterator[HttpTransport]:
    transport = HttpTransport(wire.url, Http1)
    yield transport
    await transport.close()


async def send(transport, url, headers=(), *, total=5.0, connect=1.0, max_bytes=32 * MB) -> RawReply:
    return await transport.send(url, dict(headers), connect_timeout=connect, total_seconds=total, max_bytes=max_bytes)


def answer(body: bytes, *headers: bytes, status: bytes = b"200 OK") -> bytes:
    lines = [b"HTTP/1.1 " + status, b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


async def failure(transport, url, **options) -> NoReply:
    with pytest.raises(NoReply) as caught:
        await send(transport, url, **options)
    return caught.value


async def test_it_sends_the_headers_it_is_given_and_no_other(wire, transport):
    reply = await send(transport, f"{wire.url}/a%2Fb?c=%20d&e=+", {"User-Agent": "Mozilla", "Cookie": "nid=1"})
    assert (reply.status, reply.body) == (200, b"ok")
    lines = wire.requests[0].decode().split("\r\n")
    assert lines[0] == "GET /a%2Fb?c=%20d&e=+ HTTP/1.1"
    assert sorted(line for line in lines[1:] if line) == [
        "Cookie: nid=1",
        f"Host: 127.0.0.1:{wire.port}",
        "User-Agent: Mozilla",
    ]


async def test_headers_come_in_lower_case_and_repeated(wire, transport):
    wire.script = lambda _: [answer(b"", b"Set-Cookie: a=1", b"SET-COOKIE: b=2")]
    reply = await send(transport, f"{wire.url}/")
    assert [value for name, value in reply.headers if name == "set-cookie"] == ["a=1", "b=2"]


async def test_connections_are_kept_and_cookies_are_not(wire, transport):
    wire.script = lambda _: [answer(b"", b"Set-Cookie: a=1; Path=/")]
    for _ in range(3):
        await send(transport, f"{wire.url}/")
    assert wire.connections == 1
    assert not any(b"ookie" in request for request in wire.requests)


@pytest.mark.parametrize("status", [b"301 Moved", b"302 Found", b"303 See", b"307 Temporary", b"308 Permanent"])
async def test_no_redirect_is_followed(wire, transport, status):
    wire.script = lambda _: [answer(b"", b"Location: /elsewhere", status=status)]
    reply = await send(transport, f"{wire.url}/")
    assert reply.status == int(status[:3])
    assert ("location", "/elsewhere") in reply.headers
    assert len(wire.requests) == 1


@pytest.mark.parametrize("after", ["", "x", ".evil.test/", "@evil.test/", ":80/", "/../../", "1/"])
async def test_only_urls_of_its_origin_are_asked_for(wire, transport, after):
    if after.startswith("/"):
        assert (await send(transport, wire.url + after)).status == 200
        return
    with pytest.raises(Invalid):
        await send(transport, wire.url + after)
    assert wire.requests == []


async def test_no_proxy_is_taken_from_the_environment(wire, transport, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert (await send(transport, f"{wire.url}/")).status == 200


async def test_a_request_is_never_sent_twice(wire, transport):
    # The second request comes over a kept connection that is then closed: a client could think it lost and ask again.
    wire.script = lambda number: [answer(b"ok")] if number == 1 else [None]
    await send(transport, f"{wire.url}/")
    assert (await failure(transport, f"{wire.url}/")).why is NoAnswerWhy.CONNECTION
    assert len(wire.requests) == 2


async def test_nobody_there_is_no_connection():
    transport = HttpTransport("http://127.0.0.1:1", Http1)
    assert (await failure(transport, "http://127.0.0.1:1/")).why is NoAnswerWhy.CONNECTION


@pytest.mark.parametrize(
    "script",
    [
        [30.0],
        [OK],
        [OK + b"Content-Length: 5\r\n\r\nab", 30.0],
        [OK + b"Content-Length: 50\r\n\r\n", *[b"x", 0.02] * 50],
    ],
    ids=["silence", "half a head", "half a body", "a drop now and then"],
)
async def test_the_total_time_holds_for_slow_heads_and_slow_bodies(wire, transport, script):
    wire.script = lambda _: [*script, 30.0]
    started = asyncio.get_running_loop().time()
    assert (await failure(transport, f"{wire.url}/", total=0.1)).why is NoAnswerWhy.TIMEOUT
    assert asyncio.get_running_loop().time() - started < 1


@pytest.mark.parametrize(
    "script",
    [
        [None],
        [b"nonsense\r\n\r\n", None],
        [b"HTTP/1.1 abc\r\n\r\n", None],
        [OK + b"Content-Length: 50\r\n\r\nhalf", None],
        [OK + b"Content-Length: -5\r\n\r\n", None],
        [OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", None],
        [OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab", None],
        [OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n", None],
        [OK + b"X: " + b"x" * 100_000 + b"\r\n\r\n", None],
    ],
)
async def test_what_is_no_http_or_is_cut_off_is_no_answer(wire, transport, script):
    wire.script = lambda _: script
    assert (await failure(transport, f"{wire.url}/")).why is NoAnswerWhy.CONNECTION


@pytest.mark.parametrize(
    "reply",
    [
        OK + b"Content-Length: 1000\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"64\r\n" + b"x" * 100 + b"\r\n0\r\n\r\n",
        OK + b"\r\n" + b"x" * 1000,
        answer(gzip.compress(b"x" * 100), b"Content-Encoding: gzip"),
    ],
    ids=["declared", "chunked", "until the end", "inflated"],
)
async def test_a_body_of_more_bytes_than_allowed_is_too_large(wire, transport, reply):
    wire.script = lambda _: [reply, None]
    assert (await failure(transport, f"{wire.url}/", max_bytes=99)).why is NoAnswerWhy.TOO_LARGE


async def test_a_body_of_as_many_bytes_as_allowed_is_not(wire, transport):
    wire.script = lambda _: [answer(b"x" * 99)]
    assert len((await send(transport, f"{wire.url}/", max_bytes=99)).body) == 99


@pytest.mark.parametrize(
    "reply",
    [
        [answer(gzip.compress(b"\0" * 10 * MB), b"Content-Encoding: gzip", status=b"429 Slow")],
        [b"HTTP/1.1 429 Slow\r\nContent-Length: 50\r\nRetry-After: 7\r\n\r\nhalf", None],
        [b"HTTP/1.1 429 Slow\r\nContent-Length: 50\r\nRetry-After: 7\r\n\r\nhalf", 30.0],
        [b"HTTP/1.1 429 Slow\r\nContent-Length: 500000000\r\n\r\n", None],
        [answer(b"?", b"Content-Encoding: br", status=b"429 Slow")],
    ],
    ids=["bomb", "cut off", "slow", "huge", "unknown encoding"],
)
async def test_a_refusal_is_told_even_when_its_body_cannot_be_had(wire, transport, reply):
    wire.script = lambda _: reply
    answered = await send(transport, f"{wire.url}/", total=0.1)
    assert (answered.status, answered.body) == (429, b"")


async def test_plain_http_goes_to_this_machine_only_unless_declared(wire):
    # This machine by another name: not loopback by its spelling, and nobody is asked.
    elsewhere = f"http://0.0.0.0:{wire.port}"
    hosts = ("m.example.com", "10.0.0.1", "localhost.example.com", "127.0.0.1.example.com", "0x7f.1", "2130706433")
    for origin in (elsewhere, *(f"http://{host}" for host in hosts)):
        with pytest.raises(Invalid):
            HttpTransport(origin, Http1)
    declared = HttpTransport(elsewhere, partial(Http1, allow_plain_http=True))
    assert (await send(declared, f"{elsewhere}/")).status == 200
    await declared.close()


def test_tls_is_at_least_1_2_and_certificates_are_checked():
    context = checked_tls()
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


async def test_a_failure_names_no_header_and_no_url(wire, transport):
    secret = "canary-token"
    wire.script = lambda _: [None]
    for headers in ({"Authorization": f"Bearer {secret}"}, {"Authorization": f"Bearer {secret}\r\nX: y"}):
        with pytest.raises(NoReply) as caught:
            await send(transport, f"{wire.url}/{secret}", headers)
        chain = [caught.value, caught.value.__cause__, caught.value.__context__]
        assert not any(secret in repr(error) + str(error) for error in chain)
        assert chain[1:] == [None, None]


# inflating


def bare(body: bytes) -> bytes:
    stream = zlib.compressobj(wbits=-15)
    return stream.compress(body) + stream.flush()


@pytest.mark.parametrize("size", [0, 1, 1000, 3 * MB, 5 * MB])
@pytest.mark.parametrize(
    ("encoding", "compress"),
    [
        ("gzip", gzip.compress),
        ("x-gzip", gzip.compress),
        ("GZIP", gzip.compress),
        ("identity, gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", bare),
        ("", bytes),
        ("identity", bytes),
    ],
)
def test_what_was_compressed_is_inflated(encoding, compress, size):
    body = noise(size // 2).hex().encode()
    assert inflate(compress(body), encoding, 32 * MB) == body


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
@pytest.mark.parametrize("size", [SMALL_BYTES + 1, 100_000, MB, 3 * MB, 500 * MB])
def test_a_ratio_above_a_hundred_is_a_bomb(encoding, size):
    stream = zlib.compressobj(9, wbits=31 if encoding == "gzip" else 15)
    bomb = b"".join(stream.compress(b"\0" * min(MB, size)) for _ in range(max(1, size // MB))) + stream.flush()
    with pytest.raises(NoReply) as caught:
        inflate(bomb, encoding, 32 * MB)
    assert caught.value.why is NoAnswerWhy.TOO_LARGE


@pytest.mark.slow
@pytest.mark.parametrize("before", [0, 200_000, 450_000], ids=["a plain one", "behind noise", "at the very end"])
def test_a_bomb_of_half_a_megabyte_costs_at_most_eight(before):
    stream = zlib.compressobj(9, wbits=31)
    pieces = [stream.compress(noise(before))]
    zeros = bytes(MB)
    while sum(map(len, pieces)) < MB // 2:
        pieces.append(stream.compress(zeros))
    bomb = b"".join(pieces) + stream.flush()
    tracemalloc.start()
    with pytest.raises(NoReply) as caught:
        inflate(bomb, "gzip", 32 * MB)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert caught.value.why is NoAnswerWhy.TOO_LARGE
    assert peak < 7 * MB


@pytest.mark.parametrize("encoding", ["gzip, gzip", "gzip,deflate", "deflate, identity, gzip", "br, gzip"])
def test_a_second_layer_is_refused(encoding):
    with pytest.raises(NoReply) as caught:
        inflate(gzip.compress(gzip.compress(b"x")), encoding, MB)
    assert caught.value.why is NoAnswerWhy.TOO_LARGE


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        pytest.param(b"nonsense", "gzip", id="nonsense as gzip"),
        pytest.param(b"nonsense", "deflate", id="nonsense as deflate"),
        pytest.param(gzip.compress(b"x" * 1000)[:-1], "gzip", id="a byte short"),
        pytest.param(gzip.compress(noise(3 * MB))[:-1], "gzip", id="a byte short of many"),
        pytest.param(gzip.compress(noise(3 * MB)) + b"more", "gzip", id="more behind the end"),
        pytest.param(gzip.compress(b"x") + gzip.compress(b"y"), "gzip", id="two members"),
        pytest.param(gzip.compress(b"x")[:-8] + b"\0" * 8, "gzip", id="a wrong checksum"),
        pytest.param(b"x", "br", id="brotli"),
        pytest.param(b"x", "zstd", id="zstd"),
        pytest.param(b"x", "chunked", id="chunked"),
    ],
)
def test_what_is_broken_or_was_not_asked_for_is_no_answer(body, encoding):
    with pytest.raises(NoReply) as caught:
        inflate(body, encoding, 32 * MB)
    assert caught.value.why is NoAnswerWhy.CONNECTION
