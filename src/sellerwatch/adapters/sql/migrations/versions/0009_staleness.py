"""Indexes by which the oldest document of any ACTIVE product is found in one step."""

from alembic import op

from sellerwatch.adapters.sql.dialect import index_name

revision = "0009_staleness"
down_revision = "0008_raws_by_item"
branch_labels = None
depends_on = None

TABLE = "products"
COLUMNS = ("minishop_at", "detail_at", "option_at")


def upgrade() -> None:
    for column in COLUMNS:
        op.create_index(_name(column), TABLE, ["status", column])


def downgrade() -> None:
    for column in COLUMNS:
        op.drop_index(_name(column), TABLE)


def _name(column: str) -> str:
    return index_name(op.get_context().dialect.name, TABLE, f"idx_status_{column}")
