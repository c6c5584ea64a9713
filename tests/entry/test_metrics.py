"""Metrics: what is declared is what is shown, and what is shown is what happened."""

import asyncio
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from builders import a_seller
from doors import door
from observed import Page, page_at, page_of
from sellerwatch.adapters.sql.trouble import Overtaken
from sellerwatch.domain.errors import Unavailable
from sellerwatch.domain.leadership import Leadership, Step
from sellerwatch.entry.api.metrics import watched
from sellerwatch.entry.metrics import Metrics
from sellerwatch.entry.metrics.counting import Sample
from sellerwatch.entry.metrics.declared import BY_NAME, DECLARED, Kind, page
from sellerwatch.entry.metrics.looking import KEPT_SECONDS, PATIENCE_SECONDS, Look
from sellerwatch.entry.ticker import ticker_loops
from sellerwatch.flows.lead import Led
from sellerwatch.ports.store import Unit
from sellerwatch.wiring import House
from simulation.village import NEVER, Village, a_village
from simulation.virtual import VirtualClock, run_virtually

ROOT = Path(__file__).parents[2]
PUBLIC = """
    requests_total{kind,status}, request_seconds{kind}, leases_total{result}, lease_wait_seconds, identities{status},
    identity_budget_remaining, breaker_state{scope}, tasks_total{kind,result}, tasks_open{status}, queue_depth,
    queue_oldest_seconds, dead_letters, raws{status}, products{status}, changes_total{kind}, outbox{box,status},
    outbox_oldest_seconds{box}, deliveries_total{status}, delivery_lag_seconds, staleness_seconds,
    sweep_found_total{sweep}, executions_total{status}, schedule_delay_seconds
"""
"""The names and labels that dashboards elsewhere rely on."""
QUIET = {"sweep_seconds": NEVER, "site_requests_per_second": 100, "identities": 40}


def promised() -> dict[str, set[str]]:
    found = {}
    for one in PUBLIC.replace("\n", " ").split(", "):
        name, _, labels = one.strip().partition("{")
        found[name] = set(filter(None, labels.rstrip("}").split(",")))
    return found


def test_the_public_names_and_labels_are_declared_as_they_are() -> None:
    declared = {one.name: set(one.labels) for one in DECLARED}
    assert promised().items() <= declared.items()


def test_the_page_of_metrics_is_made_from_the_declarations() -> None:
    assert (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8") == page()


async def test_every_declared_name_is_shown_live_with_its_kind_and_labels(tmp_path: Path) -> None:
    async with door(tmp_path) as at:
        seen = await page_at(at)
        small = await page_at(at, watched(at.house, Metrics()))
    for shown in (seen, small):
        for one in DECLARED:
            family = shown.families[one.series.removesuffix("_total")]
            assert (family.type, family.documentation) == (one.kind.value, one.about)
            labels = shown.labels[one.series + ("_count" if one.kind is Kind.HISTOGRAM else "")]
            assert labels == set(one.labels), one.name
        assert set(shown.families) == {one.series.removesuffix("_total") for one in DECLARED}


def test_what_nobody_knows_makes_no_series() -> None:
    metrics = Metrics()
    before = len(Page(metrics.page().decode()).series)
    for status in range(600, 700):
        metrics.request("DETAIL", str(status), 0.1)
        metrics.delivery(str(status), None)
    seen = Page(metrics.page().decode())
    assert len(seen.series) == before + 2
    assert seen.of("sellerwatch_requests_total", kind="DETAIL", status="other") == 100


def test_two_houses_in_one_process_count_each_for_themselves() -> None:
    one, other = Metrics(), Metrics()
    one.task("DETAIL", "SUCCESS")
    assert Page(one.page().decode()).of("sellerwatch_tasks_total") == 1
    assert Page(other.page().decode()).of("sellerwatch_tasks_total") == 0


@pytest.mark.parametrize("rates", [{}, {"error": 15, "html": 8, "drop": 6}], ids=["all well", "with failures"])
def test_after_a_crawl_the_figures_are_those_of_the_database_and_of_the_marketplace(rates: dict[str, float]) -> None:
    async def story() -> tuple[Village, Page]:
        metrics = Metrics()
        conditions = {"shops": {"a": 30, "b": 12}, "rates": rates, "receiver_rates": {"error": 10} if rates else {}}
        async with a_village(201, conditions, meter=metrics, **QUIET | {"sweep_seconds": 60}) as village:
            await village.register("a", "b")
            for seller in ("a", "b"):
                await village.crawl(seller, 40_000)
            seen = await page_of(village.house, metrics)
            await agree(village, seen)
            if rates:
                assert seen.of("sellerwatch_tasks_total", result="RETRY") > 0
            return village, seen

    run_virtually(story())


async def agree(village: Village, seen: Page) -> None:
    """Everything that was counted, against who knows it better."""

    async def counts(statement: str) -> dict[str, float]:
        return dict(await village.rows(statement))

    asked = village.sandbox.stats()["requests"]
    for kind, by_status in asked["byKind"].items():
        if kind in BY_NAME["requests_total"].labels["kind"]:
            assert seen.of("sellerwatch_requests_total", kind=kind) == sum(by_status.values()), kind
            assert seen.of("sellerwatch_request_seconds_count", kind=kind) == sum(by_status.values())
            assert seen.of("sellerwatch_requests_total", kind=kind, status="200") == by_status.get("200", 0)
    ended = await counts("SELECT status, count(*) FROM crawler_tasks GROUP BY 1")
    told = seen.by("sellerwatch_tasks_total", "result")
    assert {result: count for result, count in told.items() if result != "RETRY"} == ended
    kinds = Counter(
        kind for kinds in await village.column("SELECT kinds FROM product_changes") for kind in kinds.split(",")
    )
    assert seen.by("sellerwatch_changes_total", "kind") == kinds
    assert seen.by("sellerwatch_products", "status") == await counts("SELECT status, count(*) FROM products GROUP BY 1")
    raws = await counts("SELECT status, count(*) FROM product_raw_data GROUP BY 1")
    assert seen.by("sellerwatch_raws", "status") == raws
    for box, table in (
        ("product", "product_outbox"),
        ("task", "crawler_task_outbox"),
        ("scheduler", "scheduler_outbox"),
    ):
        rows = await counts(f"SELECT status, count(*) FROM {table} GROUP BY 1")
        assert {status: seen.of("sellerwatch_outbox", box=box, status=status) for status in rows} == rows
        assert seen.of("sellerwatch_outbox", box=box) == sum(rows.values())
    executions = await counts("SELECT status, count(*) FROM crawling_schedule_executions GROUP BY 1")
    begun = {"STARTED": sum(executions.values())}
    assert seen.by("sellerwatch_executions_total", "status") == executions | begun
    assert seen.of("sellerwatch_deliveries_total", status="200") == village.sandbox.receiver.shown()["deliveries"]
    assert seen.of("sellerwatch_delivery_lag_seconds_count") == seen.of("sellerwatch_deliveries_total", status="200")
    # From the answer, which was there before the change was noticed and its event written.
    [lag] = await village.column(
        "SELECT sum(julianday(sent_at) - julianday(seen_at)) * 86400 FROM product_outbox WHERE error_message IS NULL"
    )
    assert seen.of("sellerwatch_delivery_lag_seconds_sum") == pytest.approx(lag, abs=0.1)
    leases = await village.column("SELECT sum(usage_count) FROM pool_identities")
    kept = seen.of("sellerwatch_leases_total", result="GRANTED") - seen.of(
        "sellerwatch_leases_total", result="CANCELLED"
    )
    assert kept == leases[0]
    figures = await village.house.pool.figures()
    assert seen.of("sellerwatch_identity_budget_remaining") == figures.remaining_requests
    assert seen.of("sellerwatch_identities") == figures.total
    [oldest] = await village.column("SELECT min(minishop_at) FROM products WHERE status = 'ACTIVE'")
    age = seen.of("sellerwatch_staleness_seconds")
    assert (village.clock.now() - timedelta(seconds=age)).strftime("%F %T") == oldest[:19]


def test_no_label_names_an_item_a_task_an_identity_or_a_seller() -> None:
    async def story() -> None:
        metrics = Metrics()
        async with a_village(202, {"shops": {"atelier": 9}, "rates": {"error": 10}}, meter=metrics, **QUIET) as village:
            await village.register("atelier")
            await village.crawl("atelier", 20_000)
            seen = await page_of(village.house, metrics)
            named = {"atelier", *await village.column("SELECT user_agent_id FROM user_agent_pool")}
            named |= {*await village.column("SELECT task_id FROM crawler_tasks")}
            named |= {*await village.column("SELECT execution_id FROM crawling_schedule_executions")}
            named |= {str(number) for number in await village.column("SELECT item_no FROM products")}
            known = {value for one in DECLARED for values in one.labels.values() for value in values}
            for label, values in seen.values.items():
                assert not values & named
                if label not in {"le", "status"}:
                    assert values <= known, label
            assert len(seen.series) < 500

    run_virtually(story())


def test_lesson_49_in_an_outage_the_success_rate_shown_is_not_a_hundred_percent() -> None:
    async def story() -> None:
        metrics = Metrics()
        async with a_village(203, {"shops": {"a": 6}}, meter=metrics, **QUIET) as village:
            await village.register("a")
            execution = await village.house.trigger.crawl_now("a")

            async def has_begun() -> bool:
                return bool(await village.column("SELECT task_id FROM crawler_tasks WHERE item_no > 0 LIMIT 1"))

            await village.until(has_begun, 60, "no item task", 0.01)
            before = await page_of(village.house, metrics)
            village.sandbox.market.faults.set_rates({"html": 100})
            await village.ended(execution)
            seen = await page_of(village.house, metrics)
            name = "sellerwatch_tasks_total"
            succeeded = seen.of(name, result="SUCCESS") - before.of(name, result="SUCCESS")
            failed = seen.of(name, result="FAILED") - before.of(name, result="FAILED")
            ended = await village.execution(execution.execution_id)
            assert failed == ended.failed_tasks > 0
            assert succeeded / (succeeded + failed) < 0.5
            # A page of HTML with status 200 is an answer of the marketplace, and no success of the task.
            assert seen.of("sellerwatch_requests_total", status="200") > before.of(
                "sellerwatch_requests_total", status="200"
            )

    run_virtually(story())


def test_what_is_cancelled_is_counted_as_failed_and_once() -> None:
    async def story() -> None:
        metrics = Metrics()
        async with a_village(204, {"shops": {"a": 20}}, meter=metrics, **QUIET | {"identities": 0}) as village:
            await village.register("a")
            execution = await village.house.trigger.crawl_now("a")
            await village.clock.sleep(30)
            await village.house.repair.cancel_execution(execution.execution_id)
            seen = await page_of(village.house, metrics)
            assert seen.by("sellerwatch_executions_total", "status") == {"STARTED": 1, "FAILED": 1}
            assert seen.of("sellerwatch_tasks_total", result="SUCCESS") == 0
            assert seen.of("sellerwatch_breaker_state", scope="POOL") == 2

    run_virtually(story())


async def away(*_: object) -> Any:
    raise Unavailable("nobody answers")


@pytest.mark.parametrize(
    ("component", "lost"),
    [("pool", "sellerwatch_identities"), ("queue", "sellerwatch_queue_depth"), ("database", "sellerwatch_tasks_open")],
)
async def test_what_is_away_is_left_out_and_says_so_and_is_back_by_itself(
    tmp_path: Path, component: str, lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with door(tmp_path) as at:
        where = {"pool": (at.house.pool, "figures"), "queue": (at.house.queue, "depth")}
        owner, name = where.get(component, (at.house.gauges, "backlog"))
        with monkeypatch.context() as broken:
            broken.setattr(owner, name, away)
            seen = await page_at(at)
        assert seen.of("sellerwatch_up", component=component) == 0
        assert sum(seen.by("sellerwatch_up", "component").values()) == 2
        assert not [series for series, _ in seen.series if series == lost]
        at.clock.ahead += timedelta(seconds=KEPT_SECONDS)
        seen = await page_at(at)
        assert seen.of("sellerwatch_up", component=component) == 1
        assert [series for series, _ in seen.series if series == lost]


def test_a_transaction_that_is_done_again_is_counted_by_why() -> None:
    metrics, tries = Metrics(), []

    def work(unit: Unit) -> bool:
        tries.append(unit)
        added = unit.sellers.add(a_seller())
        if len(tries) < 3:
            raise Overtaken
        return added

    async def story() -> None:
        async with a_village(66, {"shops": {}}, is_running=False, meter=metrics) as village:
            assert await village.house.store.transact(work)

    run_virtually(story())
    assert Page(metrics.page().decode()).by("sellerwatch_transactions_again_total", "why") == {"deadlock": 2}


def test_however_many_ask_there_is_one_look_in_five_seconds() -> None:
    async def story() -> None:
        clock, looks = VirtualClock(), Dear(VirtualClock(), 0.0)
        look = Look("queue", looks.ask, clock)
        await asyncio.gather(*(look.seen() for _ in range(50)))
        assert looks.taken == 1
        await clock.sleep(KEPT_SECONDS)
        assert (await look.seen())[0].value == 2

    run_virtually(story())


def test_nobody_waits_longer_than_two_seconds_for_a_dear_look_and_it_is_taken_seldom() -> None:
    """What was seen before is shown meanwhile."""

    async def story() -> None:
        clock = VirtualClock()
        looks = Dear(clock, 4.0)
        look = Look("stock", looks.ask, clock)
        began = clock.monotonic()
        assert await look.seen() == []
        assert clock.monotonic() - began == PATIENCE_SECONDS
        await clock.sleep(100)
        assert (await look.seen())[0].value == looks.taken == 1, "four seconds of looking are not spent every five"
        await clock.sleep(110)
        assert (await look.seen())[0].value == 1
        await clock.sleep(3)
        assert (await look.seen())[0].value == looks.taken == 2

    run_virtually(story())


class Dear:
    """A look that takes its time; it sees how often it was taken."""

    def __init__(self, clock: VirtualClock, seconds: float) -> None:
        self.clock, self.seconds, self.taken = clock, seconds, 0

    async def ask(self) -> list[Sample]:
        self.taken += 1
        await self.clock.sleep(self.seconds)
        return [Sample("queue_depth", self.taken)]


async def test_the_gauges_cost_the_same_statements_however_much_there_is(tmp_path: Path) -> None:
    async with door(tmp_path) as at:
        few = await statements(at.house)
        await at.house.store.transact(lambda unit: [unit.sellers.add(a_seller(f"shop-{n}")) for n in range(40)])
        assert len(await statements(at.house)) == len(few) < 40


async def statements(house: House) -> list[tuple[str, Any]]:
    told: list[tuple[str, Any]] = []

    def hear(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        told.append((statement, parameters))

    event.listen(house.database.engine, "before_cursor_execute", hear)
    try:
        await house.gauges.backlog()
        await house.gauges.stock()
    finally:
        event.remove(house.database.engine, "before_cursor_execute", hear)
    return told


async def test_the_gauges_read_indexes_and_open_no_row_of_a_large_table(tmp_path: Path) -> None:
    async with door(tmp_path) as at:
        asked = [one for one in await statements(at.house) if one[0].startswith("SELECT")]
        raw = at.house.database.engine.raw_connection()
        for statement, parameters in asked:
            steps = [row[3] for row in raw.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)]  # type: ignore[attr-defined]
            for step in steps:
                if any(
                    small in step for small in ("alerts", "circuit_breaker_state", "TEMP B-TREE", "SCALAR SUBQUERY")
                ):
                    continue
                assert "COVERING INDEX" in step, f"{statement}: {step}"
        raw.close()


class Passing:
    """A lead that takes one step."""

    def __init__(self, step: Step) -> None:
        self.step = step

    async def run(self) -> Led:
        return Led(self.step, Leadership())


def test_each_passing_of_the_pools_lead_is_counted() -> None:
    metrics = Metrics()

    async def story() -> None:
        async with a_village(67, {"shops": {}}, is_running=False, meter=metrics) as village:
            for step in (Step.NOTHING, Step.RENEW, Step.GIVE_UP, Step.BEGIN_SQL):
                house = replace(village.house, lead=Passing(step))  # type: ignore[arg-type]
                [loop] = [one for one in ticker_loops(house) if one.name == "lead"]
                await loop.run()

    run_virtually(story())
    passed = {"GIVE_UP": 1, "BEGIN_SQL": 1}
    assert Page(metrics.page().decode()).by("sellerwatch_pool_leads_total", "step") == passed
