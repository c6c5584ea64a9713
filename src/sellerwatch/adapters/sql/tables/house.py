"""What the house keeps about itself: the queue, who is alive, locks, alerts, drift, and the sweeps' record."""

from sqlalchemy import Column, Date, Index, PrimaryKeyConstraint, String

from sellerwatch.adapters.sql.tables.columns import (
    COUNT,
    ERROR,
    JSON,
    MOMENT,
    OWNER,
    STATUS,
    UID,
    exact,
    key,
    optional,
    required,
    table,
    unique,
)

queue_messages = table(
    "queue_messages",
    key("message_id"),
    required("queue", exact(80)),
    required("message_group", exact(200)),
    required("dedup_id", exact(128)),
    required("body", JSON),
    required("attributes", JSON),
    required("state", exact(8)),
    required("receives", COUNT, 0),
    required("visible_at", MOMENT),
    optional("receipt", UID),
    required("sent_at", MOMENT),
    optional("done_at", MOMENT),
    optional("error", ERROR),
    unique("uk_queue_dedup_id", "queue", "dedup_id"),
    Index("idx_next_visible", "queue", "state", "visible_at", "message_id"),
    Index("idx_group_order", "queue", "state", "message_group", "message_id"),
)

processes = table(
    "processes",
    Column("owner", OWNER, primary_key=True),
    required("role", exact(32)),
    required("host", exact(255)),
    required("pid", COUNT),
    required("version", exact(64)),
    required("started_at", MOMENT),
    required("seen_at", MOMENT),
)

locks = table(
    "locks",
    Column("name", exact(200), primary_key=True),
    required("owner", OWNER),
    required("until", MOMENT),
)

alerts = table(
    "alerts",
    Column("name", exact(200), primary_key=True),
    required("severity", STATUS),
    required("since", MOMENT),
    optional("last_sent_at", MOMENT),
    required("times", COUNT, 0),
    optional("details", JSON),
    optional("cleared_at", MOMENT),
)

field_drift = table(
    "field_drift",
    Column("data_type", STATUS, nullable=False),
    Column("field", exact(200), nullable=False),
    Column("problem", exact(64), nullable=False),
    Column("day", Date(), nullable=False),
    required("times", COUNT, 0),
    optional("sample", String(500)),
    required("last_seen_at", MOMENT),
    PrimaryKeyConstraint("data_type", "field", "problem", "day"),
)

sweeps = table(
    "sweeps",
    Column("name", exact(64), primary_key=True),
    optional("last_run_at", MOMENT),
    required("last_found", COUNT, 0),
    optional("last_error", ERROR),
)

pauses = table(
    "pauses",
    Column("name", exact(64), primary_key=True),
    required("last_at", MOMENT),
    required("reason", exact(200)),
)

robots = table(
    "robots",
    Column("origin", exact(255), primary_key=True),
    required("next_at", MOMENT),
    # NULL: never told. Up to 500 KiB, and thrice that where what came was no text.
    optional("text", JSON),
    optional("told_at", MOMENT),
    required("failures", COUNT, 0),
    optional("problem", ERROR),
    optional("claimed_by", OWNER),
    optional("claimed_until", MOMENT),
)
