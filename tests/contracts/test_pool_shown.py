"""What an operator is told of the pool, of every engine: why nobody is free and until when, and who needs attention."""

from datetime import timedelta
from typing import Any

import pytest

from contracts.pool_world import HOUR, MORNING, World, a_token, an_identity, ask, use
from sellerwatch.domain.identities import IdentityStatus, Verdict
from sellerwatch.entry.console.standings import Look, headline, ranked
from sellerwatch.ports.pool import Pool

NOBODY = "nobody is free "


async def look(world: World, pool: Pool, hourly_limit: int = 80) -> Look:
    figures, standings = await pool.figures(), await pool.standings()
    return Look(world.clock.now(), figures, await pool.outlook(), standings, hourly_limit)


async def told(world: World, pool: Pool) -> str:
    said = headline(await look(world, pool))
    assert said.startswith(NOBODY)
    return said.removeprefix(NOBODY)


def moment(seconds: float) -> str:
    return f"({MORNING + timedelta(seconds=seconds):%H:%M:%S} UTC)"


async def test_so_many_can_be_leased_now(world: World) -> None:
    assert headline(await look(world, await world.pool(3))) == "3 identities can be leased now"
    one = await world.pool(3, concurrency=1)
    assert headline(await look(world, one)) == "1 identity can be leased now"


@pytest.mark.parametrize(
    ("limits", "leases", "why", "seconds"),
    [
        ({"min_interval_seconds": 30}, 3, "SPENT", 30),
        ({"hourly_limit": 1}, 3, "SPENT", 3630),
        ({"site_requests_per_second": 2}, 2, "SITE_RATE", 1),
    ],
)
async def test_spent_and_the_ceiling_tell_when_the_next_may_go(
    world: World, limits: dict[str, Any], leases: int, why: str, seconds: int
) -> None:
    pool = await world.pool(3, **limits)
    for _ in range(leases):
        await use(pool)
    said = await told(world, pool)
    assert said.startswith(f"({why}): ")
    assert said.endswith(moment(seconds))


async def test_busy_tells_when_the_first_lease_ends_at_the_latest(world: World) -> None:
    pool = await world.pool(3)
    await pool.lease(3)
    assert (await told(world, pool)).startswith(
        "(BUSY): everybody who has budget left is lent; the next may go in 30 s"
    )
    narrow = await world.pool(3, concurrency=3)
    assert (await told(world, narrow)).startswith("(SITE_BUSY): ")


async def test_paused_tells_until_when_the_marketplace_wants_patience(world: World) -> None:
    pool = await world.pool(9)
    for agent_id in (1, 2, 3):
        await ask(pool, agent_id, Verdict.SITE_FAILURE, http_status=503, retry_after=timedelta(seconds=900))
    assert (await told(world, pool)) == (
        f"(PAUSED): the marketplace asked for patience; the next may go in 15 min {moment(900)}"
    )


async def test_all_suspended_tells_when_the_first_comes_back(world: World) -> None:
    pool = await world.pool(2, min_available_percent=0)
    for agent_id in (1, 2):
        await ask(pool, agent_id, Verdict.RATE_LIMITED, http_status=429)
        world.clock.go(61)
    said = await told(world, pool)
    assert said.startswith("(SUSPENDED): all that are not blocked are suspended; the next may go in 57 min")
    assert said.endswith(moment(HOUR))


async def test_an_open_breaker_is_named_with_the_moment_of_its_trial(world: World) -> None:
    pool = await world.pool(6)
    for agent_id in range(1, 6):
        await pool.suspend(agent_id)
    assert await told(world, pool) == (
        f"(CIRCUIT_OPEN): the breaker of the pool is OPEN; the next may go in 10 min {moment(600)}"
    )


async def test_the_breaker_of_the_site_is_named_too(world: World) -> None:
    pool = await world.pool(40)
    for agent_id in range(1, 21):
        await ask(pool, agent_id, Verdict.SITE_FAILURE, http_status=502)
    assert await told(world, pool) == (
        f"(CIRCUIT_OPEN): the breaker of the site is OPEN; the next may go in 10 min {moment(600)}"
    )


async def test_an_empty_pool_takes_a_person(world: World) -> None:
    pool = await world.pool(2, min_available_percent=0)
    for agent_id in (1, 2):
        await pool.block(agent_id)
    assert (await told(world, pool)).endswith("only a person can help")


async def test_who_needs_attention_comes_first_and_it_is_said_what_is_needed(world: World) -> None:
    known = {number: an_identity(number) for number in range(1, 11)}
    known[7] = an_identity(7, token=None)
    known[8] = an_identity(8, token=a_token("8", expires_at=MORNING + timedelta(minutes=9)))
    known[9] = an_identity(9, token=None, token_failures=2)
    known[10] = an_identity(10, status=IdentityStatus.SUSPENDED, health_score=25, suspended_at=MORNING)
    pool = await world.pool(list(known.values()), hourly_limit=20, min_interval_seconds=0, min_available_percent=0)
    for agent_id, times in ((6, 20), (5, 19)):
        for _ in range(times):
            await ask(pool, agent_id)
    for _ in range(3):
        await ask(pool, 4, Verdict.REJECTED, http_status=400)
    await ask(pool, 1, Verdict.SUCCESS, http_status=200, retry_after=timedelta(hours=2))
    await ask(pool, 9, Verdict.NEUTRAL, is_token_refused=True, is_issue=True)
    await pool.block(3)
    await pool.suspend(2)
    assert [(each.identity.agent_id, words) for each, words in ranked(await look(world, pool, 20))] == [
        (9, "given no token"),
        (10, "health too low"),
        (3, "blocked by hand"),
        (2, "rests"),
        (4, "3 failures in a row"),
        (1, "told to wait, over in 2 h"),
        (7, "a token"),
        (8, "a fresh token in 9 min"),
        (6, "its budget back"),
        (5, "budget low"),
    ]
