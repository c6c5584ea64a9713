"""The conditions under which a sandbox runs: everything a user may choose, with what is refused.

Rates are percent of requests (0-100); shares, elsewhere, are fractions. The same conditions give the same answers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sellerwatch.domain.errors import Invalid
from sellerwatch.sandbox.faults import NAMES

ROBOTS = "User-agent: *\nAllow: /\nDisallow: /m/member/\n"
RETRY_AFTER_FORMS = ("none", "seconds", "date")


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What the fake world is like. The defaults: two shops, the marketplace's limits, no noise, no faults, no latency."""

    seed: int = 1
    shops: Mapping[str, int] = field(default_factory=lambda: {"atelier": 1200, "lunaire": 600})
    images_max: int = 4

    hourly_limit: int = 80
    """Requests per User-Agent in any window; 0 lifts the limit."""
    window_seconds: float = 3600
    min_interval_seconds: float = 1
    """Gaps below it are counted, never refused."""
    token_seconds: int = 7200
    strict_cookies: bool = False
    """Answer 401 when the cookies that came with the token are not sent back."""
    retry_after: str = "none"
    """How a 429 says when to come back: none, seconds or date."""
    retry_after_seconds: float = 0
    """What it says; 0 tells the truth."""

    latency_ms: float = 0
    jitter_ms: float = 0
    error_rate: float = 0
    rates: Mapping[str, float] = field(default_factory=dict)
    """Percent per fault of the marketplace, by the names in `faults.NAMES`."""
    receiver_rates: Mapping[str, float] = field(default_factory=dict)
    receiver_latency_ms: float = 0

    noise: bool = False
    """Let likes, tracking, order of keys and number formats vary with each answer."""
    gzip: bool = False
    search_page_size: int = 40
    robots: str = ROBOTS
    secret: str | None = None
    """`whsec_...`: deliveries must carry a good signature; None accepts all."""
    products_path: str = "/products"
    cache_bytes: int = 64 * 1024 * 1024

    def __post_init__(self) -> None:
        for name in ("images_max", "window_seconds", "token_seconds", "search_page_size"):
            _at_least(name, getattr(self, name), 1)
        for name in (
            "hourly_limit", "min_interval_seconds", "retry_after_seconds", "latency_ms", "jitter_ms",
            "receiver_latency_ms", "cache_bytes",
        ):  # fmt: skip
            _at_least(name, getattr(self, name), 0)
        for seller, amount in self.shops.items():
            _at_least(f"shops[{seller}]", amount, 0)
        check_rates(self.marketplace_rates())
        check_rates(self.receiver_rates)
        if self.retry_after not in RETRY_AFTER_FORMS:
            raise Invalid("retry_after", self.retry_after, "one of " + ", ".join(RETRY_AFTER_FORMS))
        if not self.products_path.startswith("/") or self.products_path.startswith("/__"):
            raise Invalid("products_path", self.products_path, "a path such as /products")

    def marketplace_rates(self) -> dict[str, float]:
        """All rates of the marketplace, `error_rate` among them."""
        return {"error": self.error_rate, **self.rates}


def check_rates(rates: Mapping[str, object]) -> None:
    """Refuse an unknown fault, a rate that is no percentage, and rates that pass a hundred together."""
    total = 0.0
    for name, percent in rates.items():
        if name not in NAMES:
            raise Invalid("fault", name, "one of " + ", ".join(NAMES))
        if isinstance(percent, bool) or not isinstance(percent, int | float) or not 0 <= percent <= 100:
            raise Invalid(f"rate of {name}", percent, "a percentage from 0 to 100")
        total += percent
    if total > 100:
        raise Invalid("rates", total, "at most 100 percent together")


def _at_least(name: str, value: float, least: int) -> None:
    if not value >= least:
        raise Invalid(name, value, f"a number of at least {least}")
