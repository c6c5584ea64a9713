"""What the task outbox says of a task's message when queue, relay and worker do not keep step."""

from collections.abc import Sequence

from sellerwatch.ports.queue import Outgoing
from sellerwatch.sandbox.faults import Fault
from simulation.village import NEVER, a_village
from simulation.virtual import run_virtually

QUIET = {"sweep_seconds": NEVER, "site_requests_per_second": 5, "identities": 20}


def test_a_task_that_failed_before_its_message_was_marked_is_published_again_and_not_left_without_one() -> None:
    async def story() -> None:
        async with a_village(93, {"shops": {"a": 3}}, **QUIET) as village:
            send = village.house.queue.send

            async def slow_to_answer(messages: Sequence[Outgoing]) -> list[str | None]:
                outcomes = await send(messages)
                await village.clock.sleep(3)
                return outcomes

            village.house.queue.send = slow_to_answer  # type: ignore[method-assign]
            village.sandbox.stage("OPTION", Fault(name="html"), times=3)
            await village.register("a")
            # No sweep runs: nobody saves what would be PUBLISHED without a message.
            await village.crawl("a", 600)
            assert await village.column("SELECT max(abandon_count) FROM crawler_tasks") == [0]
            assert await village.column("SELECT sum(retry_count) FROM crawler_tasks WHERE task_type = 'OPTION'") == [3]
            await village.check()

    run_virtually(story())


def test_what_the_queue_refuses_for_good_is_seen_as_failed_and_neither_revived_nor_sent() -> None:
    async def story() -> None:
        async with a_village(47, {"shops": {"a": 6}}, **QUIET) as village:

            async def refused(messages: Sequence[Outgoing]) -> list[str | None]:
                return ["its body is refused"] * len(messages)

            village.house.queue.send = refused  # type: ignore[method-assign]
            await village.register("a")
            execution = await village.house.trigger.crawl_now("a")
            await village.ended(execution)
            box = "SELECT status, publish_count, sent_at, error_message FROM crawler_task_outbox"
            assert await village.rows(box) == [("FAILED", 0, None, "its body is refused")]
            assert await village.column("SELECT status FROM crawler_tasks") == ["FAILED"]
            assert await village.outside.heal.failed_task_outbox() == 0
            assert await village.rows(box) == [("FAILED", 0, None, "its body is refused")]

    run_virtually(story())


def test_each_worker_that_vanished_counts_whoever_finds_the_task_and_the_last_ends_it() -> None:
    async def story() -> None:
        settings = QUIET | {"task_abandons": 4}
        async with a_village(48, {"shops": {"a": 1}}, is_running=False, **settings) as village:
            await village.house.load_pool()
            await village.register("a")
            execution = await village.house.trigger.crawl_now("a")
            await village.outside.plan.run()
            begun = 0
            for _ in range(20):
                await village.outside.relay.run()
                # Found once by its message that comes again, and once by the sweeps.
                for _ in range(2):
                    begun += len(await village.outside.crawl.take(5))
                    await village.clock.sleep(31)
                    await village.house.pool.expire()
                await village.outside.heal.stuck_tasks()
                await village.outside.heal.dead_letters()
            assert await village.rows("SELECT status, abandon_count FROM crawler_tasks") == [("FAILED", 5)]
            assert begun == 5
            assert not (await village.execution(execution.execution_id)).is_open

    run_virtually(story())
