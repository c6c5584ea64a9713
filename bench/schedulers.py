"""`python -m bench.schedulers`: what schedulers ask of a MariaDB while there is nothing to do, and what locks save of it.

--seconds 20   for each of the cases, after a beginning that is not counted

Sweeps come fifteen times as often as by default, so that they are most of what is asked. The server's own counter says
what it was asked.
"""

import argparse
import asyncio
from collections.abc import Iterable
from contextlib import AsyncExitStack

import uvloop
from tests.servers import MariaDb, a_mariadb, a_redis

from bench.walk import Complaints
from sellerwatch.adapters.redis.connection import connected
from sellerwatch.adapters.redis.locks import RedisLocks
from sellerwatch.entry.up import TICKER, run_up
from sellerwatch.settings import load
from sellerwatch.wiring import House, build

BEGINNING_SECONDS = 8.0
NAME = "schedulers"


class Yes:
    """What a house without locks does."""

    async def take(self, _name: str, _seconds: float) -> bool:
        return True

    async def give_back(self, _names: Iterable[str]) -> None: ...


async def asked(server: MariaDb, url: str, houses: int, locks: str, redis: str, seconds: float) -> float:
    """Statements a second."""
    async with AsyncExitStack() as stack:
        stop = asyncio.Event()
        running = []
        for _ in range(houses):
            house = build(_settings(url))
            stack.push_async_callback(house.close)
            _lock(house, locks, redis)
            running.append(asyncio.create_task(run_up(house, stop, frozenset({TICKER}))))
            await asyncio.sleep(0.3)
        await asyncio.sleep(BEGINNING_SECONDS)
        before = _questions(server)
        await asyncio.sleep(seconds)
        per_second = (_questions(server) - before - 1) / seconds
        stop.set()
        await asyncio.gather(*running)
    return per_second


def _lock(house: House, locks: str, redis: str) -> None:
    if locks == "none":
        house.turns.locks = Yes()
    if locks == "Redis":
        house.turns.locks = RedisLocks(connected(redis), house.owner)


def _questions(server: MariaDb) -> int:
    return int(server.run("SHOW GLOBAL STATUS LIKE 'Questions'")[0][1])


def _settings(url: str):
    return load(
        overrides={
            "database_url": url,
            "token_keys": "k1:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
            "jwt_secret": "of the bench, thirty-two bytes and some more",
            "marketplace_url": "http://127.0.0.1:9",
            "sweep_seconds": 1,
        }
    )


async def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=20.0)
    seconds = options.parse_args().seconds
    complaints = Complaints()
    complaints.listen()
    with a_mariadb() as server, a_redis() as redis:
        url = server.database(NAME)
        for houses, locks in ((1, "none"), (2, "none"), (2, "database"), (2, "Redis"), (4, "none"), (4, "Redis")):
            rate = await asked(server, url, houses, locks, redis.url, seconds)
            print(f"{houses} schedulers, locks: {locks:8}  {rate:6.1f} statements/s")
    for line in complaints.lines[:5]:
        print(line)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
