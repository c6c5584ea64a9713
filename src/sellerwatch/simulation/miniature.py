"""A miniature: the real house, in small, against a sandbox, lived period by period on virtual time, and measured.

    period   from the moment at which all shops are due to the next such moment: one crawl of each
    reading  all documents of a product fetched anew within one period

The house is the one that runs in production, down to its database; of it only the scale is another. All shops are due
at the same moment, which is the hardest case, and begin with a first crawl, in which every product is new.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import ceil
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import structlog

from sellerwatch.adapters.chance import SeededChance
from sellerwatch.adapters.sql import audit
from sellerwatch.domain.executions import ExecutionStatus
from sellerwatch.ports.meter import TOKEN, Unmetered
from sellerwatch.sandbox.conditions import Conditions
from sellerwatch.sandbox.sandbox import Sandbox
from sellerwatch.settings import Settings
from sellerwatch.simulation.ends import ORIGIN, SECRET, InProcessProductServer, InProcessTransport
from sellerwatch.simulation.loop import BEGINNING, VirtualClock, run_virtually
from sellerwatch.simulation.scale import DAY_SECONDS, LATENCY_SECONDS, Scale
from sellerwatch.simulation.weather import Weather
from sellerwatch.wiring import House, build

Run: TypeAlias = Callable[[House, asyncio.Event, float], Coroutine[Any, Any, None]]
"""What a process does until it is told to stop; what it does together, it gathers for at least so many seconds."""
CHANGED_A_DAY: Final = 0.05
"""So many of all products change in a day: a twentieth."""
_ROUNDS: Final = 4
"""How often a day products change."""
OWN: Final[Mapping[str, object]] = MappingProxyType(
    {
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
        "jwt_algorithm": "HS256",
        "jwt_secret": None,
        "otel_exporter_otlp_endpoint": None,
    }
)
"""In place of the operator's settings: no engine, no neighbour and no secret of his is touched."""
_SWEEP_SECONDS = 600.0
_GATHER_SECONDS, _GATHER_MOST = 1.0, 15.0
_PULSE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Spread:
    """How something was spread over many; all None: there was nothing."""

    p50: float | None = None
    p95: float | None = None
    most: float | None = None

    @classmethod
    def of(cls, values: list[float]) -> "Spread":
        if not values:
            return cls()
        ranked = sorted(values)
        return cls(ranked[(len(ranked) - 1) // 2], ranked[(len(ranked) * 95 + 99) // 100 - 1], ranked[-1])


@dataclass(frozen=True, slots=True)
class Period:
    """One crawl of every shop, of the miniature."""

    number: int
    """From 1."""
    requests: int
    tokens: int
    """Of them those that an identity made for a token of its own."""
    failed: int
    due: int
    """Shops."""
    complete: int
    """Of them those that were crawled to the end before they were due again."""
    read: int
    missed: int
    """Products that were not read anew."""
    delay_hours: Spread
    """From the moment a shop was due until a product of it was read."""
    age_hours: Spread
    """From one reading of a product to the next."""
    delivered: int
    lag_seconds: Spread
    """From the answer that told of a change until the product server had it."""
    undelivered: int


@dataclass(slots=True)
class Lived:
    """What came of it; all numbers are the miniature's."""

    scale: Scale
    periods: list[Period] = field(default_factory=list)
    hours: list[int] = field(default_factory=list)
    """Requests in each hour."""
    outages: list[tuple[float, str, float]] = field(default_factory=list)
    mistakes: list[str] = field(default_factory=list)
    """What the house called an error."""

    @property
    def requests(self) -> int:
        return sum(self.hours)


def lived(
    scale: Scale,
    settings: Settings,
    rates: Mapping[str, float],
    run: Run,
    seed: int = 1,
    *,
    hours: float | None = None,
) -> Lived:
    """The whole of it, or so many hours of its first period; the same arguments give the same figures."""
    with _quiet() as mistakes:
        found = run_virtually(_Miniature(scale, settings, rates, run, seed).live(hours))
    found.mistakes = mistakes
    return found


@dataclass(slots=True)
class _Count(Unmetered):
    """Counts what a house tells of, since it was last asked."""

    now: Callable[[], float]
    hours: Counter[int] = field(default_factory=Counter)
    requests: int = 0
    tokens: int = 0
    failed: int = 0
    crawls_open: int = 0
    lags: list[float] = field(default_factory=list)

    def request(self, kind: str, status: str, seconds: float) -> None:  # noqa: ARG002 - the port's
        self.hours[int(self.now() // 3600)] += 1
        self.requests += 1
        self.tokens += kind == TOKEN
        self.failed += status != "200"

    def execution(self, status: str, count: int = 1) -> None:
        self.crawls_open += count if status == ExecutionStatus.STARTED else -count

    def delivery(self, status: str, lag_seconds: float | None) -> None:  # noqa: ARG002 - the port's
        if lag_seconds is not None:
            self.lags.append(lag_seconds)

    def reset(self) -> None:
        self.requests = self.tokens = self.failed = 0
        self.lags = []


class _Miniature:
    def __init__(self, scale: Scale, settings: Settings, rates: Mapping[str, float], run: Run, seed: int) -> None:
        self._scale, self._run = scale, run
        self._clock = VirtualClock()
        self._sandbox = Sandbox(_conditions(scale, settings, seed))
        self._weather = Weather(self._sandbox, self._clock, seed, rates)
        self._count = _Count(self._clock.monotonic)
        self._transport = InProcessTransport(self._sandbox, self._clock)
        self._server = InProcessProductServer(self._sandbox, self._clock)
        self._house = build(
            _settings(settings, scale),
            clock=self._clock,
            chance=SeededChance(seed),
            transport=self._transport,
            product_server=self._server,
            is_alone=True,
            meter=self._count,
        )
        self._lived = Lived(scale)
        self._read_at: dict[int, datetime] = {}

    async def live(self, hours: float | None) -> Lived:
        ends = [number * self._scale.interval_days * 24.0 for number in range(1, self._scale.periods + 1)]
        if hours is not None:
            ends = [hours]
        scale, stop = self._scale, asyncio.Event()
        await self._furnish()
        gather_seconds = min(_GATHER_SECONDS * scale.factor, _GATHER_MOST)
        house = asyncio.create_task(self._run(self._house, stop, gather_seconds))
        beside = [
            asyncio.create_task(self._beat()),
            asyncio.create_task(self._weather.run(scale.days * 24)),
            asyncio.create_task(self._change_products()),
        ]
        try:
            for number, end in enumerate(ends):
                # A moment before the shops are due again.
                await self._clock.sleep(end * 3600 - 1 - self._clock.monotonic())
                if house.done():
                    await house
                self._lived.periods.append(await self._close(number))
        finally:
            for task in beside:
                task.cancel()
            stop.set()
            await asyncio.gather(house, *beside, return_exceptions=True)
            await self._house.close()
        self._lived.hours = [self._count.hours[hour] for hour in range(ceil(ends[-1]))]
        self._lived.outages = self._weather.outages
        return self._lived

    async def _furnish(self) -> None:
        house, wanted = self._house, self._scale.identities
        house.upgrade()
        seeded = [identity.agent_id for identity in await house.store.read(lambda unit: unit.identities.all())]
        await house.identities.retire(seeded[wanted:])
        await house.identities.add(f"Forecast/1.0 (identity {number})" for number in range(len(seeded), wanted))
        for seller in self._sandbox.world.shops:
            await house.sellers.register(seller, seller, interval_days=self._scale.interval_days)
            await house.trigger.crawl_now(seller)

    async def _change_products(self) -> None:
        while True:
            await self._clock.sleep(DAY_SECONDS / _ROUNDS)
            self._sandbox.mutate(CHANGED_A_DAY / _ROUNDS)

    async def _beat(self) -> None:
        """Alone, a house looks seldom for what only time brings: identities that are free again, a schedule that is due."""
        until_due = self._scale.interval_days * DAY_SECONDS
        while True:
            await self._clock.sleep(_PULSE_SECONDS)
            if self._count.crawls_open:
                self._house.bell.ring("relay")
            if self._clock.monotonic() % until_due < _PULSE_SECONDS:
                self._house.bell.ring("due")

    async def _close(self, number: int) -> Period:
        """The account of the period that ends now."""
        count, scale = self._count, self._scale
        length = timedelta(days=scale.interval_days)
        due = BEGINNING + number * length
        readings, ages, missed = [], [], 0
        for item_no, moments in await audit.fetched(self._house.database):
            before, read_at = self._read_at.get(item_no), self._reading(moments, due)
            if read_at is None:
                missed += 1
                ages.append(_hours(self._clock.now() - (before or BEGINNING)))
                continue
            readings.append(_hours(read_at - due))
            if before is not None:
                ages.append(_hours(read_at - before))
            self._read_at[item_no] = read_at
        unseen = max(0, scale.products - len(readings) - missed)
        crawls = await audit.crawls_since(self._house.database, due)
        left = (await audit.open_things(self._house.database)).get("product outbox", 0)
        period = Period(
            number=number + 1,
            requests=count.requests,
            tokens=count.tokens,
            failed=count.failed,
            due=len(scale.shops),
            complete=sum(status == ExecutionStatus.COMPLETED for status in crawls),
            read=len(readings),
            missed=missed + unseen,
            delay_hours=Spread.of(readings),
            age_hours=Spread.of(ages),
            delivered=len(count.lags),
            lag_seconds=Spread.of(count.lags),
            undelivered=left,
        )
        count.reset()
        self._transport.trace.clear()
        self._server.traceparents.clear()
        return period

    def _reading(self, moments: Sequence[datetime | None], due: datetime) -> datetime | None:
        """When a product was read since then, by when its documents were fetched. Where only what changed is fetched, it
        is the list that is read."""
        needed = moments[:1] if self._house.settings.crawl_mode == "delta" else moments
        fetched = [moment for moment in needed if moment is not None and moment >= due]
        return max(fetched) if len(fetched) == len(needed) else None


def _hours(span: timedelta) -> float:
    return span.total_seconds() / 3600


def _conditions(scale: Scale, settings: Settings, seed: int) -> Conditions:
    """The marketplace keeps to the operator's own limits: what is too much for it was declared."""
    return Conditions(
        seed=seed,
        secret=SECRET,
        shops={f"shop-{number + 1}": products for number, products in enumerate(scale.shops)},
        hourly_limit=settings.identity_hourly_limit,
        min_interval_seconds=settings.identity_min_interval,
        latency_ms=LATENCY_SECONDS * 500,
        jitter_ms=LATENCY_SECONDS * 1000,
        images_max=1,
    )


def _settings(settings: Settings, scale: Scale) -> Settings:
    """The operator's own rules, in small."""
    return settings.model_copy(
        update={
            "site_requests_per_second": scale.site_requests_per_second,
            "concurrency": scale.concurrency,
            "sweep_seconds": _SWEEP_SECONDS,
            "sweep_identities_seconds": 180.0,
            "sweep_tokens_seconds": 300.0,
        }
    )


@contextmanager
def _quiet() -> Iterator[list[str]]:
    """What the house logs is heard, and only its errors are kept."""
    before = structlog.get_config()
    mistakes: list[str] = []

    def note(_logger: Any, method: str, event: Any) -> Any:
        if method in {"error", "exception", "critical"} and len(mistakes) < 20:
            mistakes.append(f"{event.get('event')}: {event.get('error')}")
        raise structlog.DropEvent

    structlog.configure(processors=[note])
    try:
        yield mistakes
    finally:
        structlog.configure(**before)
