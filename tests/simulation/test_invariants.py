"""The invariants of 03 §10, end to end: a whole house against everything that can go wrong outside it.

Each story ends the same way: everything has come to its end, our products are what the marketplace holds, the product
server's copies are ours, the counters are the tasks, and the marketplace counted no request too many.
"""

from collections.abc import Callable

import pytest

from sellerwatch.domain.executions import ExecutionStatus
from sellerwatch.sandbox.faults import Fault
from simulation.village import Village, a_village
from simulation.virtual import run_virtually

QUICK = {"sweep_seconds": 60, "site_requests_per_second": 100}


async def told_of(village: Village, item_no: int) -> list[int]:
    return await village.column(
        "SELECT o.version FROM product_outbox o JOIN products p USING (product_id) "
        "WHERE p.item_no = ? ORDER BY o.version",
        item_no,
    )


@pytest.mark.parametrize(
    "rates",
    [
        {"html": 10},
        {"truncate": 10},
        {"empty": 10},
        {"cut": 5, "lost": 5},
        {"drop": 10},
        {"error": 15},
        {"throttle": 4},
        {"unauthorized": 5},
        {"redirect": 10},
        {"wrong_item": 10},
        {"slow": 5},
        {"html": 3, "truncate": 3, "error": 3, "drop": 3, "throttle": 1, "unauthorized": 2, "wrong_item": 2, "slow": 2},
    ],
    ids="+".join,
)
def test_whatever_the_marketplace_answers_now_and_then_the_products_become_true(rates: dict[str, float]) -> None:
    async def story() -> None:
        async with a_village(11, {"shops": {"a": 25}, "rates": rates}, **QUICK, task_retries=8) as village:
            await village.register("a")
            execution = await village.crawl("a", 86400)
            assert execution.status is ExecutionStatus.COMPLETED
            assert execution.failed_tasks == 0
            await village.check()

    run_virtually(story())


@pytest.mark.parametrize("fault", ["hollow", "bad_price"])
def test_a_document_that_cannot_be_understood_costs_its_product_one_crawl_and_nobody_else_anything(fault: str) -> None:
    async def story() -> None:
        async with a_village(11, {"shops": {"a": 25}}, **QUICK) as village:
            await village.register("a")
            spoilt = [item_no for item_no, _ in village.sandbox.truths("a")][3]
            detail = f"/mustit-api/facade-api/v1/item/{spoilt}/detail/top"
            village.sandbox.stage(detail, Fault(name=fault))
            execution = await village.crawl("a", 86400)
            assert execution.status is ExecutionStatus.COMPLETED
            assert list(await village.wrong_products("a")) == [spoilt]
            assert await village.rows(
                "SELECT item_no, status, data_type FROM product_raw_data WHERE status = 'FAILED'"
            ) == [(spoilt, "FAILED", "DETAIL")]
            await village.crawl("a")
            await village.check()
            assert await told_of(village, spoilt) == [1]

    run_virtually(story())


def test_a_storm_of_429s_passes_and_nobody_is_lost() -> None:
    """I3, I18: every identity may be suspended by it; all come back, and none asks before its time."""

    async def story() -> None:
        async with a_village(12, {"shops": {"a": 40}}, **QUICK) as village:
            await village.register("a")
            village.sandbox.market.faults.set_rates({"throttle": 100})
            execution = await village.house.trigger.crawl_now("a")
            await village.clock.sleep(3600)
            village.sandbox.market.faults.set_rates({})
            await village.ended(execution, 6 * 3600)
            await village.settled()
            assert (await village.execution(execution.execution_id)).status is ExecutionStatus.COMPLETED
            await village.check()

    run_virtually(story())


@pytest.mark.parametrize("outage", ["error", "drop", "slow", "throttle"])
def test_a_marketplace_away_for_an_hour_in_the_middle_of_a_crawl_costs_time_and_nothing_else(outage: str) -> None:
    """I3, I11: work resumes by itself, no task fails for it, no identity is blocked or stranded."""

    async def story() -> None:
        async with a_village(13, {"shops": {"a": 60}, "latency_ms": 100}, sweep_seconds=60, task_retries=8) as village:
            await village.register("a")
            execution = await village.house.trigger.crawl_now("a")
            await village.clock.sleep(8)
            village.sandbox.market.faults.set_rates({outage: 100})
            await village.clock.sleep(3600)
            village.sandbox.market.faults.set_rates({})
            await village.ended(execution, 12 * 3600)
            await village.settled()
            ended = await village.execution(execution.execution_id)
            assert (ended.status, ended.failed_tasks) == (ExecutionStatus.COMPLETED, 0)
            await village.check()
            figures = await village.house.pool.figures()
            assert (figures.blocked, figures.available >= 80) == (0, True)
            # Each turn of a breaker is a row and a line of the log.
            turns = await village.rows(
                "SELECT scope, from_state, to_state FROM circuit_breaker_event ORDER BY event_timestamp, event_id"
            )
            logged = [(one["scope"], one["was"], one["now"]) for one in village.log if one["event"] == "breaker"]
            assert sorted(logged) == sorted(turns)
            # What is slow is answered: nothing opens. Errors that ask to wait are waited for, so only a few come.
            expected = {"slow": set(), "error": {"IDENTITY"}}.get(outage, {"SITE", "POOL"})
            opened = {scope for scope, was, now in turns if (was, now) == ("CLOSED", "OPEN")}
            assert opened & expected if expected else not turns

    run_virtually(story())


def test_the_pool_empty_for_an_hour_costs_no_retry_no_receive_and_no_task() -> None:
    """I11, I15."""

    async def story() -> None:
        async with a_village(14, {"shops": {"a": 30}}, **QUICK) as village:
            await village.register("a")
            execution = await village.house.trigger.crawl_now("a")
            await village.clock.sleep(1.5)
            for (agent_id,) in await village.rows("SELECT agent_id FROM user_agent_pool"):
                await village.house.identities.suspend(agent_id)
            await village.clock.sleep(1800)
            asked = len(village.transport.trace)
            await village.clock.sleep(1700)
            assert len(village.transport.trace) == asked
            await village.ended(execution, 6 * 3600)
            await village.settled()
            assert await village.column("SELECT max(retry_count + abandon_count) FROM crawler_tasks") == [0]
            await village.check()

    run_virtually(story())


def test_a_house_whose_every_transaction_is_tried_twice_comes_to_the_same() -> None:
    """I6: a deadlock or a lock wait takes a transaction back and it is run again from its start."""

    class TakenBack(Exception):
        pass

    async def story(*, is_twice: bool) -> tuple[object, ...]:
        async with a_village(15, {"shops": {"a": 30}, "rates": {"html": 5}}, is_running=False, **QUICK) as village:
            store = village.house.store
            transact = store.transact

            async def twice(work: Callable[..., object]) -> object:
                def taken_back(unit: object) -> None:
                    work(unit)
                    raise TakenBack

                with pytest.raises(TakenBack):
                    await transact(taken_back)
                return await transact(work)

            if is_twice:
                store.transact = twice  # type: ignore[method-assign, assignment]
            move_out = village.move_in(village.house)
            await village.register("a")
            for _ in range(3):
                await village.crawl("a")
                village.sandbox.mutate(0.2)
                village.sandbox.remove_products("a", 1)
                # The product server is away, and refuses: rows wait, retry and are given up.
                village.sandbox.receiver.faults.set_rates({"error": 60})
            village.sandbox.receiver.faults.set_rates({})
            await village.crawl("a")
            await village.check()
            await move_out()
            return tuple(
                await village.rows(
                    "SELECT item_no, version, kinds, fields FROM product_changes ORDER BY item_no, version"
                )
            )

    assert run_virtually(story(is_twice=True)) == run_virtually(story(is_twice=False))
