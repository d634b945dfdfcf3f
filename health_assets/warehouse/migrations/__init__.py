"""Migrations of a PostgreSQL warehouse, by Alembic; a DuckDB file brings itself up to date when it is written to.

What belongs here: bringing a schema to this program's version. What does not: the tables (`schema.catalog`,
`warehouse.engines.postgres.tables`). Revisions are in `versions`; `make schema` writes them.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from health_assets.core.errors import HealthAssetsError
from health_assets.schema.catalog import SCHEMA_VERSION
from health_assets.warehouse.declared_columns import KnownColumn, declare
from health_assets.warehouse.location import Database, database_of
from health_assets.warehouse.refusals import require_supported_version, still_held, without_drivers
from health_assets.warehouse.upgrades import statements_since

SCRIPTS = "health_assets.warehouse:migrations"
OWN_TABLES = "relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema()) AND relkind = 'r'"
"""SQL: whether a row of pg_class is a table of the warehouse's own schema, whatever characters its name has."""


def migrate(url: str, lock_timeout_s: float) -> None:
    """Make the tables of a warehouse, or bring them to this program's version, in one transaction.

    Args:
        url: the database, with a user who may create tables in the schema, or owns those that are there.
        lock_timeout_s: how long to wait while another process writes.

    Raises:
        HealthAssetsError: the database cannot be reached, or refuses; the warehouse stays held, or its
            version is not one that this program knows.
    """
    database = database_of(url)
    with connected(database) as connection:
        _lock(connection, database, lock_timeout_s)
        version = SCHEMA_VERSION
        if sa.inspect(connection).has_table("warehouse_version"):
            found = connection.scalar(sa.text("SELECT max(version) FROM warehouse_version"))
            version = require_supported_version(database.name, found)
        command.upgrade(config(connection), "head")
        for statement in statements_since(version):
            connection.execute(sa.text(statement))
        _declare(connection)
        connection.execute(sa.text("DELETE FROM warehouse_version"))
        connection.execute(sa.text("INSERT INTO warehouse_version VALUES (:version)"), {"version": SCHEMA_VERSION})


def _declare(connection: sa.Connection) -> None:
    """Let the schema itself say what the classes declare: descriptions, and which columns are never null."""

    def rows_of(sql: str) -> Sequence[Sequence[Any]]:
        found = connection.exec_driver_sql(sql, execution_options={"no_parameters": True})
        return found.all() if found.returns_rows else []

    columns: dict[str, dict[str, KnownColumn]] = {}
    for table, name, is_required, comment in rows_of(
        "SELECT relname, attname, attnotnull, col_description(attrelid, attnum) "
        "FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid "
        f"WHERE {OWN_TABLES} AND attnum > 0 AND NOT attisdropped"
    ):
        columns.setdefault(table, {})[name] = KnownColumn(not is_required, comment)
    comments = rows_of(f"SELECT relname, obj_description(oid, 'pg_class') FROM pg_class WHERE {OWN_TABLES}")
    declare(rows_of, dict(map(tuple, comments)), columns)


def config(connection: sa.Connection) -> Config:
    """Alembic's configuration, for a connection that is inside a transaction."""
    made = Config()
    made.set_main_option("script_location", SCRIPTS)
    made.attributes["connection"] = connection
    return made


@contextmanager
def connected(database: Database) -> Iterator[sa.Connection]:
    """A transaction on a database; what a user can mend is said in one sentence."""
    try:
        import psycopg  # noqa: F401  # SQLAlchemy would name a module rather than what to install
    except ImportError as error:
        raise without_drivers() from error
    engine = sa.create_engine(database.sqlalchemy_url, poolclass=sa.NullPool)
    try:
        with engine.begin() as connection:
            yield connection
    except sa.exc.DBAPIError as error:
        sentence = database.without_password(str(error.orig))
    else:
        return
    # outside of the handler: the library's error may hold the URL
    raise HealthAssetsError(f"cannot make or change the tables of the warehouse {database.name}: {sentence}")


def _lock(connection: sa.Connection, database: Database, lock_timeout_s: float) -> None:
    from health_assets.warehouse.engines.postgres.store import LOCK, LOCK_NOT_AVAILABLE

    connection.execute(sa.text(f"SET LOCAL lock_timeout = '{math.ceil(lock_timeout_s * 1000)}ms'"))
    try:
        connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({LOCK})"))
    except sa.exc.OperationalError as error:
        if getattr(error.orig, "sqlstate", None) != LOCK_NOT_AVAILABLE:
            raise
        raise still_held(database.name, "another program", lock_timeout_s) from error
