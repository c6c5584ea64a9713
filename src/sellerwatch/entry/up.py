"""Running the house: its loops and its worker, in this process, until told to stop.

Stopping: nothing is received any more, what runs is finished or handed back within SHUTDOWN_SECONDS, leases are given
back, and the process leaves the list of those that are alive.
"""

import asyncio
from collections.abc import Set as AbstractSet
from functools import partial

import structlog

from sellerwatch.domain.errors import Trouble
from sellerwatch.entry.log import about, ids_of
from sellerwatch.entry.loops import Loop, Timesheet, run_loops
from sellerwatch.entry.ticker import life_loop, ticker_loops
from sellerwatch.flows.crawl import Job
from sellerwatch.steps.settling import Settled
from sellerwatch.wiring import House

TICKER, WORKER = "ticker", "worker"
TRACES_SECONDS = 2.0
REST_CEILING = 30.0
_LOG = structlog.get_logger()


async def run_up(
    house: House,
    stop: asyncio.Event,
    roles: AbstractSet[str] = frozenset({TICKER, WORKER}),
    unhurried_seconds: float = 0.0,
) -> None:
    """The ticker's loops, the worker, or both. `unhurried_seconds`: a loop lets at least so much time go by before it
    works on what came, or looks by itself."""
    if not await house.load_pool():
        _LOG.warning("no engine leads the pool yet: nothing is asked until one does")
    if house.outside:
        house.outside.asking.is_stopping = stop.is_set
    timesheet = Timesheet()
    loops = [life_loop(house, "+".join(sorted(roles)), timesheet)]
    if house.traces.is_on:
        loops.append(Loop("traces", partial(_send_traces, house), TRACES_SECONDS, idle_ceiling=TRACES_SECONDS))
    if TICKER in roles:
        loops += ticker_loops(house)
    if unhurried_seconds:
        loops = [loop.unhurried(unhurried_seconds) for loop in loops]
    parts = [
        asyncio.create_task(run_loops(loops, house.clock, house.bell, stop, timesheet)),
        asyncio.create_task(_wake_waiting(house, stop)),
    ]
    if WORKER in roles and house.outside:
        parts.append(asyncio.create_task(_work(house, stop)))
    try:
        await asyncio.gather(*parts)
    finally:
        for part in parts:
            part.cancel()
        await asyncio.gather(*parts, return_exceptions=True)
        await house.turns.pass_on()
        await house.identities.keep_books()
        await house.store.transact(lambda unit: unit.chores.leave(house.owner))
        _LOG.info("stopped", owner=house.owner)


async def _send_traces(house: House) -> int:
    await house.traces.send()
    return 0


async def _wake_waiting(house: House, stop: asyncio.Event) -> None:
    """Who waits for an identity then sees that it is over."""
    await stop.wait()
    house.bell.ring("pool")


async def _work(house: House, stop: asyncio.Event) -> None:
    if house.outside is None:
        return
    crawl = house.outside.crawl
    running = asyncio.create_task(keep_crawling(house, stop))
    await stop.wait()
    _LOG.info("stopping", running=crawl.running)
    crawl.stop()
    await running


def _begin(job: Job) -> None:
    about(job.task)


def _tell(job: Job, outcome: Settled | BaseException) -> None:
    if isinstance(outcome, Settled) and outcome.is_written and not outcome.attempt.error_message:
        _LOG.debug("task done", ms=outcome.attempt.duration_ms)
        return
    task = job.task
    log = _LOG.bind(**ids_of(task), kind=task.kind.value, item_no=task.item_no)
    if isinstance(outcome, Trouble):
        log.warning("attempt in trouble", error=str(outcome))
    elif isinstance(outcome, BaseException):
        log.error("attempt lost", error=str(outcome))
    elif not outcome.is_written:
        log.warning("attempt overtaken", attempt_id=job.attempt.attempt_id)
    else:
        log.warning("attempt failed", status=outcome.task.status.value, error=outcome.attempt.error_message)


async def keep_crawling(house: House, stop: asyncio.Event) -> None:
    """A worker that fails (the database is away, say) rests and goes on."""
    if house.outside is None:
        return
    rest_seconds = 1.0
    while not stop.is_set():
        began = house.clock.monotonic()
        try:
            await house.outside.crawl.run(_tell, _begin)
        except Exception as error:  # noqa: BLE001 - told, and tried again
            _LOG.exception("worker failed", error=str(error))
            if house.clock.monotonic() - began > REST_CEILING:
                # It was well again in between.
                rest_seconds = 1.0
            await house.bell.wait("crawl", rest_seconds)
            rest_seconds = min(rest_seconds * 2, REST_CEILING)
