"""`python -m bench.mariadb`: what the walk asks of a MariaDB of its own, and whether a claim grows with the backlog.

--shops 4x250             shops x products
--backlogs 10000 1000000  rows of the task outbox that claims are timed on, side by side in one run

The server's own counters say what it was asked; the looks of this bench are taken off. CPU seconds are this process'.
"""

import argparse
import asyncio
import statistics
import time
from datetime import UTC, datetime, timedelta

import uvloop
from tests.servers import MariaDb, a_mariadb

from bench.measured import Lap, Meter
from bench.walk import Complaints
from bench.world import PRODUCTS_PATH, change_some, world
from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.dialect import engine
from sellerwatch.adapters.sql.store import SqlStore
from sellerwatch.entry.up import run_up
from sellerwatch.ports.store import Claim
from sellerwatch.settings import load
from sellerwatch.wiring import House, build

LOOK_SECONDS = 0.25
CLAIMED, TIMES = 200, 15
_OPEN = (
    "SELECT EXISTS (SELECT 1 FROM crawling_schedule_executions WHERE status IN ('STARTED', 'IN_PROGRESS')"
    " OR list_state IN ('COMPLETE', 'INCOMPLETE')) OR EXISTS (SELECT 1 FROM product_raw_data WHERE status = 'PENDING')"
    " OR EXISTS (SELECT 1 FROM product_outbox WHERE status IN ('WAITING', 'SENDING'))"
)
_BACKLOG = (
    "INSERT INTO crawler_task_outbox (outbox_id, task_id, seller_id, priority, idempotency_key, message_group, payload,"
    " status, next_attempt_at, created_at) SELECT seq, seq, CONCAT('shop-', seq % 100), 1, seq, 'g',"
    " '{{\"taskType\": \"DETAIL\"}}', 'PENDING', '2026-03-02', '2026-03-02' FROM seq_1_to_{}"
)
_SHOPS = (
    "INSERT INTO crawling_schedule_executions (execution_id, schedule_id, seller_id, trigger_key, status, started_at,"
    " open_key) SELECT seq, seq, CONCAT('shop-', seq), seq, 'IN_PROGRESS', '2026-03-02', CONCAT('shop-', seq)"
    " FROM seq_0_to_99"
)


async def walk(server: MariaDb, url: str, shops: dict[str, int]) -> None:
    house = build(_settings(server, url))
    try:
        for seller in shops:
            await house.sellers.register(seller, seller)
        stop = asyncio.Event()
        up = asyncio.create_task(run_up(house, stop))
        for name in ("first", "second"):
            if name == "second":
                change_some(url)
            await _crawl(server, house, Lap(name, sum(shops.values())), shops)
        stop.set()
        await up
        print(f"done again for others' locks: {dict(house.database.tries_again) or 'never'}")
    finally:
        await house.close()


async def _crawl(server: MariaDb, house: House, lap: Lap, shops: dict[str, int]) -> None:
    before, looks = _asked(server), 0
    with Meter(lap):
        for seller in shops:
            await house.trigger.crawl_now(seller)
        while server.run(_OPEN, database="walk")[0][0]:
            looks += 1
            await asyncio.sleep(LOOK_SECONDS)
    asked = _asked(server) - before - 4 * looks
    print(
        f"{lap.name:6}  {lap.cpu_per_1000:5.2f} CPU s / 1 000 products, {asked / lap.products:5.2f} statements a product,"
        f" {lap.products / lap.wall_seconds:5.0f} products/s"
    )


def _asked(server: MariaDb) -> int:
    return int(server.run("SHOW GLOBAL STATUS LIKE 'Questions'")[0][1])


async def claims(server: MariaDb, rows: int) -> float:
    """The median of some claims, in milliseconds."""
    address = server.database(f"backlog_{rows}")
    server.run(_BACKLOG.format(rows), _SHOPS, "ANALYZE TABLE crawler_task_outbox", database=f"backlog_{rows}")
    database = Database(engine(address))
    store, took = SqlStore(database), []
    at = datetime(2026, 3, 3, tzinfo=UTC)
    claim = Claim("bench", at + timedelta(minutes=1), at)
    for _ in range(TIMES):
        began = time.perf_counter()
        claimed = await store.transact(lambda unit: unit.publications.claim(claim, CLAIMED))
        took.append((time.perf_counter() - began) * 1000)
        assert len(claimed) == CLAIMED
    database.close()
    return statistics.median(took[2:])


def _settings(server: MariaDb, url: str):
    return load(
        overrides={
            "database_url": server.database("walk"),
            "token_keys": "k1:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
            "jwt_secret": "of the bench, thirty-two bytes and some more",
            "marketplace_url": url,
            "product_server_url": url + PRODUCTS_PATH,
            "product_server_secret": "whsec_" + "YmVuY2g6IG5vdCBhIHNlY3JldCBhdCBhbGw=",
            "identity_hourly_limit": 1_000_000,
            "identity_min_interval": 0,
            "site_requests_per_second": 1_000_000,
            "concurrency": 100,
            "delivery_interval": 0.2,
        }
    )


async def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--shops", default="4x250")
    options.add_argument("--backlogs", type=int, nargs="*", default=[10_000, 1_000_000])
    given = options.parse_args()
    shops, _, products = given.shops.partition("x")
    complaints = Complaints()
    complaints.listen()
    with a_mariadb("--innodb-buffer-pool-size=1G") as server:
        if int(shops):
            amounts = {f"shop-{number}": int(products) for number in range(int(shops))}
            with world(amounts) as url:
                await walk(server, url, amounts)
        for rows in given.backlogs:
            print(f"a claim of {CLAIMED} of {rows:>9,} rows: {await claims(server, rows):6.2f} ms")
    for line in complaints.lines[:5]:
        print(line)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
