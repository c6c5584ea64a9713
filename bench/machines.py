"""`PYTHONPATH=tests python -m bench.machines`: the walk on MariaDB, Redis and the stand-in for SQS, beside the embedded walk.

--shops 2x300    shops x products
--workers 1 2 4  so many worker processes, beside one scheduler

CPU seconds are those of our processes, the engines' and the sandbox's are nobody's. The server's own counters say what
MariaDB was asked (round trips; statements are those without commits, rollbacks and settings), what goes to SQS is counted
on its way; the looks of this bench are taken off. Limits are out of the way. First everything is new, then one product in a
hundred has changed.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

import servers
from aws_between import Between, between
from bench.mariadb import _OPEN as OPEN
from bench.measured import Account, told
from bench.world import PRODUCTS_PATH, change_some, stats, world
from e2e.region import TASKS, Region, a_region
from sellerwatch.settings import load
from sellerwatch.wiring import House, build

LOOK_SECONDS, PATIENCE_SECONDS = 0.25, 600.0
ASKED_BY_A_LOOK = 4
_TICKS = os.sysconf("SC_CLK_TCK")
_NO_STATEMENTS = ("Com_commit", "Com_rollback", "Com_set_option", "Com_begin")
SETTINGS: dict[str, object] = {
    "identity_hourly_limit": 100_000,
    "identity_min_interval": 0,
    "site_requests_per_second": 1_000_000,
    "concurrency": 100,
    "delivery_interval": 0.2,
    "product_server_secret": "whsec_" + "YmVuY2g6IG5vdCBhIHNlY3JldCBhdCBhbGw=",
}


def cpu_seconds(pid: int) -> float:
    """Of a process that lives, all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def embedded(shops: dict[str, int]) -> Account:
    with world(shops) as url:
        command = [sys.executable, "-m", "bench.walk", url, json.dumps(shops)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return told(done.stdout.splitlines()[-1])


def asked(region: Region) -> Counter[str]:
    """Of MariaDB, since it began."""
    assert region.mariadb
    rows = region.mariadb.run("SHOW GLOBAL STATUS WHERE Variable_name LIKE 'Com\\_%' OR Variable_name = 'Questions'")
    return Counter({name: int(value) for name, value in rows})


async def crawl(
    region: Region, office: House, url: str, name: str, shops: dict[str, int], way: Between, bare: Account
) -> None:
    products = sum(shops.values())
    before = stats(url)["receiver"]["deliveries"]
    pids = [running.pid for _, running in region.at_work]
    roles = [role for role, _ in region.at_work]
    began, spent, known = time.perf_counter(), list(map(cpu_seconds, pids)), asked(region)
    way.asked.clear()
    for seller in shops:
        await office.trigger.crawl_now(seller)
    looks = 0
    while region.rows(OPEN)[0][0]:
        looks += 1
        await asyncio.sleep(LOOK_SECONDS)
        if time.perf_counter() - began > PATIENCE_SECONDS or not region.is_alive():
            raise SystemExit(f"bench: {name} crawl stands still: {region.open_things()}")
    seconds = time.perf_counter() - began
    each = [after - before for after, before in zip(map(cpu_seconds, pids), spent, strict=True)]
    cpu, workers = sum(each), sum(one for one, role in zip(each, roles, strict=True) if role == "worker")
    seen = asked(region)
    seen.subtract(known)
    trips = seen["Questions"] - ASKED_BY_A_LOOK * looks
    # Of what a look asks, all but its one question is about the session.
    statements = trips - sum(seen[no] for no in _NO_STATEMENTS) + (ASKED_BY_A_LOOK - 1) * looks
    lap = bare.laps[0 if name == "first" else 1]
    delivered = stats(url)["receiver"]["deliveries"] - before
    calls = Counter(operation for operation, _ in way.asked)
    print(
        f"  {name:6} {cpu * 1000 / products:5.2f} CPU s / 1 000 ({lap.cpu_per_1000 / (cpu * 1000 / products):4.2f} of the"
        f" embedded walk's products a CPU second), {statements / products:5.2f} statements, {trips / products:5.2f} round"
        f" trips and {len(way.asked) / products:5.2f} queue calls a product, {products / seconds:4.0f} products/s,"
        f" {delivered} delivered"
    )
    print(
        f"         of which workers {workers * 1000 / products:.2f}, scheduler {(cpu - workers) * 1000 / products:.2f}"
    )
    print("         " + ", ".join(f"{what} {count / products:.2f}" for what, count in calls.most_common(6)))


async def walked(workers: int, shops: dict[str, int], bare: Account) -> None:
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="sellerwatch-bench-"))
        url = stack.enter_context(world(shops))
        region = stack.enter_context(a_region(Path(folder), **SETTINGS))
        if region.aws:
            async with between(region.aws.url) as way:
                where = f"region={servers.AWS_REGION}&endpoint={quote(way.url, safe='')}"
                region.set(marketplace_url=url, product_server_url=url + PRODUCTS_PATH)
                region.set(queue_url=f"sqs:///{TASKS}?{where}")
                office = build(load(overrides={key.lower(): value for key, value in region.settings.items()}))
                for seller in shops:
                    await office.sellers.register(seller, seller)
                for role in ("scheduler", *["worker"] * workers):
                    await asyncio.to_thread(region.role(role).until_it_says, "watched at")
                await asyncio.sleep(3)
                print(f"{workers} worker{'s' if workers > 1 else ''}, one scheduler")
                for name in ("first", "second"):
                    if name == "second":
                        change_some(url)
                    await crawl(region, office, url, name, shops, way, bare)
                ills = region.bad_things()
                print(f"  not as it should be: {ills}" if ills else "  nothing failed")
                await office.close()
                for _, running in region.at_work:
                    await asyncio.to_thread(running.kill)


async def main() -> None:
    options = argparse.ArgumentParser(prog="python -m bench.machines", description=__doc__)
    options.add_argument("--shops", default="2x300")
    options.add_argument("--workers", type=int, nargs="*", default=[1, 2, 4])
    given = options.parse_args()
    count, _, products = given.shops.partition("x")
    shops = {f"shop-{number}": int(products) for number in range(int(count))}
    bare = await asyncio.to_thread(embedded, shops)
    for lap in bare.laps:
        print(
            f"embedded, {lap.name:6} {lap.cpu_per_1000:5.2f} CPU s / 1 000, {lap.products / lap.wall_seconds:4.0f} products/s"
        )
    for workers in given.workers:
        await walked(workers, shops, bare)


if __name__ == "__main__":
    asyncio.run(main())
