"""Read by Alembic: runs the revisions on the connection that it is given.

Descriptions and NOT NULL are no part of revisions: `migrate` brings them after these to what the classes declare.
"""

from typing import Any

from alembic import context
from alembic.autogenerate.rewriter import Rewriter
from alembic.operations import ops

from health_assets.warehouse.engines.postgres.tables import ALEMBIC_TABLE, metadata

connection = context.config.attributes["connection"]
to_write = Rewriter()


@to_write.rewrites(ops.AlterColumnOp)
def _without_declarations(_: Any, __: Any, change: ops.AlterColumnOp) -> Any:
    change.modify_nullable, change.modify_comment = None, False
    return change if change.has_changes() else []


@to_write.rewrites(ops.DropTableCommentOp)
def _without_table_comments(*_: Any) -> Any:
    return []


context.configure(
    connection=connection,
    target_metadata=metadata(),
    version_table=ALEMBIC_TABLE,
    process_revision_directives=to_write,
)
with context.begin_transaction():
    context.run_migrations()
