"""The real clock: aware moments, and waits with an end."""

import asyncio
from datetime import UTC

import pytest

from sellerwatch.adapters.clock import SystemClock


def test_now_is_aware_and_in_utc():
    assert SystemClock().now().tzinfo is UTC


def test_monotonic_never_goes_back():
    clock = SystemClock()
    assert clock.monotonic() <= clock.monotonic()


async def test_a_wait_below_zero_is_no_wait():
    await SystemClock().sleep(-5)


async def test_within_gives_the_result_of_what_is_in_time():
    async def answer():
        return 42

    assert await SystemClock().within(5, answer()) == 42


async def test_within_ends_and_cancels_what_takes_longer():
    never = asyncio.get_running_loop().create_future()
    with pytest.raises(TimeoutError):
        await SystemClock().within(0, never)
    assert never.cancelled()
