"""Where a story takes place: what it comes from, what came of it, and what those who trouble it or look on see of a town."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from sellerwatch.domain.products import Product
from sellerwatch.sandbox.sandbox import Sandbox
from sellerwatch.simulation.faults import Luck
from sellerwatch.simulation.lives import Life
from sellerwatch.simulation.loop import VirtualClock
from sellerwatch.simulation.seams import Seams
from sellerwatch.wiring import House


@dataclass(frozen=True, slots=True)
class Scenario:
    """All that a story comes from."""

    seed: int
    shops: Mapping[str, int]
    identities: int
    houses: int
    hours: float
    rates: Mapping[str, float]
    crawl_hours: float = 3.0
    die_at: int | None = None
    """The first process dies at this crossing, and nothing else is left to chance."""


@dataclass(slots=True)
class Outcome:
    scenario: Scenario
    violations: list[str] = field(default_factory=list)
    happened: Counter[str] = field(default_factory=Counter)
    requests: int = 0
    deliveries: int = 0
    close_arrivals: int = 0
    """Requests of one identity that came within its interval: leased apart, but the first was held up before it left."""
    crossings: int = 0
    steps: int = 0
    days: float = 0.0
    timeline: list[str] = field(default_factory=list)
    fingerprint: str = ""


@dataclass(slots=True)
class Living:
    """One process while it lives."""

    house: House
    clock: VirtualClock
    life: Life
    seams: Seams
    stop: asyncio.Event
    root: "asyncio.Task[None]"


class Place(Protocol):
    """A town, as its incidents and its watchers know it."""

    scenario: Scenario
    outcome: Outcome
    log: list[tuple[str, str]]
    """Of each error that a house logged: its type, and what it said."""
    clock: VirtualClock
    sandbox: Sandbox
    luck: Luck
    living: dict[int, Living]
    office: House
    """A house that nothing befalls: the operator's, and the watchers'."""

    def tell(self, who: str, what: str) -> None: ...

    def wrong(self, what: str, how: str) -> None: ...

    async def products(self, item_nos: list[int]) -> dict[int, Product]: ...
