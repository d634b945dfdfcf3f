"""Files are known by what they hold; what is lost or in the future is noted; judgements tell who judged."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Files are known by what they hold; what is lost or in the future is noted; judgements tell who judged."""
    op.add_column("raw_files", sa.Column("plain_bytes", sa.BigInteger(), nullable=True), if_not_exists=True)
    op.add_column("raw_files", sa.Column("content_digest", sa.String(collation="C"), nullable=True), if_not_exists=True)
    op.add_column("raw_files", sa.Column("head_digests", sa.String(collation="C"), nullable=True), if_not_exists=True)
    op.add_column("raw_files", sa.Column("copy_of", sa.String(collation="C"), nullable=True), if_not_exists=True)
    op.add_column("raw_files", sa.Column("gone_at", sa.DateTime(timezone=True), nullable=True), if_not_exists=True)
    op.add_column("raw_logs", sa.Column("lost", sa.BigInteger(), nullable=True), if_not_exists=True)
    op.add_column("judgements", sa.Column("judged_by", sa.String(collation="C"), nullable=True), if_not_exists=True)
    op.add_column(
        "judgements", sa.Column("judged_by_reported", sa.String(collation="C"), nullable=True), if_not_exists=True
    )
    op.add_column("judgements", sa.Column("judge", sa.String(collation="C"), nullable=True), if_not_exists=True)
    op.add_column("raw_files", sa.Column("future_at", sa.DateTime(timezone=True), nullable=True), if_not_exists=True)
    op.add_column("rejected_records", sa.Column("lines", sa.BigInteger(), nullable=True), if_not_exists=True)
