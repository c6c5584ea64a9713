"""Diagnosis: what is wrong with an installation, and what to do about it.

Looks at each part by itself, so that one that is ill hides none of the others. Changes nothing; asks the marketplace
only when it is told to, on a lease like any other request.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

from sellerwatch.adapters.sql.server import Server
from sellerwatch.domain.breakers import BreakerState
from sellerwatch.domain.errors import SellerwatchError, Unavailable
from sellerwatch.domain.leadership import Engine
from sellerwatch.domain.tasks import TaskKind
from sellerwatch.entry.console.text import count
from sellerwatch.entry.ticker import late_after
from sellerwatch.flows.punctuality import late
from sellerwatch.ports.pool import WhyNot
from sellerwatch.ports.store import Usage
from sellerwatch.settings import PREFIX
from sellerwatch.wiring import House

REACH_SECONDS: Final = 3.0
ASK_SECONDS: Final = 60.0
CLOCK_SECONDS: Final = 5.0
RUNBOOK: Final = "docs/runbook.md"
ADVICE: Final[Mapping[str, str]] = {
    "database": f"is it up, reached from here, and {PREFIX}DATABASE_URL right?",
    "pool": f"is the engine up that leads it? see {RUNBOOK}#pool_engine",
    "redis": f"is it up, and {PREFIX}REDIS_URL right? Without it the database lends: see {RUNBOOK}#pool_engine",
    "queue": f"is it up, {PREFIX}QUEUE_URL right, and may we use it? see docs/aws.md",
    "schedule": "look at the database first: nothing else is asked here",
    "rules": f"is EventBridge reached, {PREFIX}SCHEDULE_URL right, and may we use it? see docs/aws.md",
    "processes": "look at the database first: nothing else is asked here",
    "clock": "look at the database first: nothing else is asked here",
    "product server": f"is it up, and {PREFIX}PRODUCT_SERVER_URL right? see {RUNBOOK}#product_server_away",
    "marketplace": f"is {PREFIX}MARKETPLACE_URL right? see `sellerwatch agents status` and docs/politeness.md",
}
"""What to do where a part can't be asked and does not say so itself."""
WAL: Final = b"\x02\x02"
"""In bytes 18 and 19 of a SQLite file: written and read with a write-ahead log."""


class State(StrEnum):
    GOOD = "ok"
    NOTE = "note"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Finding:
    part: str
    state: State
    said: str
    advice: str = ""


Findings = Sequence[Finding]


async def diagnose(house: House, *, is_online: bool) -> list[Finding]:
    """The findings, part by part. What needs the database is left out when that is ill."""
    found = list(await _of("database", _database, house))
    if any(finding.state is State.WRONG for finding in found):
        return found
    parts: list[tuple[str, Callable[[House], Awaitable[Findings]]]] = [
        ("pool", _pool),
        ("redis", _redis),
        ("queue", _queue),
        ("schedule", _schedule),
        ("rules", _rules),
        ("processes", _processes),
        ("clock", _clock),
        ("product server", _product_server),
        ("marketplace", _marketplace_online if is_online else _marketplace),
    ]
    for name, look in parts:
        found += await _of(name, look, house)
    return found


async def _of(part: str, look: Callable[[House], Awaitable[Findings]], house: House) -> Findings:
    try:
        return await look(house)
    except SellerwatchError as error:
        said = str(error).removeprefix(f"{part}: ")
        return [Finding(part, State.WRONG, said, "" if "run `" in said else ADVICE[part])]
    except Exception as error:  # noqa: BLE001 - a diagnosis that breaks off would hide the rest
        return [Finding(part, State.WRONG, f"{type(error).__name__}: {error}", "run `sellerwatch --debug doctor`")]


async def _database(house: House) -> Findings:
    await house.check_schema()
    at = house.clock.now()
    # A row that is cleared whether it is there or not: it takes the writer's lock and changes nothing.
    await house.store.transact(lambda unit: unit.chores.clear_alert("doctor", at))
    server = await house.server()
    if server:
        return _server(server, house.clock.now(), house.settings.database_pool_max)
    file = house.settings.database_file
    if file is None:
        return [Finding("database", State.GOOD, "in memory: gone when this process ends")]
    with file.open("rb") as opened:
        is_wal = opened.read(20)[18:20] == WAL
    if not is_wal:
        return [
            Finding(
                "database",
                State.NOTE,
                f"{file}: writable, but not in WAL mode: readers wait for writers",
                "put it on a local disk, not on a network file system",
            )
        ]
    return [Finding("database", State.GOOD, f"{file}: writable, WAL, schema up to date")]


def _server(server: Server, now: datetime, connections: int) -> Findings:
    found = [Finding("database", State.WRONG, said, advice) for said, advice in server.faults(connections)]
    ahead = (server.at - now).total_seconds()
    if abs(ahead) > CLOCK_SECONDS:
        said = f"the server's clock is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} this machine's"
        found.append(Finding("database", State.WRONG, said, "let both keep time by NTP: claims end by it"))
    good = f"{server.name} {server.version}: writable, READ COMMITTED, UTC, strict, schema up to date"
    return found or [Finding("database", State.GOOD, good)]


async def _pool(house: House) -> Findings:
    await house.load_pool()
    figures = await house.pool.figures()
    said = (
        f"{figures.available} of {figures.total} identities available, {figures.suspended} suspended, "
        f"{figures.blocked} blocked, {figures.remaining_requests} requests left this hour"
    )
    if figures.why is WhyNot.EMPTY or not figures.available:
        advice = "add identities: `sellerwatch agents seed`, or see `sellerwatch agents status`"
        return [Finding("pool", State.WRONG, said, advice)]
    if figures.why is WhyNot.AWAY:
        return [Finding("pool", State.WRONG, "no engine of the pool can be asked just now", "is a ticker running?")]
    for breaker in (figures.pool_breaker, figures.site_breaker):
        if breaker.state is not BreakerState.CLOSED:
            until = breaker.retry_at()
            again = f"; it tries again at {until:%H:%M:%S} UTC" if until else ""
            said += f"; the breaker of the {breaker.scope.lower()} is {breaker.state}{again}"
            return [Finding("pool", State.WRONG, said, "see `sellerwatch status` for what opened it")]
    if figures.why is WhyNot.SPENT:
        return [
            Finding("pool", State.NOTE, said, f"the budget is spent until {figures.next_available_at:%H:%M:%S} UTC")
        ]
    return [Finding("pool", State.GOOD, said)]


async def _redis(house: House) -> Findings:
    """Nothing is said of one that nobody wants."""
    if house.redis_pool is None:
        return []
    room = await house.redis_pool.room()
    known, pulse = await house.store.read(lambda unit: unit.leaderships.get()), await house.redis_pool.pulse()
    is_held = known.leads(Engine.REDIS) and pulse.epoch == known.epoch and pulse.is_whole
    other = "the database does" if known.leads(Engine.SQL) else "and just now nobody does"
    leads = "holds the pool" if is_held else f"does not hold the pool, {other}"
    said = f"Redis {room.version} {leads}; when full: {room.policy}, {room.evicted} keys thrown away so far"
    if room.may_throw_away or room.evicted:
        advice = "what it throws away counts as spent: set `maxmemory-policy noeviction`, or give it more room"
        return [Finding("redis", State.WRONG, said, advice)]
    if not is_held and not known.leads(Engine.SQL):
        advice = "within two minutes a scheduler has it rebuilt from the record, or the database leads: is one running?"
        return [Finding("redis", State.WRONG, said, advice)]
    apart = abs((house.clock.now() - pulse.at).total_seconds())
    if apart > CLOCK_SECONDS:
        advice = "the budgets hold all the same, but who waits waits by the wrong clock: let both be set by NTP"
        return [Finding("redis", State.WRONG, f"{said}; its clock and ours are {apart:.0f} s apart", advice)]
    return [Finding("redis", State.GOOD, said)]


async def _queue(house: House) -> Findings:
    deviations = [deviation for layout in house.layouts for deviation in await layout.deviations()]
    found = [
        Finding("queue", State.WRONG, f"{one.name}: {one.said}", "mend it: `sellerwatch queue setup`")
        for one in deviations
    ]
    try:
        depth = await house.queue.depth()
    except Unavailable:
        # What is missing has been said.
        if not found:
            raise
        return found
    said = f"{depth.waiting} waiting, {depth.out} out, {depth.dead} dead letters"
    if address := house.settings.queue:
        said = f"{address.name} in SQS: {said}"
    if depth.dead:
        return [*found, Finding("queue", State.NOTE, said, "look with `sellerwatch dlq list`")]
    return [*found, Finding("queue", State.GOOD, said)]


async def _rules(house: House) -> Findings:
    """What EventBridge keeps, where it fires the triggers."""
    if house.sync is None:
        return []
    misfits = await house.sync.deviations()
    if not misfits:
        return [Finding("rules", State.GOOD, "EventBridge has the rules that the schedules want")]
    first = f"{misfits[0].name} {misfits[0].said}"
    said = f"{count(len(misfits), 'rule')} of EventBridge not as it should be: {first}"
    said += f", and {len(misfits) - 1} more" if len(misfits) > 1 else ""
    return [Finding("rules", State.WRONG, said, "see `sellerwatch schedule sync --dry-run`")]


async def _schedule(house: House) -> Findings:
    overview = await house.reports.overview(house.clock.now())
    sellers = sum(overview.sellers.values())
    found = [
        Finding(
            "schedule",
            State.GOOD if sellers else State.NOTE,
            f"{count(sellers, 'seller')}, {count(len(overview.executions_open), 'execution')} open",
            "" if sellers else "register one: `sellerwatch seller add ID --name NAME`",
        )
    ]
    found += [
        Finding("alert", State.WRONG, f"{alert.name}: {alert.text}", f"{RUNBOOK}#{alert.name.partition(':')[0]}")
        for alert in overview.alerts
    ]
    found += [
        Finding("sweep", State.WRONG, f"{sweep.name}: {sweep.last_error}", "it runs again by itself; the log says more")
        for sweep in overview.sweeps
        if sweep.last_error
    ]
    found += [
        Finding(
            "sweep",
            State.WRONG,
            f"{one.name} has not run for {one.seconds:.0f} s",
            "it hangs, or nobody runs it: its log says why; restart the scheduler",
        )
        for one in late(overview, late_after(house))
    ]
    return found


async def _processes(house: House) -> Findings:
    overview = await house.reports.overview(house.clock.now())
    roles = sorted({role for process in overview.processes for role in process.role.split("+")})
    if missing := {"ticker", "worker"} - set(roles):
        said = f"running: {', '.join(roles) or 'nothing'}; nobody is a {' or a '.join(sorted(missing))}"
        return [Finding("processes", State.NOTE, said, "start it: `sellerwatch up`")]
    return [Finding("processes", State.GOOD, f"running: {', '.join(roles)}")]


async def _clock(house: House) -> Findings:
    now = house.clock.now()
    overview = await house.reports.overview(now)
    ahead = max(((process.seen_at - now).total_seconds() for process in overview.processes), default=0.0)
    if ahead > CLOCK_SECONDS:
        said = f"another process's clock is {ahead:.0f} s ahead of this machine's"
        return [Finding("clock", State.WRONG, said, "let both keep time by NTP: budgets are counted by it")]
    return [Finding("clock", State.GOOD, f"{now:%Y-%m-%d %H:%M:%S} UTC")]


async def _product_server(house: House) -> Findings:
    url = house.settings.product_server_url
    if url is None:
        advice = f"set {PREFIX}PRODUCT_SERVER_URL and {PREFIX}PRODUCT_SERVER_SECRET"
        return [
            Finding("product server", State.NOTE, "by this shell's settings none is set: then changes wait", advice)
        ]
    return [await _reached(house, "product server", url)]


async def _marketplace(house: House) -> Findings:
    if house.settings.marketplace_url is None:
        advice = f"set {PREFIX}MARKETPLACE_URL, or try `sellerwatch up --sandbox`"
        return [
            Finding(
                "marketplace", State.NOTE, "by this shell's settings none is set: then nothing can be crawled", advice
            )
        ]
    said = f"{house.settings.marketplace_url} (not asked; `doctor --online` asks it)"
    return [Finding("marketplace", State.GOOD, said)]


async def _marketplace_online(house: House) -> Findings:
    outside = house.outside
    if outside is None:
        return await _marketplace(house)
    reached = await _reached(house, "marketplace", outside.addresses.origin)
    if reached.state is State.WRONG:
        return [reached]
    if not await outside.asking.may_issue():
        said = outside.asking.token_refusal or outside.asking.robots.problem
        return [Finding("marketplace", State.WRONG, said, "see docs/politeness.md")]
    grant = await house.pool.lease(1)
    if not grant.leases:
        return [
            Finding("marketplace", State.WRONG, f"no identity is free: {grant.why}", "see `sellerwatch agents status`")
        ]
    lease = grant.leases[0]
    sellers = (await house.reports.sellers(size=1)).rows
    usages: list[Usage] = []
    is_list = bool(sellers) and lease.token is not None
    if is_list:
        url = outside.addresses.mini_shop(sellers[0].seller_id, 0, 1)
        asking = outside.asking.ask(TaskKind.MINI_SHOP, url, lease=lease)
        asked = await house.clock.within(ASK_SECONDS, asking)
        usages, error = asked.usages, asked.error
        if asked.answer is not None and error is None:
            house.reader.listing(TaskKind.MINI_SHOP, asked.answer.body)
    else:
        usage, _ = await outside.asking.issue(lease)
        usages, error = [usage], usage.error_message
    await house.store.transact(lambda unit: unit.chores.log_usage(usages))
    if error:
        return [Finding("marketplace", State.WRONG, error, "look at the address, and at `sellerwatch agents status`")]
    what = "its list was read" if is_list else "it gave a token"
    return [Finding("marketplace", State.GOOD, f"{outside.addresses.origin} answers: {what}")]


async def _reached(house: House, part: str, url: str) -> Finding:
    """Whether somebody listens there; nothing is sent."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    origin = f"{parts.scheme}://{parts.netloc}"
    try:
        opening = asyncio.open_connection(parts.hostname, port, ssl=parts.scheme == "https" or None)
        _, writer = await house.clock.within(REACH_SECONDS, opening)
    except TimeoutError:
        return Finding(part, State.WRONG, f"{origin} does not answer within {REACH_SECONDS:.0f} s", "is it up?")
    except OSError as error:
        reason = error.strerror or str(error)
        return Finding(part, State.WRONG, f"{origin} cannot be reached: {reason}", "is it up, and the address right?")
    writer.close()
    return Finding(part, State.GOOD, f"{origin} listens")
