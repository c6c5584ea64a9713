"""Gauges: looked at when somebody asks, from database, pool and queue.

Promises: a look lasts five seconds for everybody, longer when it was dear (never more than a fiftieth of the time is
spent on looking); who asks waits two seconds at the most and then gets what was seen last. What can't be asked is left
out and says `up` 0; it comes back by itself. Nobody asks the marketplace.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import structlog

from sellerwatch.domain.breakers import BreakerScope, BreakerState
from sellerwatch.domain.identities import IdentityStatus
from sellerwatch.entry.metrics.counting import Sample
from sellerwatch.entry.ticker import late_after
from sellerwatch.flows.punctuality import late
from sellerwatch.ports.pool import WhyNot
from sellerwatch.ports.reports import Box
from sellerwatch.ports.time import Clock
from sellerwatch.wiring import House

KEPT_SECONDS: Final = 5.0
PATIENCE_SECONDS: Final = 2.0
LONGEST_SECONDS: Final = 30.0
SPENT_AT_MOST: Final = 50.0
_STATES: Final = {BreakerState.CLOSED: 0, BreakerState.HALF_OPEN: 1, BreakerState.OPEN: 2}


@dataclass(slots=True)
class Look:
    """One component's gauges, as they were last seen."""

    name: str
    ask: Callable[[], Awaitable[list[Sample]]]
    clock: Clock
    samples: list[Sample] = field(default_factory=list)
    is_up: bool = False
    _until: float | None = None
    _looking: "asyncio.Task[None] | None" = None

    async def seen(self) -> list[Sample]:
        is_old = self._until is None or self.clock.monotonic() >= self._until
        if is_old and (self._looking is None or self._looking.done()):
            self._looking = asyncio.create_task(self._look())
        if self._looking and not self._looking.done():
            await asyncio.wait({self._looking}, timeout=PATIENCE_SECONDS)
        return self.samples

    async def _look(self) -> None:
        began = self.clock.monotonic()
        try:
            self.samples = await self.clock.within(LONGEST_SECONDS, self.ask())
            self.is_up = True
        except Exception as error:  # noqa: BLE001 - whatever it is, the other gauges are worth having
            self.samples, self.is_up = [], False
            structlog.get_logger().warning("gauges can't be read", component=self.name, error=type(error).__name__)
        now = self.clock.monotonic()
        self._until = now + max(KEPT_SECONDS, (now - began) * SPENT_AT_MOST)


class Looking:
    """All gauges of a house."""

    def __init__(self, house: House) -> None:
        self._house = house
        clock = house.clock
        self._looks = (
            Look("database", self._backlog, clock),
            Look("pool", self._pool, clock),
            Look("queue", self._queue, clock),
        )
        self._stock = Look("stock", self._stock_of, clock)
        self._loops = Look("loops", self._late, clock)

    async def samples(self) -> list[Sample]:
        seen = await asyncio.gather(*(look.seen() for look in (*self._looks, self._stock, self._loops)))
        ups = [Sample("up", float(look.is_up), (look.name,)) for look in self._looks]
        return [*ups, *(sample for samples in seen for sample in samples)]

    async def _backlog(self) -> list[Sample]:
        backlog = await self._house.gauges.backlog()
        now = self._house.clock.now()
        return [
            *(Sample("tasks_open", count, (status,)) for status, count in backlog.tasks.items()),
            *(Sample("raws", count, (status,)) for status, count in backlog.raws.items()),
            *(
                Sample("outbox", count, (box, status))
                for box, counts in backlog.outboxes.items()
                for status, count in counts.items()
            ),
            *(Sample("outbox_oldest_seconds", _age(backlog.oldest_at[box], now), (box,)) for box in Box),
            Sample("staleness_seconds", _age(backlog.oldest_document_at, now)),
            *(Sample("breaker_state", _STATES[state], (scope,)) for scope, state in backlog.breakers.items()),
            Sample("ledger_breaks", backlog.ledger_breaks),
        ]

    async def _stock_of(self) -> list[Sample]:
        stock = await self._house.gauges.stock()
        return [
            *(Sample("products", count, (status,)) for status, count in stock.products.items()),
            *(Sample("raws", count, (status,)) for status, count in stock.raws.items()),
            *(
                Sample("outbox", count, (box, status))
                for box, counts in stock.outboxes.items()
                for status, count in counts.items()
            ),
        ]

    async def _late(self) -> list[Sample]:
        seen = await self._house.reports.runs(self._house.clock.now())
        return [Sample("loops_late", len(late(seen, late_after(self._house))))]

    async def _pool(self) -> list[Sample]:
        figures = await self._house.pool.figures()
        if figures.why is WhyNot.AWAY:
            raise NobodyLeads
        found = {
            IdentityStatus.AVAILABLE: figures.available,
            IdentityStatus.SUSPENDED: figures.suspended,
            IdentityStatus.BLOCKED: figures.blocked,
        }
        breakers = {BreakerScope.POOL: figures.pool_breaker, BreakerScope.SITE: figures.site_breaker}
        return [
            *(Sample("identities", count, (status,)) for status, count in found.items()),
            Sample("identity_budget_remaining", figures.remaining_requests),
            *(Sample("breaker_state", _STATES[breaker.state], (scope,)) for scope, breaker in breakers.items()),
        ]

    async def _queue(self) -> list[Sample]:
        depth = await self._house.queue.depth()
        return [
            Sample("queue_depth", depth.waiting + depth.out),
            Sample("queue_oldest_seconds", depth.oldest_seconds),
            Sample("dead_letters", depth.dead),
        ]


class NobodyLeads(Exception):
    """No engine of the pool leads, or it can't be reached."""


def _age(at: datetime | None, now: datetime) -> float:
    return max(0.0, (now - at).total_seconds()) if at else 0.0
