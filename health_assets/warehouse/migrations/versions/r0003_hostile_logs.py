"""Judgements tell who judged, and as whose they count."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Judgements tell who judged, and as whose they count."""
    op.add_column("judgements", sa.Column("judged_by", sa.String(collation="C"), nullable=True))
    op.add_column("judgements", sa.Column("judged_by_reported", sa.String(collation="C"), nullable=True))
    op.add_column("judgements", sa.Column("judge", sa.String(collation="C"), nullable=True))
