"""robots.txt in the whole house: fetched once, obeyed before anything is asked, and paused for when it can't be had."""

from pathlib import Path

import pytest

from sellerwatch.sandbox.faults import Fault
from simulation.village import NEVER, Village, a_village, on_file
from simulation.virtual import run_virtually

QUIET = {"sweep_seconds": NEVER, "site_requests_per_second": 100, "identities": 40}
DAY = 86_400
FOR_EVER = 100_000
DETAILS = "User-agent: *\nDisallow: /mustit-api/facade-api/v1/item/\n"


def asked(village: Village) -> dict[str, int]:
    """Requests that arrived, by kind."""
    counts: dict[str, int] = {}
    for (kind, _), count in village.sandbox.market.counts.items():
        counts[kind] = counts.get(kind, 0) + count
    return counts


async def open_alerts(village: Village) -> list[str]:
    return await village.column("SELECT name FROM alerts WHERE cleared_at IS NULL ORDER BY name")


async def make_due(village: Village) -> None:
    await village.change("UPDATE robots SET next_at = ?", "2026-01-01 00:00:00.000000")


def break_robots(village: Village, fault: Fault) -> None:
    village.sandbox.stage("ROBOTS", fault, FOR_EVER)


def test_it_is_asked_for_before_anything_else_by_a_visitor_on_a_lease_of_its_own_and_logged() -> None:
    async def story() -> None:
        async with a_village(301, {"shops": {"a": 4}}, **QUIET) as village:
            await village.register("a")
            await village.crawl("a")
            await village.check()
            assert village.transport.trace[0].endswith("/robots.txt")
            assert asked(village)["ROBOTS"] == 1
            logged = await village.rows(
                "SELECT request_url, is_success, task_id FROM token_usage_log WHERE request_url LIKE '%robots.txt'"
            )
            assert logged == [("http://127.0.0.1:9/robots.txt", 1, None)]
            requests = sum(asked(village).values())
            assert await village.column("SELECT count(*) FROM token_usage_log") == [requests]
            spent = await village.column("SELECT sum(uses) FROM pool_identities")
            assert spent == [requests]

    run_virtually(story())


def test_it_is_asked_for_once_a_day_by_all_processes_together(tmp_path: Path) -> None:
    async def story() -> None:
        settings = QUIET | {"database_url": on_file(tmp_path)}
        async with a_village(302, {"shops": {"a": 3, "b": 3}}, **settings) as village:
            other = village.raise_house(1.0)
            village.move_in(other)
            await village.register("a", "b")
            for seller_id in ("a", "b"):
                await village.house.trigger.crawl_now(seller_id)
            await village.clock.sleep(300)
            await village.settled()
            assert asked(village)["ROBOTS"] == 1
            await make_due(village)
            await village.clock.sleep(61)
            for seller_id in ("a", "b"):
                await village.crawl(seller_id)
            assert asked(village)["ROBOTS"] == 2

    run_virtually(story())


def test_a_disallowed_path_is_never_asked_its_tasks_fail_at_once_with_the_reason_and_somebody_is_told() -> None:
    async def story() -> None:
        async with a_village(303, {"shops": {"a": 5}, "robots": DETAILS}, **QUIET) as village:
            await village.register("a")
            execution = await village.crawl("a")
            assert (execution.completed_tasks, execution.failed_tasks) == (1 + 5, 5)
            failed = await village.rows(
                "SELECT task_type, retry_count, error_message FROM crawler_tasks WHERE status = 'FAILED'"
            )
            assert {row[:2] for row in failed} == {("DETAIL", 0)}
            assert all("robots.txt disallows /mustit-api/facade-api/v1/item/" in row[2] for row in failed)
            assert "DETAIL" not in asked(village)
            assert village.sandbox.stats()["disallowed"] == 0
            assert await open_alerts(village) == ["robots_disallowed"]
            # What is not looked at is not gone.
            assert await village.column("SELECT count(*) FROM product_changes") == [0]
            # Nobody's budget pays for what was not asked.
            assert await village.column("SELECT sum(uses) FROM pool_identities") == [sum(asked(village).values())]
            # The site thinks better of it.
            village.sandbox.market.hang_out("")
            await village.clock.sleep(DAY)
            await village.crawl("a")
            assert await open_alerts(village) == []
            await village.check()

    run_virtually(story())


@pytest.mark.parametrize(
    ("robots", "reason"),
    [
        ("User-agent: *\nDisallow: /\n", "robots.txt disallows /mustit-api"),
        ("User-agent: *\nDisallow: /$\n", "robots.txt disallows /, where tokens come from"),
        ("User-agent: Sellerwatch\nDisallow: /mustit-api/\n", "robots.txt disallows /mustit-api"),
    ],
)
def test_where_nothing_can_be_asked_the_crawl_fails_with_the_reason_and_only_robots_txt_was_asked_for(
    robots: str, reason: str
) -> None:
    async def story() -> None:
        async with a_village(304, {"shops": {"a": 5}, "robots": robots}, **QUIET) as village:
            await village.register("a")
            execution = await village.crawl("a")
            assert execution.status == "FAILED"
            assert execution.error_message is not None
            assert reason in execution.error_message
            assert asked(village) == {"ROBOTS": 1}
            assert await open_alerts(village) == ["robots_disallowed"]
            assert await village.house.identities.refresh_tokens() == 0
            assert (await village.house.pool.figures()).leased == 0

    run_virtually(story())


def test_a_redirect_to_a_disallowed_path_is_not_followed() -> None:
    async def story() -> None:
        robots = "User-agent: *\nDisallow: /m/member/\n"
        async with a_village(305, {"shops": {"a": 1}, "robots": robots}, **QUIET) as village:
            await village.register("a")
            village.sandbox.stage("OPTION", Fault(name="redirect", location="/m/member/login"))
            execution = await village.crawl("a")
            assert execution.failed_tasks == 1
            assert village.sandbox.stats()["disallowed"] == 0

    run_virtually(story())


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
def test_a_4xx_allows_everything_and_is_nobodys_fault(status: int) -> None:
    async def story() -> None:
        async with a_village(306, {"shops": {"a": 3}, "robots": "User-agent: *\nDisallow: /\n"}, **QUIET) as village:
            village.sandbox.market.hang_out("")
            break_robots(village, Fault(name="answer", status=status))
            await village.register("a")
            await village.crawl("a")
            await village.check()
            assert (await village.house.pool.figures()).health_min == 100
            assert await open_alerts(village) == []

    run_virtually(story())


@pytest.mark.parametrize(
    "fault",
    [
        Fault(name="error", status=503),
        Fault(name="drop"),
        Fault(name="slow", seconds=60),
        Fault(name="redirect", location="https://elsewhere.test/robots.txt"),
        Fault(name="redirect", location="/robots.txt"),
        Fault(name="throttle"),
    ],
    ids=["5xx", "dropped", "timeout", "foreign redirect", "ring of redirects", "429"],
)
def test_never_told_nothing_is_asked_until_it_can_be_had(fault: Fault) -> None:
    async def story() -> None:
        async with a_village(307, {"shops": {"a": 3}}, **QUIET) as village:
            break_robots(village, fault)
            await village.register("a")
            execution = await village.house.trigger.crawl_now("a")
            await village.clock.sleep(1800)
            assert (await village.execution(execution.execution_id)).is_open
            assert set(asked(village)) == {"ROBOTS"}
            # Seldom enough: a failing server is not asked every second.
            assert asked(village)["ROBOTS"] <= 12 * 6
            assert await open_alerts(village) == ["robots_unreachable"]
            village.sandbox.market.faults.clear()
            await village.ended(execution, 900)
            await village.settled()
            await village.check()
            assert await open_alerts(village) == []
            assert await village.column("SELECT max(retry_count) FROM crawler_tasks") == [0]

    run_virtually(story())


def test_known_before_it_goes_on_for_another_day_and_then_pauses_without_costing_a_task_anything() -> None:
    async def story() -> None:
        async with a_village(308, {"shops": {"a": 3}}, **QUIET) as village:
            await village.register("a")
            await village.crawl("a")
            break_robots(village, Fault(name="error", status=500))
            await village.clock.sleep(DAY + 60)
            # A day old, it is the last known.
            assert (await village.crawl("a")).failed_tasks == 0
            assert await open_alerts(village) == []
            await village.clock.sleep(DAY)
            execution = await village.house.trigger.open("a", "after two days")
            assert execution.execution is not None
            before = asked(village)
            await village.clock.sleep(2 * 3600)
            after = asked(village)
            assert {kind for kind in after if after[kind] != before[kind]} == {"ROBOTS"}
            assert await open_alerts(village) == ["robots_unreachable"]
            village.sandbox.market.faults.clear()
            await village.ended(execution.execution, 1200)
            await village.settled()
            await village.check()
            assert await open_alerts(village) == []
            assert await village.column("SELECT max(retry_count + abandon_count) FROM crawler_tasks") == [0]
            assert await village.column("SELECT count(*) FROM queue_messages WHERE state = 'DEAD'") == [0]

    run_virtually(story())


def test_tasks_under_way_when_the_pause_begins_are_asked_for_when_it_is_over() -> None:
    async def story() -> None:
        async with a_village(309, {"shops": {"a": 30}}, **QUIET | {"site_requests_per_second": 1}) as village:
            await village.register("a")
            execution = await village.house.trigger.crawl_now("a")
            await village.clock.sleep(20)
            break_robots(village, Fault(name="error"))
            long_ago = "2020-01-01 00:00:00.000000"
            await village.change("UPDATE robots SET told_at = ?, next_at = ?", long_ago, long_ago)
            await village.clock.sleep(120)
            before = asked(village)
            await village.clock.sleep(600)
            after = asked(village)
            assert {kind for kind in after if after[kind] != before.get(kind)} == {"ROBOTS"}
            village.sandbox.market.faults.clear()
            await village.ended(execution)
            await village.settled()
            await village.check()
            assert await village.column("SELECT max(retry_count + abandon_count) FROM crawler_tasks") == [0]

    run_virtually(story())


def test_a_maintenance_page_in_its_place_takes_away_no_rule() -> None:
    async def story() -> None:
        async with a_village(310, {"shops": {"a": 2}, "robots": DETAILS}, **QUIET) as village:
            await village.register("a")
            await village.crawl("a")
            village.sandbox.stage("ROBOTS", Fault(name="html"), FOR_EVER)
            await village.clock.sleep(DAY + 60)
            await village.crawl("a")
            assert "DETAIL" not in asked(village)

    run_virtually(story())


def test_a_redirect_within_the_host_is_followed_on_leases_of_their_own() -> None:
    async def story() -> None:
        async with a_village(311, {"shops": {"a": 2}, "robots": DETAILS}, **QUIET) as village:
            for hop in range(5):
                village.sandbox.stage("ROBOTS", Fault(name="redirect", location=f"/robots.txt?hop={hop}"))
            await village.register("a")
            await village.crawl("a")
            assert asked(village)["ROBOTS"] == 6
            assert "DETAIL" not in asked(village)
            assert (village.sandbox.stats()["tooClose"], village.sandbox.stats()["violations"]) == (0, 0)

    run_virtually(story())


def test_a_crawl_delay_spaces_out_the_whole_site_and_is_told_where_it_slows_down(tmp_path: Path) -> None:
    async def story() -> None:
        robots = "User-agent: *\nCrawl-delay: 2\nAllow: /\n"
        settings = QUIET | {"database_url": on_file(tmp_path)}
        async with a_village(312, {"shops": {"a": 6}, "robots": robots}, **settings) as village:
            other = village.raise_house(1.0)
            village.move_in(other)
            await village.register("a")
            await village.crawl("a")
            moments = sorted(
                await village.column("SELECT strftime('%s', request_timestamp) FROM token_usage_log ORDER BY 1")
            )
            # Of each of the two, the one request before it had read it: whenever that was, it could not know.
            assert len(moments) > 12
            assert int(moments[-1]) - int(moments[0]) >= 2 * (len(moments) - 1 - 2)
            assert await open_alerts(village) == ["robots_slow"]
            village.sandbox.market.hang_out("User-agent: *\nCrawl-delay: 0.001\n")
            await make_due(village)
            await village.clock.sleep(61)
            await village.crawl("a")
            assert await open_alerts(village) == []

    run_virtually(story())


def test_by_the_operators_word_it_is_neither_asked_for_nor_obeyed_and_that_is_named_at_start() -> None:
    async def story() -> None:
        everything = "User-agent: *\nDisallow: /\nCrawl-delay: 3600\n"
        settings = QUIET | {"respect_robots": False}
        async with a_village(313, {"shops": {"a": 3}, "robots": everything}, **settings) as village:
            assert "SELLERWATCH_RESPECT_ROBOTS=false: robots.txt is not obeyed" in village.house.settings.warnings()
            for name in ("robots_unreachable", "robots_disallowed", "robots_slow"):
                await village.change(
                    "INSERT INTO alerts (name, severity, since, times) VALUES (?, 'critical', ?, 1)",
                    name,
                    "2026-01-01 00:00:00.000000",
                )
            await village.register("a")
            await village.crawl("a")
            assert "ROBOTS" not in asked(village)
            assert await village.wrong_products("a") == {}
            assert await open_alerts(village) == []

    run_virtually(story())


def test_a_process_that_dies_while_asking_leaves_a_claim_that_runs_out() -> None:
    async def story() -> None:
        async with a_village(314, {"shops": {"a": 3}}, **QUIET) as village:
            await village.change(
                "INSERT INTO robots (origin, next_at, failures, claimed_by, claimed_until) VALUES (?, ?, 0, 'dead', ?)",
                "http://127.0.0.1:9",
                "2026-03-02 08:59:30.000000",
                "2026-03-02 09:00:30.000000",
            )
            await village.register("a")
            execution = await village.house.trigger.crawl_now("a")
            await village.clock.sleep(25)
            assert asked(village) == {}
            await village.ended(execution, 300)
            await village.settled()
            await village.check()

    run_virtually(story())


def test_an_identity_that_holds_the_only_lease_gives_it_back_for_robots_txt() -> None:
    async def story() -> None:
        async with a_village(315, {"shops": {"a": 1}}, **QUIET | {"identities": 1}) as village:
            await village.register("a")
            await village.crawl("a")
            await village.check()

    run_virtually(story())
