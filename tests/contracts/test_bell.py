"""The promises of ports/time.py's Bell, and of the schedule that needs nobody told."""

import asyncio

import pytest

from sellerwatch.adapters.bell import AsyncBell
from sellerwatch.adapters.clock import SystemClock


@pytest.fixture
def bell() -> AsyncBell:
    return AsyncBell(SystemClock())


async def test_a_ring_wakes_all_who_wait_for_its_name_and_nobody_else(bell):
    waiting = [asyncio.create_task(bell.wait("queue:tasks", 5)) for _ in range(3)]
    other = asyncio.create_task(bell.wait("other", 0.05))
    await asyncio.wait([other], timeout=0)
    bell.ring("queue:tasks")
    assert await asyncio.gather(*waiting) == [True, True, True]
    assert await other is False


async def test_rings_before_anyone_waits_are_not_lost_and_count_once(bell):
    for _ in range(3):
        bell.ring("queue:tasks")
    assert await bell.wait("queue:tasks", 5)
    assert not await bell.wait("queue:tasks", 0.01)


async def test_it_waits_at_most_so_long(bell):
    assert not await bell.wait("queue:tasks", 0)
    assert not await bell.wait("queue:tasks", 0.01)
