"""What the bare loop and the weekend script share: a session with a guest token, and a hundred lanes of requests."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TypeVar

import aiohttp
import orjson

CONCURRENCY = 100
PAGE_SIZE = 500
_LIST = "/mustit-api/facade-api/v1/searchmini-shop-search?sellerId={}&pageNo={}&pageSize={}&order=LATEST"
_DETAIL = "/mustit-api/facade-api/v1/item/{}/detail/top"
_OPTIONS = "/mustit-api/legacy-api/v1/auction_products/{}/options"

Job = TypeVar("Job")


class Visitor:
    """One User-Agent with its token."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session

    async def page(self, seller: str, number: int) -> dict:
        return orjson.loads(await self.get(_LIST.format(seller, number, PAGE_SIZE)))

    async def detail(self, item_no: int) -> bytes:
        return await self.get(_DETAIL.format(item_no))

    async def options(self, item_no: int) -> bytes:
        return await self.get(_OPTIONS.format(item_no))

    async def get(self, path: str) -> bytes:
        async with self.session.get(path) as response:
            response.raise_for_status()
            return await response.read()

    async def listed(self, sellers: Iterable[str]) -> list[tuple[str, dict]]:
        """Every entry of every list, with its seller."""
        found: list[tuple[str, dict]] = []

        async def read(seller: str) -> None:
            first = await self.page(seller, 0)
            found.extend((seller, item) for item in first["items"])
            for number in range(1, -(-first["count"] // PAGE_SIZE)):
                page = await self.page(seller, number)
                found.extend((seller, item) for item in page["items"])

        await asyncio.gather(*map(read, sellers))
        return found


@asynccontextmanager
async def visitor(url: str) -> AsyncIterator[Visitor]:
    headers = {"User-Agent": "bench/1.0", "Accept": "application/json"}
    connector = aiohttp.TCPConnector(limit=CONCURRENCY)
    async with aiohttp.ClientSession(
        url, connector=connector, headers=headers, cookie_jar=aiohttp.DummyCookieJar()
    ) as session:
        async with session.get("/") as response:
            token = response.cookies["token"].value
        session.headers["Authorization"] = f"Bearer {token}"
        yield Visitor(session)


async def in_lanes(jobs: Iterable[Job], work: Callable[[Job], Awaitable[object]]) -> None:
    """All jobs, so many at once."""
    waiting = iter(jobs)

    async def lane() -> None:
        for job in waiting:
            await work(job)

    await asyncio.gather(*(lane() for _ in range(CONCURRENCY)))
