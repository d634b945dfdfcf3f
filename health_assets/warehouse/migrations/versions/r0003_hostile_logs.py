"""Rejected lines have a count, and files the earliest of their events that are in the future."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Rejected lines have a count, and files the earliest of their events that are in the future."""
    op.add_column("raw_files", sa.Column("future_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("rejected_records", sa.Column("lines", sa.BigInteger(), nullable=True))
