"""Politeness that no process may forget: every engine keeps it for all of them, whoever asks and whenever."""

from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from contracts.pool_world import HOUR, MORNING, World, ask, said
from sellerwatch.adapters.chance import SeededChance
from sellerwatch.domain.identities import Verdict
from sellerwatch.ports.pool import Lease, Pool, WhyNot


def most(moments: list[datetime], seconds: float) -> int:
    span = timedelta(seconds=seconds)
    return max(sum(end - span < at <= end for at in moments) for end in moments)


@pytest.mark.parametrize("seed", range(2))
async def test_lesson_33_rotating_identities_and_processes_keep_one_ceiling_and_one_concurrency(
    world: World, seed: int
) -> None:
    """Three processes, sixty identities, asked at random for random numbers for half a minute."""
    draw = SeededChance(seed).random
    limits = {"site_requests_per_second": 7, "concurrency": 9, "lease_seconds": 20}
    processes: list[Pool] = [await world.pool(60, **limits)] + [world.seen_by_another(**limits) for _ in range(2)]
    out: list[tuple[Pool, Lease]] = []
    moments: list[datetime] = []
    for _ in range(250):
        world.clock.go((0, 0.01, 0.2, 0.5)[int(draw() * 4)])
        out = [(pool, lease) for pool, lease in out if lease.deadline > world.clock.now()]
        pool = processes[int(draw() * 3)]
        grant = await pool.lease(1 + int(draw() * 5))
        moments += [lease.leased_at for lease in grant.leases]
        out += [(pool, lease) for lease in grant.leases]
        assert len(out) <= 9
        for _ in range(int(draw() * 4)):
            if not out:
                break
            holder, lease = out.pop(int(draw() * len(out)))
            if draw() < 0.1:
                await holder.cancel([(lease.lease_id, lease.agent_id)])
                moments.remove(lease.leased_at)
            else:
                assert await holder.report([said(lease)]) == [True]
    assert most(moments, 1) <= 7
    # And they were kept busy.
    assert len(moments) > 120


async def test_lesson_34_patience_belongs_to_the_site_not_to_the_requests_that_were_told(world: World) -> None:
    """Nothing under way, the queue empty, every process started anew: it is paused all the same."""
    pool = await world.pool(30)
    for agent_id in (1, 2, 3):
        await ask(pool, agent_id, Verdict.SITE_FAILURE, http_status=503, retry_after=timedelta(seconds=1800))
    assert (await pool.figures()).leased == 0
    members = [each.identity for each in await pool.standings()]
    world.clock.go(600)
    again = world.seen_by_another()
    await again.load(members)
    grant = await again.lease(1)
    assert (grant.leases, grant.why, grant.next_at) == ((), WhyNot.PAUSED, MORNING + timedelta(seconds=1800))
    assert await again.capacity(600) == 0
    world.clock.go(1200)
    assert (await again.lease(1)).leases


async def test_lesson_34_the_breaker_of_the_site_outlives_every_request_too(world: World) -> None:
    pool = await world.pool(40)
    for agent_id in range(1, 21):
        await ask(pool, agent_id, Verdict.SITE_FAILURE, http_status=502)
    world.clock.go(599)
    again = world.seen_by_another()
    await again.load([each.identity for each in await pool.standings()])
    assert (await again.lease(1)).why is WhyNot.CIRCUIT_OPEN
    world.clock.go(1)
    # One trial, whoever asks.
    assert [len((await each.lease(5)).leases) for each in (again, pool)] == [1, 0]


async def test_lesson_32_nothing_that_is_said_of_patience_shortens_our_own(world: World) -> None:
    for patience in (None, timedelta(0), timedelta(seconds=1), timedelta(days=30)):
        pool = await world.pool(1, min_available_percent=0)
        await ask(pool, 1, Verdict.RATE_LIMITED, http_status=429, retry_after=patience)
        least = max(timedelta(seconds=HOUR), min(patience or timedelta(0), timedelta(days=1)))
        world.clock.at += least - timedelta(seconds=1)
        await pool.recover_due()
        assert not (await pool.lease(1)).leases
        world.clock.go(1)
        await pool.recover_due()
        assert (await pool.lease(1)).leases
        world.clock.go(40)
        await pool.expire()


async def test_evenly_paced_two_processes_keep_one_pace_and_one_catching_up(world: World) -> None:
    limits = {"is_paced_evenly": True, "hourly_limit": 60, "guard_seconds": 0.0}
    pool, other = await world.pool(1, **limits), world.seen_by_another(**limits)
    await ask(pool, 1)
    world.clock.go(600)
    moments: list[float] = []
    while world.clock.now() < MORNING + timedelta(seconds=2400):
        for each in (pool, other):
            if lease := await each.lease_of(1):
                moments.append((world.clock.now() - MORNING).total_seconds())
                await each.report([said(lease)])
        world.clock.go(5)
    gaps = [after - before for before, after in pairwise(moments)]
    # A minute apart when even; half of it while catching up on ten minutes of rest, and no burst.
    assert min(gaps) == 30
    assert gaps[-5:] == [60] * 5
    assert sum(gap == 30 for gap in gaps) >= 9
    assert len(moments) <= 40
