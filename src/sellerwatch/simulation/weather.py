"""What an operation has to reckon with outside its own walls, in percent of requests and in outages a day, by level.

Drawn from a seed, so that the same forecast is made the same way each time. Each fault has a stream of its own.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from sellerwatch.domain.errors import Invalid
from sellerwatch.ports.time import Clock
from sellerwatch.sandbox.chance import Chance
from sellerwatch.sandbox.sandbox import Sandbox
from sellerwatch.simulation.faults import NAMES, Unit, Where

LEVELS: Final[Mapping[str, Mapping[str, float]]] = MappingProxyType(
    {
        "none": {},
        "light": {
            "error": 0.5,
            "drop": 0.2,
            "slow": 0.3,
            "html": 0.05,
            "throttle": 0.02,
            "server_error": 0.5,
            "market_down": 0.33,
            "server_down": 0.1,
        },
        "heavy": {
            "error": 3,
            "drop": 1,
            "slow": 1,
            "html": 0.5,
            "truncate": 0.5,
            "unauthorized": 0.2,
            "throttle": 0.2,
            "server_error": 5,
            "server_drop": 1,
            "market_down": 1.5,
            "market_dark": 0.5,
            "storm": 0.3,
            "server_down": 0.5,
        },
    }
)
"""`light`: an ordinary month. `heavy`: a bad one."""
OUTAGES: Final[Mapping[str, tuple[str, int]]] = MappingProxyType(
    {"market_down": ("error", 60), "market_dark": ("drop", 60), "storm": ("throttle", 10)}
)
"""What every request of the marketplace meets meanwhile, and for how many minutes at most."""
_SERVER_DOWN, _SERVER_MINUTES = "server_down", 60


def rates_of(level: str) -> dict[str, float]:
    """A level by its name, or faults of one's own: `error=2,market_down=1`."""
    if level in LEVELS:
        return dict(LEVELS[level])
    rates = {}
    for part in level.split(","):
        name, _, rate = part.partition("=")
        if not _can_be(name) or not _is_rate(rate):
            raise Invalid(
                "--faults", level, f"{', '.join(LEVELS)}, or NAME=RATE,… with names of: {', '.join(_known())}"
            )
        rates[name] = float(rate)
    return rates


class Weather:
    """Brings the faults of its rates over a sandbox; `outages`: what began when, and for how long, in seconds."""

    def __init__(self, sandbox: Sandbox, clock: Clock, seed: int, rates: Mapping[str, float]) -> None:
        self._sandbox, self._clock, self._rates = sandbox, clock, dict(rates)
        self._seed = seed
        self.outages: list[tuple[float, str, float]] = []

    async def run(self, hours: float) -> None:
        self._set()
        due = sorted((at, name) for name in (*OUTAGES, _SERVER_DOWN) for at in self._moments(name, hours))
        chance = Chance(self._seed, "outages")
        for at, name in due:
            await self._clock.sleep(at - self._clock.monotonic())
            minutes = _SERVER_MINUTES if name == _SERVER_DOWN else OUTAGES[name][1]
            seconds = 60.0 * chance.between(1, minutes)
            self.outages.append((self._clock.monotonic(), name, seconds))
            self._set(name)
            await self._clock.sleep(seconds)
            self._set()

    def _moments(self, name: str, hours: float) -> list[float]:
        """When, in seconds from the beginning, an outage of this kind begins: at any time of any day."""
        rate, chance, at, found = self._rates.get(name, 0.0), Chance(self._seed, "outage", name), 0.0, []
        # Between two of them: anything from nothing to twice the average.
        while rate and (at := at + 2 * 86400 / rate * chance.share()) < hours * 3600:
            found.append(at)
        return found

    def _set(self, outage: str | None = None) -> None:
        market = {name: rate for name, rate in self._rates.items() if NAMES[name].where is Where.MARKETPLACE}
        server = {
            name.removeprefix("server_"): rate for name, rate in self._rates.items() if name.startswith("server_")
        }
        of_market = {name: rate for name, rate in market.items() if NAMES[name].unit is Unit.REQUEST}
        of_server = {name: rate for name, rate in server.items() if name != "down"}
        if outage == _SERVER_DOWN:
            of_server = {"drop": 100.0}
        elif outage:
            of_market = {OUTAGES[outage][0]: 100.0}
        self._sandbox.market.faults.set_rates(of_market)
        self._sandbox.receiver.faults.set_rates(of_server)


def _known() -> list[str]:
    return [name for name in NAMES if _can_be(name)]


def _can_be(name: str) -> bool:
    kind = NAMES.get(name)
    if kind is None:
        return False
    if kind.unit is Unit.REQUEST:
        # What those two are is not one answer of a server.
        return name not in {"server_slow", "server_twice"}
    return name in OUTAGES or name == _SERVER_DOWN


def _is_rate(text: str) -> bool:
    try:
        return 0 <= float(text) <= 100
    except ValueError:
        return False
