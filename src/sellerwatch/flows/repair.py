"""Repair: what an operator does to what has failed.

Every verb is a row's own verb, written a batch at a time, one commit each: interrupted, it has done a part, and doing
it again does the rest. A row that the rules refuse is named with the reason and stands in nobody's way.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from sellerwatch.domain.errors import Unknown, WrongVerb
from sellerwatch.domain.executions import Execution, ExecutionStatus
from sellerwatch.domain.outbox import ProductEvent, TaskOutboxStatus, superseded_by
from sellerwatch.domain.raws import RawStatus
from sellerwatch.domain.tasks import NO_ITEM, TaskKind, TaskStatus
from sellerwatch.ports.meter import UNMETERED, Meter
from sellerwatch.ports.queue import DeadLetter, Queue
from sellerwatch.ports.store import Store, Unit
from sellerwatch.ports.time import Bell, Clock
from sellerwatch.steps.closing import clear_overdue

T = TypeVar("T")

BATCH = 500
RAW_BATCH = 100
"""Raws are read with their bodies."""
_FOR_EVER = datetime(9999, 12, 31, tzinfo=UTC)
_ANY_RETRIES = 2**31 - 1
_CANCELLED = "cancelled"


@dataclass(slots=True)
class Repaired:
    """How many rows were changed, what else there is to know of them, and what was refused, a line each."""

    done: int = 0
    superseded: int = 0
    """FAILED rows whose product was sent in a newer version since: nothing is left to send."""
    refused: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Repair:
    store: Store
    queue: Queue
    clock: Clock
    bell: Bell
    meter: Meter = UNMETERED

    async def retry(self, outbox_ids: Sequence[str]) -> Repaired:
        """FAILED rows of any outbox, by id, are sent again from now on."""
        repaired = Repaired()
        for ids in _batches(outbox_ids, BATCH):
            _add(repaired, await self.store.transact(partial(_retry, outbox_ids=ids, at=self.clock.now())))
        return self._rung(repaired, "deliver", "announce", "relay")

    async def retry_since(self, since: datetime) -> Repaired:
        """All FAILED rows of the product outbox that were written since."""
        repaired = Repaired()
        while True:
            some = await self.store.transact(partial(_retry_since, since=since, at=self.clock.now()))
            _add(repaired, some)
            if some.done + some.superseded < BATCH:
                return self._rung(repaired, "deliver")

    async def retry_raws(self, raw_ids: Sequence[str] | None = None) -> Repaired:
        """FAILED raws, these or all of them, are processed once more whatever was tried before."""
        repaired = Repaired()
        if raw_ids is not None:
            for ids in _batches(raw_ids, RAW_BATCH):
                _add(repaired, await self.store.transact(partial(_retry_raws, raw_ids=ids, at=self.clock.now())))
            return self._rung(repaired, "absorb")
        at = self.clock.now()
        while done := await self.store.transact(partial(_retry_failed_raws, at=at)):
            repaired.done += done
        return self._rung(repaired, "absorb")

    async def dead_letters(self, count: int = BATCH) -> list[DeadLetter]:
        return await self.queue.dead_letters(count)

    async def redrive(self, letter_ids: Sequence[str] | None = None) -> int:
        """Dead letters, these or all of them, back into the queue; how many."""
        if letter_ids is not None:
            return await self.queue.redrive(letter_ids)
        total = 0
        async for letters in self._all_letters():
            total += await self.queue.redrive([letter.letter_id for letter in letters])
        return total

    async def cancel_execution(self, execution_id: str) -> int:
        """Its open tasks become FAILED (`cancelled`), and with the last of them the execution; how many tasks."""
        cancelled = 0
        while True:
            some, ended_as = await self.store.transact(
                partial(_cancel_some, execution_id=execution_id, at=self.clock.now(), is_begun=cancelled > 0)
            )
            cancelled += len(some)
            for kind in some:
                self.meter.task(kind, TaskStatus.FAILED)
            if ended_as is ExecutionStatus.FAILED:
                self.meter.execution(ended_as)
            if ended_as:
                for name in ("absorb", "delist", "relay"):
                    self.bell.ring(name)
                return cancelled

    async def _all_letters(self) -> AsyncIterator[list[DeadLetter]]:
        """Those that are there now: one that dies again meanwhile is not sent round and round."""
        until = self.clock.now()
        known: set[str] = set()
        while letters := await self.queue.dead_letters(BATCH):
            new = [letter for letter in letters if letter.letter_id not in known and letter.sent_at <= until]
            if not new:
                return
            known |= {letter.letter_id for letter in new}
            yield new

    def _rung(self, repaired: Repaired, *names: str) -> Repaired:
        if repaired.done:
            for name in names:
                self.bell.ring(name)
        return repaired


def _retry(unit: Unit, outbox_ids: Sequence[str], at: datetime) -> Repaired:
    repaired = Repaired()
    events, notices = unit.events.lock(outbox_ids), unit.notices.lock(outbox_ids)
    failed = [row for row in unit.publications.lock(outbox_ids) if row.status is TaskOutboxStatus.FAILED]
    tasks = unit.tasks.lock([row.task_id for row in failed])
    _send_again(unit, repaired, events, at)
    unit.notices.put([notice for notice in notices if _do(repaired, partial(notice.again, at))])
    still_open = [row for row in failed if (task := tasks.get(row.task_id)) and task.is_open]
    repaired.done += unit.publications.again([(row.task_id, at) for row in still_open])
    closed = [row for row in failed if row not in still_open]
    repaired.refused += [f"the task of outbox row {r.outbox_id} has ended: crawl {r.seller_id} again" for r in closed]
    found = {e.outbox_id for e in events} | {n.outbox_id for n in notices} | {row.outbox_id for row in failed}
    repaired.refused += [f"no FAILED outbox row {outbox_id}" for outbox_id in outbox_ids if outbox_id not in found]
    return repaired


def _retry_since(unit: Unit, since: datetime, at: datetime) -> Repaired:
    repaired = Repaired()
    _send_again(unit, repaired, unit.events.lock_failed_since(since, BATCH), at)
    return repaired


def _send_again(unit: Unit, repaired: Repaired, events: Sequence[ProductEvent], at: datetime) -> None:
    changed = [event for event in events if _do(repaired, partial(event.again, at))]
    for event in changed:
        newer = unit.events.newer_sent(event)
        if newer is not None:
            # The receiver has a newer one, which tells the whole product: an older one after it would set it back.
            event.completed(at, superseded_by(newer))
            repaired.done, repaired.superseded = repaired.done - 1, repaired.superseded + 1
    unit.events.put(changed)


def _retry_raws(unit: Unit, raw_ids: Sequence[str], at: datetime) -> Repaired:
    repaired = Repaired()
    raws = {raw.raw_id: raw for raw in unit.raws.lock_by_id(raw_ids)}
    failed = [raw for raw in raws.values() if raw.status is RawStatus.FAILED]
    for raw in failed:
        raw.again(at)
    unit.raws.save(failed)
    repaired.done = len(failed)
    repaired.refused += [f"no raw {raw_id}" for raw_id in raw_ids if raw_id not in raws]
    others = (raw for raw in raws.values() if raw not in failed)
    repaired.refused += [f"raw {raw.raw_id} is {raw.status}: it has not failed" for raw in others]
    return repaired


def _retry_failed_raws(unit: Unit, at: datetime) -> int:
    raws = unit.raws.lock_failed(_FOR_EVER, _ANY_RETRIES, RAW_BATCH)
    for raw in raws:
        raw.again(at)
    unit.raws.save(raws)
    return len(raws)


def _cancel_some(
    unit: Unit, execution_id: str, at: datetime, *, is_begun: bool
) -> tuple[list[TaskKind], ExecutionStatus | None]:
    """Of which kinds the open tasks were that were cancelled, and how the execution ended, if it did."""
    execution: Execution | None = unit.executions.lock([execution_id]).get(execution_id)
    if execution is None:
        raise Unknown("execution", execution_id)
    if not execution.is_open and is_begun:
        return [], execution.status
    if not execution.is_open:
        raise WrongVerb("execution", execution_id, execution.status, "be cancelled")
    tasks = unit.tasks.lock_open(execution_id, BATCH)
    unit.attempts.abandon([task.attempt_id for task in tasks if task.attempt_id], at)
    for task in tasks:
        task.cancel(_CANCELLED, at)
    unit.tasks.save(tasks)
    unit.publications.cancel([task.task_id for task in tasks])
    unit.raws.ripen([(execution_id, task.item_no) for task in tasks if task.item_no != NO_ITEM], at)
    is_ended = len(tasks) < BATCH
    if is_ended:
        execution.cancel(len(tasks), at)
    else:
        execution.count(0, len(tasks))
    unit.executions.save([execution])
    clear_overdue(unit, [execution], at)
    return [task.kind for task in tasks], execution.status if is_ended else None


def _do(repaired: Repaired, verb: Callable[[], None]) -> bool:
    """Whether the row's rules allowed it; if not, it is told."""
    try:
        verb()
    except WrongVerb as refusal:
        repaired.refused.append(str(refusal))
        return False
    repaired.done += 1
    return True


def _add(total: Repaired, some: Repaired) -> None:
    total.done += some.done
    total.superseded += some.superseded
    total.refused += some.refused


def _batches(values: Sequence[T], size: int) -> Iterable[Sequence[T]]:
    distinct = list(dict.fromkeys(values))
    return (distinct[start : start + size] for start in range(0, len(distinct), size))
