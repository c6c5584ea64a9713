"""Verdicts: what holds somebody up, and the way on which it was found."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Stage(StrEnum):
    SELLER = "seller"
    SCHEDULE = "schedule"
    EXECUTION = "execution"
    OUTBOX = "outbox"
    QUEUE = "queue"
    LEASE = "lease"
    BUDGET = "budget"
    BREAKER = "breaker"
    TASK = "task"
    ABSORB = "absorb"
    DELIVERY = "delivery"
    IDENTITY = "identity"


class Culprit(StrEnum):
    NOTHING = "NOTHING"
    SELLER_INACTIVE = "SELLER_INACTIVE"
    SCHEDULE_FAILED = "SCHEDULE_FAILED"
    SCHEDULE_LATE = "SCHEDULE_LATE"
    EXECUTION_OPEN = "EXECUTION_OPEN"
    COUNT_MISSING = "COUNT_MISSING"
    OUTBOX_BACKLOG = "OUTBOX_BACKLOG"
    QUEUE_AWAY = "QUEUE_AWAY"
    NO_WORKER = "NO_WORKER"
    POOL_AWAY = "POOL_AWAY"
    NO_IDENTITY = "NO_IDENTITY"
    BUDGET_SPENT = "BUDGET_SPENT"
    BREAKER_OPEN = "BREAKER_OPEN"
    TASK_STUCK = "TASK_STUCK"
    TASK_WAITS = "TASK_WAITS"
    TASK_FAILED = "TASK_FAILED"
    ABSORB_LATE = "ABSORB_LATE"
    EVENTS_HELD = "EVENTS_HELD"
    PRODUCT_SERVER_AWAY = "PRODUCT_SERVER_AWAY"
    DELIVERY_FAILED = "DELIVERY_FAILED"
    DELIVERY_LATE = "DELIVERY_LATE"
    IDENTITY_RETIRED = "IDENTITY_RETIRED"
    IDENTITY_BLOCKED = "IDENTITY_BLOCKED"
    IDENTITY_SUSPENDED = "IDENTITY_SUSPENDED"
    IDENTITY_PAUSED = "IDENTITY_PAUSED"
    IDENTITY_LENT = "IDENTITY_LENT"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was seen at one stage; with a culprit it goes no further here."""

    stage: Stage
    text: str
    culprit: Culprit | None = None
    since: datetime | None = None
    clears_at: datetime | None = None
    advice: str = ""
    needs_a_person: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """The first finding with a culprit, and the way to it."""

    culprit: Culprit
    found: Finding
    walked: tuple[Finding, ...]


def verdict_of(findings: Sequence[Finding]) -> Verdict:
    first = next((place for place, finding in enumerate(findings) if finding.culprit), None)
    if first is None:
        return Verdict(Culprit.NOTHING, Finding(findings[-1].stage, "nothing holds it up"), tuple(findings))
    found = findings[first]
    return Verdict(found.culprit or Culprit.NOTHING, found, tuple(findings[: first + 1]))
