"""Incidents: what befalls the whole town for a while, at moments that the seed chose beforehand, and is healed again."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from sellerwatch.ports.queue import Outgoing
from sellerwatch.sandbox.conditions import ROBOTS
from sellerwatch.sandbox.faults import NAMES as MARKET_FAULTS
from sellerwatch.sandbox.faults import Fault
from sellerwatch.simulation.faults import KINDS, Unit
from sellerwatch.simulation.place import Place
from sellerwatch.simulation.watching import Watching

_OUTAGES: Final[Mapping[str, tuple[str, int]]] = {
    "market_down": ("error", 60),
    "market_dark": ("drop", 60),
    "storm": ("throttle", 10),
}
"""What everybody meets, and for how many minutes at most."""
_SERVER_RATES: Final = ("error", "throttle", "drop", "lost", "gone")
_JUMP_SECONDS: Final = 10.0
_SKEW_SECONDS: Final = 4
_FORBIDDEN: Final = "User-agent: *\nDisallow: /\n"


class Incidents:
    def __init__(self, town: Place) -> None:
        self._town = town
        self.watching = Watching(town)
        self.trouble: str | None = None
        self._outage: str | None = None
        self._is_server_down = False
        self._skews: dict[int, float] = {}

    def skew(self, place: int) -> float:
        """By so many seconds the clock of the process in this place is ahead of the world's."""
        luck = self._town.luck
        if not luck.rates.get("skew") or luck.is_calm:
            return 0.0
        if place not in self._skews:
            self._skews[place] = luck.shape.between(-_SKEW_SECONDS * 10, _SKEW_SECONDS * 10) / 10
            luck.happened["skew"] += 1
        return self._skews[place]

    async def run(self, hours: float) -> None:
        self._set_rates()
        due = sorted(
            (at, kind.name)
            for kind in KINDS
            if kind.unit is Unit.DAY and kind.name != "skew"
            for at in self._town.luck.moments(kind.name, hours, self._town.scenario.crawl_hours)
        )
        running: list[asyncio.Task[None]] = []
        for at, name in due:
            await self._town.clock.sleep(at - self._town.clock.monotonic())
            self._town.luck.happened[name] += 1
            self._town.tell("world", name)
            running.append(asyncio.create_task(self._befall(name)))
        await asyncio.gather(*running)

    def heal(self) -> None:
        """Everything outside is as it should be."""
        town = self._town
        self.trouble, self._outage, self._is_server_down = None, None, False
        self._skews.clear()
        for living in town.living.values():
            living.seams.trouble, living.clock.ahead = None, timedelta(0)
        for faults in (town.sandbox.market.faults, town.sandbox.receiver.faults):
            faults.clear()
        town.sandbox.market.hang_out(ROBOTS)
        self._set_rates()

    def _set_rates(self) -> None:
        town, rates = self._town, self._town.luck.rates
        if town.luck.is_calm:
            of_market: dict[str, float] = {}
            of_server: dict[str, float] = {}
        else:
            of_market = {name: rates[name] for name in MARKET_FAULTS if rates.get(name)}
            of_server = {name: rate for name in _SERVER_RATES if (rate := rates.get(f"server_{name}"))}
            if self._outage:
                of_market = {_OUTAGES[self._outage][0]: 100.0}
            if self._is_server_down:
                of_server = {"drop": 100.0}
        town.sandbox.market.faults.set_rates(of_market)
        town.sandbox.receiver.faults.set_rates(of_server)

    async def _befall(self, name: str) -> None:
        town, shape = self._town, self._town.luck.shape
        if name in _OUTAGES:
            await self._go_out(name, shape.between(1, _OUTAGES[name][1]) * 60)
        elif name.startswith("database_"):
            await self._hold_up_the_database(name, shape.between(1, 20) * 60)
        elif name == "server_down":
            self._is_server_down = True
            self._set_rates()
            await town.clock.sleep(shape.between(1, 60) * 60)
            self._is_server_down = False
            self._set_rates()
        elif name == "stop":
            shape.pick(list(town.living.values())).stop.set()
        elif name == "jump":
            living = shape.pick(list(town.living.values()))
            living.clock.ahead += timedelta(seconds=_JUMP_SECONDS)
            await town.clock.sleep(shape.between(1, 15) * 60)
            if not town.luck.is_calm:
                living.clock.ahead -= timedelta(seconds=_JUMP_SECONDS)
        elif name == "poison":
            await town.office.queue.send([Outgoing({"hello": 1}, "poison", f"poison-{town.clock.monotonic():.0f}")])
        else:
            await self._trouble_the_marketplace(name)

    async def _go_out(self, name: str, seconds: float) -> None:
        self._outage = name
        self._set_rates()
        await self._town.clock.sleep(seconds)
        self._outage = None
        self._set_rates()

    async def _hold_up_the_database(self, name: str, seconds: float) -> None:
        self._hold_up(name)
        await self._town.clock.sleep(seconds)
        self._hold_up(None)

    def _hold_up(self, trouble: str | None) -> None:
        self.trouble = trouble
        for living in self._town.living.values():
            living.seams.trouble = trouble

    async def _trouble_the_marketplace(self, name: str) -> None:
        town, sandbox, shape = self._town, self._town.sandbox, self._town.luck.shape
        shop = shape.pick(sorted(town.scenario.shops))
        if name == "retry_after":
            hours = shape.between(1, 3)
            sandbox.stage(
                "*",
                Fault(name="throttle", retry_after="seconds", retry_after_seconds=hours * 3600),
                shape.between(1, 4),
            )
        elif name == "revoked":
            sandbox.market.gate.revoke()
        elif name == "robots_away":
            sandbox.stage("ROBOTS", Fault(name="error", status=503), 3)
        elif name == "robots_close":
            sandbox.market.hang_out(_FORBIDDEN)
            await town.clock.sleep(shape.between(10, 120) * 60)
            sandbox.market.hang_out(ROBOTS)
        elif name == "shrink":
            sandbox.remove_products(shop, shape.between(1, 3), int(town.clock.monotonic()))
        elif name == "grow":
            sandbox.add_products(shop, shape.between(1, 3))
        elif name == "count_lies":
            sandbox.stage("MINI_SHOP", Fault(name="short_page"), 2)
