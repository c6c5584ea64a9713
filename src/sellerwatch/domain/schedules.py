"""Schedules: when a seller is crawled next. One per seller, following its interval and its activation.

    create ─▶ ACTIVE ◀── activate / deactivate ──▶ INACTIVE
                │  ▲
      give_up ──▼  │── restore       (the scheduler outbox gave up; its next success makes it ACTIVE again)
              FAILED

A verb returns the event it caused, or None: the caller writes it to the scheduler outbox in the same transaction.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from hashlib import blake2b

from sellerwatch.domain.errors import WrongVerb
from sellerwatch.domain.ids import derived
from sellerwatch.domain.sellers import checked_interval

RULE_PREFIX = "mustit-crawler-"
RULE_NAME_MAX = 64
_HASH_DIGITS = 8
_CUT = re.compile(rf".{{{RULE_NAME_MAX - _HASH_DIGITS - 1}}}-[0-9a-f]{{{_HASH_DIGITS}}}")


class ScheduleStatus(StrEnum):
    ACTIVE = "ACTIVE"
    INACTIVE = "INACTIVE"
    FAILED = "FAILED"


class ScheduleEvent(StrEnum):
    """What happened to a schedule, by the name its outbox row bears."""

    REGISTERED = "SCHEDULE_CREATED"
    UPDATED = "SCHEDULE_UPDATED"
    DEACTIVATED = "SCHEDULE_DELETED"


def rule_name(seller_id: str) -> str:
    """EventBridge allows 64 characters: a longer name is cut and ends in a hash of the whole.

    So does one that only looks as if it had been cut: it could be another seller's.
    """
    name = RULE_PREFIX + seller_id
    if len(name) <= RULE_NAME_MAX and not _CUT.fullmatch(name):
        return name
    mark = blake2b(seller_id.encode(), digest_size=_HASH_DIGITS // 2).hexdigest()
    return f"{name[: RULE_NAME_MAX - _HASH_DIGITS - 1]}-{mark}"


def rate_expression(days: int) -> str:
    return "rate(1 day)" if days == 1 else f"rate({days} days)"


def seller_of_rule(arn: str) -> str | None:
    """Whose rule this is, where its name tells: one that was cut does not."""
    name = arn.rpartition("/")[2]
    is_ours = name.startswith(RULE_PREFIX) and not _CUT.fullmatch(name)
    return name.removeprefix(RULE_PREFIX) or None if is_ours else None


@dataclass(frozen=True, slots=True)
class Rule:
    """What an engine that fires by itself keeps under the name of a schedule's rule."""

    name: str
    expression: str
    target: str
    """Where its triggers go, and what they say, in the engine's own words; empty: nowhere."""
    is_enabled: bool = True

    def otherwise(self, right: "Rule | None") -> str | None:
        """In what it is not as it should be; with None it should not be there at all. None: it is right."""
        if right is None:
            return "belongs to no active seller"
        if self.expression != right.expression:
            return f"fires at {self.expression or 'no rate'}, not {right.expression}"
        if not self.is_enabled:
            return "is disabled"
        if self.target != right.target:
            return "has another target" if self.target else "has no target"
        return None


@dataclass(slots=True)
class Schedule:
    schedule_id: str
    seller_id: str
    interval_days: int
    rule_name: str
    status: ScheduleStatus
    next_run_at: datetime
    last_triggered_at: datetime | None
    created_at: datetime
    updated_at: datetime

    @classmethod
    def create(
        cls, schedule_id: str, seller_id: str, interval_days: int, at: datetime
    ) -> tuple["Schedule", ScheduleEvent]:
        schedule = cls(
            schedule_id=schedule_id,
            seller_id=seller_id,
            interval_days=checked_interval(interval_days),
            rule_name=rule_name(seller_id),
            status=ScheduleStatus.ACTIVE,
            next_run_at=at + timedelta(days=interval_days),
            last_triggered_at=None,
            created_at=at,
            updated_at=at,
        )
        return schedule, ScheduleEvent.REGISTERED

    @property
    def expression(self) -> str:
        return rate_expression(self.interval_days)

    @property
    def is_active(self) -> bool:
        """A FAILED schedule still runs: only its announcement to the outside failed."""
        return self.status is not ScheduleStatus.INACTIVE

    def change_interval(self, days: int, at: datetime) -> ScheduleEvent | None:
        if checked_interval(days) == self.interval_days:
            return None
        self.interval_days, self.updated_at = days, at
        since = self.last_triggered_at or self.created_at
        self.next_run_at = max(at, since + timedelta(days=days))
        return ScheduleEvent.UPDATED if self.is_active else None

    def activate(self, at: datetime) -> ScheduleEvent | None:
        if self.is_active:
            return None
        self.status, self.updated_at = ScheduleStatus.ACTIVE, at
        self.next_run_at = at + timedelta(days=self.interval_days)
        return ScheduleEvent.REGISTERED

    def deactivate(self, at: datetime) -> ScheduleEvent | None:
        if not self.is_active:
            return None
        self.status, self.updated_at = ScheduleStatus.INACTIVE, at
        return ScheduleEvent.DEACTIVATED

    def is_due(self, at: datetime) -> bool:
        return self.is_active and self.next_run_at <= at

    def trigger_key(self) -> str:
        """The name of the run that is due: the same however often, and by however many, it is triggered."""
        return derived(self.schedule_id, f"run/{self.next_run_at.astimezone(UTC).isoformat()}")

    def advance(self, at: datetime) -> None:
        """A scheduled run was triggered. Runs missed meanwhile are caught up by this one, once."""
        if not self.is_due(at):
            raise WrongVerb("schedule", self.schedule_id, f"{self.status}, due {self.next_run_at:%F %T}", "advance")
        step = timedelta(days=self.interval_days)
        self.next_run_at += step * ((at - self.next_run_at) // step + 1)
        self.last_triggered_at = self.updated_at = at

    def note_triggered(self, at: datetime) -> None:
        """Triggered from outside (EventBridge, an operator): the next scheduled run does not move."""
        self.last_triggered_at = self.updated_at = at

    def give_up(self, at: datetime) -> None:
        if self.status is ScheduleStatus.ACTIVE:
            self.status, self.updated_at = ScheduleStatus.FAILED, at

    def restore(self, at: datetime) -> None:
        if self.status is ScheduleStatus.FAILED:
            self.status, self.updated_at = ScheduleStatus.ACTIVE, at
