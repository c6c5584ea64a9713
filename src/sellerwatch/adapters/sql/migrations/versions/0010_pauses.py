"""When receiving was last paused, for every process."""

from functools import partial

from sqlalchemy import MetaData

from sellerwatch.adapters.sql.migrations import frozen as f

revision = "0010_pauses"
down_revision = "0009_staleness"
branch_labels = None
depends_on = None

tables = MetaData()
table = partial(f.table, tables)

table(
    "pauses",
    f.named("name", f.exact(64)),
    f.required("last_at", f.MOMENT),
    f.required("reason", f.exact(200)),
)


def upgrade() -> None:
    f.create(tables)


def downgrade() -> None:
    f.drop(tables)
