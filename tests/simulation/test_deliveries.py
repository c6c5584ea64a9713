"""What the product server is told, whatever it does (I2): every change at least once, in order, and its copy is ours."""

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import pytest

from sellerwatch.ports.outside import ProductServer, Receipt
from sellerwatch.sandbox.faults import Fault
from sellerwatch.sandbox.truth import agrees
from simulation.village import Village, a_village, on_file
from simulation.virtual import run_virtually

T = TypeVar("T")
QUICK = {"sweep_seconds": 60, "site_requests_per_second": 100, "identities": 60}


async def changed_often(village: Village, rounds: int) -> None:
    """Crawls with changes in between, whatever becomes of their delivery."""
    for _ in range(rounds):
        execution = await village.house.trigger.crawl_now("a")
        await village.ended(execution)
        await village.clock.sleep(60)
        village.sandbox.mutate(0.3)
    await village.ended(await village.house.trigger.crawl_now("a"))


@pytest.mark.parametrize("faults", [{"error": 30}, {"drop": 30}, {"lost": 30}, {"slow": 30}, {"throttle": 30}])
def test_a_product_server_that_fails_now_and_then_has_everything_in_the_end(faults: dict[str, float]) -> None:
    async def story() -> None:
        conditions = {"shops": {"a": 20}, "receiver_rates": faults, "receiver_latency_ms": 200}
        async with a_village(31, conditions, **QUICK, product_outbox_retries=12) as village:
            await village.register("a")
            await changed_often(village, 4)
            await village.settled(12 * 3600)
            await village.check()

    run_virtually(story())


@pytest.mark.parametrize("outage", ["error", "drop", "lost"])
def test_a_product_server_away_for_an_hour_costs_no_row_its_retries(outage: str) -> None:
    async def story() -> None:
        async with a_village(32, {"shops": {"a": 20}}, **QUICK) as village:
            await village.register("a")
            village.sandbox.receiver.faults.set_rates({outage: 100})
            execution = await village.house.trigger.crawl_now("a")
            await village.ended(execution)
            await village.clock.sleep(3600)
            assert "product_server_away" in await village.column("SELECT name FROM alerts WHERE cleared_at IS NULL")
            asked = village.sandbox.receiver.counts["requests"]
            assert asked < 120
            opened = [one for one in village.log if one["event"] == "breaker" and one["scope"] == "PRODUCT_SERVER"]
            assert (opened[0]["was"], opened[0]["now"]) == ("CLOSED", "OPEN")
            village.sandbox.receiver.faults.set_rates({})
            await village.settled()
            await village.check()
            assert "product_server_away" not in await village.column("SELECT name FROM alerts WHERE cleared_at IS NULL")

    run_virtually(story())


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 413, 415])
def test_a_final_answer_gives_the_row_up_at_once_with_its_reason_and_an_alert(status: int) -> None:
    async def story() -> None:
        async with a_village(33, {"shops": {"a": 3}}, **QUICK) as village:
            await village.register("a")
            village.sandbox.stage("PRODUCTS", Fault(name="answer", status=status))
            await village.crawl("a")
            [(outbox_id, error, tries)] = await village.rows(
                "SELECT outbox_id, error_message, retry_count FROM product_outbox WHERE status = 'FAILED'"
            )
            assert (error, tries) == (f"HTTP {status}", 0)
            await village.clock.sleep(600)
            assert await village.column("SELECT cleared_at FROM alerts WHERE name = 'delivery_failed'") == [None]
            # An operator's word is enough.
            await village.house.repair.retry([outbox_id])
            await village.settled()
            await village.check()

    run_virtually(story())


def test_a_row_that_was_given_up_holds_up_no_other_product_and_not_the_next_version_of_its_own() -> None:
    async def story() -> None:
        async with a_village(34, {"shops": {"a": 5}}, **QUICK) as village:
            await village.register("a")
            village.sandbox.stage("PRODUCTS", Fault(name="answer", status=400))
            await village.crawl("a")
            [item_no] = await village.column(
                "SELECT item_no FROM products JOIN product_outbox USING (product_id) WHERE product_outbox.status = 'FAILED'"
            )
            village.sandbox.change(item_no, "price")
            await village.crawl("a")
            assert await village.wrong_copies() == {}

    run_virtually(story())


def test_lesson_43_a_change_that_comes_while_an_earlier_one_is_being_sent_is_sent_by_itself() -> None:
    async def story() -> None:
        async with a_village(35, {"shops": {"a": 6}}, **QUICK) as village:
            await village.register("a")
            await village.crawl("a")
            item_no = next(village.sandbox.truths("a"))[0]
            village.sandbox.change(item_no, "price", seed=1)
            # Version 2 is under way for longer than the next crawl takes.
            village.sandbox.stage("PRODUCTS", Fault(name="slow", seconds=40))
            await village.ended(await village.house.trigger.crawl_now("a"))
            await village.clock.sleep(2)
            village.sandbox.change(item_no, "price", seed=2)
            await village.ended(await village.house.trigger.crawl_now("a"))
            await village.settled()
            await village.check()
            rows = await village.rows(
                "SELECT o.version, o.status, o.error_message FROM product_outbox o JOIN products USING (product_id) "
                "WHERE item_no = ? ORDER BY o.version",
                item_no,
            )
            assert rows == [(1, "COMPLETED", None), (2, "COMPLETED", None), (3, "COMPLETED", None)]
            assert village.sandbox.receiver.versions()[item_no] == 3

    run_virtually(story())


def test_after_a_change_of_some_products_exactly_those_have_a_new_version_with_the_right_fields() -> None:
    """What issue 2 must show: old and new, no other product, each delivered once."""

    async def story() -> None:
        async with a_village(36, {"shops": {"a": 150, "b": 60}}, **QUICK | {"identities": 100}) as village:
            await village.register("a", "b")
            await village.crawl("a")
            await village.crawl("b")
            before = village.sandbox.receiver.shown()
            account = village.sandbox.mutate(0.03)
            wanted: dict[int, dict[str, tuple[object, object]]] = {}
            for one in account:
                wanted.setdefault(one["itemNo"], {})[one["field"]] = (one["old"], one["new"])
            await village.crawl("a")
            await village.crawl("b")
            await village.check()
            assert await village.rows("SELECT item_no FROM products WHERE version != 1 ORDER BY item_no") == [
                (item_no,) for item_no in sorted(wanted)
            ]
            for item_no, fields in wanted.items():
                event = village.sandbox.receiver.copy(item_no) or {}
                told = {one["field"]: (one["old"], one["new"]) for one in event["changes"]}  # type: ignore[attr-defined]
                assert told.keys() == fields.keys()
                # Ours may say more of an option than the sandbox's account does.
                assert agrees([list(fields[name]) for name in fields], [list(told[name]) for name in fields])
            after = village.sandbox.receiver.shown()
            assert after["deliveries"] - before["deliveries"] == len(wanted)  # type: ignore[operator]
            assert after["requests"] - before["requests"] == len(wanted)  # type: ignore[operator]

    run_virtually(story())


def test_a_second_crawl_of_what_did_not_change_writes_no_version_no_raw_and_no_delivery() -> None:
    """Lesson 42, end to end: likes, tracking, the order of keys and the way numbers are written differ each time."""

    async def story() -> None:
        async with a_village(37, {"shops": {"a": 40}, "noise": True}, **QUICK) as village:
            await village.register("a")
            await village.crawl("a")
            delivered = village.sandbox.receiver.counts["requests"]
            for _ in range(2):
                await village.crawl("a")
            await village.check()
            assert await village.column("SELECT DISTINCT version FROM products") == [1]
            assert village.sandbox.receiver.counts["requests"] == delivered

    run_virtually(story())


def test_documents_that_are_the_same_to_the_byte_are_known_by_their_hash_and_not_read_again() -> None:
    async def story() -> None:
        async with a_village(43, {"shops": {"a": 15}}, **QUICK) as village:
            await village.register("a")
            await village.crawl("a")
            reads: list[int] = []
            for owner in (village.house.absorb.reader, village.house.reader):
                for name in ("document", "verify"):
                    setattr(owner, name, counted(getattr(owner, name), reads))
            await village.crawl("a")
            assert reads == []
            village.sandbox.change(next(village.sandbox.truths("a"))[0], "price")
            await village.crawl("a")
            assert reads != []
            await village.check()

    run_virtually(story())


def counted(read: Callable[..., T], reads: list[int]) -> Callable[..., T]:
    def noted(kind: str, item_no: int, body: bytes) -> T:
        reads.append(item_no)
        return read(kind, item_no, body)

    return noted


def test_what_may_have_arrived_is_never_folded_into_a_newer_change() -> None:
    """The answers of the product server are lost: it has version 1 of all, and is told versions 2 and 3 from there."""

    async def story() -> None:
        async with a_village(38, {"shops": {"a": 12}}, **QUICK) as village:
            await village.register("a")
            village.sandbox.receiver.faults.set_rates({"lost": 100})
            for _ in range(3):
                await village.ended(await village.house.trigger.crawl_now("a"))
                await village.clock.sleep(20)
                village.sandbox.mutate(0.5)
            village.sandbox.receiver.faults.set_rates({})
            await village.ended(await village.house.trigger.crawl_now("a"))
            await village.settled()
            await village.check()

    run_virtually(story())


def test_a_delivery_cut_off_by_a_kill_is_repeated_as_it_was_though_there_is_a_newer_change_by_then() -> None:
    async def story() -> None:
        async with a_village(39, {"shops": {"a": 4}}, **QUICK) as village:
            await village.register("a")
            await village.crawl("a")
            item_no = next(village.sandbox.truths("a"))[0]
            deliver = village.house.deliver
            assert deliver is not None
            village.sandbox.change(item_no, "price", seed=1)
            # It arrives, and nothing of that comes back: the row stays claimed until its claim runs out.
            server, deliver.server = deliver.server, Unanswered(deliver.server, village)
            await village.ended(await village.house.trigger.crawl_now("a"))
            await village.clock.sleep(5)
            deliver.server = server
            assert village.sandbox.receiver.versions()[item_no] == 2
            village.sandbox.change(item_no, "price", seed=2)
            await village.ended(await village.house.trigger.crawl_now("a"))
            await village.settled()
            assert village.sandbox.receiver.versions()[item_no] == 3
            assert village.sandbox.receiver.shown()["mismatches"] == 0
            assert await village.wrong_copies() == {}

    run_virtually(story())


class Unanswered:
    """A product server that is told, and a deliverer that never hears of it."""

    def __init__(self, server: ProductServer, village: Village) -> None:
        self._server, self._village = server, village

    async def deliver(self, event_id: str, payload: Mapping[str, object], at: datetime, context: str) -> Receipt:
        await self._server.deliver(event_id, payload, at, context)
        raise RuntimeError("cut off")


@pytest.mark.parametrize("status", [408, 409, 422, 425, 429])
def test_a_row_refused_again_and_again_uses_up_its_retries_and_is_given_up_with_an_alert(status: int) -> None:
    async def story() -> None:
        async with a_village(40, {"shops": {"a": 3}}, **QUICK) as village:
            await village.register("a")
            await village.crawl("a")
            item_no = next(village.sandbox.truths("a"))[0]
            village.sandbox.change(item_no, "price")
            for _ in range(6):
                village.sandbox.stage("PRODUCTS", Fault(name="answer", status=status))
            asked = village.sandbox.receiver.counts["requests"]
            await village.crawl("a")
            rows = await village.rows("SELECT error_message, retry_count FROM product_outbox WHERE status = 'FAILED'")
            assert rows == [(f"HTTP {status}", 5)]
            assert village.sandbox.receiver.counts["requests"] == asked + 6
            assert "delivery_failed" in await village.column("SELECT name FROM alerts WHERE cleared_at IS NULL")

    run_virtually(story())


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("wish", ["7200", "Mon, 02 Mar 2026 12:00:00 GMT"])
def test_a_row_waits_as_long_as_the_product_server_asks_in_either_form(status: int, wish: str) -> None:
    async def story() -> None:
        async with a_village(41, {"shops": {"a": 1}}, **QUICK) as village:
            await village.register("a")
            village.sandbox.stage("PRODUCTS", Fault(name="answer", status=status, headers=(("Retry-After", wish),)))
            await village.ended(await village.house.trigger.crawl_now("a"))
            await village.clock.sleep(6600)
            assert village.sandbox.receiver.counts["requests"] == 1
            await village.settled()
            assert village.sandbox.receiver.counts["requests"] == 2
            await village.check()

    run_virtually(story())


def test_what_could_outlast_its_claim_is_not_begun_and_costs_nothing() -> None:
    """So that no two processes ever send versions of one product side by side."""

    async def story() -> None:
        conditions = {"shops": {"a": 40}, "receiver_latency_ms": 7000}
        async with a_village(42, conditions, **QUICK, delivery_concurrency=1) as village:
            await village.register("a")
            await village.crawl("a")
            await village.check()
            assert await village.rows("SELECT DISTINCT retry_count, error_message FROM product_outbox") == [(0, None)]
            assert village.sandbox.receiver.counts["requests"] == 40

    run_virtually(story())


def test_what_another_process_leaves_to_be_sent_is_on_its_way_within_half_a_minute(tmp_path: Path) -> None:
    async def story() -> None:
        settings = {"database_url": on_file(tmp_path), "delivery_interval": 300}
        async with a_village(77, {"shops": {"a": 2}}, is_running=False, **settings) as village:
            working = village.raise_house(2.0)
            village.move_in(working)
            await village.register("a")
            await village.crawl("a")
            asked = village.sandbox.receiver.counts["requests"]
            await village.clock.sleep(250)
            resent = [done async for done in village.house.resend.everything()][-1]
            await village.clock.sleep(31)
            assert resent.sent == 2
            assert village.sandbox.receiver.counts["requests"] == asked + 2

    run_virtually(story())
