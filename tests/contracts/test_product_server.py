"""The promises of ports/outside.py's ProductServer, against a real server and another implementation of the standard."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from aiohttp import web
from standardwebhooks.webhooks import Webhook

from sellerwatch.adapters.http1.wire import Http1
from sellerwatch.adapters.product_server import HttpProductServer, secret_bytes, signed
from sellerwatch.domain.errors import Invalid, Refused, Unavailable
from sellerwatch.ports.outside import Receipt

NOW = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
EVENT = {
    "eventType": "PRODUCT_UPDATED",
    "eventId": "019a0000-0000-7000-8000-000000000001",
    "occurredAt": "2026-11-18T12:00:00Z",
    "version": 7,
    "itemNo": 118005032,
    "changes": [{"field": "sellingPrice", "old": 621000, "new": 599000}],
    "productData": {"name": "가방 “A”", "soldOut": False, "brand": None},
}
ID = EVENT["eventId"]


class Still:
    def now(self):
        return NOW


class Receiver:
    """A product server that keeps what it got, and answers as told."""

    def __init__(self) -> None:
        self.got: list[tuple[web.BaseRequest, bytes]] = []
        self.connections: set[object] = set()
        self.status, self.headers, self.body = 200, {}, b"{}"
        self.drops = False

    async def take(self, request: web.BaseRequest) -> web.StreamResponse:
        self.got.append((request, await request.read()))
        self.connections.add(request.transport)
        if self.drops:
            request.transport.close()
        return web.Response(status=self.status, headers=self.headers, body=self.body)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    runner = web.ServerRunner(web.Server(receiver.take))
    await runner.setup()
    place = web.TCPSite(runner, "127.0.0.1", 0)
    await place.start()
    receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hooks/products?shop=1"
    yield receiver
    await runner.cleanup()


@pytest.fixture
async def server(receiver) -> AsyncIterator[HttpProductServer]:
    server = HttpProductServer(receiver.url, SECRET, Still(), Http1)
    yield server
    await server.close()


async def test_it_makes_one_signed_post_under_the_events_id_as_idempotency_key(server, receiver):
    assert await server.deliver(ID, EVENT, NOW) == Receipt(200)
    [(request, body)] = receiver.got
    assert (request.method, request.path_qs) == ("POST", "/hooks/products?shop=1")
    assert json.loads(body) == EVENT
    assert request.headers["Content-Type"] == "application/json"
    assert request.headers["Idempotency-Key"] == request.headers["webhook-id"] == ID
    assert request.headers["webhook-timestamp"] == "1795003200"
    assert request.headers["webhook-signature"] == Webhook(SECRET).sign(ID, NOW, body.decode())


async def test_another_implementation_of_the_standard_verifies_it(server, receiver):
    # That library knows only the machine's own clock.
    now = datetime.now(UTC)  # noqa: TID251
    await server.deliver(ID, EVENT, now)
    [(request, body)] = receiver.got
    headers = {name.lower(): value for name, value in request.headers.items()}
    assert Webhook(SECRET).verify(body, headers) == EVENT


@pytest.mark.parametrize(
    ("event_id", "seconds", "body", "signature"),
    [
        # Of the standard's reference libraries.
        (
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1614265330,
            b'{"test": 2432232314}',
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        ),
    ],
)
def test_the_vectors_of_the_standard_pass(event_id, seconds, body, signature):
    headers = signed(secret_bytes(SECRET), event_id, datetime.fromtimestamp(seconds, UTC), body)
    assert headers == {
        "webhook-id": event_id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": signature,
    }


async def test_a_traceparent_goes_as_a_header_and_not_in_the_body(server, receiver):
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    await server.deliver(ID, EVENT, NOW, trace)
    [(request, body)] = receiver.got
    assert request.headers["traceparent"] == trace
    assert json.loads(body) == EVENT


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299, 400, 401, 404, 409, 410, 413, 422, 425, 429, 500, 503])
async def test_the_receipt_says_what_the_server_said(server, receiver, status):
    receiver.status = status
    receipt = await server.deliver(ID, EVENT, NOW)
    assert receipt.status == status
    assert receipt.is_accepted == (status < 300)
    assert (receipt.error is None) == (status < 300)


@pytest.mark.parametrize(
    ("text", "patience"),
    [
        ("30", timedelta(seconds=30)),
        ("Wed, 18 Nov 2026 12:01:00 GMT", timedelta(minutes=1)),
        ("9999999", timedelta(hours=24)),
        ("-5", None),
        ("later", None),
    ],
)
async def test_retry_after_is_told(server, receiver, text, patience):
    receiver.status, receiver.headers = 503, {"Retry-After": text}
    assert (await server.deliver(ID, EVENT, NOW)).retry_after == patience


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_no_redirect_is_followed(server, receiver, status):
    receiver.status, receiver.headers = status, {"Location": "/elsewhere"}
    assert (await server.deliver(ID, EVENT, NOW)).status == status
    assert len(receiver.got) == 1


async def test_connections_are_kept(server, receiver):
    for _ in range(5):
        await server.deliver(ID, EVENT, NOW)
    assert len(receiver.connections) == 1


async def test_of_a_long_answer_at_most_64_kb_are_read(server, receiver):
    receiver.body = b"x" * 8_000_000
    assert await server.deliver(ID, EVENT, NOW) == Receipt(200)
    receiver.body = b"x" * 60_000
    assert await server.deliver(ID, EVENT, NOW) == Receipt(200)


async def test_nobody_there_is_a_receipt_and_never_an_error(receiver):
    server = HttpProductServer("http://127.0.0.1:1/", SECRET, Still(), Http1)
    receipt = await server.deliver(ID, EVENT, NOW)
    assert receipt.status is None
    assert "not reached" in receipt.error
    await server.close()


async def test_a_server_that_hangs_up_is_a_receipt(server, receiver):
    receiver.drops = True
    receipt = await server.deliver(ID, EVENT, NOW)
    assert receipt.status is None
    assert receipt.error
    assert len(receiver.got) == 1


@pytest.mark.parametrize(
    ("says", "status"), [(b"", None), (b"HTTP/1.1 202 Accepted\r\nContent-Length: 9\r\n\r\nhalf", 202)]
)
async def test_a_server_that_does_not_finish_is_a_receipt_after_the_time_allowed(says, status):
    over = asyncio.Event()

    async def stall(reader, writer):
        writer.write(says)
        await over.wait()
        writer.close()

    listening = await asyncio.start_server(stall, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    server = HttpProductServer(
        f"http://127.0.0.1:{port}/", SECRET, Still(), Http1, connect_timeout=0.05, read_timeout=0.05
    )
    receipt = await server.deliver(ID, EVENT, NOW)
    assert (receipt.status, receipt.error) == (status, None if status else "no answer within 0.1 s")
    over.set()
    await server.close()
    listening.close()


@pytest.mark.parametrize(
    "secret",
    [
        "",
        "whsec_",
        SECRET.removeprefix("whsec_"),
        "whsec_" + base64.b64encode(b"x" * 23).decode(),
        "whsec_" + "!" * 40,
        SECRET + "\n",
        "WHSEC_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "whsec_kéy",
    ],
)
def test_a_bad_secret_is_refused_and_not_shown(secret):
    with pytest.raises(Invalid) as caught:
        HttpProductServer("https://products.test/", secret, Still(), Http1)
    assert "PRODUCT_SERVER_SECRET" in str(caught.value)
    assert len(secret) < 8 or secret not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "products.test",
        "ftp://products.test/",
        "http://products.test/",
        "http://localhost.products.test/",
        "https://user:canary@products.test/",
        "https://",
        "https://products.test:99999/",
        "https://products.test/a b",
        "https://products.test\\@evil.test/",
        "https://products.test/\n",
    ],
)
def test_a_bad_address_is_refused(url):
    with pytest.raises(Invalid) as caught:
        HttpProductServer(url, SECRET, Still(), Http1)
    assert "PRODUCT_SERVER_URL" in str(caught.value)
    assert "canary" not in str(caught.value)


def test_plain_http_goes_to_this_machine_or_where_it_is_declared():
    for url in ("http://127.0.0.1:9/", "http://localhost/", "http://[::1]/x", "https://products.test/"):
        HttpProductServer(url, SECRET, Still(), Http1)
    dial = partial(Http1, allow_plain_http=True)
    HttpProductServer("http://products.test/", SECRET, Still(), dial, allow_plain_http=True)


def test_no_repr_shows_the_secret():
    server = HttpProductServer("https://products.test/", SECRET, Still(), Http1)
    assert SECRET[6:] not in repr(server)


async def test_it_says_what_it_holds_to_a_signed_question(server, receiver):
    receiver.body = b"1,2\n3,4\n" * 20_000
    url = receiver.url.replace("/hooks/products?shop=1", "/versions?all=1")
    assert await server.versions(url, NOW) == receiver.body
    [(request, body)] = receiver.got
    assert (request.method, request.path_qs, body) == ("GET", "/versions?all=1", b"")
    signature = signed(secret_bytes(SECRET), request.headers["webhook-id"], NOW, b"")
    assert request.headers["webhook-signature"] == signature["webhook-signature"]


@pytest.mark.parametrize("status", [204, 301, 401, 404, 500])
async def test_no_whole_answer_is_unavailable(server, receiver, status):
    receiver.status, receiver.headers = status, {"Location": "/elsewhere"} if status == 301 else {}
    with pytest.raises(Unavailable, match=str(status)):
        await server.versions(receiver.url, NOW)
    assert len(receiver.got) == 1


async def test_another_server_is_refused_and_not_asked(server, receiver):
    for url in (receiver.url.replace("127.0.0.1", "localhost"), "http://127.0.0.1:1/", "file:///etc/passwd"):
        with pytest.raises(Refused):
            await server.versions(url, NOW)
    assert receiver.got == []


async def test_an_answer_that_is_too_long_or_cut_off_is_unavailable(server, receiver, monkeypatch):
    monkeypatch.setattr("sellerwatch.adapters.product_server.VERSIONS_BYTES_MAX", 1000)
    receiver.body = b"1,2\n" * 1000
    with pytest.raises(Unavailable):
        await server.versions(receiver.url, NOW)
    receiver.drops = True
    with pytest.raises(Unavailable):
        await server.versions(receiver.url, NOW)
