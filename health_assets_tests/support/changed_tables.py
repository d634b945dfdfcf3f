"""Everything that follows from a table that changes: `python -m health_assets_tests.support.changed_tables "what is new"`.

It writes the version and the digest in the catalog, the revision for PostgreSQL, and the page of tables. Before the first
release nobody has tables to be kept, so without a message the one revision, the baseline, is written anew.

It runs in a checkout, against the commit `HEAD` or another that is named, and needs no database: a PostgreSQL server of
the tests' own is brought to the state of before. Run again after another change, it does the same anew.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from sqlalchemy.dialects import postgresql
from sqlmodel import SQLModel

from health_assets.schema import documentation
from health_assets.schema.catalog import BASELINE_VERSION, describe
from health_assets.warehouse.engines.postgres.tables import metadata
from health_assets.warehouse.migrations import migrate
from health_assets.warehouse.migrations.__main__ import VERSIONS, write_revision
from health_assets_tests.support import postgres_server
from health_assets_tests.support.projects import REPOSITORY

CATALOG = Path("health_assets/schema/catalog.py")
VERSION = re.compile(r"^SCHEMA_VERSION = (\d+)$", re.MULTILINE)
DIGEST = re.compile(r'^SCHEMA_DIGEST = "(\w+)"$', re.MULTILINE)


def digest_of_the_tables() -> str:
    """Of names, columns, types, required columns, keys and indexes, as they are declared."""
    dialect = postgresql.dialect()
    found = {
        name: {
            "columns": {column.name: column.type.compile(dialect=dialect) for column in table.columns},
            "required": [column for column, _, is_nullable, _ in describe(name) if not is_nullable],
            "keys": [column.name for column in SQLModel.metadata.tables[name].primary_key],
            "indexes": sorted((index.name, [column.name for column in index.columns]) for index in table.indexes),
        }
        for name, table in metadata().tables.items()
    }
    return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()[:16]


def declare(version: int) -> None:
    """Write the version and the tables' digest into the catalog."""
    path = REPOSITORY / CATALOG
    text = VERSION.sub(f"SCHEMA_VERSION = {version}", path.read_text(encoding="utf-8"))
    path.write_text(DIGEST.sub(f'SCHEMA_DIGEST = "{digest_of_the_tables()}"', text), encoding="utf-8")


def revise(message: str) -> Path:
    """Write the revision from what the others make to the tables as they are declared; gives its file."""
    url = postgres_server.empty_database()
    if any(VERSIONS.glob("r*.py")):
        migrate(url, 10)
    path = write_revision(url, message)
    subprocess.run([sys.executable, "-m", "ruff", "format", "--quiet", path], check=True)
    return path


def rewrite_baseline() -> None:
    """Write the one revision that there is before the first release anew."""
    for path in VERSIONS.glob("r*.py"):
        path.unlink()
    declare(BASELINE_VERSION)
    revise("baseline")
    print(f"the baseline, version {BASELINE_VERSION}, has the tables as they are declared")


def raise_version(message: str, commit: str) -> None:
    """Write a revision for what differs from the tables of a commit.

    Raises:
        SystemExit: nothing differs.
    """
    before = _git("show", f"{commit}:{CATALOG}").decode()
    (version,), (digest,) = VERSION.findall(before), DIGEST.findall(before)
    if digest == digest_of_the_tables():
        raise SystemExit(f"no table differs from what it was at {commit}")
    known = set(_git("ls-tree", "--name-only", f"{commit}:{VERSIONS.relative_to(REPOSITORY)}").decode().split())
    for path in VERSIONS.glob("r*.py"):
        if path.name not in known:  # of an earlier turn
            path.unlink()
    declare(int(version) + 1)
    made = revise(message)
    print(f"version {int(version) + 1} of the tables; read {made.relative_to(REPOSITORY)} before you commit it")


def main(message: str = "", commit: str = "HEAD") -> None:
    """Write all of it."""
    if message:
        raise_version(message, commit)
    else:
        rewrite_baseline()
    os.chdir(REPOSITORY)
    documentation.main()


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=REPOSITORY, check=True, capture_output=True).stdout


if __name__ == "__main__":
    main(*sys.argv[1:])
