"""Identities: those in the pool, and the pool."""

from pydantic import Field

from sellerwatch.domain.breakers import BreakerState
from sellerwatch.domain.identities import IdentityStatus
from sellerwatch.entry.api.shapes import TIME, Given
from sellerwatch.ports.pool import WhyNot


class HealthScores(Given):
    avg: float = Field(examples=[97.5])
    min: int = Field(examples=[60])
    max: int = Field(examples=[100])


class CircuitBreaker(Given):
    state: BreakerState
    opened_at: str | None = Field(examples=[None])
    retry_at: str | None = Field(examples=[None])


class PoolResponse(Given):
    total_count: int = Field(examples=[100])
    active_count: int = Field(description="AVAILABLE", examples=[98])
    suspended_count: int = Field(examples=[2])
    blocked_count: int = Field(examples=[0])
    available_rate: float = Field(description="percent of all", examples=[98.0])
    health_score_stats: HealthScores
    circuit_breaker: CircuitBreaker
    site_breaker: BreakerState
    remaining_requests: int = Field(description="over all, in the hour that lies behind", examples=[7200])
    next_available_at: str | None = Field(description="when the next request may be made", examples=[TIME])
    why: WhyNot | None = Field(description="why none may be made now")


class IdentityResponse(Given):
    """An identity as the record has it, seconds behind the pool."""

    agent_id: int = Field(examples=[17])
    user_agent_id: str = Field(examples=["019a0000-0000-7000-8000-000000000017"])
    user_agent: str = Field(examples=["Mozilla/5.0 …"])
    status: IdentityStatus
    health_score: int = Field(ge=0, le=100, examples=[100])
    breaker: BreakerState
    remaining_requests: int | None = Field(examples=[80])
    token_issued_at: str | None = Field(examples=[TIME])
    token_expires_at: str | None = Field(examples=[TIME])
    suspended_at: str | None = Field(examples=[None])
    last_used_at: str | None = Field(examples=[TIME])
    requests_per_day: int = Field(description="on the day (UTC) on which it was used last", examples=[412])
    usage_count: int = Field(examples=[9120])
    success_count: int = Field(examples=[9101])
    failure_count: int = Field(examples=[19])
