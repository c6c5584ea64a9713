"""One process of Sellerwatch: what runs in it, where, and until when.

Promises: says what runs where as soon as it runs; on SQLite the schema is brought up to date first. SIGTERM or SIGINT
ends it gracefully within SHUTDOWN_SECONDS; a second one ends it at once. Refuses to begin without what its parts need.
"""

import asyncio
import base64
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final, TypeVar

import structlog

import sellerwatch
from sellerwatch.adapters.chance import SystemChance
from sellerwatch.adapters.clock import SystemClock
from sellerwatch.entry import log
from sellerwatch.entry.api.app import api
from sellerwatch.entry.api.metrics import watched
from sellerwatch.entry.api.server import served
from sellerwatch.entry.metrics import Metrics
from sellerwatch.entry.pretend import LOOPBACK, Pretended, pretended, shown_shops
from sellerwatch.entry.up import TICKER, WORKER, run_up
from sellerwatch.ports.time import Chance
from sellerwatch.sandbox.conditions import Conditions
from sellerwatch.settings import Settings, needed
from sellerwatch.settings.declared import shown
from sellerwatch.wiring import House, opened

T = TypeVar("T")
Say = Callable[[str], None]
API: Final = "api"
SANDBOX_PORT: Final = 8090
SPARE_SECONDS: Final = 3.0
ANSWER_SECONDS: Final = 5.0
"""What the API is answering when all else has stopped may take so long."""
SECRET_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class Plan:
    """What this process is to run."""

    roles: frozenset[str] = frozenset({API, TICKER, WORKER})
    host: str = "127.0.0.1"
    port: int = 8080
    conditions: Conditions | None = None
    """Of a sandbox in this process, which then is the marketplace and the product server."""
    sandbox_port: int | None = None
    """None: its usual one, so that a restart finds it where it was; another one where that is taken."""


async def run(plan: Plan, settings_with: Callable[[Mapping[str, object]], Settings], say: Say) -> None:
    """Until a signal says stop. `settings_with`: the operator's settings, these in place of theirs."""
    stop = asyncio.Event()
    clock = SystemClock()
    with_signals(stop)
    async with AsyncExitStack() as stack:
        overrides: dict[str, object] = {}
        beside: Pretended | None = None
        if plan.conditions:
            beside = await stack.enter_async_context(_sandbox(plan.conditions, clock, plan.sandbox_port))
            overrides |= beside.settings
        settings = settings_with(overrides)
        log.set_up(settings, clock)
        if plan.roles & {WORKER, TICKER}:
            needed(settings, "marketplace_url")
        metrics = Metrics()
        house = await stack.enter_async_context(opened(settings, meter=metrics))
        log.set_up(house.settings, clock)
        await prepared(house)
        door = api(house, metrics) if API in plan.roles else watched(house, metrics)
        patience = min(ANSWER_SECONDS, settings.shutdown_seconds)
        server = served(door, plan.host, plan.port, clock, house.chance, shutdown_seconds=patience)
        address = await stack.enter_async_context(server)
        lines = _lines(plan, house, beside)
        if API in plan.roles:
            lines = {"api": f"{address}  (/docs, /actuator/health, /metrics)", **lines}
        else:
            lines |= {"watched at": f"{address}  (/actuator/health, /metrics)"}
        _tell(say, lines, settings)
        await _work(house, plan, stop)
    say("stopped")


def started(work: Coroutine[object, object, T]) -> T:
    """Run it in an event loop of its own, the fastest there is."""
    import uvloop  # noqa: PLC0415 - loaded where a loop begins

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


async def sandbox_alone(conditions: Conditions, host: str, port: int, say: Say) -> None:
    """The sandbox and nothing else, until a signal says stop."""
    stop = asyncio.Event()
    with_signals(stop)
    async with pretended(conditions, SystemClock(), host=host, port=port) as beside:
        say(f"the sandbox is up; Ctrl+C stops it  ({shown_shops(conditions.shops)})")
        say(f"  SELLERWATCH_MARKETPLACE_URL={beside.address}")
        say(f"  SELLERWATCH_PRODUCT_SERVER_URL={beside.settings['product_server_url']}")
        say(f"  SELLERWATCH_PRODUCT_SERVER_SECRET={conditions.secret or 'whsec_…  (any: signatures are not checked)'}")
        say(f"  look inside: {beside.address}/__stats, what there is: {beside.address}/__")
        await stop.wait()
    say("stopped")


def with_signals(stop: asyncio.Event) -> None:
    """The first signal asks to stop, the second one does."""
    loop = asyncio.get_running_loop()

    def told(number: int) -> None:
        if stop.is_set():
            os._exit(128 + number)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told, number)


async def prepared(house: House) -> None:
    """On SQLite the schema follows by itself; elsewhere somebody must have seen to it."""
    if house.settings.embedded:
        house.upgrade()
    await house.check_schema()


@asynccontextmanager
async def running(house: House, stop: asyncio.Event) -> AsyncIterator[asyncio.Task[None]]:
    """Ticker and worker at work until the block ends."""
    work = asyncio.create_task(run_up(house, stop))
    try:
        yield work
    finally:
        stop.set()
        await _ended(house, work)


def new_secret(chance: Chance | None = None) -> str:
    """A secret for signing deliveries."""
    return "whsec_" + base64.b64encode((chance or SystemChance()).token_bytes(SECRET_BYTES)).decode()


@asynccontextmanager
async def _sandbox(conditions: Conditions, clock: SystemClock, port: int | None) -> AsyncIterator[Pretended]:
    if port is None and not is_free(SANDBOX_PORT):
        port = 0
    async with pretended(conditions, clock, port=SANDBOX_PORT if port is None else port) as beside:
        yield beside


def is_free(port: int) -> bool:
    with socket.socket() as trying:
        trying.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trying.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


async def _work(house: House, plan: Plan, stop: asyncio.Event) -> None:
    work = asyncio.create_task(run_up(house, stop, plan.roles))
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({work, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    stop.set()
    await _ended(house, work)


async def _ended(house: House, work: asyncio.Task[None]) -> None:
    try:
        await house.clock.within(house.settings.shutdown_seconds + SPARE_SECONDS, work)
    except TimeoutError:
        structlog.get_logger().warning("stopped before everything was handed back: its claims run out by themselves")


def _lines(plan: Plan, house: House, beside: Pretended | None) -> dict[str, str]:
    settings = house.settings
    is_sandbox = f"  (sandbox: {shown_shops(beside.sandbox.conditions.shops)})" if beside else ""
    lines = {
        "runs": ", ".join(sorted(plan.roles)),
        "database": shown("database_url", settings.database_url),
        "marketplace": f"{settings.marketplace_url}{is_sandbox}" if settings.marketplace_url else "none is set",
        "changes go to": settings.product_server_url or "nobody yet: set SELLERWATCH_PRODUCT_SERVER_URL",
    }
    return lines if plan.roles != {API} else {name: lines[name] for name in ("runs", "database")}


def _tell(say: Say, lines: Mapping[str, str], settings: Settings) -> None:
    say(f"Sellerwatch {sellerwatch.__version__} is up; Ctrl+C stops it")
    for name, text in lines.items():
        say(f"  {name:<14} {text}")
    for warning in settings.warnings():
        structlog.get_logger().warning("beyond the careful defaults", setting=warning)
