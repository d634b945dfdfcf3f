"""Warehouses as earlier versions of the program left them, and how they are brought back.

`schemas/duckdb` and `schemas/postgresql` hold one SQL text for every state of the tables that the main branch ever had,
named by their version and the last commit that made them so. The program of that commit wrote each from `schemas/logs`,
for the hours in `HOURS`; of `expectation_results` a few rows are kept. Before a table is changed,

    python -m health_assets_tests.support.stored_schemas COMMIT

stores the state that the change ends, with the commit's own program, which must be what is checked out.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import psycopg

from health_assets.core.hours import HourRange
from health_assets.schema.catalog import SCHEMA_VERSION
from health_assets.warehouse.migrations import migrate
from health_assets_tests.support import postgres_server
from health_assets_tests.support.projects import Project, command, materialize_arguments

FOLDER = Path(__file__).with_name("schemas")
LOGS = FOLDER / "logs"
HOURS = HourRange(datetime(2026, 6, 7, 12, tzinfo=UTC), datetime(2026, 6, 7, 14, tzinfo=UTC))
WRITTEN_AT_S = datetime(2026, 6, 7, 14, tzinfo=UTC).timestamp()
"""Modification time of the logs, which the tables know them by."""
ROOT = "/var/lib/agents/logs"
"""Stands in the texts for the raw root."""
KEPT_CHECKS = 4


@dataclass(frozen=True)
class Stored:
    """The text of one state of the tables on one engine."""

    engine: str
    version: int
    commit: str

    @property
    def path(self) -> Path:
        return FOLDER / self.engine / f"v{self.version}-{self.commit}.sql"

    @property
    def name(self) -> str:
        return f"{self.engine}-v{self.version}-{self.commit}"

    def project(self, folder: Path) -> Project:
        """A project with the logs, and the warehouse as it was then."""
        project = logs_alone(folder, self.engine)
        statements = self.path.read_text(encoding="utf-8").replace(ROOT, str(project.raw.resolve()))
        if self.engine == "duckdb":
            with duckdb.connect(str(project.warehouse_path)) as file:
                file.execute("SET TimeZone = 'UTC'")
                file.execute(statements)
        else:
            with psycopg.connect(project.url, autocommit=True) as database:
                database.execute("SET TimeZone = 'UTC'")
                database.execute(statements.encode())
        return project


def logs_alone(folder: Path, engine: str) -> Project:
    """A project with the logs, before anything is in its warehouse."""
    url = postgres_server.empty_database() if engine == "postgresql" else ""
    project = Project(folder, engine="duckdb", url=url)
    for log in LOGS.iterdir():
        shutil.copy(log, project.raw)
        os.utime(project.raw / log.name, (WRITTEN_AT_S, WRITTEN_AT_S))
    return project


def stored(engine: str) -> list[Stored]:
    """Every state that is stored for an engine, oldest version first."""
    names = (re.fullmatch(r"v(\d+)-(\w+)\.sql", path.name) for path in (FOLDER / engine).iterdir())
    found = [Stored(engine, int(name[1]), name[2]) for name in names if name]
    return sorted(found, key=lambda one: (one.version, one.commit))


# -- storing one -----------------------------------------------------------------------------------------------------------


def store(commit: str) -> None:
    """Write the state of this program's tables, on both engines."""
    for engine in ("duckdb", "postgresql"):
        with tempfile.TemporaryDirectory() as folder:
            project = logs_alone(Path(folder), engine)
            if project.url:
                migrate(project.url, 10)
            done = command(*materialize_arguments(project, HOURS))
            if done.returncode:
                raise RuntimeError(done.stderr)
            text = _of_postgres(project.url) if project.url else _of_duckdb(project.warehouse_path)
            path = Stored(engine, SCHEMA_VERSION, commit).path
            path.write_text(text.replace(str(project.raw.resolve()), ROOT), encoding="utf-8")


def _of_duckdb(path: Path) -> str:
    statements = []
    with duckdb.connect(str(path), read_only=True) as file:
        file.execute("SET TimeZone = 'UTC'")
        for table, sql in file.execute("SELECT table_name, sql FROM duckdb_tables() ORDER BY 1").fetchall():
            statements.append(sql.rstrip(";") + ";")
            rows = sorted(file.execute(f"FROM {table}").fetchall(), key=repr)
            kept = rows[:KEPT_CHECKS] if table == "expectation_results" else rows
            statements.extend(f"INSERT INTO {table} VALUES ({', '.join(map(_literal, row))});" for row in kept)
    return "\n".join(statements) + "\n"


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool | int | float):
        return str(value).lower()
    if isinstance(value, datetime):
        return f"'{value.astimezone(UTC).isoformat(sep=' ')}'"
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    return "'" + str(value).replace("'", "''") + "'"


def _of_postgres(url: str) -> str:
    dump = postgres_server.program("pg_dump")
    flags = ["--inserts", "--no-owner", "--no-privileges", "--no-comments"]
    done = subprocess.run([dump, *flags, url], capture_output=True, text=True, check=True)
    lines = [line for line in done.stdout.splitlines() if line and not line.startswith(_PREAMBLE)]
    checks = [line for line in lines if line.startswith("INSERT INTO public.expectation_results ")]
    left_out = set(checks[KEPT_CHECKS:])
    return "\n".join(line for line in lines if line not in left_out) + "\n"


_PREAMBLE = ("--", "\\", "SET ", "SELECT pg_catalog.set_config")


if __name__ == "__main__":
    store(*sys.argv[1:])
