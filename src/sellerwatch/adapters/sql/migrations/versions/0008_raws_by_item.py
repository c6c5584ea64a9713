"""What was crawled of an item since a moment is found through an index."""

from alembic import op

from sellerwatch.adapters.sql.dialect import index_name

revision = "0008_raws_by_item"
down_revision = "0007_trust"
branch_labels = None
depends_on = None

_TABLE, _NAME = "product_raw_data", "idx_item_no_crawled_at"


def upgrade() -> None:
    op.create_index(index_name(op.get_context().dialect.name, _TABLE, _NAME), _TABLE, ["item_no", "crawled_at"])


def downgrade() -> None:
    op.drop_index(index_name(op.get_context().dialect.name, _TABLE, _NAME), _TABLE)
