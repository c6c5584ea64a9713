"""`python -m bench.processing`: documents in the database become products, changes and events; nothing else is counted.

--products 3000   how many, in one shop

Three laps over a SQLite file, in CPU seconds of this process for 1 000 products of three documents each. *First sight*:
all raws wait, all products are new. *Unchanged*: every document comes again with the same bytes, and is known by their
hash; a reader that counts says that nothing was parsed. *1 % changed*: the same, but for one product in a hundred.
"""

import argparse
import asyncio
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from rich.console import Console
from rich.table import Table

from bench.measured import Lap, Meter
from sellerwatch.adapters.marketplace.parse import Parse
from sellerwatch.domain.documents import Document, DocumentKind, content_hash
from sellerwatch.domain.raws import Raw, raw_id
from sellerwatch.ports.store import Head, Touch, Unit
from sellerwatch.sandbox import pages
from sellerwatch.sandbox.conditions import Conditions
from sellerwatch.sandbox.sandbox import Sandbox
from sellerwatch.settings import load
from sellerwatch.wiring import House, build

SHOP, SHARE, BATCH = "shop-01", 0.01, 100
START = datetime(2026, 3, 2, tzinfo=UTC)
Body = tuple[DocumentKind, int, bytes]


class CountingReader(Parse):
    def __init__(self) -> None:
        super().__init__()
        self.read = 0

    def document(self, kind: DocumentKind, item_no: int, raw: bytes) -> Document:
        self.read += 1
        return super().document(kind, item_no, raw)


def bodies(sandbox: Sandbox) -> list[list[Body]]:
    """What the marketplace answers of the whole shop, item by item."""
    shop = sandbox.world.shop(SHOP)
    assert shop is not None
    return [list(_of(shop, product)) for product in sandbox.world.products(SHOP)]


def _of(shop, product) -> Iterator[Body]:
    entry = pages.mini_shop(shop, [product], None)["items"][0]
    yield DocumentKind.MINI_SHOP, product.item_no, pages.dump(entry, None)
    yield DocumentKind.DETAIL, product.item_no, pages.dump(pages.detail(product, shop, None), None)
    yield DocumentKind.OPTION, product.item_no, pages.dump(pages.options(product, None), None)


def take_in(unit: Unit, items: Sequence[Sequence[Body]], execution_id: str, at: datetime) -> int:
    """As settling does it: what is known to the byte was seen, the rest is kept to be absorbed; how many were kept."""
    heads = unit.products.heads([item[0][1] for item in items])
    raws, touches = [], []
    for kind, item_no, body in (one for item in items for one in item):
        raw_hash = content_hash(body)
        if _is_known(heads.get(item_no), kind, raw_hash):
            touches.append(Touch(item_no, kind, raw_hash, at))
        else:
            identity = raw_id(item_no, kind, raw_hash)
            raws.append(Raw(identity, item_no, SHOP, "task", execution_id, kind, body, raw_hash, at, at))
    unit.raws.put(raws)
    unit.products.touch(touches)
    return len(raws)


def _is_known(head: Head | None, kind: DocumentKind, raw_hash: str) -> bool:
    seen = head.seen.get(kind) if head else None
    return seen is not None and seen.raw_hash == raw_hash


async def crawled(house: House, items: Sequence[Sequence[Body]], number: int) -> int:
    at = START + timedelta(days=number)
    kept = 0
    for start in range(0, len(items), BATCH):
        some = items[start : start + BATCH]
        kept += await house.store.transact(lambda unit, some=some: take_in(unit, some, f"execution-{number}", at))
    return kept


async def absorbed(house: House) -> int:
    changes = 0
    while (done := await house.absorb.run()).raws:
        changes += len(done.changes)
    return changes


async def measure(products: int) -> list[tuple[Lap, int, int]]:
    """Each lap with how many changes it found and how many documents it read."""
    sandbox = Sandbox(Conditions(seed=1, shops={SHOP: products}))
    found = []
    with tempfile.TemporaryDirectory() as folder:
        house = build(load(overrides={"database_url": f"sqlite:///{folder}/bench.db"}), is_alone=True)
        house.upgrade()
        await house.sellers.register(SHOP, SHOP)
        reader = CountingReader()
        object.__setattr__(house.absorb, "reader", reader)
        try:
            # Keeping what was fetched is the crawl's; here it lies in the database when the clock starts.
            await crawled(house, bodies(sandbox), 0)
            with Meter(Lap("first sight", products)) as lap:
                changes = await absorbed(house)
            found.append((lap, changes, reader.read))
            for number, name in enumerate(("unchanged", "1 % changed"), 1):
                reader.read = 0
                if number == 2:
                    sandbox.mutate(SHARE, seed=7)
                items = bodies(sandbox)
                with Meter(Lap(name, products)) as lap:
                    await crawled(house, items, number)
                    changes = await absorbed(house)
                found.append((lap, changes, reader.read))
        finally:
            await house.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.processing")
    parser.add_argument("--products", type=int, default=3000)
    table = Table(title="documents → products, changes, events", title_justify="left")
    for name in ("", "CPU s / 1 000", "changes", "documents read"):
        table.add_column(name, justify="right" if name else "left")
    for lap, changes, read in asyncio.run(measure(parser.parse_args().products)):
        table.add_row(lap.name, f"{lap.cpu_per_1000:.3f}", str(changes), str(read))
    Console().print(table)


if __name__ == "__main__":
    main()
