"""What the port of locks promises, on every engine; each owner here is one process."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import pytest

import servers
from contracts.engines import ENGINES
from contracts.pool_world import FakeClock, a_client
from sellerwatch.adapters.clock import SystemClock
from sellerwatch.adapters.redis.connection import connected
from sellerwatch.adapters.redis.locks import RedisLocks
from sellerwatch.adapters.sql.locks import SqlLocks
from sellerwatch.domain.errors import Unavailable
from sellerwatch.ports.locks import Locks

LONG, SHORT = 600.0, 0.02


@dataclass
class Held:
    of: Callable[[str], Locks]
    """The locks as the process of that name sees them."""
    clock: FakeClock

    async def short_time_passes(self) -> None:
        """On every clock: Redis has its own."""
        self.clock.go(SHORT)
        await SystemClock().sleep(SHORT * 1.5)


@pytest.fixture(params=[*ENGINES, "redis"])
async def held(request: pytest.FixtureRequest) -> AsyncIterator[Held]:
    clock = FakeClock()
    if request.param == "redis":
        async with a_client(request.getfixturevalue("redis_server")) as client:
            yield Held(lambda owner: RedisLocks(client, owner), clock)
        return
    database = request.getfixturevalue(request.param)
    yield Held(lambda owner: SqlLocks(database, clock, owner), clock)


async def test_what_is_nobodys_is_taken_and_is_no_one_elses_then(held: Held) -> None:
    assert await held.of("a").take("sweep", LONG)
    assert not await held.of("b").take("sweep", LONG)
    assert await held.of("b").take("another", LONG)
    assert not await held.of("a").take("another", LONG)


async def test_what_is_ours_is_taken_again_and_lasts_longer(held: Held) -> None:
    assert await held.of("a").take("sweep", SHORT)
    assert await held.of("a").take("sweep", LONG)
    await held.short_time_passes()
    assert not await held.of("b").take("sweep", LONG)


async def test_to_be_refused_changes_nothing(held: Held) -> None:
    assert await held.of("a").take("sweep", SHORT)
    assert not await held.of("b").take("sweep", LONG)
    await held.short_time_passes()
    assert await held.of("c").take("sweep", LONG)


async def test_a_holder_that_died_is_followed_when_its_time_has_run_out(held: Held) -> None:
    assert await held.of("dead").take("sweep", SHORT)
    await held.short_time_passes()
    assert await held.of("b").take("sweep", LONG)
    assert not await held.of("c").take("sweep", LONG)


async def test_a_holder_that_was_slow_neither_takes_back_nor_ends_what_is_anothers_by_now(held: Held) -> None:
    assert await held.of("slow").take("sweep", SHORT)
    await held.short_time_passes()
    assert await held.of("b").take("sweep", LONG)
    assert not await held.of("slow").take("sweep", LONG)
    await held.of("slow").give_back(["sweep"])
    assert not await held.of("c").take("sweep", LONG)


async def test_given_back_it_is_nobodys_and_only_those_that_are_ours_are(held: Held) -> None:
    a, b = held.of("a"), held.of("b")
    for name in ("one", "two", "kept"):
        assert await a.take(name, LONG)
    assert await b.take("theirs", LONG)
    await a.give_back(["one", "two", "theirs", "unknown"])
    await a.give_back([])
    assert [await b.take(name, LONG) for name in ("one", "two", "kept")] == [True, True, False]
    assert not await a.take("theirs", LONG)


async def test_of_several_who_ask_at_once_for_what_is_nobodys_one_is_told_yes(held: Held) -> None:
    for name in map(str, range(5)):
        answers = await asyncio.gather(*(held.of(f"p{number}").take(name, LONG) for number in range(8)))
        assert sum(answers) == 1


async def test_of_several_who_ask_at_once_for_what_has_run_out_one_is_told_yes(held: Held) -> None:
    for name in map(str, range(5)):
        assert await held.of("dead").take(name, SHORT)
        await held.short_time_passes()
        answers = await asyncio.gather(*(held.of(f"p{number}").take(name, LONG) for number in range(8)))
        assert sum(answers) == 1


async def test_when_the_engine_is_away_nobody_is_told_either() -> None:
    async with connected(f"redis://127.0.0.1:{servers.a_free_port()}") as client:
        locks = RedisLocks(client, "a")
        with pytest.raises(Unavailable):
            await locks.take("sweep", LONG)
        with pytest.raises(Unavailable):
            await locks.give_back(["sweep"])


async def test_in_redis_a_lock_ends_by_itself_and_stands_beside_its_pool(redis_server: servers.Redis) -> None:
    async with a_client(redis_server) as client:
        await RedisLocks(client, "a", "other").take("sweep", LONG)
        assert 0 < await client.pttl("sellerwatch:{other}:lock:sweep") <= LONG * 1000
        assert await RedisLocks(client, "b").take("sweep", LONG)
