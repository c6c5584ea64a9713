"""What ports/store.py promises of the record of identities and of the breakers, on every engine."""

from base64 import b64encode
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import delete, select, update

from builders import NOON, at
from sellerwatch.adapters.sql import tables
from sellerwatch.adapters.sql.database import Database
from sellerwatch.domain.breakers import Breaker, BreakerScope, BreakerState, Transition
from sellerwatch.domain.identities import Identity, IdentityStatus, SealedToken, Verdict
from sellerwatch.ports.store import Store

AVAILABLE, SUSPENDED, BLOCKED = IdentityStatus.AVAILABLE, IdentityStatus.SUSPENDED, IdentityStatus.BLOCKED
CLOSED, OPEN, HALF_OPEN = BreakerState.CLOSED, BreakerState.OPEN, BreakerState.HALF_OPEN
SITE, POOL, IDENTITY = BreakerScope.SITE, BreakerScope.POOL, BreakerScope.IDENTITY


@pytest.fixture(autouse=True)
async def _no_seeds(database: Database) -> None:
    """The migration's hundred would be in the way."""
    seeded = (tables.user_agent_pool, tables.rate_limit_bucket, tables.circuit_breaker_state)
    await database.write(lambda connection: [connection.execute(delete(table)) for table in seeded])


def a_token(name: str = "a", *, key: str = "k1", cookies: str | None = None, seconds: float = 0) -> SealedToken:
    sealed = f"v1.{key}.{b64encode(name.encode() * 40).decode()}"
    return SealedToken(sealed, (name * 64)[:64], at(seconds), at(seconds + 86400), cookies)


async def add(store: Store, *user_agents: str, seconds: float = 0) -> int:
    return await store.transact(lambda unit: unit.identities.add(user_agents, at(seconds)))


async def everyone(store: Store) -> list[Identity]:
    return await store.read(lambda unit: unit.identities.all())


async def keep(store: Store, agent_id: int, token: SealedToken | None, seconds: float = 0) -> None:
    await store.transact(lambda unit: unit.identities.keep_token(agent_id, token, at(seconds)))


async def save(
    store: Store, *identities: Identity, remaining: dict[int, int] | None = None, seconds: float = 0
) -> None:
    await store.transact(lambda unit: unit.identities.save(identities, remaining or {}, 80, at(seconds)))


async def columns(database: Database, table: str, *names: str) -> list[tuple[Any, ...]]:
    found = tables.metadata.tables[table]
    statement = select(*(found.c[name] for name in names)).order_by(next(iter(found.primary_key.columns)))
    return await database.read(lambda connection: [tuple(row) for row in connection.execute(statement)])


async def test_added_identities_are_available_in_full_health_and_have_no_token(store: Store) -> None:
    assert await add(store, "UA one", "UA two") == 2
    one, two = await everyone(store)
    assert (one.user_agent, two.user_agent) == ("UA one", "UA two")
    assert one == Identity(one.agent_id, one.user_agent_id, "UA one")
    assert one.user_agent_id != two.user_agent_id


async def test_one_that_is_there_is_not_added_twice(store: Store) -> None:
    assert await add(store, "UA one", "UA one") == 1
    assert await add(store, "UA one", "UA two", "") == 1


async def test_retired_ones_are_not_in_the_pool_and_come_back_when_they_are_added_again(store: Store) -> None:
    await add(store, "UA one", "UA two")
    one, two = await everyone(store)
    assert await store.transact(lambda unit: unit.identities.retire([one.agent_id, 999], at(1))) == 1
    assert await store.transact(lambda unit: unit.identities.retire([one.agent_id], at(2))) == 0
    assert await everyone(store) == [two]
    assert await add(store, "UA one") == 1
    assert await everyone(store) == [one, two]


async def test_an_identity_comes_back_as_it_was_saved(store: Store) -> None:
    await add(store, "UA")
    [identity] = await everyone(store)
    identity.block()
    identity.token_failures, identity.health_score, identity.requests_per_day = 2, 55, 7
    identity.last_used_at, identity.usage_count, identity.success_count, identity.failure_count = at(3), 9, 6, 3
    await save(store, identity)
    assert await everyone(store) == [identity]


async def test_whether_and_until_when_it_is_blocked_follows_the_status(store: Store, database: Database) -> None:
    await add(store, *(f"UA {number}" for number in range(4)))
    free, paused, stranded, blocked = await everyone(store)
    paused.record_failure(Verdict.RATE_LIMITED, at(5))
    stranded.health_score = 5
    stranded.suspend(at(5))
    blocked.block()
    await save(store, free, paused, stranded, blocked, seconds=9)
    hour = timedelta(hours=1)
    names = ("status", "is_blocked", "blocked_until", "suspended_at", "updated_at")
    assert await columns(database, "user_agent_pool", *names) == [
        ("AVAILABLE", False, None, None, at(9)),
        ("SUSPENDED", True, at(5) + hour, at(5), at(9)),
        ("SUSPENDED", True, None, at(5), at(9)),
        ("BLOCKED", True, None, None, at(9)),
    ]
    paused.recover()
    await save(store, paused, seconds=10)
    assert (await columns(database, "user_agent_pool", *names))[1] == ("AVAILABLE", False, None, None, at(10))


async def test_what_remains_of_the_budget_goes_to_the_bucket(store: Store, database: Database) -> None:
    await add(store, "UA")
    [identity] = await everyone(store)
    names = ("agent_id", "max_tokens", "current_tokens", "refill_rate", "last_refill_at")
    for left, seconds in ((80, 1), (33, 2)):
        await save(store, identity, remaining={identity.agent_id: left}, seconds=seconds)
        assert await columns(database, "rate_limit_bucket", *names) == [
            (identity.agent_id, 80, left, pytest.approx(80 / 3600, abs=1e-6), at(seconds))
        ]


@pytest.mark.parametrize("hourly_limit", [80, 7, 79])
async def test_lesson_59_so_many_an_hour_are_kept_as_so_many_an_hour(
    store: Store, database: Database, hourly_limit: int
) -> None:
    await add(store, "UA one")
    [identity] = await everyone(store)
    left = {identity.agent_id: hourly_limit}
    await store.transact(lambda unit: unit.identities.save([identity], left, hourly_limit, NOON))
    [(per_second,)] = await columns(database, "rate_limit_bucket", "refill_rate")
    assert per_second * 3600 == pytest.approx(hourly_limit, rel=0.001)


async def test_a_token_comes_back_with_its_identity(store: Store) -> None:
    await add(store, "UA one", "UA two")
    one, two = await everyone(store)
    token = a_token(cookies=a_token("c").sealed)
    await keep(store, two.agent_id, token)
    loaded = (await everyone(store))[1].token
    assert loaded is not None
    assert (loaded.sealed, loaded.cookies, loaded.issued_at, loaded.expires_at) == (
        token.sealed,
        token.cookies,
        token.issued_at,
        token.expires_at,
    )
    assert (await everyone(store))[0] == one
    assert await store.read(lambda unit: unit.identities.tokens()) == [(two.agent_id, token)]


async def test_a_new_token_ends_the_earlier_ones(store: Store, database: Database) -> None:
    await add(store, "UA")
    [identity] = await everyone(store)
    for place, name in enumerate("abc"):
        await keep(store, identity.agent_id, a_token(name), place)
    assert [one.token for one in await everyone(store)] == [a_token("c")]
    assert await columns(database, "user_agent_token", "is_active") == [(False,), (False,), (True,)]
    assert await columns(database, "token_refresh_schedule", "token_id", "is_enabled") == [
        (1, False),
        (2, False),
        (3, True),
    ]


async def test_the_same_token_again_updates_its_row(store: Store, database: Database) -> None:
    await add(store, "UA")
    [identity] = await everyone(store)
    names = ("token_value", "issued_at", "is_active", "refresh_count", "last_refreshed_at", "created_at")
    await keep(store, identity.agent_id, a_token("a"))
    await keep(store, identity.agent_id, a_token("b"), 1)
    rekeyed, refreshed = a_token("a", key="k2"), a_token("a", key="k2", seconds=60)
    await keep(store, identity.agent_id, rekeyed, 2)
    [first, second] = await columns(database, "user_agent_token", *names)
    assert first == (rekeyed.sealed, at(0), True, 0, None, at(0))
    assert second[2] is False
    await keep(store, identity.agent_id, refreshed, 60)
    assert (await columns(database, "user_agent_token", *names))[0] == (
        rekeyed.sealed,
        at(60),
        True,
        1,
        at(60),
        at(0),
    )


async def test_without_a_token_none_is_active_and_none_is_refreshed(store: Store, database: Database) -> None:
    await add(store, "UA")
    [identity] = await everyone(store)
    await keep(store, identity.agent_id, a_token())
    await keep(store, identity.agent_id, None, 1)
    assert (await everyone(store))[0].token is None
    assert await store.read(lambda unit: unit.identities.tokens()) == []
    assert await columns(database, "token_refresh_schedule", "is_enabled") == [(False,)]


async def test_refreshes_are_noted_where_the_active_token_has_its_place(store: Store, database: Database) -> None:
    await add(store, "UA")
    [identity] = await everyone(store)
    await keep(store, identity.agent_id, a_token())
    names = ("next_refresh_time", "consecutive_failures", "last_refresh_attempt_at", "last_refresh_success_at")
    assert await columns(database, "token_refresh_schedule", *names) == [(at(3600), 0, None, None)]

    async def noted(seconds: float, *, is_success: bool) -> list[tuple[Any, ...]]:
        agent_id = identity.agent_id
        await store.transact(lambda unit: unit.identities.note_refresh(agent_id, at(seconds), is_success=is_success))
        return await columns(database, "token_refresh_schedule", *names)

    assert await noted(10, is_success=True) == [(at(3610), 0, at(10), at(10))]
    assert await noted(20, is_success=False) == [(at(3620), 1, at(20), at(10))]
    assert await noted(30, is_success=False) == [(at(3630), 2, at(30), at(10))]
    assert await noted(40, is_success=True) == [(at(3640), 0, at(40), at(40))]


async def test_replaced_tokens_are_dropped_and_active_ones_stay(store: Store, database: Database) -> None:
    await add(store, "UA one", "UA two")
    one, two = await everyone(store)
    for agent_id, name in ((one.agent_id, "a"), (one.agent_id, "b"), (two.agent_id, "c")):
        await keep(store, agent_id, a_token(name))
    assert await store.transact(lambda unit: unit.identities.drop_replaced_tokens()) == 1
    kept = await store.read(lambda unit: unit.identities.tokens())
    assert [(agent_id, token.fingerprint) for agent_id, token in kept] == [
        (one.agent_id, a_token("b").fingerprint),
        (two.agent_id, a_token("c").fingerprint),
    ]
    assert await columns(database, "user_agent_token", "is_active") == [(True,), (True,)]


async def test_a_token_is_refreshed_as_often_as_its_schedule_says_and_so_is_the_next_one(
    store: Store, database: Database
) -> None:
    await add(store, "UA")
    [identity] = await everyone(store)
    agent_id = identity.agent_id
    await keep(store, agent_id, a_token())
    own = update(tables.token_refresh_schedule).values(refresh_interval_seconds=600)
    await database.write(lambda connection: connection.execute(own))
    await store.transact(lambda unit: unit.identities.note_refresh(agent_id, at(5), is_success=True))
    names = ("next_refresh_time", "refresh_interval_seconds")
    assert await columns(database, "token_refresh_schedule", *names) == [(at(605), 600)]
    await keep(store, agent_id, a_token("next", seconds=9), 9)
    assert (await columns(database, "token_refresh_schedule", *names))[-1] == (at(609), 600)


async def test_due_for_a_refresh_are_available_identities_by_their_schedule_the_longest_due_first(store: Store) -> None:
    await add(store, "UA one", "UA two", "UA three", "UA four")
    one, two, three, four = await everyone(store)
    for seconds, identity, name in ((2, one, "a"), (1, two, "b"), (0, three, "c"), (9, four, "d")):
        token = a_token(name, seconds=seconds)
        await keep(store, identity.agent_id, token, seconds=seconds)
    three.status = SUSPENDED
    await save(store, three)

    async def due(seconds: float, count: int = 10) -> list[int]:
        return await store.read(lambda unit: unit.identities.refresh_due(at(seconds), count))

    assert await due(3600) == []
    assert await due(3602) == [two.agent_id, one.agent_id]
    assert await due(3602, 1) == [two.agent_id]
    await store.transact(lambda unit: unit.identities.note_refresh(two.agent_id, at(3602), is_success=True))
    await keep(store, one.agent_id, None)
    assert await due(3602) == []


async def test_a_retired_identity_is_not_refreshed(store: Store, database: Database) -> None:
    await add(store, "UA")
    [identity] = await everyone(store)
    await keep(store, identity.agent_id, a_token())
    await store.transact(lambda unit: unit.identities.retire([identity.agent_id], at(1)))
    assert await columns(database, "token_refresh_schedule", "is_enabled") == [(False,)]


async def test_a_breaker_comes_back_as_it_was_saved(store: Store) -> None:
    assert await store.read(lambda unit: unit.breakers.load(SITE)) is None
    breaker = Breaker(SITE, 5, timedelta(seconds=300))
    breaker.trip(at(1), "half of it failed")
    await store.transact(lambda unit: unit.breakers.save(breaker, at(1)))
    assert await store.read(lambda unit: unit.breakers.load(SITE)) == breaker
    assert await store.read(lambda unit: unit.breakers.load(POOL)) is None
    breaker.close(at(2), "good again")
    await store.transact(lambda unit: unit.breakers.save(breaker, at(2)))
    assert await store.read(lambda unit: unit.breakers.load(SITE)) == breaker


async def test_transitions_are_events_and_the_states_they_lead_to(store: Store, database: Database) -> None:
    await add(store, "UA")
    [identity] = await everyone(store)
    agent_id = identity.agent_id
    transitions = [
        Transition(IDENTITY, agent_id, CLOSED, OPEN, 3, at(1), "r" * 5000),
        Transition(IDENTITY, agent_id, OPEN, HALF_OPEN, 3, at(2), "time-out over"),
        Transition(POOL, None, CLOSED, OPEN, 0, at(3), "too few are available"),
    ]
    await store.transact(lambda unit: unit.breakers.record(transitions))
    names = ("scope", "agent_id", "event_type", "from_state", "to_state", "failure_count", "event_timestamp")
    assert await columns(database, "circuit_breaker_event", *names) == [
        ("IDENTITY", agent_id, "STATE_CHANGE", "CLOSED", "OPEN", 3, at(1)),
        ("IDENTITY", agent_id, "STATE_CHANGE", "OPEN", "HALF_OPEN", 3, at(2)),
        ("POOL", None, "STATE_CHANGE", "CLOSED", "OPEN", 0, at(3)),
    ]
    assert (await columns(database, "circuit_breaker_event", "error_message"))[0] == ("r" * 2048,)
    states = ("scope", "agent_id", "circuit_state", "opened_at", "half_open_at", "closed_at", "last_failure_time")
    assert await columns(database, "circuit_breaker_state", *states) == [
        ("IDENTITY", agent_id, "HALF_OPEN", at(1), at(2), None, at(1)),
        ("POOL", 0, "OPEN", at(3), None, None, at(3)),
    ]


async def test_nothing_to_record_is_no_trouble(store: Store) -> None:
    await store.transact(lambda unit: unit.breakers.record([]))
    await save(store)
    assert at(0) == NOON


async def test_resealed_a_token_is_the_same_and_one_that_was_replaced_meanwhile_is_not_brought_back(
    store: Store,
) -> None:
    await add(store, "UA one", "UA two", "UA three")
    one, two, three = await everyone(store)
    await keep(store, one.agent_id, a_token("a", cookies=a_token("c").sealed))
    await keep(store, two.agent_id, a_token("b"))
    await keep(store, two.agent_id, a_token("d"), 1)
    fresh = a_token("a", key="k2", cookies=a_token("c", key="k2").sealed)
    asked = [(one.agent_id, fresh), (two.agent_id, a_token("b", key="k2")), (three.agent_id, a_token("a", key="k3"))]
    assert await store.transact(lambda unit: unit.identities.reseal(asked, at(2))) == 2
    found = {identity.agent_id: identity.token for identity in await everyone(store)}
    kept = found[one.agent_id]
    assert kept is not None
    assert (kept.sealed, kept.cookies, kept.issued_at) == (fresh.sealed, fresh.cookies, at(0))
    assert found[two.agent_id] == a_token("d")
    assert found[three.agent_id] is None
