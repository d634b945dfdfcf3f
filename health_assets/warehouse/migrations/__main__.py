"""Writes a revision: `python -m health_assets.warehouse.migrations "executions have tokens"`.

It has what the declared tables have and the database of HEALTH_WAREHOUSE, which must be at the newest revision, has
not. Revisions that have landed stay as they are.
"""

import sys
from pathlib import Path

from alembic import command

from health_assets.core.settings import load_settings
from health_assets.schema.catalog import BASELINE_VERSION
from health_assets.warehouse.location import database_of
from health_assets.warehouse.migrations import config, connected

VERSIONS = Path(__file__).with_name("versions")


def write_revision(url: str, message: str) -> Path:
    """Write the revision that is missing, numbered after the newest; gives its file.

    Args:
        url: a database at the newest revision.
        message: a sentence that says what is new.
    """
    before = set(VERSIONS.glob("r*.py"))
    number = max((int(path.name[1:5]) + 1 for path in before), default=BASELINE_VERSION)
    with connected(database_of(url)) as connection:
        made = config(connection)
        made.set_main_option("file_template", "r%%(rev)s_%%(slug)s")
        command.revision(made, message, autogenerate=True, rev_id=f"{number:04d}")
    [path] = set(VERSIONS.glob("r*.py")) - before
    return path


if __name__ == "__main__":
    write_revision(
        load_settings().warehouse, " ".join(sys.argv[1:]) or sys.exit("say what is new, like: executions have tokens")
    )
