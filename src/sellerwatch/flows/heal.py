"""Healing: what stood still goes back to the start of its own step. One method a sweep, each safe to run anywhere,
at any time, twice at once; each says how much it found.

    stuck tasks         RUNNING, the claim run out         attempt ABANDONED, RETRY, outbox PENDING; or FAILED
    published orphans   PUBLISHED, but no message          the same, with a new deduplication id
    dead letters        whose task is open                 published anew
    outbox zombies      PROCESSING, SENDING past deadline  back to PENDING, WAITING
    failed task outbox  FAILED, but the task is open       PENDING, or the task FAILED
    failed raws         with retries left                  PENDING
    executions          open without an open task          COMPLETED; open for too long: an alert
    daily figures       of a day that has ended            written
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile
from zoneinfo import ZoneInfo

from sellerwatch.domain.addresses import Addresses
from sellerwatch.domain.breakers import BreakerState
from sellerwatch.domain.days import bounds
from sellerwatch.domain.executions import ExecutionStatus
from sellerwatch.domain.tasks import Task, TaskStatus
from sellerwatch.ports.meter import UNMETERED, Meter
from sellerwatch.ports.pool import Pool, WhyNot
from sellerwatch.ports.queue import Queue
from sellerwatch.ports.store import Store, Unit
from sellerwatch.ports.time import Bell, Clock
from sellerwatch.steps.closing import Closing, cancel_tasks, clear_overdue
from sellerwatch.steps.holding import let_some_go
from sellerwatch.steps.pausing import Pausing
from sellerwatch.steps.strange import forget_names

_FIGURED_BACK = 31


@dataclass(frozen=True, slots=True)
class HealRules:
    batch: int = 500
    stuck_seconds: float = 600.0
    orphan_seconds: float = 900.0
    abandons_max: int = 30
    raw_retries: int = 3
    task_outbox_retries: int = 3
    page_size: int = 500
    timezone: str = "Asia/Seoul"


@dataclass(frozen=True, slots=True)
class _Again:
    """How many tasks had stood still; those of them whose attempt was given up, and what ended by it."""

    found: int
    abandoned: list[Task]
    closing: Closing


@dataclass(frozen=True, slots=True)
class Heal:
    store: Store
    queue: Queue
    pool: Pool
    addresses: Addresses
    clock: Clock
    bell: Bell
    rules: HealRules
    pausing: Pausing
    meter: Meter = UNMETERED

    async def stuck_tasks(self) -> int:
        at = self.clock.now()
        before = at - timedelta(seconds=self.rules.stuck_seconds)

        def work(unit: Unit) -> _Again:
            return self._start_again(unit, unit.tasks.lock_stuck(at, before, self.rules.batch), at)

        return self._relayed(await self.store.transact(work))

    async def published_orphans(self) -> int:
        """Not while receiving pauses: a message that nobody may take has not been lost."""
        at = self.clock.now()
        figures = await self.pool.figures()
        breakers = (figures.pool_breaker, figures.site_breaker)
        before = at - timedelta(seconds=self.rules.orphan_seconds)
        if figures.why is WhyNot.EMPTY or any(breaker.state is not BreakerState.CLOSED for breaker in breakers):
            await self.pausing.note("the sweep found a breaker open, or an empty pool")
            return 0
        paused_at = await self.store.read(lambda unit: unit.chores.paused_at())
        if paused_at and paused_at > before:
            return 0
        if any(breaker.closed_at and breaker.closed_at > before for breaker in breakers):
            return 0
        found = await self.store.read(lambda unit: unit.tasks.orphans(before, self.rules.batch))
        missing = set(await self.queue.missing([task.task_id for task in found]))

        def work(unit: Unit) -> _Again:
            tasks = [t for t in unit.tasks.lock(missing).values() if t.status is TaskStatus.PUBLISHED]
            again = self._start_again(unit, tasks, at)
            unit.tasks.note_orphans([task.task_id for task in found], at)
            return again

        return self._relayed(await self.store.transact(work)) if found else 0

    async def dead_letters(self) -> int:
        """A dead letter is no proof of poison: while its task is open it is published anew."""
        letters = [letter for letter in await self.queue.dead_letters(self.rules.batch) if letter.task_id]
        if not letters:
            return 0
        at = self.clock.now()

        def work(unit: Unit) -> _Again:
            tasks = unit.tasks.lock([letter.task_id for letter in letters if letter.task_id])
            again = [task for task in tasks.values() if task.is_open and not task.has_live_claim(at)]
            return self._start_again(unit, again, at)

        published = await self.store.transact(work)
        await self.queue.drop_dead([letter.letter_id for letter in letters])
        return self._relayed(published)

    async def outbox_zombies(self) -> int:
        at, count = self.clock.now(), self.rules.batch

        def work(unit: Unit) -> int:
            boxes = (unit.publications, unit.events, unit.notices)
            return sum(box.free_zombies(at, count) for box in boxes)

        return self._told("relay", await self.store.transact(work))

    async def failed_task_outbox(self) -> int:
        at = self.clock.now()

        def work(unit: Unit) -> tuple[int, Closing]:
            rows = unit.publications.lock_failed(self.rules.batch)
            tasks = unit.tasks.lock([row.task_id for row in rows])
            given_up = {r.task_id for r in rows if r.is_spoilt or r.retry_count >= self.rules.task_outbox_retries}
            lost = [task for task_id, task in tasks.items() if task_id in given_up]
            unit.publications.again([(r.task_id, at) for r in rows if r.task_id not in given_up])
            closing = self._closing(unit, lost, at)
            cancel_tasks(closing, lost, "could not be published")
            closing.end()
            return len(rows), closing

        found, closing = await self.store.transact(work)
        closing.tell(self.meter)
        return self._told("relay", found)

    async def failed_raws(self) -> int:
        """Those with retries left, and those that an ended quarantine left behind."""
        at = self.clock.now()

        def work(unit: Unit) -> int:
            raws = unit.raws.lock_failed(at, self.rules.raw_retries, self.rules.batch)
            for raw in raws:
                raw.again(at)
            unit.raws.save(raws)
            return len(raws) + let_some_go(unit, at, self.rules.batch)

        return self._told("absorb", await self.store.transact(work))

    async def executions(self) -> int:
        at = self.clock.now()

        def work(unit: Unit) -> int:
            idle = unit.executions.lock_idle(self.rules.batch)
            ended = sum(execution.complete_if_done(at) for execution in idle)
            unit.executions.save(idle)
            clear_overdue(unit, idle, at)
            for execution in unit.executions.overdue(at, self.rules.batch):
                text = f"the crawl of {execution.seller_id} has been open since {execution.started_at:%F %H:%M} UTC"
                details = {"executionId": execution.execution_id}
                unit.chores.raise_alert(f"execution_overdue:{execution.seller_id}", "warning", text, details, at)
            return ended

        ended = await self.store.transact(work)
        if ended:
            self.meter.execution(ExecutionStatus.COMPLETED, ended)
        return self._told("delist", ended)

    async def daily_figures(self) -> int:
        """Of every day, in the operators' time zone, that has ended since the last one that was figured; and again of
        a day some of whose tasks had not ended yet."""
        zone = ZoneInfo(self.rules.timezone)
        today = self.clock.now().astimezone(zone).date()

        def work(unit: Unit) -> int:
            days = [today - timedelta(days=back) for back in range(1, _FIGURED_BACK + 1)]
            missing = list(takewhile(lambda day: not unit.chores.figured_days(day), days))
            # Of a house that never figured any, what was before yesterday is nobody's business.
            due = missing[:1] if len(missing) == len(days) else missing
            if due:
                forget_names(unit, self.clock.now())
            again = unit.chores.unsettled_days(days[-1])
            return sum(unit.chores.write_daily_figures(day, *bounds(day, zone)) for day in [*reversed(due), *again])

        return await self.store.transact(work)

    def _start_again(self, unit: Unit, tasks: list[Task], at: datetime) -> _Again:
        """On their way again, or FAILED when that was tried too often."""
        closing = self._closing(unit, tasks, at)
        unit.attempts.abandon([task.attempt_id for task in tasks if task.attempt_id], at)
        abandoned = [task for task in tasks if task.status in {TaskStatus.RUNNING, TaskStatus.PUBLISHED}]
        for task in abandoned:
            task.abandon(self.rules.abandons_max, at)
        for task in tasks:
            if not task.is_open:
                closing.closed(task)
        unit.tasks.save(tasks)
        unit.publications.again([(task.task_id, at) for task in tasks if task.is_open])
        closing.end()
        return _Again(len(tasks), [task for task in abandoned if task.is_open], closing)

    def _closing(self, unit: Unit, tasks: Iterable[Task], at: datetime) -> Closing:
        closing = Closing(unit, self.addresses, self.rules.page_size, at)
        closing.begin(task.execution_id for task in tasks)
        return closing

    def _relayed(self, again: _Again) -> int:
        again.closing.tell(self.meter)
        for task in again.abandoned:
            self.meter.task(task.kind, task.status)
        return self._told("relay", again.found)

    def _told(self, name: str, found: int) -> int:
        if found:
            self.bell.ring(name)
        return found
