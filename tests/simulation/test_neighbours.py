"""Two houses on one database: processes of one system. What one does the other does not do again."""

from collections import Counter
from pathlib import Path

from simulation.village import NEVER, a_village, on_file
from simulation.virtual import run_virtually

SHOPS = {"a": 15, "b": 10, "c": 5}
SETTINGS = {"sweep_seconds": 30, "site_requests_per_second": 4, "identities": 40, "concurrency": 3}


def test_two_houses_share_the_work_and_nothing_is_done_twice(tmp_path: Path) -> None:
    async def story() -> None:
        conditions = {"shops": SHOPS, "latency_ms": 900}
        async with a_village(61, conditions, is_running=False, database_url=on_file(tmp_path), **SETTINGS) as village:
            first, second = village.raise_house(2.0), village.raise_house(2.0)
            outs = [village.move_in(first), village.move_in(second)]
            await village.register(*SHOPS)
            # Whoever comes first begins the crawl; all others are answered with it.
            triggers = [first.trigger, second.trigger]
            opened = [await trigger.open(seller_id, "one") for trigger in triggers for seller_id in SHOPS]
            assert sum(one.is_new for one in opened) == len(SHOPS)
            for one in opened:
                assert one.execution is not None
                await village.ended(one.execution)
            await village.settled()
            village.sandbox.mutate(0.5)
            for seller_id in SHOPS:
                await village.crawl(seller_id)
            await village.check()
            assert village.sandbox.receiver.counts["repeats"] == 0
            # Every document was asked for once in each of the two crawls, by one house or the other.
            traces = [house.transport.trace for house in (first, second)]  # type: ignore[attr-defined]
            asked = Counter(line.split(" ")[-1] for trace in traces for line in trace)
            items = {url: count for url, count in asked.items() if "/item/" in url or "/options" in url}
            assert set(items.values()) == {2}
            assert min(map(len, traces)) > 10
            overlapping = await village.rows(
                "SELECT 1 FROM crawl_executions x JOIN crawl_executions y ON x.task_id = y.task_id AND x.id < y.id"
                " AND y.started_at < x.completed_at"
            )
            assert overlapping == []
            for move_out in outs:
                await move_out()

    run_virtually(story())


def test_lesson_11_a_house_that_is_started_again_is_somebody_else() -> None:
    async def story() -> None:
        async with a_village(62, {"shops": {"a": 2}}, is_running=False) as village:
            assert len({village.house.owner, village.raise_house().owner, village.raise_house().owner}) == 3

    run_virtually(story())


def test_lesson_60_what_is_in_flight_when_a_house_stops_is_finished_and_the_rest_is_handed_back(tmp_path: Path) -> None:
    async def story() -> None:
        conditions = {"shops": {"a": 20}, "latency_ms": 700}
        settings = SETTINGS | {"sweep_seconds": NEVER, "database_url": on_file(tmp_path)}
        async with a_village(63, conditions, is_running=False, **settings) as village:
            first, second = village.raise_house(), village.raise_house()
            move_out = village.move_in(first)
            await village.register("a")
            execution = await first.trigger.crawl_now("a")
            await village.clock.sleep(6)
            assert await village.column("SELECT count(*) FROM crawler_tasks WHERE status = 'RUNNING'") != [0]
            stopped_at = village.clock.now()
            await move_out()
            assert (village.clock.now() - stopped_at).total_seconds() < 25
            assert await village.column("SELECT count(*) FROM crawler_tasks WHERE status = 'RUNNING'") == [0]
            assert await village.column("SELECT count(*) FROM crawl_executions WHERE status = 'RUNNING'") == [0]
            assert (await first.pool.figures()).leased == 0
            assert await village.column("SELECT owner FROM processes") == []
            # No sweep is needed to go on.
            move_out = village.move_in(second)
            await village.ended(execution)
            await village.settled()
            await village.check()
            assert await village.column("SELECT max(retry_count + abandon_count) FROM crawler_tasks") == [0]
            await move_out()

    run_virtually(story())
