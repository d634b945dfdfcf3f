"""Hours that cannot be built are held, with the cause."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Hours that cannot be built are held, with the cause."""
    op.create_table(
        "held_hours",
        sa.Column("hour", sa.DateTime(timezone=True), nullable=True),
        sa.Column("source_file", sa.String(collation="C"), nullable=True),
        sa.Column("reason", sa.String(collation="C"), nullable=True),
        sa.Column("lines", sa.BigInteger(), nullable=True),
        sa.Column("held_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("held_until", sa.DateTime(timezone=True), nullable=True),
        if_not_exists=True,
    )
    op.create_index("held_hours_by_hour", "held_hours", ["hour"], unique=False, if_not_exists=True)
