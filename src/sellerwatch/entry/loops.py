"""Loops: a flow is run again and again, at once while it finds something, else when its bell rings or its time comes.

Loops are independent: one that fails is reported, rests a little longer each time, and holds up no other; none ends
before it is told to.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

import structlog

from sellerwatch.ports.time import Bell, Clock

_REST_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Loop:
    name: str
    run: Callable[[], Awaitable[int]]
    """How much there was to do."""
    idle_seconds: float
    """Having found nothing it looks again after this, and then less and less often, down to every `idle_ceiling`."""
    bell: str = ""
    """By which name it is woken; none: only its time wakes it."""
    idle_ceiling: float = 0.0
    gather_seconds: float = 0.0
    """Woken, it lets so much time go by: what comes meanwhile is worked on together."""
    pause_seconds: float = 0.0
    """Having found something it looks again after this: at once, unless what it finds is to be spread over time."""
    rest_ceiling: float = 60.0
    """Having failed it rests longer each time, but no longer than this."""

    @property
    def wake(self) -> str:
        return self.bell or f"loop:{self.name}"

    def unhurried(self, seconds: float) -> "Loop":
        """The same, which lets at least so much time go by before it works on what came, or looks by itself."""
        gather_seconds = max(self.gather_seconds, seconds) if self.bell else self.gather_seconds
        return replace(self, idle_seconds=max(self.idle_seconds, seconds), gather_seconds=gather_seconds)


async def run_loops(loops: Sequence[Loop], clock: Clock, bell: Bell, stop: asyncio.Event) -> None:
    """Until `stop` is set; what runs then is finished."""
    running = [asyncio.create_task(_keep(loop, clock, bell, stop), name=loop.name) for loop in loops]
    try:
        await stop.wait()
        for loop in loops:
            bell.ring(loop.wake)
            bell.ring(f"rest:{loop.name}")
        await asyncio.gather(*running)
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _keep(loop: Loop, clock: Clock, bell: Bell, stop: asyncio.Event) -> None:
    log = structlog.get_logger(loop=loop.name)
    rest_seconds, idle_seconds = _REST_SECONDS, loop.idle_seconds
    while not stop.is_set():
        try:
            found = await loop.run()
        except Exception as error:
            log.exception("loop failed", error=str(error))
            await bell.wait(f"rest:{loop.name}", rest_seconds)
            rest_seconds = min(rest_seconds * 2, loop.rest_ceiling)
            continue
        rest_seconds = _REST_SECONDS
        if found:
            idle_seconds = loop.idle_seconds
            await clock.sleep(0)
            if loop.pause_seconds:
                await bell.wait(f"rest:{loop.name}", loop.pause_seconds)
        elif await bell.wait(loop.wake, idle_seconds):
            idle_seconds = loop.idle_seconds
            await clock.sleep(loop.gather_seconds)
        else:
            idle_seconds = min(idle_seconds * 2, max(loop.idle_ceiling, loop.idle_seconds))
