"""Step 2, relay: task outbox → queue, just in time.

    one commit: PENDING ─▶ PROCESSING (owner, deadline) ─▶ send (nothing is open) ─▶ one commit: what was accepted
    SENT and its tasks PUBLISHED; what was refused back with backoff, or FAILED with its task

A task is never PUBLISHED without an accepted message. A crash, or a send whose outcome is unknown, leaves PROCESSING
rows that go back after their deadline and are sent under the same deduplication id, which the queue drops if it had
the first one. The backlog stays here: no more is sent than the pool can lease in a minute, so no message grows old.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sellerwatch.domain import traces
from sellerwatch.domain.addresses import Addresses
from sellerwatch.domain.outbox import Publication, TaskOutboxStatus, backoff
from sellerwatch.ports.meter import UNMETERED, Meter
from sellerwatch.ports.pool import Pool
from sellerwatch.ports.queue import Outgoing, Queue
from sellerwatch.ports.store import Claim, Store, Unit
from sellerwatch.ports.time import Bell, Chance, Clock
from sellerwatch.ports.traces import UNTRACED, Span, Traces
from sellerwatch.steps.closing import Closing, cancel_tasks

_BACKOFF_SECONDS, _BACKOFF_CEILING = 5.0, 300.0


@dataclass(frozen=True, slots=True)
class Relayed:
    claimed: int
    sent: int
    refused: int
    has_room: bool
    """False: the queue holds all that can be leased soon."""


@dataclass(frozen=True, slots=True)
class Relay:
    store: Store
    queue: Queue
    pool: Pool
    addresses: Addresses
    clock: Clock
    chance: Chance
    bell: Bell
    owner: str
    ahead_seconds: float = 60.0
    batch: int = 500
    retries_max: int = 3
    claim_seconds: float = 30.0
    page_size: int = 500
    meter: Meter = UNMETERED
    traces: Traces = UNTRACED

    async def run(self) -> Relayed:
        at = self.clock.now()
        if not await self.store.read(lambda unit: unit.publications.is_due(at)):
            return Relayed(0, 0, 0, has_room=True)
        room = min(self.batch, await self._room())
        if room <= 0:
            return Relayed(0, 0, 0, has_room=False)
        claim = Claim(self.owner, at + timedelta(seconds=self.claim_seconds), at)
        rows = await self.store.transact(lambda unit: unit.publications.claim(claim, room))
        if not rows:
            return Relayed(0, 0, 0, has_room=True)
        contexts = {row.task_id: _context(row) for row in rows}
        outcomes = await self.queue.send([_message(row, contexts[row.task_id]) for row in rows])
        refused = self._mark(rows, outcomes)
        closing = await self.store.transact(lambda unit: self._write(unit, rows, refused))
        closing.tell(self.meter)
        if self.traces.is_on:
            self.traces.tell(_spans(rows, contexts, at, self.clock.now()))
        self.bell.ring("crawl")
        return Relayed(len(rows), len(rows) - len(refused), len(refused), has_room=True)

    async def _room(self) -> int:
        depth = await self.queue.depth()
        return await self.pool.capacity(self.ahead_seconds) - depth.waiting - depth.out

    def _mark(self, rows: Sequence[Publication], outcomes: Sequence[str | None]) -> list[Publication]:
        at = self.clock.now()
        refused = []
        for row, error in zip(rows, outcomes, strict=True):
            if error is None:
                row.sent(at)
                continue
            pause = backoff(row.retry_count, _BACKOFF_SECONDS, _BACKOFF_CEILING, self.chance.random())
            row.refused(error, self.retries_max, at + pause)
            refused.append(row)
        return refused

    def _write(self, unit: Unit, rows: Sequence[Publication], refused: Sequence[Publication]) -> Closing:
        at = self.clock.now()
        lost = [row.task_id for row in refused if row.status is TaskOutboxStatus.FAILED]
        closing = Closing(unit, self.addresses, self.page_size, at)
        tasks = {}
        if lost:
            found = [task for task in (unit.tasks.get(task_id) for task_id in lost) if task]
            closing.begin(task.execution_id for task in found)
            tasks = unit.tasks.lock(lost)
        written = unit.publications.save(rows, self.owner)
        sent = [row.task_id for row in rows if row.status is TaskOutboxStatus.SENT and row.task_id in written]
        unit.tasks.mark_published(sent, at)
        for row in refused:
            task = tasks.get(row.task_id)
            if task and task.is_open and row.task_id in written:
                cancel_tasks(closing, [task], f"could not be published: {row.error_message}")
        closing.end()
        return closing


def _context(row: Publication) -> str:
    return traces.child(traces.root(row.task_id), f"relay/{row.publish_count + 1}")


def _spans(
    rows: Sequence[Publication], contexts: Mapping[str, str], began: datetime, ended: datetime
) -> Iterator[Span]:
    """A task's trace begins when its row is sent for the first time: with how long that was waited for."""
    for row in rows:
        facts = {"task.id": row.task_id, "seller.id": row.seller_id, "task.kind": str(row.payload["taskType"])}
        root, is_sent = traces.root(row.task_id), row.status is TaskOutboxStatus.SENT
        if is_sent and row.publish_count == 1:
            yield Span("trigger", root, None, row.created_at, began, facts)
        yield Span("relay", contexts[row.task_id], root, began, ended, facts, None if is_sent else row.error_message)


def _message(row: Publication, context: str) -> Outgoing:
    return Outgoing(
        body={**row.payload, "attempt": row.publish_count + 1},
        group=row.message_group,
        dedup_id=row.dedup_id,
        attributes={"sellerId": row.seller_id, "traceparent": context},
    )
