"""Hours say which version of its formula made each asset's rows; those of before say nothing, which is 1.0."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; a warehouse whose first revisions run again may have it already."""
    op.add_column(
        "materialized_hours",
        sa.Column("formula_version", sa.String(collation="C"), nullable=True),
        if_not_exists=True,
    )
