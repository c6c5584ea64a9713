"""Clues: what is known of a seller, a task or an identity that seems to stand still, as values of one moment.

Gathered by whoever can ask; `domain.explain` makes of them what holds it up. What could not be asked is None.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sellerwatch.domain.breakers import Breaker
from sellerwatch.domain.executions import ExecutionStatus
from sellerwatch.domain.identities import HEALTH_MAX, IdentityStatus
from sellerwatch.domain.outbox import OutboxStatus, TaskOutboxStatus
from sellerwatch.domain.schedules import ScheduleStatus
from sellerwatch.domain.tasks import TaskKind, TaskStatus


@dataclass(frozen=True, slots=True)
class SellerClue:
    seller_id: str
    is_active: bool
    updated_at: datetime
    schedule: ScheduleStatus | None
    next_run_at: datetime | None


@dataclass(frozen=True, slots=True)
class ExecutionClue:
    """The open execution, or else the last one."""

    execution_id: str
    status: ExecutionStatus
    started_at: datetime
    next_attempt_at: datetime | None
    error: str | None
    total: int
    ended: int
    tasks: Mapping[TaskStatus, int]
    """Of the open one: by status."""
    stuck_since: datetime | None
    """When the claim of a RUNNING task ran out, the first."""
    raws_due_at: datetime | None
    """Since when, or from when on, the first of its raws may be absorbed that was not."""

    @property
    def is_open(self) -> bool:
        return self.status in {ExecutionStatus.STARTED, ExecutionStatus.IN_PROGRESS}


@dataclass(frozen=True, slots=True)
class OutboxClue:
    """A seller's, or a task's, first row in the task outbox that has not been sent; of a task: its row."""

    status: TaskOutboxStatus
    due_at: datetime
    claimed_until: datetime | None
    error: str | None


@dataclass(frozen=True, slots=True)
class EventClue:
    """A seller's oldest event of one status."""

    status: OutboxStatus
    created_at: datetime
    due_at: datetime
    error: str | None


@dataclass(frozen=True, slots=True)
class QueueClue:
    waiting: int
    out: int
    dead: int


@dataclass(frozen=True, slots=True)
class PoolClue:
    free: int
    why: str | None
    """In the pool's words, why nothing is free."""
    next_at: datetime | None
    remaining: int
    total: int
    available: int
    breakers: tuple[Breaker, ...]
    """Of the pool and of the site."""


@dataclass(frozen=True, slots=True)
class TaskClue:
    task_id: str
    kind: TaskKind
    status: TaskStatus
    created_at: datetime
    published_at: datetime | None
    started_at: datetime | None
    completed_at: datetime | None
    claimed_until: datetime | None
    error: str | None
    retries: int
    outbox: OutboxClue | None


@dataclass(frozen=True, slots=True)
class IdentityClue:
    agent_id: int
    is_retired: bool = False
    status: IdentityStatus = IdentityStatus.AVAILABLE
    health: int = HEALTH_MAX
    suspended_at: datetime | None = None
    recovers_at: datetime | None = None
    has_token: bool = True
    remaining: int = 0
    next_free_at: datetime | None = None
    leased_until: datetime | None = None
    paused_until: datetime | None = None
    breaker: Breaker | None = None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What everybody shares."""

    at: datetime
    roles: frozenset[str]
    """Of the processes that show life."""
    queue: QueueClue | None
    pool: PoolClue | None
    product_server: Breaker | None
    """None: no event was ever sent."""
    has_product_server: bool


@dataclass(frozen=True, slots=True)
class Trail:
    """A seller from its schedule to its deliveries."""

    seller: SellerClue
    execution: ExecutionClue | None
    outbox: OutboxClue | None
    events: tuple[EventClue, ...]
    """The oldest of each status that is not done with."""
