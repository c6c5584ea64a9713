"""A world in small: an operation with so many shops, products and identities, lived with a part of each.

What is one of many is divided by one factor: identities, products, the site's ceiling, the requests under way. What is
one request's own stays: an identity's budget and interval, the latency, the retries, the schedule. So the share of the
budget that is used, and when within the day a product is read, are those of the whole.

The factor ends where the small stops being like the large: four identities, for one that rests is then a quarter of the
pool; one request under way; and, where the whole does not ask for too much even so, twenty requests a minute of the site,
for its breaker judges no fewer.
"""

from dataclasses import dataclass
from math import ceil, floor

from sellerwatch.domain.errors import Invalid
from sellerwatch.ports.pool import Limits

IDENTITIES_LEAST = 4
SITE_RATE_LEAST = 1 / 3
SHOPS_LEAST = 3
PERIODS_LEAST = 3
OVERWORK = 3
"""Of more products than so many times what can be read, no more are lived with: the answer is the same."""
DAY_SECONDS = 86400
IDENTITIES, SITE, CONCURRENCY = "identities", "site", "concurrency"
SELLERS_MAX, PRODUCTS_MAX, IDENTITIES_MAX, DAYS_MAX, INTERVAL_MAX = 10_000, 10_000_000, 10_000, 366, 30
REQUESTS_OF_A_PRODUCT = 2
LATENCY_SECONDS = 0.16
"""On average, until the marketplace of a forecast answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What is asked about."""

    sellers: int
    products: int
    """In all shops together."""
    identities: int
    days: int
    interval_days: int = 1

    def __post_init__(self) -> None:
        for name, value, most in (
            ("sellers", self.sellers, SELLERS_MAX),
            ("products", self.products, PRODUCTS_MAX),
            ("identities", self.identities, IDENTITIES_MAX),
            ("days", self.days, DAYS_MAX),
            ("interval", self.interval_days, INTERVAL_MAX),
        ):
            if not 1 <= value <= most:
                raise Invalid(f"--{name}", value, f"a number from 1 to {most}")
        if self.sellers > self.products:
            raise Invalid("--products", self.products, f"at least one for each of {self.sellers} sellers")

    @property
    def periods(self) -> int:
        """How often every shop is crawled in those days."""
        return ceil(self.days / self.interval_days)


@dataclass(frozen=True, slots=True)
class Resource:
    """Something that ends at some number of requests a day."""

    name: str
    a_day: float


def resources(limits: Limits, identities: int) -> tuple[Resource, ...]:
    """What bounds the requests of a day, the tightest first."""
    window = limits.window_seconds + limits.guard_seconds
    found = [
        Resource(IDENTITIES, identities * limits.hourly_limit * DAY_SECONDS / window),
        Resource(SITE, limits.site_requests_per_second * DAY_SECONDS),
        Resource(CONCURRENCY, limits.concurrency * DAY_SECONDS / LATENCY_SECONDS),
    ]
    return tuple(sorted(found, key=lambda resource: resource.a_day))


@dataclass(frozen=True, slots=True)
class Scale:
    """An operation in small."""

    factor: float
    shops: tuple[int, ...]
    """How many products each has."""
    identities: int
    site_requests_per_second: float
    concurrency: int
    periods: int
    interval_days: int

    @property
    def products(self) -> int:
        return sum(self.shops)

    @property
    def days(self) -> int:
        return self.periods * self.interval_days


def scaled(
    operation: Operation, limits: Limits, a_day: float, requests_max: float, factor: float | None = None
) -> Scale:
    """The largest world of which so many requests are made at most, if `a_day` are made of the whole; it lives fewer
    days where even the smallest one that is like the whole makes more. A `factor` that is given holds as far as the
    small is like the whole, and every day is lived."""
    days = operation.interval_days
    least = min(operation.periods, PERIODS_LEAST) * days * a_day
    most = max(factor_most(operation, limits), min(least / (2 * requests_max), operation.identities / IDENTITIES_LEAST))
    wanted = a_day * operation.periods * days / requests_max if factor is None else factor
    chosen = _whole(operation, min(max(wanted, 1.0), most))
    periods = operation.periods
    if factor is None:
        lasting = floor(requests_max * chosen / max(a_day, 1.0) / days)
        periods = min(periods, max(lasting, PERIODS_LEAST))
    lived_with = min(operation.products, ceil(OVERWORK * a_day * days / REQUESTS_OF_A_PRODUCT))
    shops = min(operation.sellers, max(SHOPS_LEAST, round(operation.sellers / chosen)))
    products = max(shops, round(lived_with / chosen))
    return Scale(
        factor=chosen,
        shops=tuple(products // shops + (place < products % shops) for place in range(shops)),
        identities=max(1, round(operation.identities / chosen)),
        site_requests_per_second=limits.site_requests_per_second / chosen,
        concurrency=max(1, round(limits.concurrency / chosen)),
        periods=periods,
        interval_days=days,
    )


def factor_most(operation: Operation, limits: Limits) -> float:
    """By how much it can be divided and still be like the whole."""
    return max(
        1.0,
        min(
            operation.identities / IDENTITIES_LEAST,
            limits.site_requests_per_second / SITE_RATE_LEAST,
            float(limits.concurrency),
        ),
    )


def _whole(operation: Operation, factor: float) -> float:
    """One by which the identities are a whole number: nothing of the budget is rounded away."""
    return operation.identities / max(1, floor(operation.identities / factor + 1e-9)) if factor > 1 else 1.0
