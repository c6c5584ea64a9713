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
from math import ceil
from typing import Any, Final, TypeAlias

import structlog

from sellerwatch.adapters.chance import SeededChance
from sellerwatch.adapters.sql import audit
from sellerwatch.adapters.sql.database import Database
from sellerwatch.adapters.sql.dialect import engine, in_shared_memory
from sellerwatch.adapters.sql.schema import upgrade
from sellerwatch.domain.products import Product
from sellerwatch.sandbox.chance import Chance
from sellerwatch.sandbox.conditions import Conditions
from sellerwatch.sandbox.sandbox import Sandbox
from sellerwatch.settings import load
from sellerwatch.simulation.bells import SELDOM_SECONDS, Bells
from sellerwatch.simulation.ends import ORIGIN, SECRET, InProcessProductServer, InProcessTransport
from sellerwatch.simulation.faults import NAMES, Luck, Where, drawn
from sellerwatch.simulation.incidents import Incidents
from sellerwatch.simulation.lives import Life, driven_tasks
from sellerwatch.simulation.loop import BEGINNING, SimulatedLoop, VirtualClock
from sellerwatch.simulation.person import Person
from sellerwatch.simulation.place import Living, Outcome, Scenario
from sellerwatch.simulation.seams import Seams
from sellerwatch.wiring import House, build

Run: TypeAlias = Callable[[House, asyncio.Event], Awaitable[None]]
SETTLE_HOURS = 24.0
_LOOK_SECONDS, _REST_SECONDS = 60.0, 300.0
_ROBOTS_SECONDS = 25 * 3600.0
_CALM_PROFILE = 4
_CRAWL_HOURS: Final = (2, 6, 24, 72, 168)


def scenario_of(seed: int) -> Scenario:
    """What a seed draws: a few crawls of small shops, in a hurry or days apart. Every fourth one leaves our own processes
    and engines alone.
    """
    chance = Chance(seed, "scenario")
    shops = {f"shop{number + 1}": chance.between(1, 5) for number in range(chance.pick((1, 1, 2, 2, 3)))}
    outside = {name for name, kind in NAMES.items() if kind.where in {Where.MARKETPLACE, Where.SERVER, Where.ALERTS}}
    crawl_hours = chance.pick(_CRAWL_HOURS)
    return Scenario(
        seed=seed,
        shops=shops,
        identities=chance.between(2, 9),
        houses=chance.pick((1, 1, 2, 2, 3)),
        hours=float(crawl_hours * chance.between(3, 6)),
        rates=drawn(seed, outside if seed % _CALM_PROFILE == 0 else None),
        crawl_hours=float(crawl_hours),
    )


def lived(
    scenario: Scenario,
    run: Run,
    tamper: Callable[[House], None] = lambda _house: None,
    look: Callable[[House], Awaitable[None]] | None = None,
) -> Outcome:
    """The whole story of a scenario. For who tests the testers: `tamper` is done to each new house before it lives, and
    `look` looks around at the end.
    """
    loop = SimulatedLoop(Chance(scenario.seed, "schedule"))
    loop.set_task_factory(driven_tasks)
    outcome = Outcome(scenario)
    with _told() as log:
        town = Town(scenario, run, tamper, outcome, log)
        try:
            loop.run_until_complete(town.live())
            if look:
                loop.run_until_complete(look(town.office))
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
        outcome: Outcome,
        log: list[tuple[str, str]],
    ) -> None:
        self.scenario, self.outcome, self.log = scenario, outcome, log
        self._settings = load(overrides=_SETTINGS)
        self._run, self._tamper = run, tamper
        self.clock = VirtualClock()
        self.sandbox = Sandbox(
            Conditions(
                seed=scenario.seed,
                secret=SECRET,
                shops=scenario.shops,
                latency_ms=120,
                jitter_ms=80,
                images_max=1,
                token_seconds=86_400,
            )
        )
        self.luck = Luck(scenario.seed, scenario.rates)
        self.chance = Chance(scenario.seed, "work")
        self.transports: list[InProcessTransport] = []
        self.houses: list[House] = []
        self.lives: list[Life] = []
        self.living: dict[int, Living] = {}
        self.bells = Bells(scenario.seed)
        self.incidents = Incidents(self)
        self.person = Person(self)
        self._first: Seams | None = None
        self._background: list[asyncio.Task[Any]] = []

    async def live(self) -> None:
        office = self.office = self._house(VirtualClock(), 0)
        audit.restore(office.database, _empty())
        self.bells.join(office)
        await audit.leave_identities(office.database, self.scenario.identities)
        for seller in self.scenario.shops:
            await office.sellers.register(seller, seller, interval_days=ceil(self.scenario.crawl_hours / 24))
        for place in range(self.scenario.houses):
            self._background.append(asyncio.create_task(self._keep_a_house(place)))
        self._background.append(asyncio.create_task(self.incidents.run(self.scenario.hours)))
        self._background.append(asyncio.create_task(self._let_the_quiet_be_quiet()))
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
                await self.person.crawl(self.scenario.shops)
                self.sandbox.mutate(0.3)
            await self.clock.sleep(min(_REST_SECONDS, until - now, next_crawl - now))
            if not self.bells.is_quiet:
                await self.look()

    async def _let_the_quiet_be_quiet(self) -> None:
        while True:
            await self.clock.sleep(_REST_SECONDS)
            if not (self.bells.is_quiet or await audit.open_things(self.office.database)):
                self.bells.hush()

    async def _good_days(self) -> None:
        self.luck.is_calm = True
        self.bells.rouse()
        self.incidents.heal()
        self.tell("world", "all is well again")
        if self.luck.happened["robots_close"]:
            # What robots.txt said is heeded for as long as it is fresh.
            await self.clock.sleep(_ROBOTS_SECONDS)
        await self._settle("after the bad days")

    async def _the_end(self) -> None:
        if not self.outcome.violations:
            for _ in range(2):
                await self.person.crawl(self.scenario.shops)
                await self._settle("after the last crawl")
            await self.person.resend_what_was_refused()
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
            await self.person.attend()
            await self.clock.sleep(_LOOK_SECONDS)

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
            self._background.append(ended)
            await asyncio.wait([ended, living.root], return_when=asyncio.FIRST_COMPLETED)
            ended.cancel()
            self._background.remove(ended)
            if not living.life.is_dead and (error := living.root.exception()):
                self.log.append((type(error).__name__, f"the process ended: {error}"))
            self.tell(living.life.name, "is dead" if living.life.is_dead else "has stopped")
            await self.clock.sleep(self.luck.shape.between(1, 60))

    def _move_in(self, place: int) -> Living:
        number = len(self.lives) + 1
        clock = VirtualClock(ahead=timedelta(seconds=self.incidents.skew(place)))
        house = self._house(clock, number)
        life = Life(f"p{number}")
        self.bells.join(house, life)
        self._tamper(house)
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
        chance = SeededChance(self.scenario.seed * 1000 + number)
        # In memory, and of all houses: to write to a disk costs more than all else that a transaction does.
        kept = in_shared_memory(f"town-{id(self)}")
        house = build(
            self._settings,
            clock=clock,
            chance=chance,
            transport=transport,
            product_server=InProcessProductServer(self.sandbox, self.clock),
            is_alone=True,
            poll_seconds=SELDOM_SECONDS,
            database=Database(kept, inline=True, wait=clock.sleep, chance=chance.random),
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
    database = Database(engine("sqlite://"), inline=True)
    upgrade(database.engine, now=BEGINNING)
    audit.watch(database)
    written = audit.image(database)
    database.close()
    return written


async def _root(run: Run, house: House, stop: asyncio.Event) -> None:
    await run(house, stop)


_SETTINGS: Final = {
    "database_url": "sqlite://",
    "redis_url": None,
    "queue_url": "database:",
    "schedule_url": "builtin:",
    "trigger_queue_url": None,
    "alert_webhook_url": None,
    "marketplace_url": ORIGIN,
    "product_server_url": f"{ORIGIN}/products",
    "product_server_secret": SECRET,
    "token_keys": "sim:" + "A" * 43 + "=",
    "delivery_interval": SELDOM_SECONDS,
    "sweep_seconds": SELDOM_SECONDS,
    "identity_probation_hours": 1,
    "crawl_mode": "full",
}
