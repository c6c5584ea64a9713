"""A whole house on virtual time, beside a sandbox without sockets: built, run for a while, and asked what became."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

from simulation.virtual import VirtualClock
from simulation.world import ORIGIN, SECRET, InProcessProductServer, InProcessTransport

from sellerwatch.adapters.chance import SeededChance
from sellerwatch.domain.executions import Execution
from sellerwatch.entry.up import run_up
from sellerwatch.sandbox.conditions import Conditions
from sellerwatch.sandbox.sandbox import Sandbox
from sellerwatch.sandbox.truth import disagreements
from sellerwatch.settings import load
from sellerwatch.wiring import House, build


@dataclass(frozen=True)
class Village:
    sandbox: Sandbox
    house: House
    clock: VirtualClock
    transport: InProcessTransport

    async def register(self, *seller_ids: str, interval_days: int = 1) -> None:
        for seller_id in seller_ids:
            await self.house.sellers.register(seller_id, f"Shop {seller_id}", interval_days=interval_days)

    async def crawl(self, seller_id: str, patience: float = 7200) -> Execution:
        """Crawl now, and wait until the execution has ended and its documents are absorbed and delivered."""
        execution = await self.house.trigger.crawl_now(seller_id)
        until = self.clock.now() + timedelta(seconds=patience)
        while self.clock.now() < until:
            found = await self.house.store.read(lambda unit: unit.executions.get(execution.execution_id))
            if found and not found.is_open:
                await self.clock.sleep(120)
                return found
            await self.clock.sleep(5)
        raise AssertionError(f"execution of {seller_id} is still {found and found.status} after {patience} s")

    async def wrong_products(self, seller_id: str) -> dict[int, list[str]]:
        """Items of which the store does not say what the sandbox holds: which fields."""
        wrong: dict[int, list[str]] = {}
        for item_no, truth in self.sandbox.truths(seller_id):
            product = await self.house.store.read(lambda unit, item_no=item_no: unit.products.get(item_no))
            if product is None or not product.is_complete:
                wrong[item_no] = ["(incomplete)"]
            elif fields := disagreements(truth, product.data()):
                wrong[item_no] = fields
        return wrong

    def fingerprint(self) -> str:
        """Of everything the sandbox was asked and everything it was told, in order and to the moment."""
        return hashlib.sha256("\n".join(self.transport.trace).encode()).hexdigest()


@asynccontextmanager
async def a_village(seed: int, conditions: Mapping[str, object], **settings: object) -> AsyncIterator[Village]:
    clock = VirtualClock()
    sandbox = Sandbox(Conditions(seed=seed, secret=SECRET, **conditions))  # type: ignore[arg-type]
    transport = InProcessTransport(sandbox, clock)
    house = build(
        load(
            overrides={
                "database_url": "sqlite://",
                "marketplace_url": ORIGIN,
                "product_server_url": f"{ORIGIN}/products",
                "product_server_secret": SECRET,
                "token_keys": "sim:" + "A" * 43 + "=",
                "delivery_interval": 30,
                **settings,
            }
        ),
        clock=clock,
        chance=SeededChance(seed),
        transport=transport,
        product_server=InProcessProductServer(sandbox, clock),
        is_alone=True,
    )
    house.upgrade()
    stop = asyncio.Event()
    running = asyncio.create_task(run_up(house, stop))
    try:
        yield Village(sandbox, house, clock, transport)
        stop.set()
        await running
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await house.close()

