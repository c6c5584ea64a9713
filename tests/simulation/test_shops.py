"""Shops that change while they are read, shrink, and come back: what a list proves, and what it does not (I17)."""

import pytest

from sellerwatch.domain.executions import ExecutionStatus
from sellerwatch.domain.sellers import CrawlSource
from sellerwatch.sandbox import pages
from sellerwatch.sandbox.faults import Fault
from simulation.village import Village, a_village
from simulation.virtual import run_virtually

QUICK = {"sweep_seconds": 600, "site_requests_per_second": 100, "identities": 40}
LISTS = "MINI_SHOP"
PATH = "/mustit-api/facade-api/v1/searchmini-shop-search"
SECOND_PAGE = f"{PATH}?sellerId=a&pageNo=1&pageSize=10&order=LATEST"


def a_detail(item_no: int) -> str:
    return f"/mustit-api/facade-api/v1/item/{item_no}/detail/top"


async def status_of(village: Village, item_no: int) -> str:
    [status] = await village.column("SELECT status FROM products WHERE item_no = ?", item_no)
    assert isinstance(status, str)
    return status


async def kinds_of(village: Village, item_no: int) -> list[str]:
    kinds = await village.column("SELECT kinds FROM product_changes WHERE item_no = ? ORDER BY version", item_no)
    return [str(kind) for kind in kinds]


async def list_of(village: Village) -> list[tuple[object, ...]]:
    return await village.rows(
        "SELECT page_no, status FROM crawler_tasks WHERE task_type = 'MINI_SHOP' ORDER BY page_no"
    )


@pytest.mark.parametrize("seed", range(5))
def test_lesson_46_items_that_move_between_pages_while_they_are_read_are_all_seen(seed: int) -> None:
    async def story() -> None:
        async with a_village(seed, {"shops": {"a": 60}}, page_size=10, **QUICK) as village:
            await village.register("a")
            village.sandbox.stage(LISTS, Fault(name="shuffle"), times=7)
            await village.crawl("a")
            await village.check()
            assert await village.column("SELECT count(*) FROM products") == [60]

    run_virtually(story())


def test_lesson_46_a_short_page_is_asked_for_again() -> None:
    async def story() -> None:
        async with a_village(3, {"shops": {"a": 30}}, page_size=10, **QUICK) as village:
            await village.register("a")
            village.sandbox.stage(PATH, Fault(name="answer", status=503))
            execution = await village.house.trigger.crawl_now("a")
            await village.clock.sleep(0.5)
            village.sandbox.stage(LISTS, Fault(name="short_page"), times=3)
            await village.ended(execution)
            await village.settled()
            await village.check()
            pages = [page for page, _ in await list_of(village)]
            assert pages == [0, 1, 2, 10_000, 10_001, 10_002]

    run_virtually(story())


def test_a_list_that_stays_short_is_not_taken_for_the_truth() -> None:
    """I17: nothing is delisted by it, however often."""

    async def story() -> None:
        async with a_village(4, {"shops": {"a": 30}}, page_size=10, **QUICK) as village:
            await village.register("a")
            await village.crawl("a")
            shop = village.sandbox.world.shops["a"]
            but_one = list(village.sandbox.world.products("a"))[11:20]
            short = pages.dump(pages.mini_shop(shop, but_one, None), None)
            for _ in range(3):
                village.sandbox.stage(SECOND_PAGE, Fault(name="answer", body=short), times=3)
                execution = await village.crawl("a")
                assert execution.error_message == "list incomplete: 29 of 30 items seen"
            await village.crawl("a")
            await village.check()
            assert await village.column("SELECT DISTINCT version FROM products") == [1]

    run_virtually(story())


def test_lesson_7_a_list_page_that_cannot_be_had_cuts_off_nothing_and_delists_nothing() -> None:
    async def story() -> None:
        async with a_village(5, {"shops": {"a": 30}}, page_size=10, **QUICK) as village:
            await village.register("a")
            await village.crawl("a")
            for _ in range(2):
                village.sandbox.stage(SECOND_PAGE, Fault(name="answer", status=503, body=b"away"), times=3)
                execution = await village.crawl("a")
                assert (execution.status, execution.failed_tasks) == (ExecutionStatus.COMPLETED, 1)
                # The other two pages led to their items.
                assert execution.total_tasks == 3 + 40
            await village.check()
            assert await village.column("SELECT DISTINCT status FROM products") == ["ACTIVE"]
            assert await village.column("SELECT max(absences) FROM products") == [0]

    run_virtually(story())


def test_lesson_2_an_html_page_instead_of_the_list_is_not_an_empty_shop() -> None:
    async def story() -> None:
        async with a_village(6, {"shops": {"a": 12}}, **QUICK) as village:
            await village.register("a")
            await village.crawl("a")
            for _ in range(3):
                village.sandbox.market.faults.set_rates({"html": 100})
                execution = await village.house.trigger.crawl_now("a")
                await village.ended(execution)
                village.sandbox.market.faults.set_rates({})
                ended = await village.execution(execution.execution_id)
                assert ended.status is ExecutionStatus.FAILED
                assert ended.error_message is not None
            await village.settled()
            await village.check()
            assert await village.column("SELECT DISTINCT version FROM products") == [1]

    run_virtually(story())


def test_a_404_of_a_list_is_no_empty_shop_and_somebody_is_told() -> None:
    async def story() -> None:
        async with a_village(7, {"shops": {"a": 12}}, page_size=6, **QUICK) as village:
            await village.register("a")
            await village.crawl("a")
            for _ in range(2):
                execution = await village.house.trigger.crawl_now("a")
                page = f"{PATH}?sellerId=a&pageNo=1&pageSize=6&order=LATEST"
                village.sandbox.stage(page, Fault(name="gone"), times=3)
                await village.ended(execution)
            await village.settled()
            await village.check()
            assert "marketplace_path_moved" in [entry["name"] for entry in village.log if entry["event"] == "alert"]

    run_virtually(story())


def test_a_list_that_has_moved_is_told_though_its_crawl_never_comes_to_have_tasks() -> None:
    async def story() -> None:
        async with a_village(7, {"shops": {"a": 12}}, **QUICK) as village:
            await village.register("a")
            village.sandbox.stage(PATH, Fault(name="gone"), times=1000)
            assert (await village.crawl("a")).status is ExecutionStatus.FAILED
            told = [entry["name"] for entry in village.log if entry["event"] == "alert"]
            assert "marketplace_path_moved" in told

    run_virtually(story())


def test_a_search_whose_link_to_the_next_page_is_gone_is_no_end_and_delists_nothing() -> None:
    async def story() -> None:
        async with a_village(9, {"shops": {"a": 50}}, **QUICK) as village:
            await village.register("a", crawl_source=CrawlSource.SEARCH)
            await village.crawl("a")
            village.sandbox.rename({"nextApiUrl": "nextUrl"})
            for _ in range(2):
                ended = await village.crawl("a")
                assert ended.error_message == "list incomplete: page 1 has items, but no next page follows it"
            assert await village.column("SELECT DISTINCT status FROM products") == ["ACTIVE"]
            assert await village.column("SELECT max(absences) FROM products") == [0]
            assert await village.column("SELECT total_product_count FROM sellers") == [50]

    run_virtually(story())


def test_a_product_that_left_its_shop_is_delisted_after_two_whole_crawls_and_back_when_it_returns() -> None:
    async def story() -> None:
        async with a_village(8, {"shops": {"a": 20}}, **QUICK) as village:
            await village.register("a")
            await village.crawl("a")
            [gone] = village.sandbox.remove_products("a", 1)
            await village.crawl("a")
            assert await status_of(village, gone) == "ACTIVE"
            await village.crawl("a")
            assert await status_of(village, gone) == "DELISTED"
            await village.crawl("a")
            assert await kinds_of(village, gone) == ["CREATED", "DELISTED"]
            copy = village.sandbox.receiver.copy(gone)
            assert copy is not None
            assert copy["eventType"] == "PRODUCT_DELISTED"
            village.sandbox.world.bring_back(gone)
            await village.crawl("a")
            assert await status_of(village, gone) == "ACTIVE"
            assert await kinds_of(village, gone) == ["CREATED", "DELISTED", "RELISTED"]
            await village.check()

    run_virtually(story())


def test_an_absence_between_two_appearances_is_forgotten() -> None:
    async def story() -> None:
        async with a_village(9, {"shops": {"a": 10}}, **QUICK) as village:
            await village.register("a")
            await village.crawl("a")
            [gone] = village.sandbox.remove_products("a", 1)
            for _ in range(2):
                await village.crawl("a")
                village.sandbox.world.bring_back(gone)
                await village.crawl("a")
                village.sandbox.world.remove_products("a", [gone])
            village.sandbox.world.bring_back(gone)
            assert await status_of(village, gone) == "ACTIVE"
            assert await kinds_of(village, gone) == ["CREATED"]

    run_virtually(story())


def test_an_item_that_is_listed_but_whose_page_is_gone_is_absent_too() -> None:
    async def story() -> None:
        async with a_village(10, {"shops": {"a": 10}}, **QUICK) as village:
            await village.register("a")
            await village.crawl("a")
            lost = next(village.sandbox.truths("a"))[0]
            for absences in (1, 2):
                village.sandbox.stage(a_detail(lost), Fault(name="gone"))
                execution = await village.crawl("a")
                assert execution.failed_tasks == 1
                assert await village.column("SELECT absences FROM products WHERE item_no = ?", lost) == [absences]
            assert await status_of(village, lost) == "DELISTED"
            await village.crawl("a")
            assert await status_of(village, lost) == "ACTIVE"
            await village.check()

    run_virtually(story())


def test_another_items_data_is_never_taken_for_the_item() -> None:
    async def story() -> None:
        async with a_village(11, {"shops": {"a": 10}}, **QUICK) as village:
            await village.register("a")
            asked = [item_no for item_no, _ in village.sandbox.truths("a")][4]
            village.sandbox.stage(a_detail(asked), Fault(name="wrong_item"), times=3)
            execution = await village.crawl("a")
            assert execution.failed_tasks == 1
            assert list(await village.wrong_products("a")) == [asked]
            await village.crawl("a")
            await village.check()

    run_virtually(story())


def test_a_product_that_moves_to_another_shop_is_nobodys_absence() -> None:
    """The detail page is right: the product moves, and the old seller's listing of it ends."""

    async def story() -> None:
        async with a_village(12, {"shops": {"a": 8, "b": 3}}, **QUICK) as village:
            await village.register("a", "b")
            await village.crawl("a")
            await village.crawl("b")
            moving = next(village.sandbox.truths("a"))[0]
            village.sandbox.world.transfer(moving, "b")
            for seller_id in ("b", "a", "b", "a", "b"):
                await village.crawl(seller_id)
            assert await village.column("SELECT seller_id FROM products WHERE item_no = ?", moving) == ["b"]
            assert await kinds_of(village, moving) == ["CREATED", "SELLER"]
            await village.check()

    run_virtually(story())


def test_an_empty_shop_is_completed_at_once_and_a_shop_that_became_empty_is_delisted_by_the_second_crawl() -> None:
    async def story() -> None:
        async with a_village(13, {"shops": {"a": 3, "empty": 0}}, **QUICK) as village:
            await village.register("a", "empty")
            execution = await village.crawl("empty")
            assert (execution.status, execution.total_tasks) == (ExecutionStatus.COMPLETED, 0)
            await village.crawl("a")
            village.sandbox.remove_products("a", 3)
            await village.crawl("a")
            assert await village.column("SELECT DISTINCT status FROM products") == ["ACTIVE"]
            await village.crawl("a")
            assert await village.column("SELECT DISTINCT status FROM products") == ["DELISTED"]
            await village.check()

    run_virtually(story())
