"""Loops: a flow is run again and again, at once while it finds something, else when its bell rings or its time comes.

Loops are independent: one that fails is reported, rests a little longer each time, and holds up no other; none ends
before it is told to. Each run has a deadline. One that overruns it is broken off where it waits, as a crash would do
it: a transaction under way on this thread is never met by that, one on another thread goes on to its end, and what had
been claimed runs out by itself. When each loop last ran stands in the timesheet, so that one that is late is seen.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import structlog

from sellerwatch.ports.time import Bell, Clock

_REST_SECONDS = 1.0
_PERIODS = 4
NOTED_SECONDS = 30.0
COMPLAINT_SECONDS = 60.0
_NUMBERS = re.compile(r"[0-9a-f-]*[0-9][0-9a-f-]*")


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
    deadline_seconds: float = 300.0
    """Longer than all that a run waits for may take together; what takes longer has got stuck."""

    @property
    def wake(self) -> str:
        return self.bell or f"loop:{self.name}"

    @property
    def late_seconds(self) -> float:
        """A loop that has not run for so long is late: some of its longest pauses, and a run that takes its time."""
        return _PERIODS * max(self.idle_seconds, self.idle_ceiling, self.pause_seconds) + self.deadline_seconds

    def unhurried(self, seconds: float) -> "Loop":
        """The same, which lets at least so much time go by before it works on what came, or looks by itself."""
        gather_seconds = max(self.gather_seconds, seconds) if self.bell else self.gather_seconds
        return replace(self, idle_seconds=max(self.idle_seconds, seconds), gather_seconds=gather_seconds)


@dataclass(slots=True)
class Timesheet:
    """When the loops of this process last ran, what they found, and what was wrong."""

    runs: dict[str, tuple[datetime, int, str | None]] = field(default_factory=dict)
    _written: dict[str, datetime] = field(default_factory=dict)

    def note(self, name: str, at: datetime, found: int, error: str | None) -> None:
        self.runs[name] = (at, found, error)

    def unwritten(self, at: datetime) -> list[tuple[str, int, str | None, datetime]]:
        """What is news, of a loop at most once in so many seconds."""
        rows = []
        for name, (ran_at, found, error) in self.runs.items():
            before = self._written.get(name)
            if before is None or (ran_at > before and (at - before).total_seconds() >= NOTED_SECONDS):
                rows.append((name, found, error, ran_at))
                self._written[name] = at
        return rows


class Complaints:
    """What is said of a loop that fails: an error with its whole story once, and then how often, once a minute."""

    def __init__(self, name: str, clock: Clock) -> None:
        self._log, self._clock = structlog.get_logger(loop=name), clock
        self._known: set[str] = set()
        self._times, self._said_at = 0, clock.monotonic()

    def hear(self, error: Exception, said: str) -> None:
        now = self._clock.monotonic()
        self._times += 1
        # Numbers and ids in it make no other error of it.
        kind = f"{type(error).__name__} {_NUMBERS.sub('#', said)}"
        if kind not in self._known:
            self._known.add(kind)
            self._log.error("loop failed", error=said, exc_info=error)
        elif now - self._said_at < COMPLAINT_SECONDS:
            return
        else:
            self._log.error("loop still fails", error=said, times=self._times)
        self._times, self._said_at = 0, now

    def end(self) -> None:
        """It is well again: whatever comes next is news."""
        self._known.clear()


async def run_loops(
    loops: Sequence[Loop], clock: Clock, bell: Bell, stop: asyncio.Event, timesheet: Timesheet | None = None
) -> None:
    """Until `stop` is set; what runs then is finished."""
    sheet = timesheet or Timesheet()
    running = [asyncio.create_task(_keep(loop, clock, bell, stop, sheet), name=loop.name) for loop in loops]
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


async def _keep(loop: Loop, clock: Clock, bell: Bell, stop: asyncio.Event, sheet: Timesheet) -> None:
    complaints = Complaints(loop.name, clock)
    rest_seconds, idle_seconds = _REST_SECONDS, loop.idle_seconds
    while not stop.is_set():
        try:
            found = await clock.within(loop.deadline_seconds, loop.run())
        except Exception as error:  # noqa: BLE001 - told, and tried again
            said = str(error) or (
                f"not done within {loop.deadline_seconds:.0f} s" if isinstance(error, TimeoutError) else repr(error)
            )
            complaints.hear(error, said)
            sheet.note(loop.name, clock.now(), 0, said)
            await bell.wait(f"rest:{loop.name}", rest_seconds)
            rest_seconds = min(rest_seconds * 2, loop.rest_ceiling)
            continue
        rest_seconds = _REST_SECONDS
        complaints.end()
        sheet.note(loop.name, clock.now(), found, None)
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
