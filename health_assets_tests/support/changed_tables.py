"""What follows from a table that changes: `python -m health_assets_tests.support.changed_tables "what is new"`.

It writes the version and the digest in the catalog, the revision for PostgreSQL, and the page of tables. While there is no
warehouse to keep, `baseline` in place of a message replaces all revisions by one, of a new version, so that programs
refuse the tables of before.

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

from alembic import command
from sqlalchemy.dialects import postgresql
from sqlmodel import SQLModel

from health_assets.schema import documentation
from health_assets.schema.catalog import BASELINE_VERSION, describe
from health_assets.warehouse.engines.postgres.tables import metadata
from health_assets.warehouse.location import database_of
from health_assets.warehouse.migrations import config, connected, migrate
from health_assets_tests.support import postgres_server
from health_assets_tests.support.projects import REPOSITORY

CATALOG = Path("health_assets/schema/catalog.py")
VERSIONS = REPOSITORY / "health_assets" / "warehouse" / "migrations" / "versions"
BASELINE = "baseline"
BASELINE_LINE = re.compile(r"^BASELINE_VERSION = (\d+)$", re.MULTILINE)
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
    before = set(VERSIONS.glob("r*.py"))
    if before:
        migrate(url, 10)
    number = max((int(path.name[1:5]) + 1 for path in before), default=BASELINE_VERSION)
    with connected(database_of(url)) as connection:
        made = config(connection)
        made.set_main_option("file_template", "r%%(rev)s_%%(slug)s")
        command.revision(made, message, autogenerate=True, rev_id=f"{number:04d}")
    [path] = set(VERSIONS.glob("r*.py")) - before
    subprocess.run([sys.executable, "-m", "ruff", "format", "--quiet", path], check=True)
    return path


def rewrite_baseline(version: int) -> Path:
    """Replace all revisions by one that makes the tables as they are declared; gives its file."""
    path = REPOSITORY / CATALOG
    text = BASELINE_LINE.sub(f"BASELINE_VERSION = {version}", path.read_text(encoding="utf-8"))
    path.write_text(text, encoding="utf-8")
    declare(version)
    for revision in VERSIONS.glob("r*.py"):
        revision.unlink()
    subprocess.run(  # another process reads the catalog as it is now
        [sys.executable, "-c", f"from {__spec__.name} import revise; revise({BASELINE!r})"], cwd=REPOSITORY, check=True
    )
    [made] = VERSIONS.glob("r*.py")
    return made


def main(message: str, commit: str = "HEAD") -> None:
    """Write all of it, where a table differs from what it was at a commit.

    Raises:
        SystemExit: nothing differs.
    """
    before = _git("show", f"{commit}:{CATALOG}").decode()
    version, digest = int(VERSION.findall(before)[0]), DIGEST.findall(before)[0]
    if digest == digest_of_the_tables():
        raise SystemExit(f"no table differs from what it was at {commit}")
    if message == BASELINE:
        made = rewrite_baseline(version + 1)
    else:
        known = set(_git("ls-tree", "--name-only", f"{commit}:{VERSIONS.relative_to(REPOSITORY)}").decode().split())
        for path in VERSIONS.glob("r*.py"):
            if path.name not in known:  # of an earlier turn
                path.unlink()
        declare(version + 1)
        made = revise(message)
    print(f"version {version + 1} of the tables; read {made.relative_to(REPOSITORY)} before you commit it")
    os.chdir(REPOSITORY)
    documentation.main()


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=REPOSITORY, check=True, capture_output=True).stdout


if __name__ == "__main__":
    main(*sys.argv[1:]) if sys.argv[1:2] > [""] else sys.exit("say what is new, like: executions have tokens")
