"""The wire: HTTP/1.1 against servers that say and do anything, on both event loops."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from itertools import pairwise

import pytest
import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from sellerwatch.adapters.http1 import wire as wires
from sellerwatch.adapters.http1.connection import CHUNK_WRAPPING_BYTES, WRAPPING_BYTES, Connection
from sellerwatch.adapters.http1.origin import ADDRESSES_SECONDS, Origin
from sellerwatch.adapters.http1.wire import Http1
from sellerwatch.domain.errors import Invalid
from sellerwatch.ports.wire import NoAnswerWhy, NoReply, RawReply

OK = b"HTTP/1.1 200 OK\r\n"
WHOLE = OK + b"Content-Length: 2\r\n\r\nok"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


class Far:
    """The other side: answers each request with bytes as they stand; None ends the connection, a float waits."""

    def __init__(self) -> None:
        self.heads: list[bytes] = []
        self.bodies: list[bytes] = []
        self.script: Callable[[int], list[bytes | float | None]] = lambda _: [WHOLE]
        self.writers: list[asyncio.StreamWriter] = []
        self.ended = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                self.heads.append(head)
                _, found, rest = head.partition(b"Content-Length: ")
                self.bodies.append(await reader.readexactly(int(rest.split(b"\r\n")[0])) if found else b"")
                for piece in self.script(len(self.heads)):
                    if piece is None:
                        return
                    if isinstance(piece, float):
                        await moment(piece)
                        continue
                    writer.write(piece)
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.ended += 1
            writer.close()


async def moment(seconds: float = 0.01) -> None:
    await asyncio.wait({asyncio.get_running_loop().create_future()}, timeout=seconds)


async def until(is_so: Callable[[], bool]) -> None:
    for _ in range(500):
        if is_so():
            return
        await moment()
    raise AssertionError("it never came true")


@asynccontextmanager
async def listening(far: Far, **options: object) -> AsyncIterator[int]:
    server = await asyncio.start_server(far.serve, "127.0.0.1", 0, **options)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in far.writers:
            writer.transport.abort()
        await moment(0)


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["stock", "uvloop"])
def on_loop(request):
    """Runs a story on each of the event loops."""

    def run(story):
        with asyncio.Runner(loop_factory=request.param) as runner:
            return runner.run(story())

    return run


@asynccontextmanager
async def met(script: list[bytes | float | None] | None = None) -> AsyncIterator[tuple[Far, Http1]]:
    far = Far()
    if script is not None:
        far.script = lambda _: script
    async with listening(far) as port:
        wire = Http1(f"http://127.0.0.1:{port}")
        yield far, wire
        await wire.close()


async def ask(wire: Http1, target="/", headers=(), body=None, *, total=5.0, max_bytes=1 << 20, **options) -> RawReply:
    return await wire.send(
        target, dict(headers), body, connect_timeout=1.0, total_seconds=total, max_bytes=max_bytes, **options
    )


async def failed(wire: Http1, *arguments, **options) -> NoReply:
    with pytest.raises(NoReply) as caught:
        await ask(wire, *arguments, **options)
    return caught.value


# what goes out


def test_a_get_and_a_post_go_out_as_told(on_loop):
    async def story():
        async with met() as (far, wire):
            await ask(wire, "/a%2Fb?c=%20&d", {"X-A": "b \t~"})
            await ask(wire, "/p", {"X-A": ""}, b"\x00\r\n\xff")
            host = wire._origin.name.encode()
            assert far.heads[0] == b"GET /a%2Fb?c=%20&d HTTP/1.1\r\nHost: " + host + b"\r\nX-A: b \t~\r\n\r\n"
            assert far.heads[1] == b"POST /p HTTP/1.1\r\nHost: " + host + b"\r\nX-A: \r\nContent-Length: 4\r\n\r\n"
            assert far.bodies == [b"", b"\x00\r\n\xff"]
            assert len(far.writers) == 1

    on_loop(story)


def test_a_large_body_goes_out_whole(on_loop):
    async def story():
        async with met() as (far, wire):
            body = b"0123456789abcdef" * 300_000
            await ask(wire, "/", (), body)
            assert far.bodies == [body]

    on_loop(story)


@pytest.mark.parametrize(
    ("target", "headers"),
    [
        ("", {}),
        ("x", {}),
        ("http://evil.test/", {}),
        ("/a b", {}),
        ("/a\r\nX: y", {}),
        ("/a\n", {}),
        ("/\x00", {}),
        ("/é", {}),
        ("/a HTTP/1.1\r\nHost: evil.test\r\n\r\n", {}),
        ("/", {"X": "a\r\nY: b"}),
        ("/", {"X": "a\nY: b"}),
        ("/", {"X": "a\rb"}),
        ("/", {"X": "a\x00b"}),
        ("/", {"X": "a\x7f"}),
        ("/", {"X": "é"}),
        ("/", {"X": "\ud800"}),
        ("/", {"X": "a\r\n\r\nGET /other HTTP/1.1"}),
        ("/", {"X\r\nY": "b"}),
        ("/", {"X: a\r\nY": "b"}),
        ("/", {"X ": "b"}),
        ("/", {"X:": "b"}),
        ("/", {"": "b"}),
        ("/", {"ː": "b"}),
        ("/", {"Host": "evil.test"}),
        ("/", {"hOST": "evil.test"}),
        ("/", {"Content-Length": "5"}),
        ("/", {"Transfer-Encoding": "chunked"}),
        ("/", {"Connection": "upgrade"}),
    ],
)
async def test_what_could_be_read_as_another_request_is_not_sent(target, headers):
    async with met() as (far, wire):
        assert (await failed(wire, target, headers)).why is NoAnswerWhy.CONNECTION
        assert far.writers == []


@given(name=st.text(max_size=12), value=st.text(max_size=30), target=st.text(max_size=30))
def test_whatever_is_sent_is_one_request_of_one_head(name, value, target):
    wire = Http1("http://127.0.0.1:9")
    with suppress(NoReply):
        written = wire._written(f"/{target}", {name: value, "X-Last": "1"}, None)
        assert written.endswith(b"\r\nX-Last: 1\r\n\r\n")
        lines = written.split(b"\r\n")
        assert (len(lines), written.count(b"\n"), written.count(b"\r"), written.count(b"\0")) == (6, 5, 5, 0)
        assert lines[0].count(b" ") == 2


# what comes back


@pytest.mark.parametrize(
    ("script", "body"),
    [
        ([WHOLE], b"ok"),
        ([OK + b"Content-Length: 0\r\n\r\n"], b""),
        ([CHUNKED + b"2\r\nok\r\n3;a=b\r\n\r\n!\r\n0\r\nX-Trailer: 1\r\n\r\n"], b"ok\r\n!"),
        ([OK + b"\r\nuntil ", b"the end", None], b"until the end"),
        ([OK + b"\r\n", None], b""),
        ([b"HTTP/1.0 200 OK\r\n\r\nold", None], b"old"),
        ([b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: </x>\r\n\r\n", WHOLE], b"ok"),
        ([b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"], b""),
        ([b"HTTP/1.1 204 No Content\r\n\r\n"], b""),
        ([b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"], b""),
        ([bytes([byte]) for byte in WHOLE], b"ok"),
        ([b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok"], b"ok"),
    ],
)
def test_a_body_comes_as_it_was_framed(on_loop, script, body):
    async def story():
        async with met(script) as (_, wire):
            reply = await ask(wire)
            assert reply.body == body
            assert reply.header("link") is None
            assert reply.header("x-trailer") is None

    on_loop(story)


async def test_headers_come_in_lower_case_in_their_order_and_without_blanks_around():
    async with met([OK + b"B:  x  \t\r\nA:\r\nb: \xe9 y\r\nContent-Length: 0\r\n\r\n"]) as (_, wire):
        assert (await ask(wire)).headers == [("b", "x"), ("a", ""), ("b", "é y"), ("content-length", "0")]


@pytest.mark.parametrize(
    "script",
    [
        [None],
        [OK, None],
        [OK + b"Content-Length: 3\r\n\r\nab", None],
        [CHUNKED + b"2\r\nok\r\n", None],
        [OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nabc"],
        [OK + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nok"],
        [OK + b"Content-Length: 2, 2\r\n\r\nok"],
        [OK + b"Content-Length: +2\r\n\r\nok"],
        [OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"],
        [OK + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\nok\r\n0\r\n\r\n"],
        [OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"],
        [OK + b"Transfer-Encoding: chunked, identity\r\n\r\nok", None],
        [OK + b"Transfer-Encoding: identity\r\n\r\nok", None],
        [OK + b"Transfer-Encoding: xchunked\r\n\r\nok", None],
        [b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"],
        [OK + b"Transfer-Encoding : chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"],
        [CHUNKED + b"0x2\r\nok\r\n0\r\n\r\n"],
        [CHUNKED + b"-2\r\nok\r\n0\r\n\r\n"],
        [CHUNKED + b"fffffffffffffffff\r\nok\r\n"],
        [CHUNKED + b"2\nok\n0\n\n"],
        [OK + b"X: a\r\n folded\r\nContent-Length: 0\r\n\r\n"],
        [OK + b"X: a\x00b\r\nContent-Length: 0\r\n\r\n"],
        [b"HTTP/1.1 200 OK\nContent-Length: 0\n\n"],
        [b"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n"],
        [b"HTTP/0.9 200 OK\r\nContent-Length: 0\r\n\r\n"],
        [b"HTTP/1.1 099 Low\r\nContent-Length: 0\r\n\r\n"],
        [b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"],
        [b"HTTP/1.1 100 Continue\r\n\r\n" * 9, WHOLE],
        [b"\x16\x03\x01\x02\x00\x01\x00"],
        [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"],
        [OK + b"".join(b"X-%d: y\r\n" % number for number in range(101)) + b"\r\n"],
        [OK + b"X: " + b"x" * WRAPPING_BYTES + b"\r\nContent-Length: 0\r\n\r\n"],
        [OK + b"X: ", *[b"x" * 10_000] * 20],
        [OK + b"X" * 200_000 + b": 1\r\n\r\n"],
        [CHUNKED + b"2;" + b"x" * 200_000 + b"\r\nok\r\n0\r\n\r\n"],
        [CHUNKED + b"2\r\nok\r\n0\r\nX-Trailer: ", *[b"x" * 50_000] * 4],
    ],
)
async def test_what_is_cut_off_contradicts_itself_or_is_no_http_is_no_reply(script):
    async with met(script) as (far, wire):
        assert (await failed(wire)).why is NoAnswerWhy.CONNECTION
        await until(lambda: far.ended == 1)


async def test_the_same_limit_holds_for_a_head_that_came_with_its_body():
    head = OK + b"X: " + b"x" * (WRAPPING_BYTES - 50) + b"\r\n"
    async with met([head + b"Content-Length: 200000\r\n\r\n" + b"y" * 200_000]) as (far, wire):
        assert len((await ask(wire)).body) == 200_000
        far.script = lambda _: [head + b"Y: " + b"y" * 100 + b"\r\nContent-Length: 200000\r\n\r\n" + b"y" * 200_000]
        assert (await failed(wire)).why is NoAnswerWhy.CONNECTION


async def test_many_small_chunks_are_a_body_like_any_other():
    async with met([CHUNKED + b"1\r\nx\r\n" * 20_000 + b"0\r\n\r\n"]) as (_, wire):
        assert (await ask(wire)).body == b"x" * 20_000


@pytest.mark.parametrize(
    "script",
    [
        [OK + b"Content-Length: 11\r\n\r\n"],
        [OK + b"Content-Length: 11\r\n\r\n" + b"x" * 11],
        [CHUNKED + b"6\r\nxxxxxx\r\n6\r\nxxxxxx\r\n0\r\n\r\n"],
        [OK + b"\r\n" + b"x" * 11, None],
    ],
)
async def test_more_bytes_than_allowed_are_too_large_and_end_the_connection(script):
    async with met(script) as (far, wire):
        assert (await failed(wire, max_bytes=10)).why is NoAnswerWhy.TOO_LARGE
        await until(lambda: far.ended == 1)


@pytest.mark.parametrize("rest", [[None], [30.0], [b"x" * 100]], ids=["cut off", "slow", "nonsense"])
async def test_a_status_is_told_when_no_body_is_needed_or_it_is_no_success(rest):
    async with met([b"HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 50\r\n\r\n", *rest]) as (far, wire):
        reply = await ask(wire, total=0.1, max_bytes=40)
        assert (reply.status, reply.header("retry-after"), reply.body) == (503, "7", b"")
        far.script = lambda _: [OK + b"Content-Length: 50\r\n\r\n", *rest]
        assert (await ask(wire, total=0.1, is_body_needed=False)).status == 200
        await failed(wire, total=0.1, max_bytes=40)


# connections


def test_the_last_connection_used_is_the_first_used_again(on_loop):
    async def story():
        async with met([0.02, WHOLE]) as (far, wire):
            await asyncio.gather(*(ask(wire) for _ in range(5)))
            assert len(far.writers) == 5
            last = wire._idle[-1]
            await ask(wire)
            assert wire._idle[-1] is last
            assert len(far.writers) == 5

    on_loop(story)


@pytest.mark.parametrize(
    "reply",
    [
        OK + b"Connection: close\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        WHOLE + b"more",
        WHOLE + WHOLE,
        WHOLE + b"HTTP/1.1 200",
        b"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n",
        b"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
def test_a_connection_that_may_not_be_in_order_is_not_used_again(on_loop, reply):
    async def story():
        async with met([reply]) as (far, wire):
            for _ in range(2):
                assert (await ask(wire)).body in {b"ok", b""}
            assert len(far.writers) == 2

    on_loop(story)


def test_a_connection_that_ended_or_spoke_while_idle_is_noticed(on_loop):
    async def story():
        async with met() as (far, wire):
            await ask(wire)
            far.writers[0].write(WHOLE)
            await until(lambda: not wire._idle[0].is_free)
            assert (await ask(wire)).body == b"ok"
            far.writers[1].close()
            await until(lambda: not any(connection.is_free for connection in wire._idle))
            assert (await ask(wire)).body == b"ok"
            assert (len(far.writers), len(far.heads)) == (3, 3)

    on_loop(story)


def test_a_connection_that_was_idle_for_long_is_not_used_and_goes(on_loop, monkeypatch):
    monkeypatch.setattr(wires, "KEEPALIVE_SECONDS", 0.05)

    async def story():
        async with met() as (far, wire):
            await ask(wire)
            wire._idle[0].idle_since -= 1
            await ask(wire)
            assert len(far.writers) == 2
            await until(lambda: far.ended == 2)
            assert not wire._idle
            assert not wire._open

    on_loop(story)


def test_a_request_that_fails_on_a_kept_connection_is_not_sent_again(on_loop):
    async def story():
        async with met() as (far, wire):
            far.script = lambda number: [WHOLE] if number == 1 else [None]
            await ask(wire)
            assert (await failed(wire)).why is NoAnswerWhy.CONNECTION
            assert (len(far.writers), len(far.heads)) == (1, 2)

    on_loop(story)


def test_a_cancelled_request_ends_its_connection(on_loop):
    async def story():
        async with met([30.0]) as (far, wire):
            asking = asyncio.ensure_future(ask(wire))
            await until(lambda: len(far.heads) == 1)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            await until(lambda: not wire._open)
            assert not wire._idle

    on_loop(story)


def test_close_ends_every_connection_and_a_later_request_opens_a_new_one(on_loop):
    async def story():
        async with met() as (far, wire):
            await ask(wire)
            far.script = lambda _: [30.0]
            asking = asyncio.ensure_future(failed(wire))
            await until(lambda: len(far.heads) == 2)
            await wire.close()
            assert (await asking).why is NoAnswerWhy.CONNECTION
            assert not wire._open
            far.script = lambda _: [WHOLE]
            assert (await ask(wire)).status == 200

    on_loop(story)


async def test_the_total_time_counts_the_connecting():
    class Slow(Origin):
        async def connected(self, made, seconds):
            await moment(0.06)
            return await super().connected(made, seconds)

    async with met([30.0]) as (_, wire):
        wire._origin = Slow(f"http://127.0.0.1:{wire._origin.port}")
        started = asyncio.get_running_loop().time()
        assert (await failed(wire, total=0.1)).why is NoAnswerWhy.TIMEOUT
        assert asyncio.get_running_loop().time() - started < 0.15


def test_nobody_there_is_no_connection(on_loop):
    async def story():
        assert (await failed(Http1("http://127.0.0.1:1"))).why is NoAnswerWhy.CONNECTION
        assert (await failed(Http1("http://[::1]:1"))).why is NoAnswerWhy.CONNECTION

    on_loop(story)


# the place


@pytest.mark.parametrize(
    ("origin", "name"),
    [
        ("https://shop.test", "shop.test"),
        ("https://shop.test:443", "shop.test"),
        ("https://shop.test:80", "shop.test:80"),
        ("http://127.0.0.1:8000", "127.0.0.1:8000"),
        ("http://[::1]", "[::1]"),
        ("http://[::1]:81", "[::1]:81"),
    ],
)
def test_the_host_is_named_as_servers_expect(origin, name):
    assert Origin(origin).name == name


@pytest.mark.parametrize(
    "origin",
    [
        "",
        "shop.test",
        "ftp://shop.test",
        "https://",
        "https://shop.test/",
        "https://shop.test/x",
        "https://shop.test?x",
        "https://shop.test#x",
        "https://user:canary@shop.test",
        "https://shop.test:99999",
        "https://shop.test:0",
        "https://shop.test:x",
        "https://[::1",
        "https://shop.test\r\nX: y",
        "https://shop\n.test",
        "https://shöp.test",
        "https://shop test",
        "HTTPS://shop.test",
        "http://shop.test",
        "http://0.0.0.0",
        "http://localhost.shop.test",
    ],
)
def test_anything_but_a_safe_origin_is_refused(origin):
    with pytest.raises(Invalid) as caught:
        Http1(origin)
    assert "canary" not in str(caught.value)


async def test_a_host_of_several_addresses_is_reached_at_one_that_answers(monkeypatch):
    asked = []

    async def getaddrinfo(host, port, **_):
        asked.append(host)
        # Two of a kind that lead nowhere, before the one of the other kind.
        return [
            (10, 1, 6, "", ("::1", port, 0, 0)),
            (10, 1, 6, "", ("::2", port, 0, 0)),
            (2, 1, 6, "", ("127.0.0.1", port)),
        ]

    async with met() as (far, wire):
        wire._origin = Origin(f"http://localhost:{wire._origin.port}")
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "getaddrinfo", getaddrinfo)
        far.script = lambda _: [OK + b"Connection: close\r\nContent-Length: 2\r\n\r\nok"]
        for _ in range(2):
            assert (await ask(wire)).status == 200
        # Looked up once a minute, and the one that did not answer is not the first to be tried again.
        assert asked == ["localhost"]
        assert wire._origin._addresses == ["127.0.0.1", "::2", "::1"]
        wire._origin._found_at -= ADDRESSES_SECONDS
        await ask(wire)
        assert asked == ["localhost"] * 2


# TLS


def certificate(name: str, folder) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's context and, of a client that trusts it, the client's."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)  # noqa: TID251  the library that checks it knows no other clock
    try:
        names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(name))])
    except ValueError:
        names = x509.SubjectAlternativeName([x509.DNSName(name)])
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "server.pem").write_bytes(secret + pem)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "server.pem")
    server.set_alpn_protocols(["h2", "http/1.1"])
    client = ssl.create_default_context(cadata=pem.decode())
    client.set_alpn_protocols(["http/1.1"])
    return server, client


def test_over_tls_the_name_is_told_and_checked(on_loop, tmp_path):
    server, client = certificate("localhost", tmp_path)
    told = []
    server.sni_callback = lambda _, name, __: told.append(name)

    async def story():
        far = Far()
        async with listening(far, ssl=server) as port:
            wire = Http1(f"https://localhost:{port}", tls=client)
            for _ in range(2):
                assert (await ask(wire)).body == b"ok"
            assert len(far.writers) == 1
            assert told == ["localhost"]
            assert far.writers[0].get_extra_info("ssl_object").selected_alpn_protocol() == "http/1.1"
            far.script = lambda _: [OK + b"Content-Length: 300000\r\n\r\n", b"x" * 300_000]
            assert len((await ask(wire)).body) == 300_000
            await wire.close()

    on_loop(story)


@pytest.mark.parametrize("case", ["unknown issuer", "another name", "an address"])
def test_a_certificate_that_is_not_theirs_is_no_connection(on_loop, tmp_path, case):
    server, client = certificate("elsewhere.test", tmp_path)

    async def story():
        far = Far()
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        async with listening(far, ssl=server) as port:
            host = "127.0.0.1" if case == "an address" else "localhost"
            wire = Http1(f"https://{host}:{port}", tls=None if case == "unknown issuer" else client)
            assert (await failed(wire, "/", {"Authorization": "Bearer x"})).why is NoAnswerWhy.CONNECTION
            assert far.heads == []
            await wire.close()

    on_loop(story)


# anything at all

PIECES = st.sampled_from(
    [
        OK,
        WHOLE,
        CHUNKED,
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 204 No\r\n",
        b"HTTP/1.1 429 Slow\r\n",
        b"HTTP/1.1 101 Switch\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        b"HTTP/1.0 200\r\n",
        b"Content-Length: 5\r\n",
        b"Content-Length: 99999\r\n",
        b"Content-Length: 18446744073709551615\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: gzip\r\n",
        b"Connection: close\r\n",
        b"Connection: upgrade\r\nUpgrade: h2c\r\n",
        b"\r\n",
        b"\r",
        b"\n",
        b"5\r\nhello\r\n",
        b"0\r\n\r\n",
        b"0\r\nX: y\r\n\r\n",
        b"hello",
        b"X: \xff\xfe\r\n",
        b"x" * 5000,
    ]
) | st.binary(max_size=40)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({place % (len(data) + 1) for place in places} | {0, len(data)})
    return [data[start:end] for start, end in pairwise(edges)]


STREAMS = st.builds(cut, st.lists(PIECES, max_size=12).map(b"".join), st.lists(st.integers(0, 10_000), max_size=8))


class Pipe(asyncio.Transport):
    """What a connection writes into, when nobody is at the other end."""

    is_ended = False

    def write(self, data):
        pass

    def get_write_buffer_size(self):
        return 0

    def abort(self):
        self.is_ended = True


@given(STREAMS, st.booleans(), st.booleans())
def test_whatever_bytes_come_a_request_ends_and_keeps_no_more_than_allowed(stream, ends, is_needed):
    loop = asyncio.new_event_loop()
    pipe, connection = Pipe(), Connection(loop)
    connection.connection_made(pipe)
    answer = connection.ask(b"", 3000, is_body_needed=is_needed)
    for piece in stream:
        if pipe.is_ended:
            break
        connection.data_received(piece)
        assert len(connection._body) <= 3000
        assert connection._fed <= 3000 + WRAPPING_BYTES + CHUNK_WRAPPING_BYTES * connection._chunks or answer.done()
    if ends and not pipe.is_ended:
        connection.eof_received()
        assert pipe.is_ended
    assert answer.done() or not (ends or pipe.is_ended)
    connection.expire(1.0)
    connection.connection_lost(None)
    assert not connection.is_free
    try:
        reply = answer.result()
    except NoReply:
        pass
    else:
        assert 200 <= reply.status <= 999
        assert len(reply.body) <= 3000
    loop.close()


@given(st.lists(STREAMS, min_size=1, max_size=4))
def test_whatever_a_server_sends_is_a_reply_or_none_and_never_lasts_longer_than_told(streams):
    async def story():
        async with met() as (far, wire):
            far.script = lambda number: [*streams[number % len(streams)], *([None] if number % 2 else [])]
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(lambda _, context: problems.append(context))
            for _ in streams:
                started = loop.time()
                with suppress(NoReply):
                    await ask(wire, total=0.01, max_bytes=3000)
                assert loop.time() - started < 1
            await wire.close()
            assert not wire._open

    problems: list[dict] = []
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(story())
    assert problems == []
