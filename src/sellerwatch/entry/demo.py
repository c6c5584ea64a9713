"""The demonstration: the whole system in one process, on a temporary database, against the sandbox.

    register ─▶ crawl all ─▶ change some products in the sandbox ─▶ crawl all again ─▶ deliver ─▶ account

It uses what production uses: real HTTP, a real database file, the marketplace's limit of 80 requests an hour for each
identity. Only the ceiling over the whole site is lifted, and deliveries don't wait for their five minutes. Promises:
it ends, and says so when something is missing or stands still. The operator's own settings are left alone.
"""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from sellerwatch.adapters.clock import SystemClock
from sellerwatch.domain.errors import Conflict, Invalid, SellerwatchError, Trouble
from sellerwatch.domain.outbox import OutboxStatus
from sellerwatch.domain.raws import RawStatus
from sellerwatch.entry import log
from sellerwatch.entry.account import Check, account
from sellerwatch.entry.console.text import count
from sellerwatch.entry.pretend import pretended
from sellerwatch.entry.process import new_secret, prepared, running
from sellerwatch.entry.stage import Scene, Stage
from sellerwatch.ports.reports import Box, Overview
from sellerwatch.sandbox.conditions import Conditions
from sellerwatch.sandbox.sandbox import Sandbox
from sellerwatch.sandbox.truth import Difference
from sellerwatch.settings import Settings, load
from sellerwatch.wiring import House, opened

SHOPS: Final = ("atelier", "lunaire", "marais", "seongsu", "brera", "soho", "harajuku", "chiado")
SHARE: Final = 0.05
"""Of the products, changed between the two crawls."""
IDENTITIES: Final = 100
HOURLY_LIMIT: Final = 80
LOOK_SECONDS: Final = 0.4
STILL_SECONDS: Final = 60.0
PAGE_SIZE: Final = 500
DATABASE: Final = "sellerwatch.db"
LOG: Final = "sellerwatch.log"
LOG_LINES: Final = 12


@dataclass(frozen=True, slots=True)
class Shown:
    """What the demonstration came to."""

    checks: tuple[Check, ...]
    requests: int
    seconds: float

    @property
    def is_right(self) -> bool:
        return all(check.is_right for check in self.checks)


async def demo(sellers: int, products: int, keep: Path | None, stage: Stage, seed: int = 1) -> Shown:
    """Play it on this stage; `keep`: a folder that the database stays in."""
    conditions = conditions_of(sellers, products, seed)
    with ExitStack() as stack:
        folder = _kept(keep) if keep else Path(stack.enter_context(TemporaryDirectory(prefix="sellerwatch-demo-")))
        told = stack.enter_context((folder / LOG).open("w", encoding="utf-8"))
        clock = SystemClock()
        began = clock.monotonic()
        async with AsyncExitStack() as doors:
            beside = await doors.enter_async_context(pretended(conditions, clock))
            settings = settings_of(folder, beside.settings)
            log.set_up(settings, clock, told)
            house = await doors.enter_async_context(opened(settings))
            log.set_up(house.settings, clock, told)
            await prepared(house)
            stage.open(conditions.shops, beside.address, folder / DATABASE if keep else None)
            work = await doors.enter_async_context(running(house, asyncio.Event()))
            player = _Player(house, beside.sandbox, stage, work)
            try:
                checks = await player.play()
            except SellerwatchError:
                told.flush()
                _tell_end_of(folder / LOG, stage)
                raise
        requests = sum(beside.sandbox.market.counts.values())
        shown = Shown(tuple(checks), requests, clock.monotonic() - began)
        stage.close(shown.checks, shown.requests, shown.seconds)
        return shown


def conditions_of(sellers: int, products: int, seed: int) -> Conditions:
    """The sandbox's; refused is what a hundred identities can't ask for within an hour."""
    if sellers < 1 or products < 1:
        raise Invalid("--sellers and --products", f"{sellers} and {products}", "at least 1 each")
    needed = IDENTITIES + 2 * sellers * (1 + -(-products // PAGE_SIZE) + 2 * products)
    if needed > IDENTITIES * HOURLY_LIMIT:
        raise Invalid(
            "--sellers × --products",
            f"{sellers} × {products}",
            f"possible: two crawls of them take {needed} requests, and {IDENTITIES} identities make "
            f"{IDENTITIES * HOURLY_LIMIT} an hour",
        )
    names = [SHOPS[n] if n < len(SHOPS) else f"shop-{n + 1}" for n in range(sellers)]
    return Conditions(seed=seed, shops=dict.fromkeys(names, products), hourly_limit=HOURLY_LIMIT, secret=new_secret())


def settings_of(folder: Path, neighbours: Mapping[str, object]) -> Settings:
    """Nothing of the operator's own: no other database, queue or neighbour is touched."""
    return load(
        overrides={
            "database_url": f"sqlite:///{(folder / DATABASE).absolute()}",
            "redis_url": None,
            "queue_url": "database:",
            "schedule_url": "builtin:",
            "trigger_queue_url": None,
            "alert_webhook_url": None,
            "token_keys": None,
            "jwt_algorithm": "HS256",
            "jwt_secret": None,
            "crawl_mode": "full",
            "page_size": PAGE_SIZE,
            "identity_hourly_limit": HOURLY_LIMIT,
            "identity_min_interval": 1,
            "identity_pacing": "burst",
            "site_requests_per_second": 100_000,
            "delivery_interval": 0.5,
            "log_format": "console",
            "log_level": "info",
            **neighbours,
        }
    )


@dataclass(slots=True)
class _Player:
    house: House
    sandbox: Sandbox
    stage: Stage
    work: asyncio.Task[None]

    async def play(self) -> list[Check]:
        shops = self.sandbox.world.shops
        for seller in shops:
            await self.house.sellers.register(seller, seller.title())
        await self._crawl("first crawl")
        changes = self._change()
        await self._crawl("second crawl")
        return await account(self.house.reports, self.sandbox, changes)

    def _change(self) -> list[Difference]:
        changes = self.sandbox.mutate(SHARE, seed=self.sandbox.conditions.seed)
        items = len({change["itemNo"] for change in changes})
        self.stage.say(f"changed {count(items, 'product')} in the sandbox: {count(len(changes), 'field')}")
        return changes

    async def _crawl(self, title: str) -> None:
        executions = [await self.house.trigger.crawl_now(seller) for seller in self.sandbox.world.shops]
        ids = {execution.execution_id for execution in executions}
        clock = self.house.clock
        began = moved = clock.monotonic()
        last: Scene | None = None
        with self.stage.scene(title) as show:
            while True:
                overview = await self.house.reports.overview(clock.now())
                scene = await self._scene(ids, clock.monotonic() - began)
                show(scene)
                if _is_done(overview):
                    break
                if last is None or scene.work != last.work:
                    moved = clock.monotonic()
                last = scene
                if clock.monotonic() - moved > STILL_SECONDS:
                    raise Trouble(f"nothing has moved for {STILL_SECONDS:.0f} seconds: {_what_waits(overview)}")
                if self.work.done():
                    await self.work
                    raise Trouble("the worker ended before its work was done")
                await clock.sleep(LOOK_SECONDS)
        for execution_id in ids:
            found = await self.house.reports.execution(execution_id)
            if found and found.execution.failed_tasks:
                self.stage.say(f"{found.execution.seller_id}: {found.execution.failed_tasks} tasks failed")

    async def _scene(self, ids: set[str], seconds: float) -> Scene:
        rows = []
        for execution_id in ids:
            found = await self.house.reports.execution(execution_id)
            if found:
                rows.append(found.execution)
        overview = await self.house.reports.overview(self.house.clock.now())
        figures = await self.house.pool.figures()
        gate = self.sandbox.market.gate
        return Scene(
            executions=tuple(sorted(rows, key=lambda row: row.seller_id)),
            seconds=seconds,
            requests=sum(visitor.requests for visitor in gate.visitors.values()),
            identities=len(gate.visitors),
            leased=figures.leased,
            products=sum(len(shop.order) for shop in self.sandbox.world.shops.values()),
            complete=overview.products.complete,
            delivered=self.sandbox.receiver.counts["deliveries"],
        )


def _is_done(overview: Overview) -> bool:
    events = overview.outboxes[Box.PRODUCT].by_status
    waiting = sum(events.get(status, 0) for status in (OutboxStatus.WAITING, OutboxStatus.SENDING))
    return not (overview.executions_open or overview.raws.get(RawStatus.PENDING, 0) or waiting)


def _what_waits(overview: Overview) -> str:
    parts = [
        f"{len(overview.executions_open)} executions open",
        *(f"{count} tasks {status}" for status, count in overview.tasks.items() if count and status != "SUCCESS"),
        *(f"{count} documents {status}" for status, count in overview.raws.items() if count and status != "PROCESSED"),
        *(f"{alert.name}: {alert.text}" for alert in overview.alerts),
    ]
    return ", ".join(parts)


def _tell_end_of(file: Path, stage: Stage) -> None:
    """What was logged last, before it is gone with its folder."""
    for line in file.read_text(encoding="utf-8").splitlines()[-LOG_LINES:]:
        stage.say(f"  log: {line}")


def _kept(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Invalid("--keep", str(folder), f"a folder ({error.strerror})") from None
    if (folder / DATABASE).exists():
        raise Conflict("KEPT_ALREADY", f"{folder / DATABASE} exists already: give --keep another folder")
    return folder
