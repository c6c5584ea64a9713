"""What the marketplace's refusals mean, and for whom: tokens, start pages and options that are gone."""

from sellerwatch.domain.errors import Unavailable
from sellerwatch.domain.executions import ExecutionStatus
from sellerwatch.domain.sellers import CrawlSource
from sellerwatch.sandbox.faults import Fault
from simulation.village import NEVER, Village, a_village
from simulation.virtual import run_virtually

QUICK = {"site_requests_per_second": 100}


async def healths(village: Village) -> list[tuple[int, str]]:
    """Of the identities, as the record has them."""
    return await village.rows("SELECT DISTINCT health_score, status FROM user_agent_pool WHERE is_active ORDER BY 1")


def test_lesson_25_when_every_token_ends_at_once_each_identity_gets_a_fresh_one_and_nobody_is_charged() -> None:
    async def story() -> None:
        async with a_village(61, {"shops": {"a": 40}}, identities=25, **QUICK) as village:
            await village.register("a")
            await village.crawl("a")
            village.sandbox.market.gate.revoke()
            execution = await village.crawl("a")
            assert (execution.status, execution.failed_tasks) == (ExecutionStatus.COMPLETED, 0)
            assert await village.column("SELECT DISTINCT retry_count FROM crawler_tasks") == [0]
            await village.clock.sleep(30)
            assert await healths(village) == [(100, "AVAILABLE")]
            await village.check()

    run_virtually(story())


def test_an_identity_that_is_refused_with_a_fresh_token_too_is_charged() -> None:
    async def story() -> None:
        async with a_village(62, {"shops": {"a": 1}}, identities=1, **QUICK) as village:
            await village.register("a")
            village.sandbox.stage("OPTION", Fault(name="unauthorized"), times=2)
            await village.crawl("a")
            last = await village.rows(
                "SELECT http_status_code, agent_id FROM token_usage_log WHERE request_url LIKE '%/options' ORDER BY log_id"
            )
            # The second refusal comes with a token that was made for it; the task's retry succeeds.
            assert [status for status, _ in last] == [401, 401, 200]
            assert await village.column("SELECT retry_count FROM crawler_tasks WHERE task_type = 'OPTION'") == [1]
            await village.clock.sleep(30)
            assert await village.column("SELECT failure_count FROM user_agent_pool WHERE is_active") == [1]
            await village.check()

    run_virtually(story())


def test_a_start_page_that_redirects_blocks_nobody() -> None:
    async def story() -> None:
        async with a_village(63, {"shops": {"a": 6}}, identities=10, **QUICK) as village:
            village.sandbox.stage("/", Fault(name="redirect"), times=25)
            await village.register("a")
            await village.crawl("a")
            await village.clock.sleep(30)
            assert await healths(village) == [(100, "AVAILABLE")]
            await village.check()

    run_virtually(story())


def test_options_that_are_gone_are_no_absence_of_the_item() -> None:
    async def story() -> None:
        async with a_village(64, {"shops": {"a": 6}}, **QUICK) as village:
            await village.register("a")
            await village.crawl("a")
            [item_no, *_] = [item_no for item_no, _ in village.sandbox.truths("a")]
            for _ in range(2):
                village.sandbox.stage(
                    f"/mustit-api/legacy-api/v1/auction_products/{item_no}/options", Fault(name="gone")
                )
                assert (await village.crawl("a")).failed_tasks == 1
            [known] = await village.rows("SELECT status, absences, version FROM products WHERE item_no = ?", item_no)
            assert known == ("ACTIVE", 0, 1)

    run_virtually(story())


def test_a_seller_that_is_searched_for_has_as_many_products_as_were_found() -> None:
    async def story() -> None:
        async with a_village(65, {"shops": {"a": 60}}, **QUICK) as village:
            await village.register("a", crawl_source=CrawlSource.SEARCH)
            await village.crawl("a")
            [total] = await village.column("SELECT total_product_count FROM sellers")
            asked = len(await village.column("SELECT DISTINCT item_no FROM crawler_tasks WHERE item_no > 0"))
            assert (total, asked > total) == (60, True), "other sellers' items are looked at, and not counted"

    run_virtually(story())


def test_a_token_is_refreshed_every_hour_by_its_schedule_and_a_suspended_identitys_is_not() -> None:
    async def story() -> None:
        async with a_village(66, {"shops": {"a": 20}}, identities=5, **QUICK) as village:
            await village.register("a")
            await village.crawl("a")
            await village.clock.sleep(30)
            issued = await village.column("SELECT issued_at FROM user_agent_token WHERE is_active ORDER BY agent_id")
            assert len(issued) == 5
            await village.house.identities.suspend(1)
            await village.clock.sleep(3500)
            now = await village.column("SELECT issued_at FROM user_agent_token WHERE is_active ORDER BY agent_id")
            assert now == issued
            await village.clock.sleep(200)
            fresh = await village.rows("SELECT agent_id, refresh_count FROM user_agent_token WHERE is_active")
            issues = village.sandbox.stats()["identities"]
            assert len(fresh) == 4
            assert sorted(one["tokens"] for one in issues.values()) == [1, 2, 2, 2, 2]

    run_virtually(story())


def test_claims_are_kept_although_keeping_them_failed_once() -> None:
    async def story() -> None:
        slow = QUICK | {"claim_seconds": 6, "sweep_seconds": NEVER, "identities": 20}
        async with a_village(67, {"shops": {"a": 4}, "latency_ms": 9000}, **slow) as village:
            queue, failed = village.house.queue, []
            extend = queue.extend

            async def once_away(receipts: list[str], seconds: float) -> None:
                if not failed:
                    failed.append(receipts)
                    raise Unavailable("the database is away")
                await extend(receipts, seconds)

            queue.extend = once_away  # type: ignore[method-assign, assignment]
            await village.register("a")
            await village.crawl("a")
            assert failed
            assert await village.column("SELECT DISTINCT status FROM crawl_executions") == ["SUCCESS"]
            await village.check()

    run_virtually(story())


def test_an_attempt_whose_message_died_with_its_worker_does_not_stay_running() -> None:
    async def story() -> None:
        quiet = QUICK | {"sweep_seconds": NEVER, "identities": 20}
        async with a_village(68, {"shops": {"a": 6}, "latency_ms": 300}, is_running=False, **quiet) as village:
            await village.register("a")
            await village.house.identities.load()
            await village.house.trigger.crawl_now("a")
            await village.outside.plan.run()
            await village.outside.relay.run()
            [job] = await village.outside.crawl.take(1)
            await village.clock.sleep(60)
            await village.change("UPDATE queue_messages SET state = 'DEAD'")
            assert await village.outside.heal.dead_letters() == 1
            assert await village.rows("SELECT attempt_id, status FROM crawl_executions") == [
                (job.attempt.attempt_id, "ABANDONED")
            ]

    run_virtually(story())


def test_an_attempt_under_way_is_recorded_with_the_identity_that_makes_it() -> None:
    async def story() -> None:
        shops = dict.fromkeys("hgfedcba", 3)
        async with a_village(69, {"shops": shops}, is_running=False, **QUICK) as village:
            await village.register(*shops)
            await village.house.identities.load()
            for seller_id in shops:
                await village.house.trigger.crawl_now(seller_id)
            await village.outside.plan.run()
            await village.outside.relay.run()
            jobs = {job.attempt.attempt_id: job.lease.agent_id for job in await village.outside.crawl.take(18)}
            assert len(jobs) > 1
            assert dict(await village.rows("SELECT attempt_id, agent_id FROM crawl_executions")) == jobs

    run_virtually(story())


def test_the_log_of_requests_is_kept_for_as_long_as_the_setting_says() -> None:
    async def kept(months: int) -> int:
        quiet = QUICK | {"sweep_seconds": NEVER, "usage_retention_months": months}
        async with a_village(70, {"shops": {"a": 2}}, **quiet) as village:
            await village.register("a")
            await village.crawl("a")
            await village.change(
                "UPDATE token_usage_log SET request_timestamp = datetime(request_timestamp, '-40 days')"
            )
            await village.house.forget.prune()
            return len(await village.column("SELECT log_id FROM token_usage_log"))

    assert run_virtually(kept(1)) == 0
    assert run_virtually(kept(2)) > 0
