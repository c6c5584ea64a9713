"""What tells real changes from drift: what crawls show, what is usual, what is quarantined, what was suppressed."""

from sqlalchemy import Column, Date, Index, PrimaryKeyConstraint, String

from sellerwatch.adapters.sql.tables.columns import (
    COUNT,
    JSON,
    MOMENT,
    SELLER,
    STATUS,
    UID,
    exact,
    key,
    optional,
    required,
    table,
    unique,
)

drift_tallies = table(
    "drift_tallies",
    Column("execution_id", UID, primary_key=True),
    required("seller_id", SELLER),
    # All of the crawl so far, and its sliding window.
    required("crawl", JSON),
    required("recent", JSON),
    required("updated_at", MOMENT),
)

drift_baselines = table(
    "drift_baselines",
    Column("seller_id", SELLER, primary_key=True),
    required("usual", JSON),
    required("crawls", COUNT, 0),
    required("updated_at", MOMENT),
)

quarantines = table(
    "quarantines",
    key(),
    required("quarantine_id", UID),
    required("seller_id", SELLER),
    required("execution_id", UID),
    required("status", STATUS),
    required("measure", STATUS),
    required("field", exact(200)),
    required("reason", String(1000)),
    required("documents", COUNT, 0),
    required("events", COUNT, 0),
    required("opened_at", MOMENT),
    optional("ended_at", MOMENT),
    optional("settled_at", MOMENT),
    unique("idx_quarantine_id", "quarantine_id"),
    unique("uk_execution_id", "execution_id"),
    Index("idx_seller_id_status", "seller_id", "status"),
    Index("idx_status_settled_at", "status", "settled_at"),
)

suppressed_changes = table(
    "suppressed_changes",
    Column("rule", exact(32), nullable=False),
    Column("day", Date(), nullable=False),
    required("times", COUNT, 0),
    required("last_at", MOMENT),
    PrimaryKeyConstraint("rule", "day"),
)
