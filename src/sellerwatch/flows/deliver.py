"""Step 5, deliver: product outbox → the operator's product server.

    one commit: due rows WAITING ─▶ SENDING, of one product the newest stands in for those never sent ─▶ POST
    (nothing is open) ─▶ one commit: COMPLETED, or WAITING with backoff, or FAILED with an alert

One product's rows go in version order, one at a time. A crash between the POST and the second commit sends a row
again under the same idempotency key. While the product server is known to be away nothing is sent but one trial at a
time, and no row loses a retry by it.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sellerwatch.domain import traces
from sellerwatch.domain.breakers import Breaker, BreakerScope, BreakerState, Transition
from sellerwatch.domain.outbox import OutboxStatus, ProductEvent, backoff
from sellerwatch.ports.outside import ProductServer, Receipt
from sellerwatch.ports.store import Claim, Store, Unit
from sellerwatch.ports.time import Chance, Clock
from sellerwatch.ports.traces import UNTRACED, Span, Traces

FINAL = frozenset({400, 401, 403, 404, 410, 413, 415})
"""Answers that no retry will change: the row waits for a person."""
_BACKOFF_SECONDS, _BACKOFF_CEILING = 30.0, 3600.0
_BREAKER_FAILURES, _BREAKER_OPEN = 5, timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Delivered:
    sent: int
    accepted: tuple[tuple[ProductEvent, Receipt], ...]
    refused: tuple[tuple[ProductEvent, Receipt], ...]
    is_paused: bool = False
    """The product server's breaker is open."""
    transitions: tuple[Transition, ...] = ()


@dataclass(slots=True)
class Deliver:
    store: Store
    server: ProductServer
    clock: Clock
    chance: Chance
    owner: str
    batch: int = 100
    concurrency: int = 16
    retries_max: int = 5
    claim_seconds: float = 60.0
    send_seconds: float = 10.0
    """So long a POST may take, at most."""
    traces: Traces = UNTRACED

    async def run(self) -> Delivered:
        at = self.clock.now()
        breaker = await self.store.read(lambda unit: unit.breakers.load(BreakerScope.PRODUCT_SERVER)) or _new_breaker()
        if not breaker.admits(at):
            return Delivered(0, (), (), is_paused=True)
        count = self.batch if breaker.state is BreakerState.CLOSED else min(1, self.batch)
        claim = Claim(self.owner, at + timedelta(seconds=self.claim_seconds), at)
        rows = await self.store.transact(lambda unit: self._claim(unit, claim, count))
        if not rows:
            return Delivered(0, (), ())
        transitions = _some(breaker.begin_trial(rows[0].outbox_id, claim.until, at))
        receipts = await self._post(rows, breaker, transitions, claim.until)
        # Decided here, not inside: a transaction that is tried again must come to the same.
        self._decide(rows, receipts, breaker)
        await self.store.transact(lambda unit: self._write(unit, rows, breaker, transitions))
        told = [(row, receipt) for row, receipt in zip(rows, receipts, strict=True) if receipt]
        accepted = tuple((row, receipt) for row, receipt in told if receipt.is_accepted)
        refused = tuple(pair for pair in told if not pair[1].is_accepted)
        return Delivered(len(told), accepted, refused, transitions=tuple(transitions))

    def _claim(self, unit: Unit, claim: Claim, count: int) -> list[ProductEvent]:
        """Of each product the first row, or the newest in place of those that were never tried."""
        heads, superseded, restated = [], [], []
        for rows in unit.events.claim(claim, count):
            head, *newer_rows = rows
            for newer in newer_rows:
                newer.supersede(head, claim.at)
                superseded.append(head)
                head = newer
            heads.append(head)
            if newer_rows:
                restated.append(head)
        # What the heads took over must outlive a crash before they are sent.
        unit.events.restate(restated)
        unit.events.save(superseded, self.owner)
        return heads

    async def _post(
        self, rows: Sequence[ProductEvent], breaker: Breaker, transitions: list[Transition], until: datetime
    ) -> list[Receipt | None]:
        """`concurrency` at a time; None for what was not sent: the breaker opened meanwhile, or the claim might run
        out under way, and the product's next version be sent by somebody else."""
        last = until - timedelta(seconds=self.send_seconds)
        receipts: list[Receipt | None] = [None] * len(rows)
        places = iter(range(len(rows)))

        async def lane() -> None:
            for place in places:
                if breaker.state is BreakerState.OPEN or self.clock.now() > last:
                    return
                row = rows[place]
                receipt = await self._send(row)
                receipts[place] = receipt
                now = self.clock.now()
                if _is_away(receipt):
                    transitions.extend(
                        _some(breaker.failure(row.outbox_id, now, receipt.error or f"HTTP {receipt.status}"))
                    )
                else:
                    transitions.extend(_some(breaker.success(row.outbox_id, now)))

        await asyncio.gather(*(lane() for _ in range(min(self.concurrency, len(rows)))))
        return receipts

    async def _send(self, row: ProductEvent) -> Receipt:
        """What goes out bears the sending's own context, and not in its body."""
        began = self.clock.now()
        carried = traces.checked(row.payload.get(traces.CARRIED))
        # What no task led to is a story of its own.
        context = traces.child(carried or traces.root(row.outbox_id), f"deliver/{began.isoformat()}")
        body = {name: value for name, value in row.payload.items() if name != traces.CARRIED}
        receipt = await self.server.deliver(row.outbox_id, body, began, context)
        if self.traces.is_on:
            facts: dict[str, str | int] = {"event.id": row.outbox_id, "version": row.version}
            if receipt.status is not None:
                facts["http.response.status_code"] = receipt.status
            error = None if receipt.is_accepted else receipt.error or f"HTTP {receipt.status}"
            span = Span("deliver", context, carried, began, self.clock.now(), facts, error, is_call=True)
            self.traces.tell([span])
        return receipt

    def _decide(self, rows: Sequence[ProductEvent], receipts: Sequence[Receipt | None], breaker: Breaker) -> None:
        at = self.clock.now()
        is_away = breaker.state is not BreakerState.CLOSED
        for row, receipt in zip(rows, receipts, strict=True):
            if receipt is not None and receipt.is_accepted:
                row.completed(at)
                continue
            if receipt is None:
                row.wait(breaker.retry_at() or at)
                continue
            error = receipt.error or f"HTTP {receipt.status}"
            pause = backoff(row.retry_count, _BACKOFF_SECONDS, _BACKOFF_CEILING, self.chance.random())
            next_at = at + max(pause, receipt.retry_after or timedelta(0))
            if is_away and _is_away(receipt):
                row.wait(max(breaker.retry_at() or at, next_at), error)
                continue
            row.failed(error, self.retries_max, next_at, is_final=receipt.status in FINAL)

    def _write(
        self, unit: Unit, rows: Sequence[ProductEvent], breaker: Breaker, transitions: Sequence[Transition]
    ) -> None:
        at = self.clock.now()
        unit.events.save(rows, self.owner)
        unit.breakers.record(transitions)
        unit.breakers.save(breaker, at)
        failed = [row for row in rows if row.status is OutboxStatus.FAILED]
        if failed:
            unit.chores.raise_alert(
                "delivery_failed",
                "critical",
                f"the product server did not take {len(failed)} changes: {failed[0].error_message}",
                {"outboxIds": [row.outbox_id for row in failed[:10]]},
                at,
            )
        elif not unit.events.has_failed():
            unit.chores.clear_alert("delivery_failed", at)
        if any(t.to_state is BreakerState.OPEN for t in transitions):
            unit.chores.raise_alert("product_server_away", "critical", "the product server is away", {}, at)
        if any(t.to_state is BreakerState.CLOSED for t in transitions):
            unit.chores.clear_alert("product_server_away", at)


def _new_breaker() -> Breaker:
    return Breaker(BreakerScope.PRODUCT_SERVER, _BREAKER_FAILURES, _BREAKER_OPEN)


def _is_away(receipt: Receipt) -> bool:
    return receipt.status is None or receipt.status >= 500


def _some(transition: Transition | None) -> list[Transition]:
    return [transition] if transition else []
