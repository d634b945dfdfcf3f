"""Writes a revision: `python -m health_assets.warehouse.migrations "executions have tokens"`.

It has what the declared tables have and the database of HEALTH_WAREHOUSE, which must be at the newest revision, has
not. Revisions that have landed stay as they are.
"""

import sys

from alembic import command

from health_assets.core.settings import load_settings
from health_assets.warehouse.location import database_of
from health_assets.warehouse.migrations import config, connected


def main(message: str) -> None:
    """Write the revision that is missing, with a sentence that says what is new."""
    with connected(database_of(load_settings().warehouse)) as connection:
        command.revision(config(connection), message, autogenerate=True)


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]) or sys.exit("say what is new, like: executions have tokens"))
