"""Circuit breakers: what stops asking when asking does harm.

    CLOSED ── trip ─▶ OPEN ── after the time-out ─▶ HALF_OPEN ── the trial succeeds ─▶ CLOSED
                       ▲                               │
                       └────── the trial fails ────────┘

One state machine, four scopes: each identity, the pool, the site, the product server. In HALF_OPEN one trial is under
way at a time; a trial whose holder vanished is forgotten after a while. One incident counts once: reports of what was
asked before the breaker opened change nothing any more.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


class BreakerState(StrEnum):
    CLOSED = "CLOSED"
    OPEN = "OPEN"
    HALF_OPEN = "HALF_OPEN"


class BreakerScope(StrEnum):
    IDENTITY = "IDENTITY"
    POOL = "POOL"
    SITE = "SITE"
    PRODUCT_SERVER = "PRODUCT_SERVER"


@dataclass(frozen=True, slots=True)
class Transition:
    scope: BreakerScope
    agent_id: int | None
    from_state: BreakerState
    to_state: BreakerState
    failure_count: int
    at: datetime
    reason: str


@dataclass(slots=True)
class Breaker:
    scope: BreakerScope
    threshold: int
    timeout: timedelta
    agent_id: int | None = None
    state: BreakerState = BreakerState.CLOSED
    failure_count: int = 0
    opened_at: datetime | None = None
    half_open_at: datetime | None = None
    closed_at: datetime | None = None
    trial_id: str | None = None
    trial_until: datetime | None = None

    def retry_at(self) -> datetime | None:
        """When the next request may be tried; None: now."""
        if self.state is BreakerState.OPEN and self.opened_at:
            return self.opened_at + self.timeout
        return self.trial_until if self.state is BreakerState.HALF_OPEN and self.trial_id else None

    def admits(self, at: datetime) -> bool:
        moment = self.retry_at()
        return moment is None or moment <= at

    def begin_trial(self, trial_id: str, until: datetime, at: datetime) -> Transition | None:
        """A request goes out while the breaker is not CLOSED: it is the trial, and decides.

        One that was not admitted decides nothing, and takes the place of no trial under way.
        """
        if self.state is BreakerState.CLOSED or not self.admits(at):
            return None
        self.trial_id, self.trial_until = trial_id, until
        if self.state is BreakerState.HALF_OPEN:
            return None
        self.half_open_at = at
        return self._to(BreakerState.HALF_OPEN, at, "time-out over")

    def forget_trial(self, trial_id: str) -> None:
        if self.trial_id == trial_id:
            self.trial_id = self.trial_until = None

    def success(self, request_id: str, at: datetime, *, may_close: bool = True) -> Transition | None:
        if self.state is BreakerState.CLOSED:
            self.failure_count = 0
            return None
        if self.trial_id != request_id:
            return None
        self.forget_trial(request_id)
        return self.close(at, "trial succeeded") if may_close else None

    def failure(self, request_id: str, at: datetime, reason: str) -> Transition | None:
        if self.state is BreakerState.CLOSED:
            self.failure_count += 1
            return self.trip(at, reason) if self.failure_count >= self.threshold else None
        if self.trial_id != request_id:
            return None
        self.failure_count += 1
        return self.trip(at, reason)

    def trip(self, at: datetime, reason: str) -> Transition | None:
        if self.state is BreakerState.OPEN:
            return None
        self.opened_at = at
        self.trial_id = self.trial_until = None
        return self._to(BreakerState.OPEN, at, reason)

    def close(self, at: datetime, reason: str) -> Transition | None:
        if self.state is BreakerState.CLOSED:
            return None
        self.failure_count, self.closed_at = 0, at
        self.trial_id = self.trial_until = None
        return self._to(BreakerState.CLOSED, at, reason)

    def _to(self, state: BreakerState, at: datetime, reason: str) -> Transition:
        was, self.state = self.state, state
        return Transition(self.scope, self.agent_id, was, state, self.failure_count, at, reason)
