"""What a change rests on, and since when a delivery is due."""

from alembic import op

from sellerwatch.adapters.sql.migrations import frozen as f

revision = "0005_history"
down_revision = "0004_pool"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("product_changes", f.optional("proofs", f.JSON))
    op.add_column("product_changes", f.optional("execution_id", f.UID))
    op.add_column("product_outbox", f.optional("seen_at", f.MOMENT))


def downgrade() -> None:
    op.drop_column("product_outbox", "seen_at")
    op.drop_column("product_changes", "execution_id")
    op.drop_column("product_changes", "proofs")
