"""`kill -9` at any step, and a new house on what it left: in the end everything is as without it.

A step is whatever can be seen from outside: a transaction, a request, a delivery. After it nothing comes back to the
house that was killed: no transaction is rolled back by it, no lease returned, no message acknowledged.
"""

from pathlib import Path
from typing import Any

import pytest

from simulation.village import Mortal, Village, a_village, on_file
from simulation.virtual import run_virtually

SHOPS = {"a": 4, "b": 2}
SETTINGS = {"sweep_seconds": 20, "site_requests_per_second": 100, "identities": 8}
STEPS = range(1, 241, 15)


async def a_life(village: Village, steps: int | None) -> list[tuple[Any, ...]]:
    """Two crawls of two shops with changes in between; killed once, after so many steps. What became of it all."""
    first = village.house if steps is None else village.raise_house()
    mortal = Mortal(first, steps) if steps is not None else None
    move_out = village.move_in(first)
    await village.register(*SHOPS)
    executions = [await village.house.trigger.crawl_now(seller_id) for seller_id in SHOPS]
    if mortal:
        await mortal.died.wait()
        village.move_in(village.raise_house())
    for execution in executions:
        await village.ended(execution)
    await village.settled()
    village.sandbox.mutate(0.4)
    for seller_id in SHOPS:
        await village.crawl(seller_id)
    await village.check()
    if mortal:
        mortal.is_buried = True
    else:
        await move_out()
    return await village.rows("SELECT item_no, version, kinds, fields FROM product_changes ORDER BY item_no, version")


def lived(folder: Path, steps: int | None) -> list[tuple[Any, ...]]:
    async def story() -> list[tuple[Any, ...]]:
        async with a_village(
            21, {"shops": SHOPS}, is_running=False, database_url=on_file(folder), **SETTINGS
        ) as village:
            return await a_life(village, steps)

    return run_virtually(story())


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Any, ...]]:
    return lived(tmp_path_factory.mktemp("undisturbed"), None)


@pytest.mark.parametrize("steps", STEPS)
def test_killed_after_any_step_it_goes_on_where_it_was(
    tmp_path: Path, undisturbed: list[tuple[Any, ...]], steps: int
) -> None:
    assert lived(tmp_path, steps) == undisturbed
