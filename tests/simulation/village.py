"""A whole house on virtual time, beside a sandbox without sockets: built, run for a while, and asked what became.

Several houses may live in one village: processes of one system on one file, or the one that is started after a kill.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import orjson
import structlog

from doors import memory_database
from sellerwatch.adapters.chance import SeededChance
from sellerwatch.domain.executions import Execution
from sellerwatch.domain.sellers import CrawlSource
from sellerwatch.entry.up import run_up
from sellerwatch.ports.meter import UNMETERED, Meter
from sellerwatch.ports.traces import UNTRACED, Traces
from sellerwatch.sandbox.conditions import Conditions
from sellerwatch.sandbox.sandbox import Sandbox
from sellerwatch.sandbox.truth import disagreements
from sellerwatch.settings import load
from sellerwatch.simulation.ends import ORIGIN, SECRET, InProcessProductServer, InProcessTransport
from sellerwatch.wiring import House, Outside, build
from simulation.virtual import VirtualClock

T = TypeVar("T")
NEVER = 1_000_000
"""A period for what is not to happen in a test."""
_OPEN = {
    "executions": "SELECT count(*) FROM crawling_schedule_executions WHERE status IN ('STARTED', 'IN_PROGRESS')",
    "lists": "SELECT count(*) FROM crawling_schedule_executions "
    "WHERE status IN ('COMPLETED', 'FAILED') AND list_state != 'SETTLED'",
    "tasks": "SELECT count(*) FROM crawler_tasks WHERE status NOT IN ('SUCCESS', 'FAILED')",
    "attempts": "SELECT count(*) FROM crawl_executions WHERE status = 'RUNNING'",
    "task outbox": "SELECT count(*) FROM crawler_task_outbox WHERE status IN ('PENDING', 'PROCESSING')",
    "raws": "SELECT count(*) FROM product_raw_data WHERE status = 'PENDING'",
    "product outbox": "SELECT count(*) FROM product_outbox WHERE status IN ('WAITING', 'SENDING')",
    "scheduler outbox": "SELECT count(*) FROM scheduler_outbox WHERE status IN ('WAITING', 'SENDING')",
    "messages": "SELECT count(*) FROM queue_messages WHERE state = 'READY'",
    "dead letters": "SELECT count(*) FROM queue_messages WHERE state = 'DEAD'",
}
_MISCOUNTED = """
    SELECT e.execution_id FROM crawling_schedule_executions e
    WHERE (e.total_tasks_created, e.completed_tasks, e.failed_tasks) != (
        SELECT count(*), coalesce(sum(t.status = 'SUCCESS'), 0), coalesce(sum(t.status = 'FAILED'), 0)
        FROM crawler_tasks t WHERE t.execution_id = e.execution_id)
"""


@dataclass(frozen=True)
class Village:
    sandbox: Sandbox
    house: House
    clock: VirtualClock
    transport: InProcessTransport
    raise_house: Callable[..., House]
    """One more house on the same database; it hears no bell of the others and looks by itself every `poll_seconds`;
    other settings may be its own."""
    log: list[Any]
    running: list["asyncio.Task[None]"] = field(default_factory=list)

    @property
    def outside(self) -> Outside:
        assert self.house.outside is not None
        return self.house.outside

    async def register(
        self, *seller_ids: str, interval_days: int = 1, crawl_source: CrawlSource = CrawlSource.MINI_SHOP
    ) -> None:
        for seller_id in seller_ids:
            await self.house.sellers.register(
                seller_id, f"Shop {seller_id}", interval_days=interval_days, crawl_source=crawl_source
            )

    async def crawl(self, seller_id: str, patience: float = 7200) -> Execution:
        """Crawl now, and wait until the execution has ended and its documents are absorbed and delivered."""
        execution = await self.house.trigger.crawl_now(seller_id)
        await self.ended(execution, patience)
        await self.settled(patience)
        return await self.execution(execution.execution_id)

    async def execution(self, execution_id: str) -> Execution:
        found = await self.house.store.read(lambda unit: unit.executions.get(execution_id))
        assert found is not None
        return found

    async def ended(self, execution: Execution, patience: float = 7200) -> None:
        await self.until(lambda: self._has_ended(execution), patience, f"execution of {execution.seller_id} is open")

    async def _has_ended(self, execution: Execution) -> bool:
        return not (await self.execution(execution.execution_id)).is_open

    async def until(
        self, is_so: Callable[[], Awaitable[bool]], patience: float, otherwise: str, step: float = 5
    ) -> None:
        until = self.clock.now() + timedelta(seconds=patience)
        while not await is_so():
            assert self.clock.now() < until, f"after {patience} s still: {otherwise}; open: {await self.open_things()}"
            await self.clock.sleep(step)

    async def settled(self, patience: float = 7200) -> None:
        """Nothing is open any more, of no kind."""

        async def is_settled() -> bool:
            return not await self.open_things()

        await self.until(is_settled, patience, "not settled")

    async def open_things(self) -> dict[str, int]:
        """What is not at its end, by kind."""
        counts = {kind: (await self.rows(statement))[0][0] for kind, statement in _OPEN.items()}
        return {kind: count for kind, count in counts.items() if count}

    async def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """What the database says."""
        return await self.house.database.read(
            lambda connection: [tuple(row) for row in connection.exec_driver_sql(statement, values)]
        )

    async def column(self, statement: str, *values: object) -> list[Any]:
        return [row[0] for row in await self.rows(statement, *values)]

    async def change(self, statement: str, *values: object) -> int:
        """Break something by hand; how many rows."""
        return await self.house.database.write(
            lambda connection: connection.exec_driver_sql(statement, values).rowcount
        )

    async def wrong_products(self, seller_id: str, but: Collection[str] = ()) -> dict[int, list[str]]:
        """Items of which the store does not say what the sandbox holds: which fields, `but` those."""
        truths = dict(self.sandbox.truths(seller_id))
        known = await self.house.store.read(lambda unit: unit.products.lock(list(truths)))
        wrong: dict[int, list[str]] = {}
        for item_no, truth in truths.items():
            product = known.get(item_no)
            if product is None or not product.is_complete:
                wrong[item_no] = ["(incomplete)"]
            elif fields := [name for name in disagreements(truth, product.data()) if name not in but]:
                wrong[item_no] = fields
        return wrong

    async def wrong_copies(self) -> dict[int, object]:
        """Complete products of which the product server does not hold what we do."""
        item_nos = await self.column("SELECT item_no FROM products WHERE is_complete")
        products = await self.house.store.read(lambda unit: unit.products.lock(item_nos))
        copies = {item_no: self.sandbox.receiver.copy(item_no) or {} for item_no in item_nos}
        ours = {
            item_no: orjson.loads(orjson.dumps(product.data())) | {"version": product.version}
            for item_no, product in products.items()
        }
        theirs = {
            item_no: copy.get("productData", {}) | {"version": copy.get("version")}  # type: ignore[operator]
            for item_no, copy in copies.items()
        }
        return {item_no: theirs[item_no] for item_no in item_nos if ours[item_no] != theirs[item_no]}

    async def check(self, *seller_ids: str, but: Collection[str] = ()) -> None:
        """All that must be true of a village where everything has come to its end: the invariants of 03, at once."""
        assert await self.open_things() == {}
        assert self.failures() == [], self.failures()
        for seller_id in seller_ids or self.sandbox.world.shops:
            wrong = await self.wrong_products(seller_id, but)
            assert wrong == {}, wrong
        assert await self.wrong_copies() == {}
        assert await self.column(_MISCOUNTED) == []
        seen, received = self.sandbox.stats(), self.sandbox.receiver.shown()
        assert (seen["violations"], seen["tooClose"], seen["disallowed"]) == (0, 0, 0)
        assert (received["outOfOrder"], received["mismatches"], received["badSignatures"]) == (0, 0, 0)
        assert received["keysReused"] == 0
        assert await self.column("SELECT outbox_id FROM product_outbox WHERE status = 'FAILED'") == []
        assert (
            await self.column("SELECT version FROM product_changes GROUP BY product_id, version HAVING count(*) > 1")
            == []
        )

    async def gone_missing(self) -> list[tuple[Any, ...]]:
        """Changes of which no outbox row tells."""
        return await self.rows(
            "SELECT c.item_no, c.version FROM product_changes c LEFT JOIN product_outbox o "
            "ON o.product_id = c.product_id AND o.version = c.version WHERE o.outbox_id IS NULL"
        )

    def failures(self) -> list[str]:
        """What went wrong in a way that nobody foresaw."""
        return [
            f"{entry['event']}: {entry.get('error')}"
            for entry in self.log
            if entry["log_level"] == "error" and entry["event"] != "alert"
        ]

    def fingerprint(self) -> str:
        """Of everything the sandbox was asked and everything it was told, in order and to the moment."""
        return hashlib.sha256("\n".join(self.transport.trace).encode()).hexdigest()

    def move_in(self, house: House) -> Callable[[], Awaitable[None]]:
        """Start a house; what is given back stops it in an orderly way."""
        stop = asyncio.Event()
        task = asyncio.create_task(run_up(house, stop))
        self.running.append(task)

        async def move_out() -> None:
            stop.set()
            await task

        return move_out


class Mortal:
    """Kills a house as `kill -9` does: after its n-th step that can be seen from outside, nothing comes back to it."""

    def __init__(self, house: House, steps: int) -> None:
        self.left, self.is_buried = steps, False
        self.died = asyncio.Event()
        for owner, name in (
            (house.database, "write"),
            (house.transport, "send"),
            (house.product_server, "deliver"),
        ):
            setattr(owner, name, self._mortal(getattr(owner, name)))
        self._read = house.database.read
        house.database.read = self._alive  # type: ignore[method-assign, assignment]

    def _mortal(self, step: Callable[..., Awaitable[T]]) -> Callable[..., Awaitable[T]]:
        async def taken(*arguments: Any, **named: Any) -> T:
            await self._breathe()
            result = await step(*arguments, **named)
            self.left -= 1
            await self._breathe()
            return result

        return taken

    async def _alive(self, work: Callable[..., T]) -> T:
        await self._breathe()
        return await self._read(work)

    async def _breathe(self) -> None:
        if self.left > 0:
            return
        self.died.set()
        if not self.is_buried:
            await asyncio.get_running_loop().create_future()
        raise RuntimeError("killed")


@asynccontextmanager
async def a_village(
    seed: int,
    conditions: Mapping[str, object],
    *,
    is_running: bool = True,
    identities: int = 100,
    meter: Meter = UNMETERED,
    traces: Traces = UNTRACED,
    **settings: object,
) -> AsyncIterator[Village]:
    with structlog.testing.capture_logs() as log:
        async with _a_village(
            seed, conditions, settings, log, identities, (meter, traces), is_running=is_running
        ) as village:
            yield village


@asynccontextmanager
async def _a_village(
    seed: int,
    conditions: Mapping[str, object],
    settings: Mapping[str, object],
    log: list[Any],
    identities: int,
    told: tuple[Meter, Traces],
    *,
    is_running: bool,
) -> AsyncIterator[Village]:
    clock = VirtualClock()
    sandbox = Sandbox(Conditions(seed=seed, secret=SECRET, **conditions))  # type: ignore[arg-type]
    transports: list[InProcessTransport] = []
    houses: list[House] = []

    def raise_house(poll_seconds: float | None = None, **other: object) -> House:
        transports.append(InProcessTransport(sandbox, clock))
        its = {**settings, **other}
        houses.append(_house(seed + len(houses), sandbox, clock, transports[-1], its, poll_seconds, told))
        return houses[-1]

    house = raise_house()
    _furnish(house, identities)
    village = Village(sandbox, house, clock, transports[0], raise_house, log)
    move_out = village.move_in(house) if is_running else None
    try:
        yield village
        if move_out:
            await move_out()
    finally:
        for task in village.running:
            task.cancel()
        await asyncio.gather(*village.running, return_exceptions=True)
        for one in houses:
            await one.close()


def _house(
    seed: int,
    sandbox: Sandbox,
    clock: VirtualClock,
    transport: InProcessTransport,
    settings: Mapping[str, object],
    poll_seconds: float | None,
    told: tuple[Meter, Traces],
) -> House:
    return build(
        load(
            overrides={
                "database_url": "sqlite://",
                "marketplace_url": ORIGIN,
                "product_server_url": f"{ORIGIN}/products",
                "product_server_secret": SECRET,
                "token_keys": "sim:" + "A" * 43 + "=",
                "delivery_interval": 600,
                **settings,
            }
        ),
        clock=clock,
        chance=SeededChance(seed),
        transport=transport,
        product_server=InProcessProductServer(sandbox, clock),
        is_alone=True,
        poll_seconds=poll_seconds,
        meter=told[0],
        traces=told[1],
    )


def _furnish(house: House, identities: int) -> None:
    raw = house.database.engine.raw_connection()
    driver = raw.driver_connection
    assert driver is not None
    memory_database().backup(driver)
    driver.execute("UPDATE user_agent_pool SET is_active = 0 WHERE agent_id > ?", (identities,))
    raw.close()


def on_file(folder: Path) -> str:
    """An address for several houses."""
    return f"sqlite:///{folder / 'village.db'}"
