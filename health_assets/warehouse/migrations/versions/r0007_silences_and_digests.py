"""Alerts have silences and periodic digests; rows that are rarely there are found by an index of their own."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables of silences and digests, what incidents and the outbox say of silences, and the indexes."""
    for column in ("agent_id_reported", "task_id"):
        op.create_index(
            f"executions_by_hour_with_{column}",
            "executions",
            ["hour"],
            unique=False,
            postgresql_where=sa.text(f"{column} IS NOT NULL"),
            if_not_exists=True,
        )
    op.create_table(
        "alert_digests",
        sa.Column("hour", sa.DateTime(timezone=True), nullable=True),
        sa.Column("digest_id", sa.String(collation="C"), nullable=True),
        sa.Column("cadence", sa.String(collation="C"), nullable=True),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("written_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("content", sa.JSON(), nullable=True),
        if_not_exists=True,
    )
    op.create_index("alert_digests_by_hour", "alert_digests", ["hour"], unique=False, if_not_exists=True)
    op.create_table(
        "alert_silences",
        sa.Column("hour", sa.DateTime(timezone=True), nullable=True),
        sa.Column("silence_id", sa.String(collation="C"), nullable=True),
        sa.Column("agents", sa.JSON(), nullable=True),
        sa.Column("rules", sa.JSON(), nullable=True),
        sa.Column("starts_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ends_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("reason", sa.String(collation="C"), nullable=True),
        sa.Column("added_by", sa.String(collation="C"), nullable=True),
        sa.Column("added_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("is_of_file", sa.Boolean(), nullable=True),
        if_not_exists=True,
    )
    op.create_index("alert_silences_by_hour", "alert_silences", ["hour"], unique=False, if_not_exists=True)
    op.add_column(
        "alert_deliveries", sa.Column("hushed_by", sa.String(collation="C"), nullable=True), if_not_exists=True
    )
    op.add_column("alerts", sa.Column("silenced_by", sa.String(collation="C"), nullable=True), if_not_exists=True)
    op.add_column("alerts", sa.Column("unsilenced_at", sa.DateTime(timezone=True), nullable=True), if_not_exists=True)
