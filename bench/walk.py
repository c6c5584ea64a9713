"""Our walk, all of it: sellers registered, tasks, outboxes, leases, documents, products, changes, deliveries, on a SQLite file.

The house is built as in production, by its settings; only its limits are out of the way. A crawl has ended when its
executions are COMPLETED, their lists settled, every raw absorbed and every event delivered. With a path as third
argument it runs under pyinstrument, the database on the same thread so that it is seen, and writes a report there.
"""

import asyncio
import json
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import structlog
from sqlalchemy import Connection, text

from bench.measured import Account, Lap, Meter, run, tell
from bench.world import PRODUCTS_PATH, change_some, stats
from sellerwatch.entry.up import run_up
from sellerwatch.settings import load
from sellerwatch.wiring import House, build

LOOK_SECONDS = 0.1
STALLED_SECONDS = 60.0
_OPEN = {
    "executions open": "SELECT count(*) FROM crawling_schedule_executions WHERE status IN ('STARTED', 'IN_PROGRESS')",
    "raws pending": "SELECT count(*) FROM product_raw_data WHERE status = 'PENDING'",
    "lists unsettled": "SELECT count(*) FROM crawling_schedule_executions"
    " WHERE list_state IN ('COMPLETE', 'INCOMPLETE')",
    "events undelivered": "SELECT count(*) FROM product_outbox WHERE status IN ('WAITING', 'SENDING')",
}
_ILLS = {
    "executions not COMPLETED": "SELECT count(*) FROM crawling_schedule_executions WHERE status <> 'COMPLETED'",
    "tasks not SUCCESS": "SELECT count(*) FROM crawler_tasks WHERE status <> 'SUCCESS'",
    "raws not PROCESSED": "SELECT count(*) FROM product_raw_data WHERE status <> 'PROCESSED'",
    "events not COMPLETED": "SELECT count(*) FROM product_outbox WHERE status <> 'COMPLETED'",
    "products incomplete": "SELECT count(*) FROM products WHERE NOT is_complete",
}


class Stalled(Exception):
    """Nothing has moved for a while."""


async def crawl_twice(url: str, shops: dict[str, int], report: Path | None = None, **told: Any) -> Account:
    """`told`: who is told of it, a meter or traces."""
    account = Account()
    with tempfile.TemporaryDirectory() as folder:
        # Profiled it runs in one thread, and looks as often as it does otherwise, so that it also ends as soon.
        alone = {"is_alone": True, "poll_seconds": 2.0} if report else {}
        house = build(_settings(url, Path(folder) / "walk.db"), **alone, **told)
        try:
            house.upgrade()
            for seller in shops:
                await house.sellers.register(seller, seller)
            await _laps(house, url, shops, account, report)
            ills = await house.database.read(lambda connection: _counts(connection, _ILLS))
        finally:
            await house.close()
        size = _size_mb(Path(folder))
    seen = stats(url)["receiver"]
    account.note += "".join(f"; {count} {name}" for name, count in ills.items() if count)
    account.note += "".join(f"; {seen[name]} {name}" for name in ("outOfOrder", "mismatches", "repeats") if seen[name])
    account.note += f"; {size:.0f} MB of database"
    return account


def _size_mb(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.iterdir()) / 1e6


async def _laps(house: House, url: str, shops: dict[str, int], account: Account, report: Path | None) -> None:
    stop = asyncio.Event()
    up = asyncio.create_task(run_up(house, stop))
    try:
        for name in ("first", "second"):
            if account.laps:
                account.note = f"{change_some(url)} changed before the second"
            before = stats(url)["receiver"]["deliveries"]
            with _profiled(report, name), Meter(Lap(name, sum(shops.values()))) as lap:
                for seller in shops:
                    await house.trigger.crawl_now(seller)
                await _until_done(house, up)
            lap.delivered = stats(url)["receiver"]["deliveries"] - before
            account.laps.append(lap)
    finally:
        stop.set()
        await up


async def _until_done(house: House, up: "asyncio.Task[None]") -> None:
    before, moved_at = {}, time.monotonic()
    while True:
        done, _ = await asyncio.wait({up}, timeout=LOOK_SECONDS)
        if done:
            up.result()
            raise Stalled("the house stopped by itself")
        left = await house.database.read(_first_open)
        if not left:
            return
        if left != before:
            before, moved_at = left, time.monotonic()
        elif time.monotonic() - moved_at > STALLED_SECONDS:
            raise Stalled(await house.database.read(_story))


def _first_open(connection: Connection) -> dict[str, int]:
    """The first kind of work that is left; a look has to be cheap, so it looks no further."""
    for name, query in _OPEN.items():
        count = connection.execute(text(query)).scalar_one()
        if count:
            sql = "SELECT coalesce(max(rowid), 0) FROM crawl_executions"
            return {name: count, "attempts": connection.execute(text(sql)).scalar_one()}
    return {}


def _counts(connection: Connection, queries: dict[str, str]) -> dict[str, int]:
    return {name: connection.execute(text(query)).scalar_one() for name, query in queries.items()}


def _story(connection: Connection) -> str:
    """What stands where, for whoever has to find out why."""
    lines = [f"nothing has moved for {STALLED_SECONDS:g} s: {_counts(connection, _OPEN)}"]
    for table in ("crawler_tasks", "crawler_task_outbox", "product_raw_data", "product_outbox", "user_agent_pool"):
        rows = connection.execute(text(f"SELECT status, count(*) FROM {table} GROUP BY status"))
        lines.append(f"{table}: " + ", ".join(f"{count} {status}" for status, count in rows))
    errors = connection.execute(
        text("SELECT DISTINCT error_message FROM crawler_tasks WHERE error_message > '' LIMIT 5")
    )
    return "\n".join([*lines, *(f"error: {error}" for (error,) in errors)])


@contextmanager
def _profiled(report: Path | None, name: str) -> Iterator[None]:
    if report is None:
        yield
        return
    from pyinstrument import Profiler  # noqa: PLC0415  only who asks for a profile pays for it

    profiler = Profiler(interval=0.001, async_mode="disabled")
    with profiler:
        yield
    with report.open("a", encoding="utf-8") as file:
        file.write(f"{name}\n\n{profiler.output_text(unicode=True, show_all=False)}\n")


def _settings(url: str, database: Path):
    return load(
        overrides={
            "database_url": f"sqlite:///{database}",
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


class Complaints:
    """A log that keeps warnings and worse: what went wrong belongs into the account, and costs nothing to draw."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, _logger: object, level: str, event: MutableMapping[str, object]) -> str:
        error = sys.exc_info()[1]
        where = f" at {'; '.join(traceback.format_tb(error.__traceback__, -1)).strip()}" if error else ""
        self.lines.append(f"{level}: {dict(event)}{where}")
        raise structlog.DropEvent

    def listen(self) -> None:
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(30), processors=[self])


if __name__ == "__main__":
    complaints = Complaints()
    complaints.listen()
    found = run(crawl_twice(sys.argv[1], json.loads(sys.argv[2]), *map(Path, sys.argv[3:])))
    if complaints.lines:
        found.note += f"; {len(complaints.lines)} complaints"
        sys.stderr.write("\n".join([*complaints.lines[:5], ""]))
    tell(found)
