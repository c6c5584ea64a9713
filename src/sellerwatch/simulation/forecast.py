"""A forecast: how an operation would fare. Is all of it read within its interval, what is left of the budget, and what
breaks first?

    as asked     the operation in small, for as many of its days as can be afforded
    too much     the same identities with more products than they can read: how many requests there really are in a day
    headroom     from the two: how many products at most, how few identities at least

Both are lived by the real house (`miniature`); only the last step is arithmetic. What is told is of the whole operation.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from sellerwatch.domain.errors import Refused
from sellerwatch.settings import Settings
from sellerwatch.simulation.miniature import Lived, Period, Run, lived
from sellerwatch.simulation.scale import (
    CONCURRENCY,
    IDENTITIES,
    REQUESTS_OF_A_PRODUCT,
    SITE,
    Operation,
    Resource,
    Scale,
    resources,
    scaled,
)
from sellerwatch.wiring.measures import limits_of

REQUESTS_MAX = 12_000
"""So many are lived in all, where no factor was given: half a minute or so."""
_STRESS_SHARE = 1 / 4
"""Of them for the day with too much to do."""
_STRESS, _STRESS_WINDOWS = 1.3, 8
_TOKENS_A_DAY = 24
"""Requests of each identity for its own token."""
_ZERO = {
    IDENTITIES: "IDENTITY_HOURLY_LIMIT",
    SITE: "SITE_REQUESTS_PER_SECOND",
    CONCURRENCY: "CONCURRENCY",
}
MISSED_PERCENT_MAX = 5.0
"""More of the readings than that may not fail."""


@dataclass(frozen=True, slots=True)
class Need:
    """A resource, and how much of it is used."""

    name: str
    a_day: float
    used_percent: float


@dataclass(frozen=True, slots=True)
class Forecast:
    operation: Operation
    lived: Lived
    capacity: float
    """Requests that all identities make in a day, when there is more than enough to ask; as it was lived."""
    demand: float
    """Requests that the operation makes in a day."""
    budget: float
    """Requests that the identities' budget has in a day."""
    needs: tuple[Need, ...]
    """The tightest first."""
    products_most: int
    """So many products could be read by these identities."""
    identities_least: int | None
    """So few identities would do; None: no number of them would."""

    @property
    def scale(self) -> Scale:
        return self.lived.scale

    @property
    def periods(self) -> list[Period]:
        return self.lived.periods

    @property
    def late(self) -> int:
        """Crawls that did not end before the next one was due."""
        return sum(period.due - period.complete for period in self.periods)

    def unread_percent(self, period: Period) -> float:
        """Of all products, those that were not read anew in it."""
        small = max(self.scale.products, round(self.operation.products / self.scale.factor))
        return 100 * (1 - period.read / small)

    @property
    def missed_percent(self) -> float:
        return sum(map(self.unread_percent, self.periods)) / len(self.periods)

    @property
    def is_fresh(self) -> bool:
        """Every shop was crawled to its end in time, each time, and hardly a product was left out."""
        return not self.late and self.missed_percent <= MISSED_PERCENT_MAX

    @property
    def slowest_hours(self) -> float | None:
        """Of all products the one that was read the longest after its shop was due."""
        return max((period.delay_hours.most for period in self.periods if period.delay_hours.most), default=None)

    @property
    def oldest_hours(self) -> float | None:
        """The longest time from one reading of a product to the next."""
        return max((period.age_hours.most for period in self.periods if period.age_hours.most), default=None)

    @property
    def used_percent(self) -> float:
        """Of the budget, on a usual day."""
        return 100 * self.demand / self.budget


def forecast(
    operation: Operation,
    settings: Settings,
    rates: Mapping[str, float],
    run: Run,
    *,
    factor: float | None = None,
    requests_max: float = REQUESTS_MAX,
    seed: int = 1,
) -> Forecast:
    """The same arguments tell the same. With a `factor` every day is lived at that scale, 1 being the whole."""
    limits = limits_of(settings)
    bounds = resources(limits, operation.identities)
    if not bounds[0].a_day:
        raise Refused(f"nothing can be asked at all: {_ZERO[bounds[0].name]} is 0")
    asked = min(_asked_a_day(operation), bounds[0].a_day)
    small = scaled(operation, limits, asked, requests_max * (1 - _STRESS_SHARE), factor)
    as_asked = lived(small, settings, rates, run, seed)
    usual, days = _usual(as_asked), operation.interval_days
    is_late = any(period.complete < period.due for period in as_asked.periods)
    of_a_product = _of_a_product(usual, is_late=is_late) / days
    of_an_identity = usual.tokens / small.identities / days
    demand = of_a_product * operation.products + of_an_identity * operation.identities
    if is_late:
        # It had too much to do already.
        capacity = as_asked.requests * small.factor / small.days
    else:
        capacity = _capacity(operation, settings, rates, run, bounds[0], requests_max * _STRESS_SHARE, seed)
    capacity = min(max(capacity, usual.requests * small.factor / days), bounds[0].a_day)
    return Forecast(
        operation=operation,
        lived=as_asked,
        capacity=capacity,
        demand=demand,
        budget=next(bound.a_day for bound in bounds if bound.name == IDENTITIES),
        needs=_needs(bounds, demand),
        products_most=int(max(0.0, capacity - of_an_identity * operation.identities) / of_a_product),
        identities_least=_least(operation, bounds, capacity, demand, of_an_identity),
    )


def _capacity(
    operation: Operation,
    settings: Settings,
    rates: Mapping[str, float],
    run: Run,
    tightest: Resource,
    requests_max: float,
    seed: int,
) -> float:
    """Requests in a day when there are more products than can be read: what the house and the weather leave of the
    tightest bound. Every window of the budget is like the others, so some of them are enough."""
    limits = limits_of(settings)
    hours = _STRESS_WINDOWS * (limits.window_seconds + limits.guard_seconds) / 3600
    too_much = Operation(
        sellers=operation.sellers,
        products=max(operation.sellers, ceil(_STRESS * tightest.a_day / REQUESTS_OF_A_PRODUCT)),
        identities=operation.identities,
        days=1,
    )
    small = scaled(too_much, limits, tightest.a_day * hours / 24, requests_max)
    return lived(small, settings, rates, run, seed, hours=hours).requests * small.factor * 24 / hours


def _of_a_product(usual: Period, *, is_late: bool) -> float:
    """Requests for one reading, what fails and the lists included."""
    if is_late or not usual.read:
        # Much of what was asked for belongs to products that were not read to the end.
        return REQUESTS_OF_A_PRODUCT * usual.requests / max(1, usual.requests - usual.failed)
    return (usual.requests - usual.tokens) / usual.read


def _asked_a_day(operation: Operation) -> float:
    """About."""
    crawl = operation.products * REQUESTS_OF_A_PRODUCT + 2 * operation.sellers
    return crawl / operation.interval_days + operation.identities * _TOKENS_A_DAY


def _usual(found: Lived) -> Period:
    """The one in the middle, after the first."""
    ranked = sorted(found.periods[1:] or found.periods, key=lambda period: period.requests)
    return ranked[len(ranked) // 2]


def _needs(bounds: tuple[Resource, ...], demand: float) -> tuple[Need, ...]:
    return tuple(Need(bound.name, bound.a_day, 100 * demand / bound.a_day) for bound in bounds)


def _least(
    operation: Operation, bounds: tuple[Resource, ...], capacity: float, demand: float, of_an_identity: float
) -> int | None:
    """As many identities as it takes, where nothing else is in the way."""
    budget = next(bound.a_day for bound in bounds if bound.name == IDENTITIES)
    others = min(bound.a_day for bound in bounds if bound.name != IDENTITIES)
    # What of a bound is lost to the weather is lost of any.
    kept = capacity / bounds[0].a_day
    each = budget * kept / operation.identities - of_an_identity
    for_products = demand - of_an_identity * operation.identities
    least = ceil(for_products / each) if each > 0 else None
    return least if least is not None and for_products + least * of_an_identity <= others * kept else None
