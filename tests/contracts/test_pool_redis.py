"""What is particular to the pool in Redis: scripts that come back, a cluster, memory, what is lost, who is away."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from redis.asyncio import Redis

import servers
from contracts.pool_world import (
    FOR_EVER,
    MORNING,
    FakeClock,
    a_client,
    a_token,
    an_identity,
    ask,
    begun,
    identities,
    redis,
    said,
    some_limits,
    standing,
    use,
)
from sellerwatch.adapters.chance import SeededChance
from sellerwatch.adapters.redis import RedisPool, packing
from sellerwatch.domain.errors import Invalid, Unavailable
from sellerwatch.domain.identities import Verdict
from sellerwatch.domain.leadership import Pulse
from sellerwatch.domain.recollection import Memory
from sellerwatch.ports.pool import WhyNot

OURS = "sellerwatch:{main}:"


@pytest.fixture
async def client(redis_server: servers.Redis):
    async with a_client(redis_server) as client:
        yield client


def on_its_own_time(client: Redis, **limits) -> RedisPool:
    return RedisPool(client, SeededChance(7), some_limits(**limits))


async def test_the_keys_are_those_of_the_contract(client):
    pool = redis(client, FakeClock(), some_limits())
    await pool.load([*identities(17), an_identity(18, token=None)])
    await pool.suspend(1)
    leases = (await pool.lease(2)).leases
    assert [lease.agent_id for lease in leases] == [10, 11]
    assert await client.zscore(f"{OURS}available", "17") == 0
    assert await client.zrange(f"{OURS}suspended", 0, -1) == [b"1"]
    assert await client.zrange(f"{OURS}leased", 0, -1) == [b"10", b"11"]
    assert await client.type(f"{OURS}breaker") == b"hash"
    fields = set(await client.hkeys(f"{OURS}agent:10"))
    assert fields >= {b"token", b"remaining", b"windowStart", b"windowEnd", b"healthScore", b"status"}
    assert await client.exists(f"{OURS}agent:10:window")
    assert all(key.startswith(OURS.encode()) for key in await client.keys())


async def test_the_fields_of_an_identity_tell_its_window(client):
    clock = FakeClock()
    pool = redis(client, clock, some_limits(hourly_limit=80))
    await pool.load(identities(1))

    async def told() -> list[int]:
        names = ("remaining", "windowStart", "windowEnd")
        return [int(value or 0) for value in await client.hmget(f"{OURS}agent:1", *names)]

    first = packing.us(clock.at)
    await pool.report([said((await pool.lease(1)).leases[0])])
    assert await told() == [79, first, first + 3_630_000_000]
    clock.go(5)
    second = (await pool.lease(1)).leases[0]
    assert await told() == [78, first, first + 3_630_000_000]
    await pool.cancel([(second.lease_id, 1)])
    assert await told() == [79, first, first + 3_630_000_000]
    clock.go(4000)
    last = (await pool.lease(1)).leases[0]
    assert await told() == [79, packing.us(clock.at), packing.us(clock.at) + 3_630_000_000]
    await pool.cancel([(last.lease_id, 1)])
    assert await told() == [80, 0, 0]


async def test_a_server_that_forgot_its_scripts_is_told_again(client):
    pool = redis(client, FakeClock(), some_limits())
    await pool.load(identities(3))
    await client.script_flush()
    assert len((await pool.lease(2)).leases) == 2


async def test_lesson_35_it_runs_on_a_cluster_of_one_node():
    with servers.a_redis("--cluster-enabled", "yes", "--cluster-port", str(servers.a_free_port())) as server:
        server.say("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
        assert server.says(b"cluster_state:ok", "CLUSTER", "INFO")
        async with Redis.from_url(server.url) as client:
            pool = redis(client, FakeClock(), some_limits())
            await begun(pool)
            await pool.load(identities(5))
            leases = (await pool.lease(3)).leases
            await pool.report([said(lease, Verdict.RATE_LIMITED) for lease in leases])
            assert (await pool.figures()).suspended == 3
            assert len(await pool.standings()) == 5


async def test_lesson_29_the_time_is_the_servers_own(client):
    pool = on_its_own_time(client, min_interval_seconds=100.0)
    await pool.load(identities(1))
    lease = (await pool.lease(1)).leases[0]
    seconds, micros = await client.time()
    now = datetime.fromtimestamp(seconds, UTC) + timedelta(microseconds=micros)
    assert timedelta() <= now - lease.leased_at < timedelta(minutes=1)
    assert await pool.report([said(lease)]) == [True]
    assert (await pool.lease(1)).why is WhyNot.SPENT


async def test_many_at_once_share_round_trips_and_nobody_is_lent_twice(client):
    pool = on_its_own_time(client)
    await pool.load(identities(40))
    grants = await asyncio.gather(*(pool.lease(1) for _ in range(64)))
    lent = [lease.agent_id for grant in grants for lease in grant.leases]
    assert sorted(lent) == list(range(1, 41))
    assert len({lease.lease_id for grant in grants for lease in grant.leases}) == 40
    reports = await asyncio.gather(*(pool.report([said(grant.leases[0])]) for grant in grants if grant.leases))
    assert reports == [[True]] * 40


async def test_loading_goes_by_pieces_and_judges_at_the_end(client):
    pool = redis(client, FakeClock(), some_limits())
    await pool.load([])
    assert (await pool.lease(1)).why is WhyNot.EMPTY
    await pool.load(identities(1234))
    figures = await pool.figures()
    assert (figures.total, figures.pool_breaker.state) == (1234, "CLOSED")
    assert len(await pool.standings(count=2000)) == 1234
    await pool.load([an_identity(number) for number in range(1000, 1300)])
    figures = await pool.figures()
    assert (figures.total, figures.available) == (300, 300)
    assert await client.zcard(f"{OURS}available") == 300


async def test_an_identity_with_a_full_window_takes_at_most_one_and_a_half_kilobytes(client):
    clock = FakeClock()
    pool = redis(client, clock, some_limits(min_interval_seconds=0.0, concurrency=1000))
    await pool.load(identities(500))
    for _ in range(80):
        leases = (await pool.lease(500)).leases
        clock.go(1)
        assert all(await pool.report([said(lease) for lease in leases]))
    # What stands above them all takes what it takes, however many they are.
    keys = [key for key in await client.keys() if not key.endswith((b"rate", b"site", b"breaker", b"tally"))]
    assert sum([await client.memory_usage(key, samples=0) for key in keys]) / 500 < 1536
    assert await client.object("ENCODING", f"{OURS}agent:7") == b"listpack"


async def test_what_left_the_window_of_the_ceiling_is_not_kept(client):
    clock = FakeClock()
    pool = redis(client, clock, some_limits(site_requests_per_second=5.0, hourly_limit=1000))
    await pool.load(identities(5))
    for _ in range(20):
        leases = (await pool.lease(9)).leases
        assert len(leases) == 5
        await pool.report([said(lease) for lease in leases])
        clock.go(1)
    assert await client.llen(f"{OURS}rate") == 5


async def test_a_lost_window_is_a_full_one_for_whoever_looks(client):
    clock = FakeClock()
    pool = redis(client, clock, some_limits(hourly_limit=3))
    await pool.load(identities(2))
    for _ in range(2):
        await ask(pool, 1)
        clock.go(2)
    lease = await pool.lease_of(1)
    clock.go(1)
    await client.delete(f"{OURS}agent:1:window")
    assert [each.remaining for each in await pool.standings()] == [3, 0]
    assert (await pool.figures()).remaining_requests == 3
    await pool.cancel([(lease.lease_id, 1)])
    clock.go(10)
    await pool.load(identities(2))
    assert await pool.lease_of(1) is None
    assert (await standing(pool, 1)).remaining == 0
    clock.go(3622)
    assert await pool.lease_of(1)


async def test_a_window_lost_after_its_first_lease_left_it_counts_as_spent_too(client):
    clock = FakeClock()
    pool = redis(client, clock, some_limits(hourly_limit=5))
    await pool.load(identities(1))
    await ask(pool, 1)
    clock.go(3600)
    await ask(pool, 1)
    clock.go(60)
    await client.delete(f"{OURS}agent:1:window")
    assert await pool.lease_of(1) is None
    assert (await standing(pool, 1)).remaining == 0


async def test_whom_a_lost_window_puts_back_is_no_reason_to_wait_long(client):
    clock = FakeClock()
    pool = redis(client, clock, some_limits())
    await pool.load(identities(3))
    await ask(pool, 1)
    clock.go(2)
    await client.delete(f"{OURS}agent:1:window")
    for agent_id in (2, 3):
        await ask(pool, agent_id)
    clock.go(2)
    grant = await pool.lease(1)
    assert (grant.leases, grant.why, grant.next_at) == ((), WhyNot.SPENT, clock.at + timedelta(milliseconds=1))
    assert [lease.agent_id for lease in (await pool.lease(1)).leases] == [2]


async def test_lesson_22_a_step_asks_as_much_of_the_server_however_many_identities_there_are(client):
    costs = []
    for members in (20, 1000):
        await client.flushall()
        clock = FakeClock()
        pool = redis(client, clock, some_limits(hourly_limit=1, concurrency=5000, site_requests_per_second=5000))
        await begun(pool)
        await pool.load(identities(members))
        spent = (await pool.lease(members - 10)).leases
        assert all(await pool.report([said(lease) for lease in spent]))
        clock.go(2)
        await use(pool)
        await pool.outlook()
        await client.config_resetstat()
        leases = (await pool.lease(5)).leases
        await pool.report([said(lease, Verdict.REJECTED) for lease in leases])
        await pool.outlook()
        costs.append({name: told["calls"] for name, told in (await client.info("commandstats")).items()})
    assert costs[0] == costs[1]


async def test_while_all_is_quiet_a_lease_looks_at_nothing_that_it_does_not_need(client):
    clock = FakeClock()
    pool = redis(client, clock, some_limits())
    await pool.load(identities(3))
    await ask(pool, 1)
    await client.config_resetstat()
    assert len((await pool.lease(1)).leases) == 1
    assert len((await pool.lease(2)).leases) == 1
    assert await pool.lease_of(1) is None
    assert (await pool.lease(1)).why is WhyNot.SPENT
    assert "cmdstat_hgetall" not in await client.info("commandstats")


async def test_only_who_may_be_refreshed_is_kept_by_the_end_of_its_token(client):
    pool = redis(client, FakeClock(), some_limits(min_available_percent=0.0))
    await pool.load([*identities(4), an_identity(5, token=None)])
    await pool.suspend(1)
    await pool.block(2)
    await pool.discard_token(3)
    assert await client.zrange(f"{OURS}expiring", 0, -1) == [b"4"]
    await pool.load([])
    assert await client.zcard(f"{OURS}expiring") == 0


async def test_a_trial_of_an_identity_is_its_lease_and_nothing_more_is_kept_of_it(client):
    clock = FakeClock()
    pool = redis(client, clock, some_limits())
    await pool.load(identities(3))
    for _ in range(3):
        await ask(pool, 1, Verdict.REJECTED)
        clock.go(1)
    clock.go(600)
    assert (await pool.lease_of(1)).is_trial
    assert not await client.hexists(f"{OURS}agent:1", "breakerTrial")


async def test_of_those_asked_for_patience_only_the_last_are_kept(client):
    clock = FakeClock()
    pool = redis(client, clock, some_limits(min_available_percent=0.0))
    await pool.load(identities(60))
    leases = (await pool.lease(60)).leases
    for lease in leases:
        await pool.report([said(lease, retry_after=timedelta(seconds=5))])
    assert await client.strlen(f"{OURS}patience") < 16 * 32


async def test_the_fields_of_an_identity_tell_the_window_it_is_remembered_with(client):
    pool = redis(client, FakeClock(), some_limits())
    await pool.clear(2)
    await pool.remember(2, [Memory(an_identity(1), (MORNING - timedelta(seconds=9), MORNING - timedelta(seconds=4)))])
    told = await client.hmget(f"{OURS}agent:1", "remaining", "windowStart", "windowEnd")
    now = packing.us(MORNING)
    assert [int(each) for each in told] == [78, now - 9_000_000, now - 9_000_000 + 3_630_000_000]


async def test_a_lost_window_counts_as_spent_and_a_lost_face_is_nobody(client):
    clock = FakeClock()
    pool = redis(client, clock, some_limits(hourly_limit=2, min_interval_seconds=1.0))
    await pool.load(identities(2))
    assert await pool.report([said(lease) for lease in (await pool.lease(2)).leases]) == [True, True]
    await client.delete(f"{OURS}agent:1:window", f"{OURS}agent:2", f"{OURS}agent:2:face")
    clock.go(2)
    assert not (await pool.lease(2)).leases
    assert await client.zscore(f"{OURS}available", "2") is None
    assert await client.exists(f"{OURS}agent:2") == 0
    clock.go(3629)
    assert [lease.agent_id for lease in (await pool.lease(2)).leases] == []
    clock.go(2)
    assert [lease.agent_id for lease in (await pool.lease(2)).leases] == [1]


async def test_who_left_is_forgotten_by_the_server_once_nothing_of_it_counts(client):
    pool = on_its_own_time(client)
    await pool.load(identities(2))
    await pool.load(identities(1))
    assert 0 < await client.ttl(f"{OURS}agent:2") <= 90_100
    await pool.load(identities(2))
    assert await client.ttl(f"{OURS}agent:2") == -1


async def test_a_redis_that_is_away_is_unavailable():
    with servers.a_redis() as server:
        pass
    async with Redis.from_url(server.url) as client:
        pool = redis(client, FakeClock(), some_limits())
        with pytest.raises(Unavailable):
            await pool.lease(1)
        answers = await asyncio.gather(*(pool.lease(1) for _ in range(5)), return_exceptions=True)
        assert [type(answer) for answer in answers] == [Unavailable] * 5


async def test_a_redis_that_is_full_or_only_reads_is_unavailable(client):
    pool = redis(client, FakeClock(), some_limits())
    await pool.load(identities(3))
    await client.config_set("maxmemory", "1")
    try:
        with pytest.raises(Unavailable):
            await pool.lease(1)
    finally:
        await client.config_set("maxmemory", "0")
    assert (await pool.lease(1)).leases


async def test_a_client_that_decodes_and_a_window_of_years_are_refused(client):
    async with Redis(decode_responses=True) as decoding:
        with pytest.raises(Invalid, match="client"):
            RedisPool(decoding, SeededChance(1), some_limits())
    with pytest.raises(Invalid, match="window_seconds"):
        RedisPool(client, SeededChance(1), some_limits(window_seconds=1e9))


async def test_it_lends_no_longer_than_it_was_told(client):
    clock = FakeClock()
    pool = redis(client, clock, some_limits())
    await pool.load(identities(3))
    assert await pool.renew(1, clock.at + timedelta(seconds=15))
    clock.go(14.9)
    assert (await pool.lease(1)).leases
    clock.go(0.1)
    assert (await pool.lease(1)).why is WhyNot.AWAY
    assert await pool.renew(1, clock.at + timedelta(seconds=15))
    assert (await pool.lease(1)).leases
    await pool.resign()
    assert (await pool.lease(1)).why is WhyNot.AWAY
    assert not await pool.renew(1, clock.at + timedelta(seconds=15))


@pytest.mark.parametrize("lost", ["flushed", "beginning", "resigned"])
async def test_where_no_ledger_is_held_that_leads_nobody_joins_and_nothing_is_said(client, lost):
    pool = redis(client, FakeClock(), some_limits())
    await pool.load(identities(3))
    one, other = (await pool.lease(2)).leases
    if lost == "flushed":
        await client.flushall()
    elif lost == "beginning":
        await pool.clear(2)
        await pool.remember(2, [Memory(an_identity(1), ())])
    else:
        await pool.resign()
    before = {key: await client.dump(key) for key in await client.keys()}
    assert await pool.report([said(one)]) == [False]
    assert await pool.report([said(one), said(other, Verdict.RATE_LIMITED)]) == [False, False]
    for asked in (
        pool.load(identities(9)),
        *(verb(1) for verb in (pool.suspend, pool.recover, pool.block, pool.unblock, pool.discard_token)),
        pool.keep_token(1, a_token("token of 1", key="k2")),
        pool.recover_due(),
        pool.refreshable(FOR_EVER, 9),
        pool.standings(),
        pool.events(),
        pool.forget_events(9),
    ):
        with pytest.raises(Unavailable):
            await asked
    assert {key: await client.dump(key) for key in await client.keys()} == before


async def test_its_pulse_tells_whether_it_is_what_it_was(client):
    pool = redis(client, FakeClock(), some_limits())
    assert await pool.pulse() == Pulse(MORNING, 1, is_whole=True)
    await pool.clear(2)
    assert (await pool.pulse()).epoch == 0
    await client.flushall()
    assert await pool.pulse() == Pulse(MORNING, 0, is_whole=False)


async def test_lesson_30_one_that_throws_keys_away_is_not_whole():
    with servers.a_redis() as server:
        async with a_client(server) as client:
            pool = redis(client, FakeClock(), some_limits())
            await pool.load(identities(200))
            assert (await pool.pulse()).is_whole
            await client.config_set("maxmemory-policy", "allkeys-random")
            await client.config_set("maxmemory", "1mb")
            assert not (await pool.pulse()).is_whole


async def test_a_server_that_came_back_with_what_it_had_kept_leads_no_more(tmp_path):
    """What it kept may be older than what it lent."""
    options = ("--appendonly", "yes", "--appendfsync", "always", "--dir", str(tmp_path))
    with servers.a_redis(*options) as server:
        async with a_client(server) as client:
            await redis(client, FakeClock(), some_limits()).load(identities(3))
    with servers.a_redis(*options) as server:
        async with Redis.from_url(server.url) as client:
            assert await client.zcard(f"{OURS}available") == 3
            pool = redis(client, FakeClock(), some_limits())
            assert (await pool.lease(1)).why is WhyNot.AWAY
            assert not await pool.renew(1, FOR_EVER)
