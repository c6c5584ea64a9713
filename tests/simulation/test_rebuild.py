"""What is kept is enough (I8, I12, I16): from their raws alone, in any order, all products come to be what they are."""

import random  # noqa: TID251  seeded: an order, no chance
from collections.abc import Sequence
from typing import Any

import pytest

from doors import upgraded
from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.store import SqlStore
from sellerwatch.domain.products import Product
from sellerwatch.domain.raws import Raw, RawStatus
from sellerwatch.flows.absorb import Absorb
from simulation.village import Village, a_village
from simulation.virtual import BEGINNING, run_virtually

ROUNDS = 4
QUICK = {"sweep_seconds": 60, "site_requests_per_second": 100, "identities": 60}


async def lived(village: Village) -> None:
    await village.register("a", "b")
    for round_no in range(ROUNDS):
        for seller_id in ("a", "b"):
            await village.crawl(seller_id)
        village.sandbox.mutate(0.4, seed=round_no)
        await village.clock.sleep(3600)
    await village.settled()


async def everything(village: Village) -> tuple[list[Product], list[Raw]]:
    """In one process' memory: it is a small village."""
    items = await village.column("SELECT item_no FROM products ORDER BY item_no")
    raw_ids = await village.column("SELECT raw_id FROM product_raw_data")
    products = await village.house.store.read(lambda unit: unit.products.lock(items))
    return list(products.values()), await village.house.store.read(lambda unit: unit.raws.lock_by_id(raw_ids))


async def rebuilt(village: Village, batches: Sequence[Sequence[Raw]]) -> dict[int, Product]:
    """What becomes of these raws in a house that knows nothing, absorbed in this order."""
    database = Database(upgraded(), inline=True)
    store, house = SqlStore(database), village.house
    absorb = Absorb(store, house.reader, house.clock, house.chance, house.bell)
    for raws in batches:
        for raw in raws:
            raw.status, raw.next_attempt_at, raw.processed_at = RawStatus.PENDING, BEGINNING, None
        await store.transact(lambda unit, raws=raws: unit.raws.put(raws))  # type: ignore[misc]
        while (await absorb.run()).raws:
            pass
    products = await store.read(lambda unit: unit.products.lock({raw.item_no for raws in batches for raw in raws}))
    database.close()
    return products


def told(product: Product) -> dict[str, Any]:
    """What it is: not how many steps it took, nor what a list's silence made of it."""
    digests = {kind: (seen.digest, seen.raw_hash) for kind, seen in product.seen.items()}
    return {"fields": product.fields, "seller": product.seller_id, "complete": product.is_complete, "seen": digests}


@pytest.mark.parametrize("seed", range(3))
def test_products_rebuilt_from_their_raws_in_any_order_are_the_same(seed: int) -> None:
    async def story() -> None:
        conditions = {"shops": {"a": 10, "b": 5}, "noise": True, "rates": {"error": 3, "hollow": 2}}
        async with a_village(200 + seed, conditions, **QUICK) as village:
            await lived(village)
            products, raws = await everything(village)
            assert len(raws) > 3 * len(products)
            chance = random.Random(seed)
            chance.shuffle(raws)
            cuts = sorted(chance.sample(range(len(raws)), 5))
            batches = [raws[start:end] for start, end in zip([0, *cuts], [*cuts, len(raws)], strict=True)]
            # Some come twice.
            again = await rebuilt(village, [*batches, chance.sample(raws, len(raws) // 3)])
            assert {product.item_no: told(product) for product in products} == {
                item_no: told(product) for item_no, product in again.items()
            }

    run_virtually(story())
