"""The seven tables of the identities; their log in monthly partitions where the database has them."""

from datetime import datetime
from functools import partial

from alembic import context
from sqlalchemy import MetaData

from sellerwatch.adapters.sql.migrations import frozen as f

revision = "0002_identities"
down_revision = None
branch_labels = ("identities",)
depends_on = None

MONTHS = 12

tables = MetaData()
table = partial(f.table, tables)

table(
    "user_agent_pool",
    f.key("agent_id"),
    f.required("user_agent_id", f.UID),
    f.required("user_agent", f.exact(500)),
    f.required("status", f.STATUS),
    f.required("health_score", f.COUNT, 100),
    f.required("is_active", f.FLAG, 1),
    f.required("is_blocked", f.FLAG, 0),
    f.optional("blocked_until", f.MOMENT),
    f.optional("suspended_at", f.MOMENT),
    f.optional("last_used_at", f.MOMENT),
    f.required("usage_count", f.BIG, 0),
    f.required("success_count", f.BIG, 0),
    f.required("failure_count", f.BIG, 0),
    f.required("requests_per_day", f.COUNT, 0),
    f.required("is_blocked_by_hand", f.FLAG, 0),
    f.required("token_failures", f.COUNT, 0),
    f.required("created_at", f.MOMENT),
    f.required("updated_at", f.MOMENT),
    f.unique("uk_user_agent_id", "user_agent_id"),
    f.unique("uk_user_agent", "user_agent"),
    f.index("idx_active_unblocked", "is_active", "is_blocked", "blocked_until"),
    f.index("idx_last_used", "last_used_at"),
    f.index("idx_usage_stats", "usage_count", "success_count", "failure_count"),
    f.index("idx_status", "status"),
)

table(
    "user_agent_token",
    f.key("token_id"),
    f.required("agent_id", f.BIG),
    f.required("token_value", f.SHORT),
    f.optional("cookies", f.SHORT),
    f.required("token_fingerprint", f.HASH),
    f.required("token_type", f.STATUS, "COOKIE"),
    f.required("issued_at", f.MOMENT),
    f.required("expires_at", f.MOMENT),
    f.required("is_active", f.FLAG, 1),
    f.required("refresh_count", f.COUNT, 0),
    f.optional("last_refreshed_at", f.MOMENT),
    f.required("created_at", f.MOMENT),
    f.required("updated_at", f.MOMENT),
    f.unique("uk_token_fingerprint", "token_fingerprint"),
    f.index("idx_user_agent_active", "agent_id", "is_active"),
    f.index("idx_expires", "expires_at", "is_active"),
)

table(
    "token_usage_log",
    f.key("log_id"),
    f.required("agent_id", f.BIG),
    f.optional("token_id", f.BIG),
    f.optional("task_id", f.UID),
    f.required("request_url", f.exact(1000)),
    f.required("http_method", f.exact(8), "GET"),
    f.optional("http_status_code", f.COUNT),
    f.optional("response_time_ms", f.COUNT),
    f.required("is_success", f.FLAG),
    f.required("is_rate_limited", f.FLAG, 0),
    f.required("is_429_error", f.FLAG, 0),
    f.optional("retry_after_seconds", f.COUNT),
    f.optional("error_message", f.ERROR),
    f.required("request_timestamp", f.MOMENT),
    f.index("idx_user_agent_time", "agent_id", "request_timestamp"),
    f.index("idx_429_errors", "is_429_error", "agent_id", "request_timestamp"),
    f.index("idx_rate_limit", "is_rate_limited", "request_timestamp"),
    f.index("idx_success_time", "is_success", "request_timestamp"),
    f.index("idx_http_status", "http_status_code", "request_timestamp"),
    partition_key="request_timestamp",
)

table(
    "circuit_breaker_state",
    f.key("state_id"),
    f.required("scope", f.STATUS, "IDENTITY"),
    f.required("agent_id", f.BIG, 0),
    f.required("circuit_state", f.STATUS, "CLOSED"),
    f.required("failure_count", f.COUNT, 0),
    f.optional("last_failure_time", f.MOMENT),
    f.optional("opened_at", f.MOMENT),
    f.optional("half_open_at", f.MOMENT),
    f.optional("closed_at", f.MOMENT),
    f.required("timeout_duration_seconds", f.COUNT, 600),
    f.required("failure_threshold", f.COUNT, 3),
    f.required("created_at", f.MOMENT),
    f.required("updated_at", f.MOMENT),
    f.unique("uk_scope_agent", "scope", "agent_id"),
    f.index("idx_opened", "opened_at"),
    f.index("idx_state_failure", "circuit_state", "failure_count"),
)

table(
    "circuit_breaker_event",
    f.key("event_id"),
    f.optional("agent_id", f.BIG),
    f.required("scope", f.STATUS),
    f.required("event_type", f.STATUS),
    f.optional("from_state", f.STATUS),
    f.optional("to_state", f.STATUS),
    f.required("failure_count", f.COUNT, 0),
    f.optional("error_message", f.ERROR),
    f.required("event_timestamp", f.MOMENT),
    f.index("idx_user_agent_time", "agent_id", "event_timestamp"),
    f.index("idx_event_type", "event_type", "event_timestamp"),
    f.index("idx_state_change", "from_state", "to_state", "event_timestamp"),
)

table(
    "rate_limit_bucket",
    f.key("bucket_id"),
    f.required("agent_id", f.BIG),
    f.required("max_tokens", f.COUNT, 80),
    f.required("current_tokens", f.number(10, 2), 80),
    f.required("refill_rate", f.number(12, 6)),
    f.required("last_refill_at", f.MOMENT),
    f.required("created_at", f.MOMENT),
    f.required("updated_at", f.MOMENT),
    f.unique("uk_agent_id", "agent_id"),
    f.index("idx_last_refill", "last_refill_at"),
    f.index("idx_token_level", "current_tokens", "last_refill_at"),
)

table(
    "token_refresh_schedule",
    f.key("schedule_id"),
    f.required("agent_id", f.BIG),
    f.required("token_id", f.BIG),
    f.required("next_refresh_time", f.MOMENT),
    f.required("refresh_interval_seconds", f.COUNT, 3600),
    f.required("is_enabled", f.FLAG, 1),
    f.optional("last_refresh_attempt_at", f.MOMENT),
    f.optional("last_refresh_success_at", f.MOMENT),
    f.required("consecutive_failures", f.COUNT, 0),
    f.required("created_at", f.MOMENT),
    f.required("updated_at", f.MOMENT),
    f.unique("uk_agent_token", "agent_id", "token_id"),
    f.index("idx_next_refresh", "is_enabled", "next_refresh_time"),
    f.index("idx_agent_enabled", "agent_id", "is_enabled"),
    f.index("idx_failure_count", "consecutive_failures", "next_refresh_time"),
)


def upgrade() -> None:
    f.create(tables, {"token_usage_log": months(context.config.attributes["now"])})


def downgrade() -> None:
    f.drop(tables)


def months(now: datetime) -> str:
    """The current month and the following eleven, and a last partition for what comes after them."""
    parts = []
    for number in range(MONTHS):
        year, month = divmod(now.year * 12 + now.month - 1 + number, 12)
        year_after, month_after = divmod(now.year * 12 + now.month + number, 12)
        end = f"{year_after:04d}-{month_after + 1:02d}-01 00:00:00"
        parts.append(f"PARTITION p{year:04d}{month + 1:02d} VALUES LESS THAN ('{end}')")
    parts.append("PARTITION p_future VALUES LESS THAN (MAXVALUE)")
    return f"RANGE COLUMNS(request_timestamp) ({', '.join(parts)})"
