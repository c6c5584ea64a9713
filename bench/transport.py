"""What one request costs on the wire: the house's own client beside aiohttp, by turns, in one process on uvloop.

`python -m bench.transport`: CPU microseconds a request at concurrency 100, bodies of 8 KB; the other side is a process of
its own. aiohttp is set up as a crawler would: no cookies kept, no redirect followed, bodies raw, a total time.
"""

import asyncio
import resource
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import aiohttp
import uvloop

from sellerwatch.adapters.http1.wire import Http1
from sellerwatch.sandbox.reply import Reply
from sellerwatch.sandbox.server import serve

CONCURRENCY = 100
REQUESTS = 6000
TURNS = 3
BODY = b'{"a":"' + b"x" * 8180 + b'"}'
PATH = "/mustit-api/facade-api/v1/item/118005032/detail/top"
REPLY_HEADERS = [
    ("content-type", "application/json"),
    ("server", "nginx"),
    ("date", "Wed, 18 Nov 2026 12:00:00 GMT"),
    ("cache-control", "no-store"),
    ("vary", "Accept-Encoding"),
    ("x-request-id", "0123456789abcdef"),
]
HEADERS = {
    "User-Agent": "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0",
    "Accept": "application/json",
    "Accept-Encoding": "gzip, deflate",
    "Authorization": "Bearer " + "e" * 180,
    "Cookie": "nid=1; mustit_uid=" + "u" * 40,
}
Send = Callable[[], Awaitable[bytes]]


class Same:
    """Answers everything alike."""

    def answer(self, *_):
        return Reply(200, REPLY_HEADERS, BODY)


@asynccontextmanager
async def by_aiohttp(url: str) -> AsyncIterator[Send]:
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=15),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        timeout=aiohttp.ClientTimeout(total=13, connect=3),
    ) as session:

        async def send() -> bytes:
            async with session.get(url + PATH, headers=HEADERS, allow_redirects=False) as response:
                return await response.read()

        yield send


@asynccontextmanager
async def by_http1(url: str) -> AsyncIterator[Send]:
    wire = Http1(url)
    ask = partial(wire.send, PATH, HEADERS, connect_timeout=3.0, total_seconds=13.0, max_bytes=32 << 20)

    async def send() -> bytes:
        return (await ask()).body

    yield send
    await wire.close()


async def spent(send: Send, requests: int) -> float:
    """CPU microseconds a request, user and system."""
    left = iter(range(requests))

    async def lane() -> None:
        for _ in left:
            assert await send() == BODY

    before = _cpu_seconds()
    await asyncio.gather(*(lane() for _ in range(CONCURRENCY)))
    return (_cpu_seconds() - before) / requests * 1e6


async def compare(url: str) -> dict[str, float]:
    """The least of each one's turns."""
    found: dict[str, list[float]] = {"aiohttp": [], "http1": []}
    async with by_aiohttp(url) as one, by_http1(url) as other:
        for _ in range(TURNS):
            for name, send in (("aiohttp", one), ("http1", other)):
                await spent(send, CONCURRENCY * 3)
                found[name].append(await spent(send, REQUESTS))
    return {name: min(turns) for name, turns in found.items()}


def main() -> int:
    command = [sys.executable, "-m", "bench.transport", "serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            found = runner.run(compare(process.stdout.readline().strip()))
        process.stdin.close()
    for name, microseconds in found.items():
        print(f"{name:8} {microseconds:6.1f} us of CPU a request  {found['aiohttp'] / microseconds:4.1f} x")
    return 0


async def _serve() -> None:
    async with serve(Same(), lambda: 0.0) as url:
        print(url, flush=True)
        await asyncio.to_thread(sys.stdin.read)


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as serving:
            serving.run(_serve())
    else:
        raise SystemExit(main())
