"""The server: in the loop that is there, patient with nobody who dawdles, and gone when it is told."""

import asyncio
import json
import socket
from pathlib import Path

import pytest

from doors import door
from sellerwatch.domain.errors import Unavailable
from sellerwatch.entry.api import server
from sellerwatch.entry.api.armour import HEADERS
from sellerwatch.entry.api.server import HEAD_MAX, served

HOST = "127.0.0.1"
LIVE = b"GET /actuator/health/live HTTP/1.1\r\nHost: x\r\n\r\n"


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


async def asked(port: int, request: bytes) -> bytes:
    """All that comes until the other side closes."""
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        writer.write(request)
        return await asyncio.wait_for(reader.read(), 20)
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


async def test_it_answers_and_is_gone_when_the_block_ends(tmp_path: Path) -> None:
    async with door(tmp_path) as at:
        async with served(at.app, HOST, 0, at.clock, at.house.chance) as address:
            closing = LIVE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
            answer = await asked(port_of(address), closing)
            assert answer.startswith(b"HTTP/1.1 200 OK")
            assert b"server:" not in answer.lower()
        with pytest.raises(OSError):
            await asyncio.open_connection(HOST, port_of(address))


async def test_an_address_that_is_taken_is_refused_in_one_line(tmp_path: Path) -> None:
    async with door(tmp_path) as at:
        with socket.create_server((HOST, 0)) as other:
            with pytest.raises(Unavailable, match="choose another --port") as refused:
                async with served(at.app, HOST, other.getsockname()[1], at.clock, at.house.chance):
                    pass
            assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "half",
    [
        b"",
        b"GET /actuator",
        b"GET / HTTP/1.1\r\nHost: x\r\n",
        b"POST /api/v1/sellers HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{",
        b"POST /api/v1/sellers HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
    ],
)
async def test_half_a_request_is_not_waited_for_while_others_are_served(
    tmp_path: Path, half: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "REQUEST_SECONDS", 0.3)
    async with door(tmp_path) as at, served(at.app, HOST, 0, at.clock, at.house.chance) as address:
        halves = [asyncio.create_task(asked(port_of(address), half)) for _ in range(50)]
        reader, writer = await asyncio.open_connection(HOST, port_of(address))
        writer.write(LIVE)
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.close()
        for answer in await asyncio.gather(*halves):
            assert b"200 OK" not in answer


@pytest.mark.parametrize(
    "broken", [b"garbage\r\n\r\n", b"GET  / HTTP/9.9\r\n\r\n", LIVE.replace(b"Host: x", b"Ho st: x")]
)
async def test_what_is_no_http_is_answered_as_any_other_mistake(tmp_path: Path, broken: bytes) -> None:
    async with door(tmp_path) as at, served(at.app, HOST, 0, at.clock, at.house.chance) as address:
        head, _, body = (await asked(port_of(address), broken)).partition(b"\r\n\r\n")
    status, *lines = head.decode().lower().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    assert status == "http/1.1 400 bad request"
    assert (headers["content-type"], headers["connection"]) == ("application/problem+json", "close")
    assert int(headers["content-length"]) == len(body)
    assert {name.lower() for name in HEADERS} | {"x-request-id"} <= headers.keys()
    problem = json.loads(body)
    assert (problem["status"], problem["errorCode"]) == (400, "MALFORMED_REQUEST")


async def test_a_connection_is_kept_for_the_next_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "REQUEST_SECONDS", 0.3)
    async with door(tmp_path) as at, served(at.app, HOST, 0, at.clock, at.house.chance) as address:
        reader, writer = await asyncio.open_connection(HOST, port_of(address))
        for _ in range(3):
            writer.write(LIVE)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200")
            await reader.readexactly(len(b'{"status":"UP"}'))
        writer.close()


@pytest.mark.slow
async def test_line_breaks_keep_no_connection_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "REQUEST_SECONDS", 0.3)
    async with door(tmp_path) as at, served(at.app, HOST, 0, at.clock, at.house.chance) as address:
        assert (await asked(port_of(address), LIVE + b"\r\n")).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("line", [b"X-Long: %s\r\n" % (b"x" * HEAD_MAX), b"X-Many: x\r\n" * (HEAD_MAX // 7 + 1)])
async def test_an_enormous_head_ends_the_connection(tmp_path: Path, line: bytes) -> None:
    async with door(tmp_path) as at, served(at.app, HOST, 0, at.clock, at.house.chance) as address:
        answer = await asked(port_of(address), LIVE[:-2] + line + b"\r\n")
        assert b"200 OK" not in answer
