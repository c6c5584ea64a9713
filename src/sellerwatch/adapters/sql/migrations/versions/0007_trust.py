"""Telling real changes from drift: tallies, baselines, quarantines; fields that need no column of their own."""

from functools import partial
from typing import Any

from alembic import op
from sqlalchemy import Column, MetaData, PrimaryKeyConstraint

from sellerwatch.adapters.sql.migrations import frozen as f

revision = "0007_trust"
down_revision = "0006_robots"
branch_labels = None
depends_on = None

tables = MetaData()
table = partial(f.table, tables)

table(
    "drift_tallies",
    f.named("execution_id", f.UID),
    f.required("seller_id", f.SELLER),
    f.required("crawl", f.JSON),
    f.required("recent", f.JSON),
    f.required("updated_at", f.MOMENT),
)

table(
    "drift_baselines",
    f.named("seller_id", f.SELLER),
    f.required("usual", f.JSON),
    f.required("crawls", f.COUNT, 0),
    f.required("updated_at", f.MOMENT),
)

table(
    "quarantines",
    f.key(),
    f.required("quarantine_id", f.UID),
    f.required("seller_id", f.SELLER),
    f.required("execution_id", f.UID),
    f.required("status", f.STATUS),
    f.required("measure", f.STATUS),
    f.required("field", f.exact(200)),
    f.required("reason", f.words(1000)),
    f.required("documents", f.COUNT, 0),
    f.required("events", f.COUNT, 0),
    f.required("opened_at", f.MOMENT),
    f.optional("ended_at", f.MOMENT),
    f.optional("settled_at", f.MOMENT),
    f.unique("idx_quarantine_id", "quarantine_id"),
    f.unique("uk_execution_id", "execution_id"),
    f.index("idx_seller_id_status", "seller_id", "status"),
    f.index("idx_status_settled_at", "status", "settled_at"),
)

table(
    "suppressed_changes",
    Column("rule", f.exact(32), nullable=False),
    Column("day", f.DAY, nullable=False),
    f.required("times", f.COUNT, 0),
    f.required("last_at", f.MOMENT),
    PrimaryKeyConstraint("rule", "day"),
)


def columns() -> list[tuple[str, Column[Any]]]:
    """New ones each time: a column belongs to one table for ever."""
    counters = ("same_lists", "same_details", "same_options", "full_pages", "full_page_entries")
    counted: list[tuple[str, Column[Any]]] = [
        ("crawling_schedule_executions", f.required(name, f.COUNT, 0)) for name in counters
    ]
    return [
        ("products", f.optional("further", f.JSON)),
        ("product_outbox", f.optional("quarantine_id", f.UID)),
        *counted,
    ]


def upgrade() -> None:
    f.create(tables)
    for to, column in columns():
        op.add_column(to, column)


def downgrade() -> None:
    for of, column in reversed(columns()):
        op.drop_column(of, column.name)
    f.drop(tables)
