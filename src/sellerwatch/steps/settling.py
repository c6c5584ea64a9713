"""Settling: what a finished request means is decided for one task, and written for many in one commit.

SUCCESS, the documents, the follow-ups, their outbox rows and the execution's counters are one commit: what happened
is saved before it is called done. An answer that is not what it should be is a failure, never an empty page.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sellerwatch.domain.addresses import Addresses
from sellerwatch.domain.documents import DocumentKind, content_hash
from sellerwatch.domain.errors import Invalid, Unreadable
from sellerwatch.domain.executions import LIST_ROUND
from sellerwatch.domain.outbox import backoff
from sellerwatch.domain.products import ProductStatus
from sellerwatch.domain.raws import Raw, RawStatus, raw_id
from sellerwatch.domain.tasks import Attempt, AttemptStatus, Blame, Task, TaskKind, TaskStatus, item_tasks, new_task
from sellerwatch.ports.marketplace import Listing, Reader
from sellerwatch.ports.store import Head, Store, Touch, Unit
from sellerwatch.ports.time import Chance, Clock
from sellerwatch.steps.asking import Asked
from sellerwatch.steps.closing import Closing, cancel_tasks
from sellerwatch.steps.robots import raise_disallowed
from sellerwatch.steps.strange import clear_path_moved, note_drift, raise_path_moved

_BACKOFF_SECONDS, _BACKOFF_CEILING = 2.0, 300.0
_SEARCH_PAGES_MAX = 9_999


@dataclass(slots=True)
class Harvest:
    """A request that has ended, and what could be read of its answer."""

    task: Task
    attempt: Attempt
    asked: Asked
    listing: Listing | None = None
    unreadable: str | None = None


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of an attempt, for logs and figures."""

    task: Task
    attempt: Attempt
    is_written: bool
    """False: the claim had passed to someone else, and nothing was."""
    follow_ups: int = 0
    has_raws: bool = False
    is_execution_ended: bool = False


@dataclass(frozen=True, slots=True)
class Rules:
    task_retries: int = 2
    page_size: int = 500
    absorb_wait_seconds: float = 900.0
    is_delta: bool = False
    freshness_hours: float = 24.0


@dataclass(slots=True)
class _Writing:
    """Everything one commit will write, gathered task by task."""

    unit: Unit
    closing: Closing
    heads: dict[int, Head]
    at: datetime
    raws: list[Raw] = field(default_factory=list)
    touches: list[Touch] = field(default_factory=list)
    gone: list[tuple[str, int]] = field(default_factory=list)
    again: list[tuple[str, datetime]] = field(default_factory=list)
    drift: list[tuple[DocumentKind, str, str, str]] = field(default_factory=list)


class Settling:
    def __init__(
        self, store: Store, reader: Reader, addresses: Addresses, clock: Clock, chance: Chance, rules: Rules
    ) -> None:
        self._store, self._reader, self._addresses = store, reader, addresses
        self._clock, self._chance, self._rules = clock, chance, rules

    async def settle(self, harvests: Sequence[Harvest]) -> list[Settled]:
        # Chance is drawn here, not inside: a transaction that is tried again must come to the same.
        chances = [self._chance.random() for _ in harvests]
        return await self._store.transact(lambda unit: self._write(unit, harvests, chances))

    def cancel(self, unit: Unit, task_ids: Sequence[str], reason: str, at: datetime) -> Closing:
        """End tasks that will not be made."""
        closing = Closing(unit, self._addresses, self._rules.page_size, at)
        known = [task for task in (unit.tasks.get(task_id) for task_id in task_ids) if task]
        closing.begin(task.execution_id for task in known)
        still_open = [task for task in unit.tasks.lock(task_ids).values() if task.is_open]
        cancel_tasks(closing, still_open, reason)
        closing.end()
        return closing

    def bells(self, settled: Iterable[Settled]) -> list[str]:
        """Who has something to do now."""
        names = {"pool": None}
        for one in settled:
            if one.follow_ups or one.task.status is TaskStatus.RETRY:
                names["relay"] = None
            if one.has_raws:
                names["absorb"] = None
            if one.is_execution_ended:
                names["delist"] = None
        return list(names)

    def _write(self, unit: Unit, harvests: Sequence[Harvest], chances: Sequence[float]) -> list[Settled]:
        at = self._clock.now()
        closing = Closing(unit, self._addresses, self._rules.page_size, at)
        closing.begin(harvest.task.execution_id for harvest in harvests)
        current = unit.tasks.lock([harvest.task.task_id for harvest in harvests])
        writing = _Writing(unit, closing, unit.products.heads(_items(harvests)), at)
        results: list[tuple[Harvest, bool, int, bool]] = []
        for harvest, chance in zip(harvests, chances, strict=True):
            task = current.get(harvest.task.task_id)
            is_held = task is not None and task.is_held_by(harvest.attempt.attempt_id)
            # Of an execution that can't be read nothing is settled: it is set aside with all its tasks.
            if task is None or not is_held or task.execution_id not in closing.executions:
                results.append((harvest, False, 0, False))
                continue
            harvest.task = task
            raws_before = len(writing.raws)
            follow_ups = self._one(writing, harvest, chance)
            results.append((harvest, True, follow_ups, len(writing.raws) > raws_before))
        written = [harvest for harvest, is_written, *_ in results if is_written]
        self._write_all(writing, harvests, written)
        ended = {execution.execution_id for execution in closing.end()}
        return [
            Settled(
                h.task, h.attempt, is_written, follow_ups, has_raws or not h.task.is_open, h.task.execution_id in ended
            )
            for h, is_written, follow_ups, has_raws in results
        ]

    def _write_all(self, writing: _Writing, harvests: Sequence[Harvest], written: Sequence[Harvest]) -> None:
        unit = writing.unit
        unit.tasks.save([harvest.task for harvest in written])
        unit.attempts.finish([harvest.attempt for harvest in written])
        unit.raws.put(writing.raws)
        unit.products.touch(writing.touches)
        unit.listings.mark_gone(writing.gone)
        unit.publications.again(writing.again)
        unit.chores.log_usage([usage for harvest in harvests for usage in harvest.asked.usages])
        note_drift(unit, writing.drift, writing.at)
        if any(harvest.listing for harvest in written):
            clear_path_moved(unit, writing.at)
        if refusal := next((harvest.asked.refusal for harvest in written if harvest.asked.refusal), None):
            raise_disallowed(unit, refusal, writing.at)
        for harvest in written:
            if harvest.asked.is_path_gone:
                raise_path_moved(unit, harvest.task.request_url, harvest.asked.http_status, writing.at)

    def _one(self, writing: _Writing, harvest: Harvest, chance: float) -> int:
        """Decide one task; how many follow-ups it led to."""
        task, asked, at = harvest.task, harvest.asked, writing.at
        follow_ups = 0
        blame, error = asked.blame, asked.error
        if blame is None:
            try:
                follow_ups = self._take_in(writing, harvest)
            except (Unreadable, Invalid) as refused:
                blame, error = Blame.TRANSIENT, f"unreadable: {refused}"
        if blame is None:
            task.succeed(at)
        else:
            task.miss(blame, error or "no answer", self._rules.task_retries, at)
        if asked.is_gone and task.kind is TaskKind.DETAIL:
            # Whether an item is there its own page says; options that are gone say nothing of that.
            writing.gone.append((task.execution_id, task.item_no))
        if task.status is TaskStatus.RETRY:
            pause = backoff(task.retry_count, _BACKOFF_SECONDS, _BACKOFF_CEILING, chance)
            writing.again.append((task.task_id, at + (pause if blame is Blame.TRANSIENT else timedelta(seconds=1))))
        if not task.is_open:
            writing.closing.closed(task)
        _finish_attempt(harvest, blame, error, at)
        return follow_ups

    def _take_in(self, writing: _Writing, harvest: Harvest) -> int:
        if harvest.unreadable:
            raise Unreadable(harvest.task.kind, harvest.unreadable)
        if harvest.listing is not None:
            return self._take_in_list(writing, harvest, harvest.listing)
        answer = harvest.asked.answer
        if answer is None:
            raise Unreadable(harvest.task.kind, "no answer")
        task, kind = harvest.task, DocumentKind(harvest.task.kind)
        self._take_in_document(writing, harvest, kind, task.item_no, answer.body, self._absorbed_by(writing))
        return 0

    def _take_in_document(
        self, writing: _Writing, harvest: Harvest, kind: DocumentKind, item_no: int, body: bytes, ripe_at: datetime
    ) -> None:
        """News is kept to be absorbed; what equals the applied document to the byte only says: seen."""
        raw_hash = content_hash(body)
        head = writing.heads.get(item_no)
        seen = head.seen.get(kind) if head and head.status is ProductStatus.ACTIVE else None
        task, fetched_at = harvest.task, harvest.asked.asked_at or writing.at
        if seen and seen.raw_hash == raw_hash:
            writing.touches.append(Touch(item_no, kind, raw_hash, fetched_at))
            writing.closing.executions[task.execution_id].saw_same(kind)
            return
        if kind is not DocumentKind.MINI_SHOP:
            self._reader.verify(kind, item_no, body)
        identity = raw_id(item_no, kind, raw_hash)
        execution_id = task.execution_id
        writing.raws.append(
            Raw(
                identity, item_no, task.seller_id, task.task_id, execution_id, kind, body, raw_hash, fetched_at, ripe_at
            )
        )

    def _take_in_list(self, writing: _Writing, harvest: Harvest, listing: Listing) -> int:
        task = harvest.task
        execution = writing.closing.executions[task.execution_id]
        if listing.count is not None:
            execution.expected_items = listing.count
        if self._is_full(task, listing):
            execution.saw_full_page(len(listing.entries) + len(listing.bad))
        rows = [(entry.item_no, task.page_no) for entry in listing.entries]
        new = writing.unit.listings.add(task.execution_id, task.seller_id, rows)
        follow_ups: list[Task] = []
        for entry in listing.entries:
            if entry.item_no not in new:
                continue
            new.discard(entry.item_no)
            is_followed = self._is_followed(writing, entry.item_no, entry.raw)
            ripe_at = self._absorbed_by(writing) if is_followed else writing.at
            self._take_in_document(writing, harvest, DocumentKind.MINI_SHOP, entry.item_no, entry.raw, ripe_at)
            if not is_followed:
                execution.saw_same(DocumentKind.DETAIL)
                execution.saw_same(DocumentKind.OPTION)
            else:
                follow_ups += item_tasks(task.execution_id, task.seller_id, entry.item_no, self._addresses, writing.at)
        writing.drift += [(DocumentKind.MINI_SHOP, name, "unknown", task.request_url) for name in listing.unknown]
        for number, bad in enumerate(listing.bad):
            writing.raws.append(_bad_raw(task, bad.raw, bad.problem, number, writing.at))
            writing.drift.append(
                (DocumentKind.MINI_SHOP, "itemNo", bad.problem, bad.raw[:200].decode("utf-8", "replace"))
            )
        if listing.next_path and task.page_no < _SEARCH_PAGES_MAX:
            follow_ups.append(self._next_search(task, listing.next_path, writing.at))
        elif listing.count is None and not listing.ended and execution.is_open:
            execution.end_list(is_complete=False)
            execution.error_message = f"list incomplete: page {task.page_no} has items, but no next page follows it"
        writing.closing.add_tasks(execution, follow_ups)
        return len(follow_ups)

    def _is_full(self, task: Task, listing: Listing) -> bool:
        """Whether the list itself says that this page is not its last."""
        if listing.count is None:
            return listing.next_path is not None
        return (task.page_no % LIST_ROUND + 1) * self._rules.page_size <= listing.count

    def _absorbed_by(self, writing: _Writing) -> datetime:
        """An observation is absorbed whole, when the item's last task has ended (see Closing), or by then at the latest."""
        return writing.at + timedelta(seconds=self._rules.absorb_wait_seconds)

    def _is_followed(self, writing: _Writing, item_no: int, raw: bytes) -> bool:
        """`full`: always. `delta`: new, changed in the list, or not looked at for too long."""
        if not self._rules.is_delta:
            return True
        head = writing.heads.get(item_no)
        if head is None or head.status is not ProductStatus.ACTIVE or len(head.seen) < len(DocumentKind):
            return True
        oldest = min(head.seen[DocumentKind.DETAIL].at, head.seen[DocumentKind.OPTION].at)
        if oldest < writing.at - timedelta(hours=self._rules.freshness_hours):
            return True
        known = head.seen[DocumentKind.MINI_SHOP]
        if known.raw_hash == content_hash(raw):
            return False
        try:
            return self._reader.document(DocumentKind.MINI_SHOP, item_no, raw).digest != known.digest
        except Unreadable:
            return True

    def _next_search(self, task: Task, next_path: str, at: datetime) -> Task:
        url = self._addresses.next_search(next_path)
        page_no = task.page_no + 1
        return new_task(task.execution_id, task.seller_id, TaskKind.SEARCH, url, self._addresses, at, page_no=page_no)


def _items(harvests: Sequence[Harvest]) -> list[int]:
    items = [harvest.task.item_no for harvest in harvests if harvest.task.item_no]
    return items + [entry.item_no for h in harvests if h.listing for entry in h.listing.entries]


def _bad_raw(task: Task, body: bytes, problem: str, number: int, at: datetime) -> Raw:
    """An entry without a usable item number: kept under none, FAILED, for a person to look at."""
    raw_hash = content_hash(body)
    identity = raw_id(0, DocumentKind.MINI_SHOP, f"{task.task_id}/{number}/{raw_hash}")
    kind, execution_id = DocumentKind.MINI_SHOP, task.execution_id
    raw = Raw(identity, 0, task.seller_id, task.task_id, execution_id, kind, body, raw_hash, at, at)
    raw.status, raw.error_message = RawStatus.FAILED, problem
    return raw


def _finish_attempt(harvest: Harvest, blame: Blame | None, error: str | None, at: datetime) -> None:
    attempt, asked = harvest.attempt, harvest.asked
    attempt.status = AttemptStatus.SUCCESS if blame is None else AttemptStatus.FAILED
    attempt.agent_id = asked.agent_id or attempt.agent_id
    attempt.http_status, attempt.duration_ms = asked.http_status, asked.duration_ms
    attempt.error_message, attempt.completed_at = error, at
    attempt.response_bytes = len(asked.answer.body) if asked.answer else None
    attempt.response_summary = asked.summary if blame is not None else None
