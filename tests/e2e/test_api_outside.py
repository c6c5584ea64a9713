"""The running API from outside: what strangers send over real sockets, and its own document turned against it."""

import asyncio
import hashlib
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from e2e.town import Town, a_town
from sellerwatch.entry.api.server import REQUEST_SECONDS

pytestmark = pytest.mark.slow

KEY = "swk_from-outside-0123456789abcdef0123456789"
SELLERS = "/api/v1/sellers"
TRIGGER = "/api/internal/crawling/trigger"
HALVES = 1000


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Outside:
    town: Town
    address: str
    token: str

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        sent = {"Authorization": f"Bearer {self.token}", **({"Content-Type": "application/json"} if body else {})}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        request = Request(self.address + path, body, sent, method=method)
        try:
            with urlopen(request, timeout=20) as answer:
                return Answer(answer.status, {k.lower(): v for k, v in answer.headers.items()}, answer.read())
        except HTTPError as error:
            with error:
                return Answer(error.code, {k.lower(): v for k, v in error.headers.items()}, error.read())

    def send(self, data: bytes) -> bytes:
        """Bytes as they are, and all that comes back."""
        with closing(socket.create_connection(("127.0.0.1", self.port), 20)) as talking:
            try:
                talking.sendall(data)
                parts = []
                while part := talking.recv(65536):
                    parts.append(part)
            except ConnectionError:
                return b""
            return b"".join(parts)

    def raw(self, path: str, *headers: bytes, body: bytes = b"", method: bytes = b"POST") -> bytes:
        head = b"%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" % (method, path.encode())
        lines = b"".join(header + b"\r\n" for header in headers)
        return self.send(head + lines + b"Content-Length: %d\r\n\r\n" % len(body) + body)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    entry = f"tests:{hashlib.sha256(KEY.encode()).hexdigest()}"
    folder = tmp_path_factory.mktemp("outside")
    with a_town(folder, api_keys=entry, api_requests_per_second=100_000, log_level="debug") as town:
        up = town.start("up", "--sandbox", "--port", "0", "--sandbox-port", "0", "--sandbox-sellers", "atelier=20")
        address = next(word for word in up.until_it_says("/docs").split() if word.startswith("http"))
        token = town.does("token", "issue", "--role", "admin").strip()
        town.does("seller", "add", "atelier", "--name", "Atelier", "--crawl")
        town.until_settled()
        yield Outside(town, address, token)


def test_a_thousand_half_sent_requests_are_closed_while_others_are_served(out: Outside) -> None:
    halves = [
        b"GET /actuator",
        b"GET / HTTP/1.1\r\nHost: x\r\n",
        b"POST /api/v1/sellers HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{",
        b"POST /api/v1/sellers HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
    ]

    async def attack() -> list[int]:
        opened = [await asyncio.open_connection("127.0.0.1", out.port) for _ in range(HALVES)]
        for number, (_, writer) in enumerate(opened):
            writer.write(halves[number % len(halves)])
        served = [await asyncio.to_thread(lambda: out.ask("GET", "/actuator/health").status) for _ in range(20)]
        ended = asyncio.gather(*(reader.read() for reader, _ in opened), return_exceptions=True)
        await asyncio.wait_for(ended, 60)
        for _, writer in opened:
            writer.close()
        return served

    assert asyncio.run(attack()) == [200] * 20
    # How long it takes is the server's own clock; a busy machine only adds to what is seen here.
    assert REQUEST_SECONDS < 10


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 200_000,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"sellerId": "a", "name": "A", "crawlingIntervalDays": ' + b"9" * 250_000 + b"}",
        b'{"sellerId": "a", "name": "A", "crawlingIntervalDays": NaN}',
        b'{"sellerId": "a", "name": "A", "crawlingIntervalDays": -Infinity}',
        b'{"sellerId": "a", "name": "\\ud800"}',
        b'{"sellerId": "a", "name": "\xed\xa0\x80"}',
        b'{"sellerId": "a", "sellerId": "b", "name": "A"}',
        b'{"sellerId": "a", "name": "A", "__class__": "x"}',
        b"\x00",
        b"{",
    ],
)
def test_a_hostile_body_is_400(out: Outside, body: bytes) -> None:
    answer = out.ask("POST", SELLERS, body)
    assert (answer.status, answer.headers["content-type"]) == (400, "application/problem+json")


def test_a_million_digits_and_any_other_large_body_are_413(out: Outside) -> None:
    # Refused by what is announced: who goes on sending meanwhile may find the connection closed.
    announced = b"POST /api/v1/sellers HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n" % out.token.encode()
    announced += b"Content-Type: application/json\r\nConnection: close\r\n"
    for length in (1_000_000, 256 * 1024 + 1, 10**12):
        answer = out.send(announced + b"Content-Length: %d\r\n\r\n" % length + b"9" * 1000)
        assert b" 413 " in answer.splitlines()[0]
    chunked = b"".join(b"10000\r\n" + b"x" * 65536 + b"\r\n" for _ in range(5)) + b"0\r\n\r\n"
    head = b"POST /api/v1/sellers HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n"
    head += b"Content-Type: application/json\r\nAuthorization: Bearer %s\r\n\r\n" % out.token.encode()
    answer = out.send(head + chunked)
    assert answer == b"" or b" 413 " in answer.splitlines()[0]


def test_a_compressed_or_foreign_body_is_415(out: Outside) -> None:
    body = b'{"sellerId": "b", "name": "B"}'
    assert out.ask("POST", SELLERS, body, Content_Encoding="gzip").status == 415
    assert out.ask("POST", SELLERS, body, Content_Type="text/xml").status == 415


@pytest.mark.parametrize("key", [b"\xff\xfe\xfd", "키".encode(), b"", b" ", b"x" * 5000, KEY.encode() + b"\xe9"])
def test_a_key_in_any_bytes_is_401(out: Outside, key: bytes) -> None:
    answer = out.raw(TRIGGER, b"X-API-Key: " + key, b"Content-Type: application/json", body=b'{"sellerId": "a"}')
    assert b" 401 " in answer.splitlines()[0]


def test_the_right_key_begins_a_crawl(out: Outside) -> None:
    answer = out.ask("POST", TRIGGER, b'{"sellerId": "atelier"}', X_API_Key=KEY)
    assert answer.status == 200
    assert json.loads(answer.body)["executionId"]
    out.town.until_settled()


@pytest.mark.parametrize("bearer", [b"\xff\xfe", b"a.b.c", b"x" * 20_000, b"", b"Bearer"])
def test_a_token_in_any_bytes_is_401(out: Outside, bearer: bytes) -> None:
    answer = out.raw(SELLERS, b"Authorization: Bearer " + bearer, method=b"GET")
    assert b" 401 " in answer.splitlines()[0]


def test_foreign_origins_are_let_in_nowhere(out: Outside) -> None:
    for method, path in (("OPTIONS", SELLERS), ("GET", SELLERS), ("POST", f"{SELLERS}/atelier/deactivate")):
        answer = out.ask(
            method, path, Origin="https://evil.example", Access_Control_Request_Method="POST", Authorization="Basic x"
        )
        assert answer.status in {401, 405}
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_every_answer_wears_the_headers_and_hides_the_server(out: Outside) -> None:
    for path in ("/actuator/health", "/docs", "/openapi.json", "/nowhere", "/..%2f..%2fetc/passwd", f"{SELLERS}/%00"):
        answer = out.ask("GET", path)
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["x-request-id"]
        assert "server" not in answer.headers
        assert "set-cookie" not in answer.headers
        assert b"Traceback" not in answer.body
        assert str(out.town.folder).encode() not in answer.body


def test_who_says_he_is_somebody_elses_address_is_not_believed(out: Outside) -> None:
    statuses = [
        out.ask("POST", TRIGGER, b'{"sellerId": "a"}', X_API_Key=f"swk_{n}", X_Forwarded_For=f"10.0.0.{n}").status
        for n in range(30)
    ]
    assert statuses[-1] == 429


def test_requests_that_could_be_read_two_ways_are_not_answered_twice(out: Outside) -> None:
    smuggled = b"GET /actuator/health/live HTTP/1.1\r\nHost: x\r\n\r\n"
    both = (
        b"POST /api/v1/sellers HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nX"
    )
    assert out.send(both + smuggled).count(b"200 OK") == 0
    twice = b"POST /api/v1/sellers HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 60\r\n\r\n"
    assert out.send(twice + smuggled).count(b"200 OK") == 0


def test_the_document_turned_against_the_process_finds_nothing(out: Outside, tmp_path: Path) -> None:
    """Every check of schemathesis, with data that fits and data that doesn't."""
    command = [
        str(Path(sys.executable).parent / "schemathesis"), "run", f"{out.address}/openapi.json",
        "-H", f"Authorization: Bearer {out.token}", "-H", f"X-API-Key: {KEY}",
        "--checks", "all", "--mode", "all", "--phases", "examples,coverage,fuzzing", "--max-examples", "3",
        "--seed", "1", "--workers", "2", "--no-color", "--generation-database", "none",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stdout[-6000:]
    assert "No API operations" not in done.stdout


def test_nothing_of_a_credential_stands_in_the_log(out: Outside) -> None:
    said = out.town.started[0].says()
    assert '"path":"/api/v1/sellers"' in said
    for secret in (out.token, out.token.rpartition(".")[2], KEY, "swk_"):
        assert secret not in said
