"""Thirty days of three sellers in virtual time: the whole house, its real flows and store, and nothing that waits."""

from datetime import timedelta

import pytest

from simulation.village import Village, a_village
from simulation.virtual import run_virtually

DAYS = 30
SHOPS = {"alpha": 14, "beta": 6, "gamma": 3}


async def a_month(seed: int) -> tuple[str, dict[str, object]]:
    """Every shop crawled daily by the built-in schedule, some products changed every day."""
    async with a_village(seed, {"shops": SHOPS, "latency_ms": 80}, sweep_seconds=1800, crawl_mode="full") as village:
        await village.register(*SHOPS)
        beginning = village.clock.now()
        changed: list[int] = []
        for day in range(DAYS):
            until = beginning + timedelta(days=day + 1, hours=2)
            await village.clock.sleep((until - village.clock.now()).total_seconds())
            assert not any([await village.wrong_products(seller) for seller in SHOPS]), f"day {day + 1}"
            changed += [difference["itemNo"] for difference in village.sandbox.mutate(0.1)]
        await village.clock.sleep(86400)
        return village.fingerprint(), await told(village, changed)


async def told(village: Village, changed: list[int]) -> dict[str, object]:
    stats = village.sandbox.stats()
    assert stats["violations"] == 0
    versions = {}
    for seller in SHOPS:
        assert await village.wrong_products(seller) == {}
        for item_no, _ in village.sandbox.truths(seller):
            product = await village.house.store.read(lambda unit, item_no=item_no: unit.products.get(item_no))
            assert product is not None
            versions[item_no] = product.version
    assert set(changed) <= {item_no for item_no, version in versions.items() if version > 1}
    return {"versions": versions, "requests": len(village.transport.trace)}


@pytest.mark.slow
def test_a_month_of_three_sellers_runs_twice_the_same_way() -> None:
    first_print, first = run_virtually(a_month(7))
    second_print, second = run_virtually(a_month(7))
    assert first == second
    assert first_print == second_print
