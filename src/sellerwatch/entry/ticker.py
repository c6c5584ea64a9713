"""The ticker: everything that happens because its time has come. Any number of processes may run it at once."""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

import structlog

import sellerwatch
from sellerwatch.domain.breakers import Transition
from sellerwatch.domain.changes import Change
from sellerwatch.domain.leadership import LEAD_STEPS
from sellerwatch.entry.loops import Loop, Timesheet
from sellerwatch.flows.deliver import Delivered
from sellerwatch.flows.punctuality import Punctuality
from sellerwatch.ports.meter import NO_ANSWER
from sellerwatch.ports.outside import Receipt
from sellerwatch.ports.store import Unit
from sellerwatch.settings import SWEEPS
from sellerwatch.wiring import House, Outside

DUE_AT_ONCE = 5
"""Executions begun in one look at the schedule: many due at once are spread over the looks."""
LEAD_SECONDS = 3.0
"""A lead is renewed a few times before it would run out; nobody lends while who renews it rests after an outage."""
_LIFE_SECONDS = 5.0
_LATE_SECONDS = 60.0
SWEEP = "sweep:"
_GATHER_SECONDS = 0.25
"""Documents and changes come one by one and are cheap by the hundred."""


def ticker_loops(house: House) -> list[Loop]:
    """Trigger, relay, absorb, deliver, announce, and every sweep."""
    # A house that is alone hears every bell: there these look for what comes due by itself, and that may be seldom.
    seldom, very_seldom = max(30.0, house.poll_seconds), max(60.0, house.poll_seconds)
    loops = [
        Loop("absorb", partial(_absorb, house), 1.0, "absorb", seldom, _GATHER_SECONDS),
        Loop("delist", partial(_delist, house), 1.0, "delist", very_seldom),
        Loop("announce", house.announce.run, 1.0, "announce", seldom),
        Loop("alerts", partial(_alerts, house), 5.0, "alerts", very_seldom),
        Loop("punctuality", partial(_look_at_the_clock, house), _LATE_SECONDS, idle_ceiling=very_seldom),
    ]
    if not house.announce.schedules.fires_itself:
        due = partial(house.trigger.open_due, DUE_AT_ONCE)
        loops.append(Loop("due", due, 5.0, "due", very_seldom, pause_seconds=5.0))
    if house.heed:
        # It waits at its queue; here it only begins again.
        loops.append(Loop("triggers", house.heed.run, 0.05, idle_ceiling=0.05))
    if house.deliver:
        every = house.settings.delivery_interval
        deliver = partial(_deliver, house)
        loops.append(Loop("deliver", deliver, min(1.0, every), "deliver", min(every, seldom), _GATHER_SECONDS))
    if house.outside:
        loops += [
            Loop("plan", house.outside.plan.run, 0.5, "plan", house.poll_seconds),
            Loop("relay", partial(_relay, house.outside), 0.25, "relay", house.poll_seconds),
            *_sweeps(house, house.outside),
        ]
    # Without Redis it is the database's as soon as a lead of before has run out, and stays so.
    ceiling = LEAD_SECONDS if house.redis_pool else very_seldom
    return [*loops, Loop("lead", partial(_lead, house), LEAD_SECONDS, idle_ceiling=ceiling, rest_ceiling=LEAD_SECONDS)]


def late_after(house: House) -> dict[str, float]:
    """By the name under which they are noted: after so many seconds without a run a loop or sweep is late."""
    return {loop.name.removeprefix(SWEEP): loop.late_seconds for loop in ticker_loops(house)}


def life_loop(house: House, role: str, timesheet: Timesheet) -> Loop:
    """Shows that this process is alive, and when its loops last ran. Sweeps say so themselves: it is one's turn."""
    host, pid, version = socket.gethostname(), os.getpid(), sellerwatch.__version__

    async def run() -> int:
        at = house.clock.now()
        rows = [row for row in timesheet.unwritten(at) if not row[0].startswith(SWEEP)]

        def show(unit: Unit) -> None:
            unit.chores.show_life(house.owner, role, host, pid, version, at)
            unit.chores.note_sweeps(rows)

        await house.store.transact(show)
        return 0

    return Loop(f"life:{role}", run, _LIFE_SECONDS, idle_ceiling=house.poll_seconds)


def _sweeps(house: House, outside: Outside) -> list[Loop]:
    heal, identities = outside.heal, house.identities
    sweeps: dict[str, Callable[[], Awaitable[int]]] = {
        "stuck_tasks": heal.stuck_tasks,
        "published_orphans": heal.published_orphans,
        "dead_letters": heal.dead_letters,
        "outbox_zombies": heal.outbox_zombies,
        "failed_task_outbox": heal.failed_task_outbox,
        "failed_raws": heal.failed_raws,
        "executions": heal.executions,
        "daily_figures": heal.daily_figures,
        "retention": house.forget.retention,
        "partitions": house.forget.partitions,
        "ledger": house.ledger.run,
        "identities": identities.recover_due,
        "leases": identities.expire_leases,
        "tokens": identities.refresh_tokens,
        "records": partial(_records, house),
    }
    periods = {name: house.settings.sweep_period(name) for name in SWEEPS if name in sweeps}
    if house.redis_pool:
        # What the record does not know when Redis is lost counts as spent.
        periods["records"] = min(periods["records"], LEAD_SECONDS)
    return [
        Loop(
            f"{SWEEP}{name}",
            partial(_sweep, house, name, every, sweeps[name]),
            every,
            deadline_seconds=max(300.0, every),
        )
        for name, every in periods.items()
    ]


async def _sweep(house: House, name: str, every: float, sweep: Callable[[], Awaitable[int]]) -> int:
    """Run it and note what it found, unless another process does. What is left is found after the next period: a sweep
    never hurries."""
    turn = f"{SWEEP}{name}"
    if not await house.turns.is_ours(turn, every):
        return 0
    error: str | None = None
    found = 0
    try:
        found = await sweep()
    except asyncio.CancelledError:
        # It overran its deadline, or the process ends.
        error = "broken off before it was done"
        raise
    except Exception as failure:
        error = str(failure)
        await house.turns.pass_on(turn)
        raise
    finally:
        at = house.clock.now()
        await house.store.transact(lambda unit: unit.chores.note_sweeps([(name, found, error, at)]))
    house.meter.swept(name, found)
    if found:
        structlog.get_logger().info("swept", sweep=name, found=found)
    return 0


async def _look_at_the_clock(house: House) -> int:
    await Punctuality(house.store, house.reports, house.clock).run(late_after(house))
    return 0


async def _lead(house: House) -> int:
    led = await house.lead.run()
    if led.step in LEAD_STEPS:
        house.meter.led(led.step)
        structlog.get_logger().warning(
            "leadership of the pool", step=led.step, was=led.known.engine, epoch=led.known.epoch
        )
    return 0


async def _records(house: House) -> int:
    books = await house.identities.keep_books()
    _log_transitions(books.transitions)
    return books.written


def _log_transitions(transitions: Iterable[Transition]) -> None:
    for one in transitions:
        structlog.get_logger().warning(
            "breaker", scope=one.scope, agent_id=one.agent_id, was=one.from_state, now=one.to_state, reason=one.reason
        )


async def _absorb(house: House) -> int:
    absorbed = await house.absorb.run()
    _count(house, absorbed.changes)
    if absorbed.failed:
        structlog.get_logger().warning("raws not understood", failed=absorbed.failed, of=absorbed.raws)
    if absorbed.held:
        structlog.get_logger().warning("raws quarantined", held=absorbed.held, of=absorbed.raws)
    return absorbed.raws


async def _delist(house: House) -> int:
    settled, changes = await house.delist.run()
    _count(house, changes)
    if changes:
        structlog.get_logger().info("delisted or back", changes=len(changes))
    return settled


async def _deliver(house: House) -> int:
    delivered: Delivered = await house.deliver.run() if house.deliver else Delivered(0, (), ())
    for event, receipt in delivered.accepted:
        house.meter.delivery(_status(receipt), event.lag.total_seconds() if event.lag else None)
    for event, receipt in delivered.refused:
        house.meter.delivery(_status(receipt), None)
        structlog.get_logger().warning(
            "delivery refused", outbox_id=event.outbox_id, status=receipt.status, error=receipt.error
        )
    _log_transitions(delivered.transitions)
    return delivered.sent


def _count(house: House, changes: Iterable[Change]) -> None:
    for change in changes:
        for kind in change.kinds:
            house.meter.change(kind)


def _status(receipt: Receipt) -> str:
    return NO_ANSWER if receipt.status is None else str(receipt.status)


async def _alerts(house: House) -> int:
    await house.announce.tell_alerts()
    return 0


async def _relay(outside: Outside) -> int:
    relayed = await outside.relay.run()
    return relayed.claimed
