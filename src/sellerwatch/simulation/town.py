"""A town: houses on one database, lived through from one seed.

    bad days    anything may fail: processes, clocks, database, queue, pool, marketplace, product server
    good days   all has healed: everything must come to its end within `SETTLE_HOURS`, by itself
    the end     one more crawl of every shop; then the products are the truth, and the copies are the products

What a process does is handed in (`run`): the loops and the worker are the doors' affair. A person does what only a person
may: takes an identity that was blocked back, and resends what was finally refused, once an alert has told of it.
"""

import asyncio
import hashlib
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import structlog

from sellerwatch.adapters.chance import SeededChance
from sellerwatch.adapters.sql import audit
from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.dialect import engine
from sellerwatch.adapters.sql.schema import upgrade
from sellerwatch.domain.errors import Conflict, Trouble
from sellerwatch.domain.products import Product
from sellerwatch.sandbox.chance import Chance
from sellerwatch.sandbox.conditions import Conditions
from sellerwatch.sandbox.sandbox import Sandbox
from sellerwatch.settings import load
from sellerwatch.simulation.ends import ORIGIN, SECRET, InProcessProductServer, InProcessTransport
from sellerwatch.simulation.faults import NAMES, Luck, Where, drawn
from sellerwatch.simulation.incidents import Incidents
from sellerwatch.simulation.lives import Life, driven_tasks
from sellerwatch.simulation.loop import BEGINNING, SimulatedLoop, VirtualClock
from sellerwatch.simulation.place import Living, Outcome, Scenario
from sellerwatch.simulation.seams import Seams
from sellerwatch.wiring import House, build

Run: TypeAlias = Callable[[House, asyncio.Event], Awaitable[None]]
SETTLE_HOURS = 24.0
_LOOK_SECONDS = 60.0
_CALM_PROFILE = 4
_FILE = "town.db"
_POLL_SECONDS = 15.0
"""A house looks by itself as seldom as that: what a bell did not tell it, and what was broken off, waits so long."""


def scenario_of(seed: int) -> Scenario:
    """What a seed draws; every fourth one leaves our own processes and engines alone."""
    chance = Chance(seed, "scenario")
    shops = {f"shop{number + 1}": chance.between(1, 9) for number in range(chance.between(1, 3))}
    outside = {name for name, kind in NAMES.items() if kind.where in {Where.MARKETPLACE, Where.SERVER, Where.ALERTS}}
    return Scenario(
        seed=seed,
        shops=shops,
        identities=chance.between(4, 24),
        houses=chance.between(1, 3),
        hours=float(chance.between(4, 20)),
        rates=drawn(seed, outside if seed % _CALM_PROFILE == 0 else None),
    )


def lived(scenario: Scenario, run: Run, tamper: Callable[[House], None] = lambda _house: None) -> Outcome:
    """The whole story of a scenario. `tamper`: what is done to each new house before it lives, by who tests the testers."""
    loop = SimulatedLoop(Chance(scenario.seed, "schedule"))
    loop.set_task_factory(driven_tasks)
    outcome = Outcome(scenario)
    with TemporaryDirectory(prefix="sellerwatch-simulated-") as folder, _told() as log:
        town = Town(scenario, run, tamper, Path(folder), outcome, log)
        try:
            loop.run_until_complete(town.live())
        finally:
            town.bury()
            for task in asyncio.all_tasks(loop):
                task.cancel()
            loop.run_until_complete(town.close())
            loop.close()
    outcome.steps = loop.steps
    return outcome


@contextmanager
def _told() -> Iterator[list[tuple[str, str]]]:
    """What the houses log: of each error its type too, so that a mistake of ours is told from trouble."""
    before = structlog.get_config()
    log: list[tuple[str, str]] = []

    def note(_logger: Any, _method: str, event: Any) -> Any:
        error = event.get("exc_info")
        if error:
            kind = type(sys.exc_info()[1] if error is True else error)
            log.append((kind.__name__, f"{event['event']}: {event.get('error')}"))
        raise structlog.DropEvent

    structlog.configure(processors=[note])
    try:
        yield log
    finally:
        structlog.configure(**before)


class Town:
    def __init__(
        self,
        scenario: Scenario,
        run: Run,
        tamper: Callable[[House], None],
        folder: Path,
        outcome: Outcome,
        log: list[tuple[str, str]],
    ) -> None:
        self.scenario, self.outcome, self.log, self.folder = scenario, outcome, log, folder
        self._run, self._tamper = run, tamper
        self.clock = VirtualClock()
        self.sandbox = Sandbox(
            Conditions(
                seed=scenario.seed, secret=SECRET, shops=scenario.shops, latency_ms=120, jitter_ms=80, images_max=1
            )
        )
        self.luck = Luck(scenario.seed, scenario.rates)
        self.chance = Chance(scenario.seed, "work")
        self.transports: list[InProcessTransport] = []
        self.houses: list[House] = []
        self.lives: list[Life] = []
        self.living: dict[int, Living] = {}
        self.incidents = Incidents(self)
        self._first: Seams | None = None
        self._background: list[asyncio.Task[Any]] = []

    async def live(self) -> None:
        (self.folder / _FILE).write_bytes(_empty())
        office = self.office = self._house(VirtualClock(), 0)
        await audit.leave_identities(office.database, self.scenario.identities)
        for seller in self.scenario.shops:
            await office.sellers.register(seller, seller, interval_days=1)
        for place in range(self.scenario.houses):
            self._background.append(asyncio.create_task(self._keep_a_house(place)))
        self._background.append(asyncio.create_task(self.incidents.run(self.scenario.hours)))
        await self._bad_days()
        await self._good_days()
        await self._the_end()
        self._close_account()

    async def _bad_days(self) -> None:
        until = self.scenario.hours * 3600
        next_crawl = 0.0
        while (now := self.clock.monotonic()) < until:
            if now >= next_crawl:
                next_crawl = now + self.scenario.crawl_hours * 3600
                await self._crawl_all()
                self.sandbox.mutate(0.3)
            await self.clock.sleep(min(1800.0, until - now))
            await self.look()

    async def _crawl_all(self) -> None:
        for seller in self.scenario.shops:
            try:
                await self.office.trigger.crawl_now(seller)
                self.tell("operator", f"crawls {seller}")
            except (Conflict, Trouble) as refusal:
                self.tell("operator", f"can't crawl {seller}: {refusal}")

    async def _good_days(self) -> None:
        self.luck.is_calm = True
        self.incidents.heal()
        self.tell("world", "all is well again")
        await self._take_back_the_blocked()
        await self._settle("after the bad days")

    async def _the_end(self) -> None:
        if not self.outcome.violations:
            for _ in range(2):
                await self._crawl_all()
                await self._settle("after the last crawl")
            await self._resend_what_was_refused()
            await self._settle("after the resend")
        await self.look()
        await self.incidents.watching.at_the_end()

    async def _settle(self, when: str) -> None:
        """Everything ends by itself, within the bound."""
        until = self.clock.monotonic() + SETTLE_HOURS * 3600
        while is_open := await audit.open_things(self.office.database):
            if self.clock.monotonic() > until:
                self.wrong("I3 I4 lateness", f"{when}, {SETTLE_HOURS:.0f} h later still open: {is_open}")
                return
            await self.clock.sleep(_LOOK_SECONDS)

    async def _take_back_the_blocked(self) -> None:
        for agent_id in await audit.blocked(self.office.database):
            self.tell("operator", f"unblocks identity {agent_id}")
            await self.office.identities.unblock(agent_id)

    async def _resend_what_was_refused(self) -> None:
        if not await audit.refused(self.office.database):
            return
        if not await audit.is_alerted(self.office.database, "delivery_failed"):
            self.wrong("I2", "deliveries FAILED and no alert tells of it")
        self.tell("operator", "resends what was refused")
        await self.office.repair.retry_since(BEGINNING)

    async def look(self) -> None:
        """What must never be there, whenever one looks."""
        for name, rows in (await audit.never_found(self.office.database)).items():
            self.wrong(name, str(rows))

    # ── processes ────────────────────────────────────────────────────────────────────────────────────────────────

    async def _keep_a_house(self, place: int) -> None:
        """A supervisor: whoever dies or stops is followed by a new process."""
        while True:
            living = self.living[place] = self._move_in(place)
            self.tell(living.life.name, "begins")
            ended = asyncio.ensure_future(living.life.died.wait())
            await asyncio.wait([ended, living.root], return_when=asyncio.FIRST_COMPLETED)
            ended.cancel()
            if not living.life.is_dead and (error := living.root.exception()):
                self.log.append((type(error).__name__, f"the process ended: {error}"))
            self.tell(living.life.name, "is dead" if living.life.is_dead else "has stopped")
            await self.clock.sleep(self.luck.shape.between(1, 60))

    def _move_in(self, place: int) -> Living:
        number = len(self.lives) + 1
        clock = VirtualClock(ahead=timedelta(seconds=self.incidents.skew(place)))
        house = self._house(clock, number)
        self._tamper(house)
        life = Life(f"p{number}")
        self.lives.append(life)
        die_at = self.scenario.die_at if number == 1 else None
        seams = Seams(house, life, self.luck, lambda what, where: self.tell(life.name, f"{what} {where}"), die_at)
        self._first = self._first or seams
        watching = self.incidents.watching
        seams.leased, seams.given_back = watching.leased, watching.given_back
        seams.trouble = self.incidents.trouble
        stop = asyncio.Event()
        return Living(house, clock, life, seams, stop, life.begin(_root(self._run, house, stop)))

    def _house(self, clock: VirtualClock, number: int) -> House:
        transport = InProcessTransport(self.sandbox, self.clock)
        transport.heard = self.incidents.watching.heard
        self.transports.append(transport)
        house = build(
            load(overrides=_settings(self.folder)),
            clock=clock,
            chance=SeededChance(self.scenario.seed * 1000 + number),
            transport=transport,
            product_server=InProcessProductServer(self.sandbox, self.clock),
            is_alone=True,
            poll_seconds=_POLL_SECONDS,
        )
        self.houses.append(house)
        return house

    async def products(self, item_nos: list[int]) -> dict[int, Product]:
        return await self.office.store.read(lambda unit: unit.products.lock(item_nos))

    # ── what is told ─────────────────────────────────────────────────────────────────────────────────────────────

    def tell(self, who: str, what: str) -> None:
        self.outcome.timeline.append(f"{timedelta(seconds=round(self.clock.monotonic(), 3))!s:>16}  {who:<9} {what}")

    def wrong(self, what: str, how: str) -> None:
        violation = f"{what}: {how}"
        if violation not in self.outcome.violations:
            self.outcome.violations.append(violation)
            self.tell("CHECKER", violation)

    def _close_account(self) -> None:
        outcome = self.outcome
        outcome.happened = self.luck.happened
        outcome.requests = sum(self.sandbox.market.counts.values())
        outcome.deliveries = self.sandbox.receiver.counts["requests"]
        outcome.crossings = self._first.crossings if self._first else 0
        outcome.close_arrivals = sum(visitor.too_close for visitor in self.sandbox.market.gate.visitors.values())
        outcome.days = self.clock.monotonic() / 86400
        told = [*outcome.timeline, *(line for transport in self.transports for line in transport.trace)]
        outcome.fingerprint = hashlib.sha256("\n".join(told).encode()).hexdigest()

    def bury(self) -> None:
        for life in self.lives:
            life.bury()

    async def close(self) -> None:
        tasks = [*self._background]
        await asyncio.gather(*tasks, return_exceptions=True)
        for house in self.houses:
            await house.close()


@cache
def _empty() -> bytes:
    """A database with nothing in it but its schema, and the eye that watches its states; made once."""
    with TemporaryDirectory(prefix="sellerwatch-simulated-") as folder:
        file = Path(folder) / _FILE
        database = Database(engine(f"sqlite:///{file}"), inline=True)
        upgrade(database.engine, now=BEGINNING)
        audit.watch(database)
        database.close()
        return file.read_bytes()


async def _root(run: Run, house: House, stop: asyncio.Event) -> None:
    await run(house, stop)


def _settings(folder: Path) -> dict[str, object]:
    return {
        "database_url": f"sqlite:///{folder / _FILE}",
        "redis_url": None,
        "queue_url": "database:",
        "schedule_url": "builtin:",
        "trigger_queue_url": None,
        "alert_webhook_url": None,
        "marketplace_url": ORIGIN,
        "product_server_url": f"{ORIGIN}/products",
        "product_server_secret": SECRET,
        "token_keys": "sim:" + "A" * 43 + "=",
        "delivery_interval": 60,
        "sweep_seconds": 60,
        "identity_probation_hours": 1,
        "crawl_mode": "full",
    }
