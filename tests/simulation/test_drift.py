"""Days on which the marketplace is another, in the whole house: what is real arrives, what is not waits for a word."""

from dataclasses import replace

from sellerwatch.adapters.marketplace.parse import Parse
from sellerwatch.domain.fields import FIELDS
from sellerwatch.domain.meaning import Meaning
from simulation.village import Village, a_village
from simulation.virtual import run_virtually

QUICK = {"sweep_seconds": 60, "site_requests_per_second": 200, "identities": 60}
SHOP = {"shops": {"a": 40}}
MENDED = Meaning(
    tuple(replace(one, path="ProductInfoModule.salePrice") if one.name == "sellingPrice" else one for one in FIELDS)
)


async def ended(village: Village, seller_id: str = "a") -> None:
    """A crawl, until its last document is absorbed or waits."""
    execution = await village.house.trigger.crawl_now(seller_id)
    await village.ended(execution)
    await village.until(lambda: is_absorbed(village), 7200, "raws are pending")


async def is_absorbed(village: Village) -> bool:
    return await village.column("SELECT count(*) FROM product_raw_data WHERE status = 'PENDING'") == [0]


async def alerts(village: Village) -> list[str]:
    return await village.column("SELECT name FROM alerts WHERE cleared_at IS NULL ORDER BY name")  # type: ignore[no-any-return]


def test_a_day_on_which_sellingprice_is_renamed() -> None:
    async def story() -> None:
        async with a_village(81, SHOP, **QUICK) as village:
            await village.register("a")
            await village.crawl("a")
            began = village.clock.now()
            village.sandbox.rename({"sellingPrice": "salePrice"})
            real = village.sandbox.mutate(0.15, only=("price", "stock", "name"))
            await ended(village)
            # No product changed its price to nothing, nor to anything. What slipped through before the limit was met
            # is of the lists and options, and is real.
            assert await prices_told(village) == 0
            assert await village.column("SELECT count(*) FROM products WHERE selling_price IS NULL") == [0]
            assert await alerts(village) == ["field_drift:a"]
            assert await village.column("SELECT status FROM quarantines") == ["OPEN"]
            await village.clock.sleep(300)
            assert "field_drift:a" in [entry["name"] for entry in village.log if entry["event"] == "alert"]
            # A version is started whose table is mended, and what was crawled that day is read once more.
            house = village.house
            mended = replace(house.reprocess, reader=Parse(MENDED), meaning=MENDED)
            object.__setattr__(house, "absorb", replace(house.absorb, reader=Parse(MENDED), meaning=MENDED))
            async for _ in mended.run(began):
                pass
            await village.settled()
            changed = {one["itemNo"] for one in real}
            assert set(await village.column("SELECT item_no FROM products WHERE version > 1")) == changed
            assert await prices_told(village) == sum(one["field"] == "sellingPrice" for one in real)
            assert await alerts(village) == []
            await village.check()

    run_virtually(story())


async def prices_told(village: Village) -> int:
    told = await village.column("SELECT fields FROM product_changes")
    return sum('"field":"sellingPrice"' in fields for fields in told)


def test_a_shop_that_seems_half_gone_is_delisted_by_a_persons_word_only() -> None:
    async def story() -> None:
        async with a_village(82, {"shops": {"a": 20}}, **QUICK) as village:
            await village.register("a")
            await village.crawl("a")
            village.sandbox.remove_products("a", 9)
            await village.crawl("a")
            await ended(village)
            await village.until(lambda: is_asked(village), 7200, "nobody was asked")
            assert await village.column("SELECT DISTINCT status FROM products") == ["ACTIVE"]
            assert await alerts(village) == ["mass_delisting:a"]
            await village.house.decide.confirm_delisting("a")
            await village.settled()
            assert await village.column("SELECT count(*) FROM products WHERE status = 'DELISTED'") == [9]
            assert await alerts(village) == []
            await village.check()

    run_virtually(story())


async def is_asked(village: Village) -> bool:
    return await village.column("SELECT count(*) FROM alerts WHERE name LIKE 'mass%'") == [1]


def test_what_flaps_within_its_time_never_reaches_the_product_server() -> None:
    async def story() -> None:
        async with a_village(83, {"shops": {"a": 4}}, flap_seconds=20_000, **QUICK) as village:
            await village.register("a")
            await village.crawl("a")
            item_no = next(village.sandbox.truths("a"))[0]
            world, before = village.sandbox.world, village.sandbox.world.product(item_no)
            assert before is not None
            world.put(replace(before, app_price=before.app_price + 1000))
            await ended(village)
            world.put(before)
            await ended(village)
            await village.settled(50_000)
            assert await village.column("SELECT version FROM products WHERE item_no = ?", item_no) == [3]
            assert village.sandbox.stats()["receiver"]["deliveries"] == 4  # type: ignore[index]
            assert await village.column("SELECT times FROM suppressed_changes WHERE rule = 'flap'") == [2]

    run_virtually(story())


def test_a_name_that_nobody_declared_is_counted_and_told_for_a_day_and_holds_up_nothing() -> None:
    async def story() -> None:
        async with a_village(84, SHOP, **QUICK) as village:
            await village.register("a")
            await village.crawl("a")
            assert await alerts(village) == []
            village.sandbox.rename({"bottom": "footer", "groupResult": "groups"})
            village.sandbox.mutate(1.0, only=("price",))
            await ended(village)
            assert await alerts(village) == ["new_names:DETAIL"]
            noted = await village.rows("SELECT data_type, field FROM field_drift WHERE problem = 'unknown' ORDER BY 1")
            assert noted == [("DETAIL", "page.footer"), ("MINI_SHOP", "page.groups")]
            assert await village.column("SELECT count(*) FROM products WHERE version = 2") == [40]
            await village.clock.sleep(2 * 86400)
            assert await alerts(village) == []

    run_virtually(story())
