"""`python -m bench.delivery`: events per CPU second, against a sink in another process that answers at once.

--products 2000   each with three versions to be told one by one, in order
--profile         under pyinstrument; its figures are not comparable

*Bare* signs and posts the same payloads over the same client at the same concurrency, and keeps nothing. *Deliver* is the
flow: claims, folds, order per product, breaker, one commit before and one after each batch. The sink says whether every
event came, and whether any version came after a newer one of its product.
"""

import argparse
import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import uvloop
from rich.console import Console
from rich.table import Table

from bench.measured import Lap, Meter
from bench.processing import SHOP, absorbed, bodies, crawled
from bench.sink import sink
from sellerwatch.domain.ids import derived
from sellerwatch.domain.outbox import ProductEvent
from sellerwatch.sandbox.conditions import Conditions
from sellerwatch.sandbox.sandbox import Sandbox
from sellerwatch.settings import load
from sellerwatch.wiring import House, build

VERSIONS = 3
SECRET = "whsec_" + "YmVuY2g6IG5vdCBhIHNlY3JldCBhdCBhbGw="


async def planted(house: House, products: int) -> list[ProductEvent]:
    """Products, and of each so many events to be sent: tried before, so that none stands in for another."""
    sandbox = Sandbox(Conditions(seed=1, shops={SHOP: products}))
    await house.sellers.register(SHOP, SHOP)
    await crawled(house, bodies(sandbox), 0)
    await absorbed(house)
    ids = await house.database.read(
        lambda connection: [row[0] for row in connection.exec_driver_sql("SELECT outbox_id FROM product_outbox")]
    )
    first = await house.store.read(lambda unit: unit.events.lock(ids))
    more = [_later(event, version) for event in first for version in range(2, VERSIONS + 1)]
    for event in first:
        event.error_message = "tried"

    def write(unit) -> None:
        unit.events.add(more)
        unit.events.put(first)

    await house.store.transact(write)
    return [*first, *more]


def _later(event: ProductEvent, version: int) -> ProductEvent:
    outbox_id = derived(event.product_id, f"outbox/{version}")
    payload = {**event.payload, "eventId": outbox_id, "version": version}
    return replace(event, outbox_id=outbox_id, version=version, payload=payload, error_message="tried")


async def bare(house: House, events: list[ProductEvent]) -> None:
    left = iter(events)

    async def lane() -> None:
        for event in left:
            receipt = await house.product_server.deliver(event.outbox_id, event.payload, datetime.now(UTC))
            assert receipt.is_accepted, receipt

    await asyncio.gather(*(lane() for _ in range(house.settings.delivery_concurrency)))


async def deliver(house: House) -> None:
    while (done := await house.deliver.run()).sent:
        assert not done.refused, done.refused[0]


async def measure(products: int, *, is_profiled: bool) -> list[tuple[Lap, dict]]:
    found = []
    with tempfile.TemporaryDirectory() as folder, sink() as (url, seen), sink() as (other, bare_seen):
        house = _house(url, folder, "flow")
        house.upgrade()
        events = await planted(house, products)
        plain = _house(other, folder, "bare")
        try:
            with Meter(Lap("bare", len(events))) as lap:
                await bare(plain, events)
            found.append((lap, bare_seen))
            with _profiled(is_profiled), Meter(Lap("deliver", len(events))) as lap:
                await deliver(house)
            found.append((lap, seen))
        finally:
            await plain.close()
            await house.close()
    return found


def _house(url: str, folder: str, name: str) -> House:
    settings = {
        "database_url": f"sqlite:///{folder}/{name}.db",
        "product_server_url": url,
        "product_server_secret": SECRET,
    }
    return build(load(overrides=settings), is_alone=True)


@contextmanager
def _profiled(is_wanted: bool) -> Iterator[None]:
    if not is_wanted:
        yield
        return
    from pyinstrument import Profiler  # noqa: PLC0415  only who asks for a profile pays for it

    profiler = Profiler(interval=0.001, async_mode="disabled")
    with profiler:
        yield
    handle = Path(tempfile.mkstemp(prefix="sellerwatch-profile-", suffix=".txt")[1])
    handle.write_text(profiler.output_text(unicode=True))
    print(f"profile: {handle}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.delivery")
    parser.add_argument("--products", type=int, default=2000)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        found = runner.run(measure(options.products, is_profiled=options.profile))
    table = Table(title=f"{options.products} products x {VERSIONS} versions, 16 at once", title_justify="left")
    for name in ("", "events per CPU s", "x bare", "events", "out of order"):
        table.add_column(name, justify="right" if name else "left")
    bare_cpu = found[0][0].cpu_seconds
    for lap, seen in found:
        rate, ratio = lap.products / lap.cpu_seconds, lap.cpu_seconds / bare_cpu
        table.add_row(lap.name, f"{rate:,.0f}", f"{ratio:.1f}", str(seen["events"]), str(seen["outOfOrder"]))
    Console().print(table)


if __name__ == "__main__":
    main()
