"""Read by Alembic: runs the revisions on the connection that it is given."""

from alembic import context

from health_assets.warehouse.engines.postgres.tables import ALEMBIC_TABLE, metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata(), version_table=ALEMBIC_TABLE)
with context.begin_transaction():
    context.run_migrations()
