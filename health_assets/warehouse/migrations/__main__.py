"""Writes revisions: `python -m health_assets.warehouse.migrations`.

Without an argument it writes the first revision anew, as long as that has not been released. With one, say "spans have
a kind", it writes a further revision with what the tables have and the database of HEALTH_WAREHOUSE, which must be at
the newest revision, has not.
"""

import sys
from pathlib import Path

from alembic import command
from alembic.autogenerate import render_python_code
from alembic.operations import ops

from health_assets.settings import load_settings
from health_assets.warehouse.location import database_of
from health_assets.warehouse.migrations import config, connected
from health_assets.warehouse.postgres_tables import metadata

FIRST = Path(__file__).parent / "versions" / "r0001_first_tables.py"
HEADER = '''"""The tables of the first release; written by `python -m health_assets.warehouse.migrations`."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make every table and its index by hour."""
'''


def first_revision() -> str:
    """The text of the revision that makes every table."""
    tables = metadata().tables.values()
    made: list[ops.MigrateOperation] = [ops.CreateTableOp.from_table(table) for table in tables]
    made += [ops.CreateIndexOp.from_index(index) for table in tables for index in table.indexes]
    body = render_python_code(ops.UpgradeOps(ops=made))
    lines = [line for line in body.splitlines() if not line.lstrip().startswith("#")]
    return HEADER + "    " + "\n".join(lines).strip() + "\n"


def main(arguments: list[str]) -> None:
    """Write a revision."""
    if not arguments:
        FIRST.write_text(first_revision(), encoding="utf-8")
        return
    with connected(database_of(load_settings().warehouse)) as connection:
        command.revision(config(connection), " ".join(arguments), autogenerate=True)


if __name__ == "__main__":
    main(sys.argv[1:])
