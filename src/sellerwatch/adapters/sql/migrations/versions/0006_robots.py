"""The marketplace's robots.txt, kept for every process."""

from functools import partial

from sqlalchemy import MetaData

from sellerwatch.adapters.sql.migrations import frozen as f

revision = "0006_robots"
down_revision = "0005_history"
branch_labels = None
depends_on = None

tables = MetaData()
table = partial(f.table, tables)

table(
    "robots",
    f.named("origin", f.exact(255)),
    f.required("next_at", f.MOMENT),
    f.optional("text", f.JSON),
    f.optional("told_at", f.MOMENT),
    f.required("failures", f.COUNT, 0),
    f.optional("problem", f.ERROR),
    f.optional("claimed_by", f.OWNER),
    f.optional("claimed_until", f.MOMENT),
)


def upgrade() -> None:
    f.create(tables)


def downgrade() -> None:
    f.drop(tables)
