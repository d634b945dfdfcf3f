"""Warehouses that were made while the first revision still grew get the columns that it has by now."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns that the first revision did not always have; whole tables it makes when it is run again."""
    op.add_column("executions", sa.Column("span_id", sa.String(collation="C"), nullable=True), if_not_exists=True)
    op.add_column("model_calls", sa.Column("span_id", sa.String(collation="C"), nullable=True), if_not_exists=True)
    op.add_column("raw_logs", sa.Column("is_dropped", sa.Boolean(), nullable=True), if_not_exists=True)
    op.add_column(
        "materialized_hours",
        sa.Column("dropped_digest", sa.String(collation="C"), nullable=True),
        if_not_exists=True,
    )
