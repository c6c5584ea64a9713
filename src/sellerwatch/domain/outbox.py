"""Outboxes: rows written in the transaction whose effect they announce, sent afterwards.

    task       PENDING ─▶ PROCESSING ─▶ SENT                product, scheduler    WAITING ─▶ SENDING ─▶ COMPLETED
                  ▲            │                                                     ▲          │
                  ├── later ───┤                                                     ├─ later ──┤
                  │            ▼                                                     │          ▼
                  └─ again ─ FAILED                          WAITING ◀─▶ HELD        └─ again ─ FAILED

A row is claimed with an owner and a deadline; a claim that ran out puts it back. `later` counts a retry only when
the receiver itself failed. A task's row is published again (SENT ─▶ PENDING) whenever its task is to run again; so is
one still PROCESSING when an attempt has ended before the mark: its message had been accepted.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sellerwatch.domain.changes import merged
from sellerwatch.domain.errors import WrongVerb
from sellerwatch.domain.ids import derived
from sellerwatch.domain.schedules import ScheduleEvent
from sellerwatch.domain.tasks import Task


class TaskOutboxStatus(StrEnum):
    PENDING = "PENDING"
    PROCESSING = "PROCESSING"
    SENT = "SENT"
    FAILED = "FAILED"


class OutboxStatus(StrEnum):
    WAITING = "WAITING"
    SENDING = "SENDING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    HELD = "HELD"


class EventType(StrEnum):
    CREATED = "PRODUCT_CREATED"
    UPDATED = "PRODUCT_UPDATED"
    DELISTED = "PRODUCT_DELISTED"


_SUPERSEDED_BY = "superseded by "


def superseded_by(version: int) -> str:
    """The note on a row whose product went out, or goes out, in a newer version."""
    return f"{_SUPERSEDED_BY}{version}"


def superseding(note: str | None) -> int | None:
    """The version in such a note."""
    version = (note or "").removeprefix(_SUPERSEDED_BY)
    return int(version) if version != note and version.isdecimal() else None


def backoff(retry: int, base_seconds: float, ceiling_seconds: float, chance: float) -> timedelta:
    """Doubling, with the upper half left to chance, so that what failed together is not tried together."""
    full = min(ceiling_seconds, base_seconds * 2 ** min(retry, 40))
    return timedelta(seconds=full * (0.5 + chance / 2))


@dataclass(slots=True)
class Publication:
    """A row of the task outbox: one per task, published as often as the task is to run."""

    outbox_id: str
    task_id: str
    seller_id: str
    priority: int
    message_group: str
    payload: dict[str, object]
    created_at: datetime
    status: TaskOutboxStatus = TaskOutboxStatus.PENDING
    publish_count: int = 0
    retry_count: int = 0
    next_attempt_at: datetime | None = None
    claimed_by: str | None = None
    claimed_until: datetime | None = None
    error_message: str | None = None
    sent_at: datetime | None = None

    @classmethod
    def of(cls, task: Task, at: datetime) -> "Publication":
        return cls(
            outbox_id=derived(task.task_id, "outbox"),
            task_id=task.task_id,
            seller_id=task.seller_id,
            priority=task.priority,
            message_group=task.message_group,
            payload={
                "taskId": task.task_id,
                "sellerId": task.seller_id,
                "taskType": task.kind.value,
                "requestUrl": task.request_url,
            },
            created_at=at,
            next_attempt_at=at,
        )

    @property
    def idempotency_key(self) -> str:
        return f"outbox-{self.task_id}"

    @property
    def dedup_id(self) -> str:
        """Of the publication under way. The queue remembers an id for minutes, so each publication has its own;
        a send whose outcome is unknown is repeated under the same one."""
        return f"outbox-{self.task_id}-{self.publish_count + 1}"

    def sent(self, at: datetime) -> None:
        self._only(TaskOutboxStatus.PROCESSING, "sent")
        self.status, self.sent_at, self.publish_count = TaskOutboxStatus.SENT, at, self.publish_count + 1
        self.retry_count, self.error_message = 0, None
        self._release()

    def refused(self, error: str, retries_max: int, next_at: datetime) -> None:
        """The queue did not accept it."""
        self._only(TaskOutboxStatus.PROCESSING, "refused")
        self.error_message, self.next_attempt_at = error, next_at
        self._release()
        if self.retry_count < retries_max:
            self.retry_count += 1
            self.status = TaskOutboxStatus.PENDING
        else:
            self.status = TaskOutboxStatus.FAILED

    def again(self, at: datetime) -> None:
        """The task is to run again. One that is still being sent was accepted: an attempt has come of it and ended."""
        if self.status is TaskOutboxStatus.PROCESSING:
            self.publish_count += 1
            self._release()
        self.status, self.next_attempt_at, self.retry_count = TaskOutboxStatus.PENDING, at, 0

    def _release(self) -> None:
        self.claimed_by = self.claimed_until = None

    def _only(self, status: TaskOutboxStatus, verb: str) -> None:
        if self.status is not status:
            raise WrongVerb("task outbox row", self.outbox_id, self.status, verb)


@dataclass(slots=True)
class _Announcement:
    """What the product and the scheduler outbox have in common."""

    outbox_id: str
    payload: dict[str, Any]
    created_at: datetime
    status: OutboxStatus
    retry_count: int
    next_attempt_at: datetime | None
    error_message: str | None
    sent_at: datetime | None

    def completed(self, at: datetime, note: str | None = None) -> None:
        self._only({OutboxStatus.SENDING, OutboxStatus.WAITING}, "completed")
        self.status, self.sent_at, self.error_message = OutboxStatus.COMPLETED, at, note

    def failed(self, error: str, retries_max: int, next_at: datetime, *, is_final: bool = False) -> None:
        """The receiver refused it or failed: later, or, after the last retry or by its own word, FAILED."""
        self._only({OutboxStatus.SENDING}, "failed")
        self.error_message = error
        if is_final or self.retry_count >= retries_max:
            self.status = OutboxStatus.FAILED
        else:
            self.retry_count += 1
            self.status, self.next_attempt_at = OutboxStatus.WAITING, next_at

    def wait(self, until: datetime, error: str | None = None) -> None:
        """The receiver is known to be away: not an attempt. `error` when it was sent, and this came of it."""
        self._only({OutboxStatus.SENDING}, "wait")
        self.status, self.next_attempt_at = OutboxStatus.WAITING, until
        self.error_message = error or self.error_message

    def again(self, at: datetime) -> None:
        """By an operator's word."""
        self._only({OutboxStatus.FAILED}, "again")
        self.status, self.next_attempt_at, self.retry_count = OutboxStatus.WAITING, at, 0

    def repeat(self, at: datetime) -> None:
        """By an operator's word, sent once more although it arrived or was given up: the receiver has lost it."""
        self._only({OutboxStatus.COMPLETED, OutboxStatus.FAILED}, "repeat")
        self.status, self.next_attempt_at, self.retry_count = OutboxStatus.WAITING, at, 0
        self.sent_at = self.error_message = None

    def hold(self) -> None:
        self._only({OutboxStatus.WAITING}, "hold")
        self.status = OutboxStatus.HELD

    def release(self, at: datetime) -> None:
        self._only({OutboxStatus.HELD}, "release")
        self.status, self.next_attempt_at = OutboxStatus.WAITING, at

    def discard(self, at: datetime, note: str = "discarded") -> None:
        self._only({OutboxStatus.HELD}, "discard")
        self.status, self.sent_at, self.error_message = OutboxStatus.COMPLETED, at, note

    def _only(self, allowed: set[OutboxStatus], verb: str) -> None:
        if self.status not in allowed:
            raise WrongVerb("outbox row", self.outbox_id, self.status, verb)


@dataclass(slots=True)
class ProductEvent(_Announcement):
    """A row of the product outbox."""

    product_id: str
    event_type: EventType
    version: int
    seen_at: datetime | None = None
    """When the answer that told of the change was received; see `lag`."""
    quarantine_id: str | None = None
    """HELD only, and never sent itself: what would be told when the quarantine is released."""

    def foretold(self, quarantine_id: str) -> "ProductEvent":
        """The same, as a HELD row of a quarantine, under an id of its own: its version may come to be another's."""
        outbox_id = derived(self.outbox_id, f"foretold/{quarantine_id}")
        return replace(
            self,
            outbox_id=outbox_id,
            payload={**self.payload, "eventId": outbox_id},
            status=OutboxStatus.HELD,
            quarantine_id=quarantine_id,
        )

    @property
    def lag(self) -> timedelta | None:
        """From the answer that told of the change to the receiver's confirmation; None without one of its own."""
        is_confirmed = self.status is OutboxStatus.COMPLETED and self.error_message is None
        return self.sent_at - self.seen_at if is_confirmed and self.sent_at and self.seen_at else None

    @property
    def is_untried(self) -> bool:
        """Nobody can have received it: not refused, not interrupted, not answered in any way."""
        return self.retry_count == 0 and self.error_message is None

    def repeat(self, at: datetime) -> None:
        _Announcement.repeat(self, at)
        # How long it took was measured when it arrived.
        self.seen_at = None

    def undoes(self, older: "ProductEvent") -> bool:
        """Whether it changes back, exactly, what the version before it has changed."""
        told = [(one["field"], one["new"], one["old"]) for one in self.payload["changes"]]
        before = [(one["field"], one["old"], one["new"]) for one in older.payload["changes"]]
        return older.version + 1 == self.version and bool(told) and sorted(told, key=_name) == sorted(before, key=_name)

    def supersede(self, older: "ProductEvent", at: datetime) -> None:
        """Take the place of an older row that was never sent: its changes are told with ours."""
        if older.product_id != self.product_id or older.version >= self.version:
            raise WrongVerb("outbox row", self.outbox_id, f"version {self.version}", f"supersede {older.outbox_id}")
        self._only({OutboxStatus.SENDING, OutboxStatus.WAITING}, "supersede")
        older.completed(at, superseded_by(self.version))
        changes = merged(older.payload["changes"], self.payload["changes"])
        # What the older one was to announce is still news, unless it was taken back meanwhile.
        is_still_gone = any(one["field"] == "status" and one["new"] == "DELISTED" for one in changes)
        if older.event_type is EventType.CREATED or (older.event_type is EventType.DELISTED and is_still_gone):
            self.event_type = older.event_type
        self.payload = {**self.payload, "eventType": self.event_type.value, "changes": changes}


def _name(change: tuple[str, Any, Any]) -> str:
    return change[0]


@dataclass(slots=True)
class ScheduleNotice(_Announcement):
    """A row of the scheduler outbox."""

    schedule_id: str
    event_type: ScheduleEvent

    @classmethod
    def of(cls, schedule_id: str, event: ScheduleEvent, payload: dict[str, object], at: datetime) -> "ScheduleNotice":
        return cls(
            outbox_id=derived(schedule_id, f"outbox/{event}/{at.isoformat()}"),
            payload=payload,
            created_at=at,
            status=OutboxStatus.WAITING,
            retry_count=0,
            next_attempt_at=at,
            error_message=None,
            sent_at=None,
            schedule_id=schedule_id,
            event_type=event,
        )
