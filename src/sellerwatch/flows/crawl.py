"""Step 3, crawl: queue → marketplace → documents and follow-ups.

    A lease        nothing has changed yet: failing here costs nothing
    B claim        one commit: tasks RUNNING, attempts
    C ask          HTTP, each request on its own lease; no transaction
    D report       to the pool, before anything else can fail
    E settle       one commit: task SUCCESS | RETRY | FAILED, raws, follow-ups and their outbox, the execution's counters
    F ack

B and E of what is under way at the same time are written together. A crash after A leaves a lease, after B or C a
claim, after E a message: each runs out by itself, and what comes again finds the task as it is. E writes only for
the attempt that the task still bears.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TypeAlias

from sellerwatch.domain import traces as context_of
from sellerwatch.domain.errors import Trouble, Unavailable, Unreadable
from sellerwatch.domain.executions import ExecutionStatus
from sellerwatch.domain.tasks import Attempt, AttemptStatus, Task, TaskStatus
from sellerwatch.ports.marketplace import Reader
from sellerwatch.ports.meter import GRANTED, UNMETERED, Meter
from sellerwatch.ports.pool import Grant, Lease, Pool
from sellerwatch.ports.queue import Delivery, Queue
from sellerwatch.ports.store import Store, Unit
from sellerwatch.ports.time import Bell, Chance, Clock
from sellerwatch.ports.traces import UNTRACED, Span, Traces
from sellerwatch.steps.asking import Asked, Asking
from sellerwatch.steps.pausing import Pausing
from sellerwatch.steps.settling import Harvest, Settled, Settling
from sellerwatch.steps.together import Together

_POLL_SECONDS = 1.0
_INACTIVE = "seller inactive"


@dataclass(slots=True)
class Job:
    """A task under way in this process."""

    task: Task
    attempt: Attempt
    delivery: Delivery
    lease: Lease


@dataclass(frozen=True, slots=True)
class Orders:
    """The settings of a worker."""

    concurrency: int = 100
    claim_seconds: float = 30.0
    shutdown_seconds: float = 25.0
    poll_seconds: float = 1.0
    """No lease is held while the queue is asked; a message ends it, and `stop` is seen after it."""
    abandons_max: int = 30
    """So many vanished workers a task outlives."""

    @property
    def finishing_seconds(self) -> float:
        """How long answers are still waited for; what is left of the time is for handing back the rest."""
        return max(self.shutdown_seconds - 1, self.shutdown_seconds / 2)

    @property
    def worthwhile_room(self) -> int:
        """Messages are taken by the dozen: each taking is five transactions, however few they are."""
        return max(1, self.concurrency // 4)


Tell: TypeAlias = Callable[[Job, Settled | BaseException], None]
"""Who hears what became of each job."""
Begin: TypeAlias = Callable[[Job], None]
"""Who hears that a job begins, where it begins: what is said there holds for all that is done for it."""


class Crawl:
    def __init__(
        self,
        store: Store,
        pool: Pool,
        queue: Queue,
        asking: Asking,
        reader: Reader,
        clock: Clock,
        chance: Chance,
        bell: Bell,
        settling: Settling,
        pausing: Pausing,
        owner: str,
        orders: Orders,
        group_seconds: float = 0.005,
        meter: Meter = UNMETERED,
        traces: Traces = UNTRACED,
    ) -> None:
        self._meter, self._traces = meter, traces
        self._store, self._pool, self._queue, self._asking, self._reader = store, pool, queue, asking, reader
        self._clock, self._chance, self._bell = clock, chance, bell
        self._settling, self._pausing, self._owner, self._orders = settling, pausing, owner, orders
        self._finish = Together(self._finish_many, clock, group_seconds)
        self._jobs: dict[str, Job] = {}
        self._has_jobs = asyncio.Event()
        self._running: set[asyncio.Task[None]] = set()
        self._is_stopping = False
        self._waits_since: float | None = None
        self._tell: Tell = lambda _job, _outcome: None
        self._begin: Begin = lambda _job: None

    @property
    def running(self) -> int:
        return len(self._running)

    async def run(self, tell: Tell, begin: Begin = lambda _job: None) -> None:
        """Crawl until `stop`: receive no more than there are identities for, and run what was received."""
        self._tell, self._begin = tell, begin
        keeper = asyncio.create_task(self._keep_claims())
        try:
            while not self._is_stopping:
                await self._take_and_start()
            if self._running:
                await asyncio.wait(self._running, timeout=self._orders.finishing_seconds)
        finally:
            keeper.cancel()
            for task in self._running:
                task.cancel()
            await asyncio.gather(keeper, *self._running, return_exceptions=True)

    def stop(self) -> None:
        """Receive nothing any more; what runs is finished, what waits is handed back."""
        self._is_stopping = True
        self._asking.is_stopping = lambda: True
        for name in ("crawl", "pool"):
            self._bell.ring(name)

    async def _take_and_start(self) -> None:
        if self._room < self._orders.worthwhile_room:
            await self._bell.wait("crawl", _POLL_SECONDS)
            return
        for job in await self.take(self._room):
            self._start(job)

    @property
    def _room(self) -> int:
        return self._orders.concurrency - len(self._running)

    def _start(self, job: Job) -> None:
        self._jobs[job.task.task_id] = job
        self._has_jobs.set()
        running = asyncio.create_task(self.work(job))
        self._running.add(running)
        running.add_done_callback(lambda done: self._ended(job, done))

    def _ended(self, job: Job, running: asyncio.Task[None]) -> None:
        self._running.discard(running)
        self._jobs.pop(job.task.task_id, None)
        if self._room >= self._orders.worthwhile_room:
            self._bell.ring("crawl")
        if not running.cancelled() and (error := running.exception()):
            # Not settled: its claim runs out, and the sweep or the redelivery begins a new attempt.
            self._tell(job, error)

    async def take(self, room: int) -> list[Job]:
        """A and B: receive as many as there are identities for, lease, claim."""
        robots = self._asking.robots
        if robots.is_missed and (until := await robots.heed()):
            # Nothing may be asked, so nothing is received.
            await self._pausing.note(robots.problem)
            wait = (until - self._clock.now()).total_seconds()
            await self._bell.wait("crawl", min(max(wait, 0.001), self._orders.poll_seconds))
            return []
        outlook = await self._pool.outlook()
        if not outlook.free:
            self._waits_since = self._clock.monotonic() if self._waits_since is None else self._waits_since
            # Not longer than until the moment that was told, nor than it takes to see what others did to the pool.
            longest = self._orders.poll_seconds
            if outlook.is_pause:
                await self._pausing.note(f"no identity free: {outlook.why}")
            wait = (outlook.next_at - self._clock.now()).total_seconds() if outlook.next_at else longest
            await self._bell.wait("pool", min(max(wait, 0.001), longest))
            return []
        try:
            deliveries = await self._queue.receive(min(room, outlook.free), self._orders.poll_seconds)
        except Trouble as trouble:
            with suppress(Trouble):
                await self._pausing.note(f"the queue: {trouble}")
            raise
        if not deliveries:
            return []
        leases: list[Lease] = []
        try:
            grant = await self._pool.lease(len(deliveries))
            leases += grant.leases
            self._count(grant, len(deliveries))
            # First, so that whatever fails now gives back each of them once.
            spare, deliveries = deliveries[len(leases) :], deliveries[: len(leases)]
            await self._give_back(spare)
            return await self._claim(deliveries, leases) if deliveries else []
        except Trouble:
            # None of them was begun: they wait for what is away, and shall not be received for nothing meanwhile.
            with suppress(Trouble):
                await self._give_back(deliveries)
            with suppress(Trouble):
                await self._asking.give_back(leases)
            raise

    async def _give_back(self, deliveries: Sequence[Delivery]) -> None:
        if deliveries:
            await self._queue.give_back([delivery.receipt for delivery in deliveries])

    def _count(self, grant: Grant, wanted: int) -> None:
        given = len(grant.leases)
        if given:
            waited = 0.0 if self._waits_since is None else self._clock.monotonic() - self._waits_since
            self._waits_since = None
            self._meter.lease(GRANTED, given)
            self._meter.lease_wait(waited)
        if given < wanted and grant.why:
            self._meter.lease(grant.why)

    async def work(self, job: Job) -> None:
        """C to F for one task."""
        self._begin(job)
        asked = await self._asking.ask(job.task.kind, job.task.request_url, task_id=job.task.task_id, lease=job.lease)
        harvest = Harvest(job.task, job.attempt, asked)
        if job.task.kind.is_list and asked.blame is None and asked.answer is not None:
            try:
                harvest.listing = self._reader.listing(job.task.kind, asked.answer.body)
            except Unreadable as error:
                harvest.unreadable = str(error)
        settled = await self._finish((harvest, job.delivery.receipt))
        if self._traces.is_on and settled.is_written:
            self._traces.tell(_spans(job, settled, harvest.asked, self._clock.now()))
        self._tell(job, settled)

    async def _claim(self, deliveries: Sequence[Delivery], leases: list[Lease]) -> list[Job]:
        at = self._clock.now()
        readable = {task_id: delivery for delivery in deliveries if (task_id := _task_id(delivery))}
        attempt_ids = {task_id: self._chance.uuid7(at) for task_id in readable}
        until = at + timedelta(seconds=self._orders.claim_seconds)

        def work(unit: Unit) -> tuple[dict[str, Task], set[str], set[str]]:
            tasks = unit.tasks.lock(readable)
            inactive = unit.sellers.inactive({task.seller_id for task in tasks.values()})
            early = [t.task_id for t in tasks.values() if t.status in {TaskStatus.WAITING, TaskStatus.RETRY}]
            are_out = unit.publications.are_out(early) if early else set()
            claimed, abandoned = [], []
            for task in (tasks[task_id] for task_id in readable if task_id in tasks):
                is_early = task.status in {TaskStatus.WAITING, TaskStatus.RETRY} and task.task_id not in are_out
                if not task.is_open or is_early or task.has_live_claim(at) or task.seller_id in inactive:
                    continue
                if task.attempt_id and task.status is TaskStatus.RUNNING:
                    if task.abandon_count >= self._orders.abandons_max:
                        # Once more would be too often: the sweep ends it, and its execution if it was the last.
                        continue
                    abandoned.append(task.attempt_id)
                    task.abandon(self._orders.abandons_max, at)
                task.claim(attempt_ids[task.task_id], self._owner, until, at)
                claimed.append(task)
            unit.attempts.abandon(abandoned, at)
            unit.tasks.save(claimed)
            unit.attempts.add([_attempt(task, lease.agent_id) for task, lease in zip(claimed, leases, strict=False)])
            return tasks, {task.task_id for task in claimed}, inactive

        tasks, claimed, inactive = await self._store.transact(work)
        return await self._sort(deliveries, tasks, claimed, inactive, leases)

    async def _sort(
        self,
        deliveries: Sequence[Delivery],
        tasks: dict[str, Task],
        claimed: set[str],
        inactive: set[str],
        leases: list[Lease],
    ) -> list[Job]:
        """What was claimed becomes a job; every other message is answered by the state of its task."""
        jobs, others = [], []
        for delivery in deliveries:
            task_id = _task_id(delivery)
            if task_id in claimed:
                claimed.discard(task_id)
                lease = leases.pop(0)
                jobs.append(Job(tasks[task_id], _attempt(tasks[task_id], lease.agent_id), delivery, lease))
            else:
                others.append((delivery, tasks.get(task_id) if task_id else None))
        # What can't be answered now comes again, and is no reason to lose the jobs.
        with suppress(Trouble):
            await self._answer(others, inactive)
        with suppress(Trouble):
            await self._asking.give_back(leases)
        return jobs

    async def _answer(self, others: Sequence[tuple[Delivery, Task | None]], inactive: set[str]) -> None:
        done = []
        for delivery, task in others:
            if _task_id(delivery) is None:
                await self._queue.bury(delivery.receipt, "a message needs taskId, sellerId, taskType and requestUrl")
            elif task is None or not task.is_open:
                done.append(delivery.receipt)
            elif task.seller_id in inactive:
                await self._drop(task)
                done.append(delivery.receipt)
            else:
                until = task.claimed_until or self._clock.now() + timedelta(seconds=_POLL_SECONDS)
                delay = (until - self._clock.now()).total_seconds()
                await self._queue.nack(delivery.receipt, max(delay, _POLL_SECONDS))
        if done:
            await self._queue.ack(done)

    async def _drop(self, task: Task) -> None:
        at = self._clock.now()
        closing = await self._store.transact(lambda unit: self._settling.cancel(unit, [task.task_id], _INACTIVE, at))
        closing.tell(self._meter)

    async def _finish_many(self, finished: Sequence[tuple[Harvest, str]]) -> list[Settled]:
        """E and F for all that came together."""
        settled = await self._settling.settle([harvest for harvest, _ in finished])
        for one in settled:
            if one.is_written:
                self._meter.task(one.task.kind, one.task.status)
        ended = {one.task.execution_id for one in settled if one.is_execution_ended}
        if ended:
            self._meter.execution(ExecutionStatus.COMPLETED, len(ended))
        for name in self._settling.bells(settled):
            self._bell.ring(name)
        with suppress(Unavailable):  # what was settled is: its message comes again and finds that
            await self._queue.ack([receipt for _, receipt in finished])
        return settled

    async def _keep_claims(self) -> None:
        """While a task runs, its claim and its message's visibility last."""
        pause = self._orders.claim_seconds / 3
        while True:
            if not self._jobs:
                self._has_jobs.clear()
                await self._has_jobs.wait()
            await self._clock.sleep(pause)
            now = self._clock.now()
            old = [job for job in self._jobs.values() if (now - job.attempt.started_at).total_seconds() >= pause]
            if not old:
                continue
            seconds = self._orders.claim_seconds
            held = [(job.task.task_id, job.attempt.attempt_id) for job in old]
            until = now + timedelta(seconds=seconds)
            # Failing once must not end it: there are claims to keep for as long as anything runs.
            try:
                await self._queue.extend([job.delivery.receipt for job in old], seconds)
                await self._store.transact(partial(_extend, held=held, until=until))
            except Trouble as trouble:
                self._tell(old[0], trouble)


def _spans(job: Job, settled: Settled, asked: Asked, ended: datetime) -> Iterator[Span]:
    """The attempt, and each request that it made."""
    task, attempt = settled.task, settled.attempt
    root = context_of.root(task.task_id)
    is_success = attempt.status is AttemptStatus.SUCCESS
    own = context_of.crawled(task.task_id) if is_success else context_of.child(root, f"attempt/{attempt.attempt_id}")
    facts: dict[str, str | int] = {
        "task.id": task.task_id,
        "seller.id": task.seller_id,
        "task.kind": task.kind.value,
        "task.status": task.status.value,
        "execution.id": task.execution_id,
        "item.no": task.item_no,
    }
    parent = context_of.checked(job.delivery.attributes.get("traceparent")) or root
    yield Span("crawl", own, parent, attempt.started_at, ended, facts, attempt.error_message)
    for number, usage in enumerate(asked.usages):
        until = usage.at + timedelta(milliseconds=usage.duration_ms or 0)
        answered: dict[str, str | int] = {"http.response.status_code": usage.http_status} if usage.http_status else {}
        context = context_of.child(own, f"request/{number}")
        yield Span("request", context, own, usage.at, until, answered, usage.error_message, is_call=True)


def _extend(unit: Unit, held: list[tuple[str, str]], until: datetime) -> None:
    unit.tasks.extend(held, until)


def _attempt(task: Task, agent_id: int) -> Attempt:
    if task.attempt_id is None or task.started_at is None:
        raise AssertionError(f"task {task.task_id} was claimed without an attempt")
    return Attempt(
        task.attempt_id, task.task_id, task.seller_id, agent_id, AttemptStatus.RUNNING, started_at=task.started_at
    )


def _task_id(delivery: Delivery) -> str | None:
    needed = ("taskId", "sellerId", "taskType", "requestUrl")
    if not all(isinstance(delivery.body.get(name), str) for name in needed):
        return None
    return str(delivery.body["taskId"])
