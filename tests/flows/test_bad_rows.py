"""Lesson 14 in the whole house: one row that can't be read is told of, and every other seller's work goes on."""

from simulation.village import Village, a_village
from simulation.virtual import run_virtually

HOUSE = {"sweep_seconds": 60, "site_requests_per_second": 100, "identities": 40, "delivery_interval": 5}
SHOPS = ("a", "b", "c", "d")


async def alerts(village: Village) -> list[str]:
    return await village.column("SELECT name FROM alerts WHERE cleared_at IS NULL ORDER BY name")


async def executions(village: Village) -> dict[str, str]:
    return dict(await village.rows("SELECT seller_id, status FROM crawling_schedule_executions ORDER BY id"))


def quiet(village: Village) -> bool:
    return not [line for line in village.log if line.get("event") == "loop failed"]


def test_lesson_14_a_schedule_that_cannot_be_read_takes_no_other_sellers_turn() -> None:
    async def story() -> None:
        async with a_village(140, {"shops": dict.fromkeys(SHOPS, 2)}, **HOUSE) as village:
            await village.register(*SHOPS)
            await village.change("UPDATE crawling_schedules SET schedule_expression = 'banana' WHERE seller_id = 'a'")
            await village.change("UPDATE crawling_schedules SET next_run_at = created_at")
            await village.clock.sleep(300)
            assert await executions(village) == dict.fromkeys("bcd", "COMPLETED")
            assert await village.column("SELECT status FROM crawling_schedules WHERE seller_id = 'a'") == ["FAILED"]
            assert await alerts(village) == ["unreadable_row:crawling_schedules"]
            assert quiet(village)
            await village.change("UPDATE crawling_schedules SET schedule_expression = 'rate(1 day)'")
            await village.clock.sleep(3600)
            assert (await executions(village))["a"] == "COMPLETED"

    run_virtually(story())


def test_lesson_14_an_event_that_cannot_be_read_stops_no_delivery() -> None:
    async def story() -> None:
        async with a_village(141, {"shops": dict.fromkeys(SHOPS, 2)}, **HOUSE | {"delivery_interval": 3600}) as village:
            await village.register(*SHOPS)
            for shop in SHOPS:
                await village.ended(await village.house.trigger.crawl_now(shop))
            await village.clock.sleep(1)
            await village.change("UPDATE product_outbox SET payload = '{', status = 'WAITING' WHERE id = 1")
            await village.settled()
            assert dict(await village.rows("SELECT status, count(*) FROM product_outbox GROUP BY status")) == {
                "COMPLETED": 7,
                "FAILED": 1,
            }
            assert await alerts(village) == ["unreadable_row:product_outbox"]
            assert quiet(village)

    run_virtually(story())


def test_lesson_14_a_task_that_cannot_be_sent_is_failed_and_the_others_are_sent() -> None:
    async def story() -> None:
        async with a_village(142, {"shops": dict.fromkeys(SHOPS, 2)}, **HOUSE) as village:
            await village.register(*SHOPS)
            await village.change(
                "CREATE TRIGGER spoil AFTER INSERT ON crawler_task_outbox WHEN new.seller_id = 'a' BEGIN"
                " UPDATE crawler_task_outbox SET payload = '{' WHERE id = new.id; END"
            )
            begun = [await village.house.trigger.crawl_now(shop) for shop in SHOPS]
            for execution in begun:
                await village.ended(execution, 600)
            await village.settled()
            for shop in "bcd":
                assert await village.wrong_products(shop) == {}
            assert await village.rows("SELECT DISTINCT status FROM crawler_tasks WHERE seller_id = 'a'") == [
                ("FAILED",)
            ]
            assert await alerts(village) == ["unreadable_row:crawler_task_outbox"]
            assert quiet(village)
            await village.check(*"bcd")

    run_virtually(story())


def test_lesson_14_a_seller_that_cannot_be_read_has_a_failed_crawl_and_is_shown() -> None:
    async def story() -> None:
        async with a_village(143, {"shops": dict.fromkeys(SHOPS, 2)}, **HOUSE) as village:
            await village.register(*SHOPS)
            await village.change("UPDATE sellers SET crawl_source = 'WEIRD' WHERE seller_id = 'a'")
            await village.change("UPDATE crawling_schedules SET next_run_at = created_at")
            await village.clock.sleep(300)
            assert await executions(village) == {"a": "FAILED"} | dict.fromkeys("bcd", "COMPLETED")
            [why] = await village.column("SELECT error_message FROM crawling_schedule_executions WHERE seller_id = 'a'")
            assert why == "sellers a: 'WEIRD' is not a valid CrawlSource"
            assert await alerts(village) == ["unreadable_row:sellers"]
            shown = (await village.house.reports.sellers()).rows
            assert [(row.seller_id, row.crawl_source.value) for row in shown] == [
                ("a", "WEIRD"),
                *((shop, "MINI_SHOP") for shop in "bcd"),
            ]
            assert quiet(village)

    run_virtually(story())


def test_lesson_14_a_product_that_cannot_be_read_fails_its_documents_alone_and_is_not_written_over() -> None:
    async def story() -> None:
        async with a_village(144, {"shops": {"a": 3}}, **HOUSE) as village:
            await village.register("a")
            await village.crawl("a")
            await village.change("UPDATE products SET images = '[' WHERE id = 1")
            before = await village.rows("SELECT * FROM products WHERE id = 1")
            await village.change("UPDATE product_raw_data SET status = 'PENDING', next_attempt_at = created_at")
            await village.clock.sleep(60)
            assert await village.rows("SELECT * FROM products WHERE id = 1") == before
            failed = await village.rows(
                "SELECT DISTINCT item_no, error_message FROM product_raw_data WHERE status = 'FAILED'"
            )
            assert failed == [(before[0][2], "its product can't be read")]
            assert await village.column("SELECT count(*) FROM product_raw_data WHERE status = 'PENDING'") == [0]
            assert await alerts(village) == ["unreadable_row:products"]
            assert quiet(village)

    run_virtually(story())
