"""Step 1, trigger: a seller's turn has come.

    due schedule, message, operator ─▶ one commit: execution STARTED ─▶ the count is asked for (nothing is open)
    ─▶ one commit: IN_PROGRESS, the seller's count, tasks WAITING, their outbox rows

A trigger never leaves no trace: STARTED is written before anything is asked. A crash before the second commit leaves
a STARTED execution, which `Plan` finds again when its claim has run out. One trigger key, one execution; while a
seller is being crawled, another trigger is answered with the open one.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from sellerwatch.domain.addresses import Addresses
from sellerwatch.domain.errors import Conflict, Invalid, SellerwatchError, Trouble, Unknown, Unreadable
from sellerwatch.domain.executions import Execution, ExecutionStatus
from sellerwatch.domain.outbox import Publication, backoff
from sellerwatch.domain.sellers import CrawlSource, Seller
from sellerwatch.domain.tasks import Blame, Task, TaskKind, list_tasks, new_task
from sellerwatch.domain.triggers import called
from sellerwatch.ports.marketplace import Reader
from sellerwatch.ports.meter import UNMETERED, Meter
from sellerwatch.ports.queue import Delivery, Queue
from sellerwatch.ports.store import Claim, Store, Unit
from sellerwatch.ports.time import Bell, Chance, Clock
from sellerwatch.steps.asking import Asked, Asking
from sellerwatch.steps.closing import clear_overdue
from sellerwatch.steps.robots import raise_disallowed
from sellerwatch.steps.strange import raise_path_moved

FIRST_SEARCH_PAGE = 1
_PLAN_BACKOFF_SECONDS = 30.0
_PLAN_BACKOFF_CEILING = 900.0
_WAIT_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Opened:
    """The execution that answers a trigger; `is_new` when this trigger began it."""

    execution: Execution | None
    is_new: bool


@dataclass(frozen=True, slots=True)
class Trigger:
    """Begins executions; asks nothing of anyone."""

    store: Store
    clock: Clock
    chance: Chance
    bell: Bell
    meter: Meter = UNMETERED

    async def open(self, seller_id: str, trigger_key: str | None = None) -> Opened:
        """Begin an execution. An INACTIVE seller has none; without a key, the number of the interval is the key."""
        at = self.clock.now()
        execution_id = self.chance.uuid7(at)

        def work(unit: Unit) -> Opened:
            seller = unit.sellers.lock(seller_id)
            schedule = unit.schedules.lock(seller_id)
            if seller is None or schedule is None:
                raise Unknown("seller", seller_id)
            if not seller.is_active:
                return Opened(None, is_new=False)
            interval_seconds = seller.interval_days * 86400
            key = trigger_key or f"{seller_id}:{int(at.timestamp()) // interval_seconds}"
            known = unit.executions.of_trigger(schedule.schedule_id, key) or unit.executions.open_of(seller_id)
            if known:
                return Opened(known, is_new=False)
            execution = Execution.start(execution_id, schedule.schedule_id, seller_id, key, at)
            unit.executions.add(execution)
            schedule.note_triggered(at)
            unit.schedules.save(schedule)
            return Opened(execution, is_new=True)

        opened = await self.store.transact(work)
        if opened.is_new:
            self.meter.execution(ExecutionStatus.STARTED)
        self.bell.ring("plan")
        return opened

    async def crawl_now(self, seller_id: str) -> Execution:
        """By an operator's word: a new execution, or a refusal that names what is in the way."""
        opened = await self.open(seller_id, f"manual:{self.chance.uuid7(self.clock.now())}")
        if opened.execution is None:
            raise Conflict("SELLER_INACTIVE", f"seller {seller_id} is INACTIVE: activate it first")
        if not opened.is_new:
            raise Conflict(
                "EXECUTION_IN_PROGRESS",
                f"seller {seller_id} is being crawled already: execution {opened.execution.execution_id}",
                opened.execution.execution_id,
            )
        return opened.execution

    async def open_due(self, count: int) -> int:
        """Executions for the schedules that are due. A run missed is caught up once; a seller still being crawled
        skips its turn. Few at a time, so that many due at once are spread over the following looks."""
        at = self.clock.now()

        def work(unit: Unit) -> list[datetime]:
            opened = []
            for schedule in unit.schedules.lock_due(at, count):
                key, due_at = schedule.trigger_key(), schedule.next_run_at
                schedule.advance(at)
                unit.schedules.save(schedule)
                execution = Execution.start(self.chance.uuid7(at), schedule.schedule_id, schedule.seller_id, key, at)
                if unit.executions.add(execution):
                    opened.append(due_at)
            return opened

        opened = await self.store.transact(work)
        for due_at in opened:
            self.meter.execution(ExecutionStatus.STARTED)
            self.meter.schedule_delay((at - due_at).total_seconds())
        if opened:
            self.bell.ring("plan")
        return len(opened)


@dataclass(frozen=True, slots=True)
class Heed:
    """Takes triggers from the queue that EventBridge puts them into.

    Whatever `open` answers, the message is done with: duplicates and late ones begin nothing a second time, and a rule
    may outlive its seller for a while. What is no trigger, or calls a seller that can't be read, is a dead letter with
    the reason. A crash before the message is done with brings it again, and its key is known then.
    """

    trigger: Trigger
    queue: Queue
    wait_seconds: float = 2.0
    batch: int = 10

    async def run(self) -> int:
        """Wait for triggers and begin what they call for; how many came."""
        deliveries = await self.queue.receive(self.batch, self.wait_seconds)
        done: list[str] = []
        for number, delivery in enumerate(deliveries):
            try:
                why_not = await self._heed(delivery)
            except Trouble:
                await self.queue.ack(done)
                await self.queue.give_back([one.receipt for one in deliveries[number:]])
                raise
            if why_not is None:
                done.append(delivery.receipt)
            else:
                await self.queue.bury(delivery.receipt, why_not)
        await self.queue.ack(done)
        return len(deliveries)

    async def _heed(self, delivery: Delivery) -> str | None:
        """Why it is a dead letter; None: it is done with."""
        try:
            call = called(delivery.body)
            with suppress(Unknown):
                await self.trigger.open(call.seller_id, call.trigger_key)
        except (Invalid, Unreadable) as refusal:
            return str(refusal)
        return None


@dataclass(frozen=True, slots=True)
class Plan:
    """Gives executions their first tasks; asks the marketplace for the count."""

    store: Store
    asking: Asking
    reader: Reader
    addresses: Addresses
    clock: Clock
    chance: Chance
    bell: Bell
    owner: str
    retries_max: int = 3
    page_size: int = 500
    claim_seconds: float = 150.0
    meter: Meter = UNMETERED

    async def run(self, count: int = 10) -> int:
        """Give every STARTED execution its first tasks; how many were taken up."""
        at = self.clock.now()
        claim = Claim(self.owner, at + timedelta(seconds=self.claim_seconds), at)
        started = await self.store.transact(lambda unit: unit.executions.claim_started(claim, count))
        # All at once: one that waits for its answer holds up no other, nor does one that fails.
        outcomes = await asyncio.gather(*map(self._plan, started), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        return len(started)

    async def _plan(self, execution: Execution) -> None:
        try:
            seller = await self.store.read(lambda unit: unit.sellers.get(execution.seller_id))
        except Unreadable as error:
            why = str(error)
            await self._write(execution, None, lambda at: execution.fail(why, at))
            return
        if seller is None or not seller.is_active:
            await self._write(execution, None, lambda at: execution.fail("seller inactive", at))
            return
        if seller.crawl_source is CrawlSource.SEARCH:
            await self._begin(execution, seller, None, None)
            return
        asked = await self.asking.ask(TaskKind.MINI_SHOP, self._first_page(seller.seller_id), task_id=None)
        try:
            found = self._count(asked)
        except SellerwatchError as error:
            await self._not_now(execution, asked, str(error))
        else:
            await self._begin(execution, seller, found, asked)

    def _first_page(self, seller_id: str) -> str:
        return self.addresses.mini_shop(seller_id, 0, 1)

    def _count(self, asked: Asked) -> int:
        if asked.blame is not None or asked.answer is None:
            raise Unreadable("product count", asked.error or "no answer")
        count = self.reader.listing(TaskKind.MINI_SHOP, asked.answer.body).count
        if count is None:
            raise Unreadable("product count", "the list does not say how many items it has")
        return count

    async def _begin(self, execution: Execution, seller: Seller, found: int | None, asked: Asked | None) -> None:
        at = self.clock.now()
        tasks = self._first_tasks(execution, seller, found, at)
        execution.plan(len(tasks), found, at)

        def work(unit: Unit) -> bool:
            if asked:
                unit.chores.log_usage(asked.usages)
            if not unit.executions.release(execution, self.owner):
                return False
            if found is not None:
                current = unit.sellers.lock(seller.seller_id)
                if current:
                    current.record_product_count(found, at)
                    unit.sellers.save(current)
            unit.tasks.add(tasks)
            unit.publications.add([Publication.of(task, at) for task in tasks])
            return True

        self._tell(execution, is_written=await self.store.transact(work))
        self.bell.ring("relay")

    def _first_tasks(self, execution: Execution, seller: Seller, found: int | None, at: datetime) -> list[Task]:
        execution_id, seller_id = execution.execution_id, seller.seller_id
        if found is not None:
            return list_tasks(execution_id, seller_id, found, self.page_size, self.addresses, at)
        url = self.addresses.search(seller_id)
        page = FIRST_SEARCH_PAGE
        return [new_task(execution_id, seller_id, TaskKind.SEARCH, url, self.addresses, at, page_no=page)]

    async def _not_now(self, execution: Execution, asked: Asked, error: str) -> None:
        if asked.blame is Blame.NOT_ITS_OWN:
            await self._write(execution, asked, lambda at: execution.wait(at + timedelta(seconds=_WAIT_SECONDS)))
            return
        if asked.refusal:
            await self._write(execution, asked, lambda at: execution.fail(error, at))
            return
        pause = backoff(execution.plan_attempts, _PLAN_BACKOFF_SECONDS, _PLAN_BACKOFF_CEILING, self.chance.random())
        await self._write(execution, asked, lambda at: execution.put_off(error, self.retries_max, at + pause, at))

    async def _write(self, execution: Execution, asked: Asked | None, change: Callable[[datetime], None]) -> None:
        at = self.clock.now()
        change(at)

        def work(unit: Unit) -> bool:
            if asked:
                unit.chores.log_usage(asked.usages)
                if asked.refusal:
                    raise_disallowed(unit, asked.refusal, at)
                if asked.is_path_gone:
                    raise_path_moved(unit, self._first_page(execution.seller_id), asked.http_status, at)
            clear_overdue(unit, [execution], at)
            return unit.executions.release(execution, self.owner)

        self._tell(execution, is_written=await self.store.transact(work))

    def _tell(self, execution: Execution, *, is_written: bool) -> None:
        if is_written and not execution.is_open:
            self.meter.execution(execution.status)
