"""Every table, defined once for every database; names, columns and indexes as the contract has them.

Indexes bear the contract's names here; `dialect.for_dialect` gives them the names a database knows them by.
"""

from sellerwatch.adapters.sql.tables.columns import Moment, metadata
from sellerwatch.adapters.sql.tables.house import (
    alerts,
    field_drift,
    locks,
    pauses,
    processes,
    queue_messages,
    robots,
    sweeps,
)
from sellerwatch.adapters.sql.tables.identities import (
    circuit_breaker_event,
    circuit_breaker_state,
    rate_limit_bucket,
    token_refresh_schedule,
    token_usage_log,
    user_agent_pool,
    user_agent_token,
)
from sellerwatch.adapters.sql.tables.pool import (
    pool_events,
    pool_faces,
    pool_health,
    pool_identities,
    pool_leader,
    pool_site,
    pool_tally,
    pool_window,
)
from sellerwatch.adapters.sql.tables.products import (
    crawling_metrics_daily,
    product_changes,
    product_outbox,
    product_raw_data,
    products,
)
from sellerwatch.adapters.sql.tables.sellers import (
    crawling_schedule_executions,
    crawling_schedules,
    scheduler_outbox,
    sellers,
)
from sellerwatch.adapters.sql.tables.tasks import crawl_executions, crawler_task_outbox, crawler_tasks, listings
from sellerwatch.adapters.sql.tables.trust import drift_baselines, drift_tallies, quarantines, suppressed_changes

__all__ = [
    "Moment",
    "alerts",
    "circuit_breaker_event",
    "circuit_breaker_state",
    "crawl_executions",
    "crawler_task_outbox",
    "crawler_tasks",
    "crawling_metrics_daily",
    "crawling_schedule_executions",
    "crawling_schedules",
    "drift_baselines",
    "drift_tallies",
    "field_drift",
    "listings",
    "locks",
    "metadata",
    "pauses",
    "pool_events",
    "pool_faces",
    "pool_health",
    "pool_identities",
    "pool_leader",
    "pool_site",
    "pool_tally",
    "pool_window",
    "processes",
    "product_changes",
    "product_outbox",
    "product_raw_data",
    "products",
    "quarantines",
    "queue_messages",
    "rate_limit_bucket",
    "robots",
    "scheduler_outbox",
    "sellers",
    "suppressed_changes",
    "sweeps",
    "token_refresh_schedule",
    "token_usage_log",
    "user_agent_pool",
    "user_agent_token",
]
