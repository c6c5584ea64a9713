"""Of each sweep a story in a town in which it, and nothing else, saves the day: without it the day is lost."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import pytest

from sellerwatch.adapters.sql import audit
from sellerwatch.entry import ticker
from sellerwatch.entry.up import run_up
from sellerwatch.settings import SWEEPS
from sellerwatch.simulation.place import Outcome
from sellerwatch.simulation.town import lived
from sellerwatch.wiring import House
from simulation.mistakes import QUIET

LATE = "I3 I4 lateness"
OPEN_TASKS = "(SELECT task_id FROM crawler_tasks WHERE status IN ('WAITING', 'PUBLISHED'))"
UNRECEIVED = "state = 'READY' AND receipt IS NULL"
TRIES = 3000
CALM = replace(QUIET, shops={"shop1": 6}, identities=8)
Strike = Callable[[House], Awaitable[bool]]
"""What befalls the house; whether it could yet."""


def struck(*statements: str) -> Strike:
    """These, in one moment; the first of them has to meet something."""

    async def strike(house: House) -> bool:
        def work(connection: object) -> bool:
            met = connection.exec_driver_sql(statements[0]).rowcount  # type: ignore[attr-defined]
            # What is struck is no move of the house's: the eye that watches these has not seen it.
            for statement in (*statements[1:], "DELETE FROM audit_moves") if met else ():
                connection.exec_driver_sql(statement)  # type: ignore[attr-defined]
            return bool(met)

        return await house.database.write(work)

    return strike


async def suspend_most(house: House) -> bool:
    if not (await house.pool.outlook()).free:
        return False
    for agent_id in range(1, CALM.identities):
        await house.pool.suspend(agent_id)
    return True


async def nothing(_: House) -> bool:
    return True


@dataclass(frozen=True)
class Story:
    strike: Strike
    lost: str = LATE
    """The invariant that is violated without the sweep …"""
    left: str = ""
    """… or, where the sweep keeps order of which no invariant speaks, what finds the disorder afterwards."""
    hours: float = 1.0


STORIES = {
    "stuck_tasks": Story(
        struck(
            "UPDATE crawl_executions SET attempt_id = 'vanished' WHERE attempt_id = (SELECT attempt_id FROM crawler_tasks "
            "WHERE status = 'RUNNING' AND item_no > 0 LIMIT 1)",
            "UPDATE crawler_tasks SET attempt_id = 'vanished' WHERE task_id = (SELECT task_id FROM crawl_executions "
            "WHERE attempt_id = 'vanished')",
        )
    ),
    "published_orphans": Story(struck(f"DELETE FROM queue_messages WHERE {UNRECEIVED}")),
    # Their tasks would be found as orphans, too, but a quarter of an hour later; the letters themselves by nobody.
    "dead_letters": Story(
        struck(f"UPDATE queue_messages SET state = 'DEAD' WHERE {UNRECEIVED}"),
        left="SELECT message_id FROM queue_messages WHERE state = 'DEAD'",
    ),
    "outbox_zombies": Story(
        struck(
            "UPDATE crawler_task_outbox SET status = 'PROCESSING', claimed_by = 'dead', "
            "claimed_until = '2026-03-02 09:00:01.000000' WHERE status = 'SENT' "
            "AND task_id IN (SELECT task_id FROM crawler_tasks WHERE status = 'PUBLISHED' AND retry_count = 0)",
            f"DELETE FROM queue_messages WHERE {UNRECEIVED}",
            "UPDATE crawler_tasks SET status = 'WAITING' WHERE status = 'PUBLISHED' AND task_id IN "
            "(SELECT task_id FROM crawler_task_outbox WHERE status = 'PROCESSING')",
        )
    ),
    "failed_task_outbox": Story(
        struck(
            "UPDATE crawler_task_outbox SET status = 'FAILED', retry_count = 1 WHERE status IN ('PENDING', 'SENT') "
            f"AND task_id IN {OPEN_TASKS}",
            f"DELETE FROM queue_messages WHERE {UNRECEIVED}",
        )
    ),
    "failed_raws": Story(struck("UPDATE product_raw_data SET status = 'FAILED' WHERE status = 'PENDING'")),
    "executions": Story(
        struck(
            "UPDATE crawling_schedule_executions SET status = 'IN_PROGRESS', completed_at = NULL, open_key = seller_id "
            "WHERE status = 'COMPLETED' AND list_state = 'SETTLED'"
        )
    ),
    "identities": Story(suspend_most, left="SELECT 1 FROM pool_identities WHERE status = 'SUSPENDED'", hours=3),
    "records": Story(suspend_most, left="SELECT 1 FROM pool_events"),
    "ledger": Story(
        struck(
            "UPDATE crawling_schedule_executions SET failed_tasks = failed_tasks + 1, completed_tasks = completed_tasks - 1 "
            "WHERE status = 'COMPLETED' AND list_state = 'SETTLED'"
        ),
        left="SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM alerts WHERE name LIKE 'ledger%')",
        hours=6,
    ),
    "daily_figures": Story(nothing, left="SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM crawling_metrics_daily)", hours=48),
    "retention": Story(
        nothing, left="SELECT 1 FROM queue_messages WHERE state = 'DONE' AND sent_at < '2026-03-03'", hours=60
    ),
}
ELSEWHERE = {
    "partitions": "SQLite has none: tests/contracts and tests/adapters have them made and dropped on MariaDB",
    "tokens": "an identity whose token has ended asks for another when it is lent; the sweep for itself is in test_sweeps.py",
    "leases": "who asks for a lease takes back what is over, too; the sweep for itself is in test_sweeps.py",
}


def told(story: Story) -> tuple[Outcome, list[tuple[object, ...]]]:
    """What became of it, and what disorder is left."""
    strikes: list[asyncio.Task[None]] = []
    left: list[tuple[object, ...]] = []

    async def keep_striking(house: House) -> None:
        for _ in range(TRIES):
            if await story.strike(house):
                return
            await house.clock.sleep(0.01)
        raise AssertionError("there was nothing to strike")

    def tamper(house: House) -> None:
        if not strikes:
            strikes.append(asyncio.get_running_loop().create_task(keep_striking(house)))

    async def look(office: House) -> None:
        if story.left:
            left.extend(await audit.rows(office.database, story.left))

    outcome = lived(replace(CALM, hours=story.hours, crawl_hours=story.hours + 48), run_up, tamper, look)
    strikes[0].result()
    return outcome, left


def test_every_sweep_has_a_story() -> None:
    assert STORIES.keys() | ELSEWHERE.keys() == SWEEPS.keys()


@pytest.mark.slow
@pytest.mark.parametrize("sweep", STORIES)
def test_a_sweep_and_nothing_else_saves_the_day(sweep: str, monkeypatch: pytest.MonkeyPatch) -> None:
    story = STORIES[sweep]
    outcome, left = told(story)
    assert left == []
    assert outcome.violations == [] or sweep == "ledger"
    monkeypatch.setattr(ticker, "SWEEPS", {name: period for name, period in SWEEPS.items() if name != sweep})
    outcome, left = told(story)
    assert left or story.lost in {violation.partition(":")[0] for violation in outcome.violations}
