"""What a database itself says of its tables is what the classes declare: descriptions, and which columns are never null."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import psycopg
import pytest

from health_assets.core.errors import HealthAssetsError
from health_assets.schema.catalog import ALL_TABLES, describe, description_of
from health_assets.warehouse.store import Warehouse
from health_assets_tests.support.constraints import drop_constraints
from health_assets_tests.support.logs_made import START
from health_assets_tests.support.older_warehouses import OLDER_VERSION, bring_up_to_date, support_older_version
from health_assets_tests.support.postgres_server import empty_database

Said = tuple[dict[str, str | None], dict[tuple[str, str], tuple[bool, str | None]]]
DECLARED: Said = (
    {table: description_of(table) for table in ALL_TABLES},
    {(table, name): (nullable, meaning) for table in ALL_TABLES for name, _, nullable, meaning in describe(table)},
)
LACKING = {"hour": START, "agent_id": "a", "failed_at_end": None}
"""A row of `now_components` without a value that is never null."""


def said_by(url: str) -> Said:
    """The descriptions of tables, and of each column whether it may be null and its description, by the catalog."""
    if url.startswith("postgresql"):
        with psycopg.connect(url) as connection:
            tables = connection.execute(
                "SELECT relname, obj_description(oid) FROM pg_class "
                "WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname <> 'alembic_version'"
            ).fetchall()
            columns = connection.execute(
                "SELECT table_name, column_name, is_nullable = 'YES', "
                "col_description(table_name::regclass, ordinal_position) "
                "FROM information_schema.columns WHERE table_schema = 'public' AND table_name <> 'alembic_version'"
            ).fetchall()
    else:
        with duckdb.connect(url, read_only=True) as file:
            tables = file.execute("SELECT table_name, comment FROM duckdb_tables()").fetchall()
            columns = file.execute(
                "SELECT table_name, column_name, is_nullable, comment FROM duckdb_columns() WHERE NOT internal"
            ).fetchall()
    return dict(tables), {(table, name): (nullable, comment) for table, name, nullable, comment in columns}


@pytest.fixture(params=["duckdb", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    yield str(tmp_path / "w.duckdb") if request.param == "duckdb" else empty_database()


@pytest.fixture(autouse=True)
def _older_version(monkeypatch: pytest.MonkeyPatch) -> None:
    support_older_version(monkeypatch)


def change(url: str, *statements: str) -> None:
    with psycopg.connect(url) if url.startswith("postgresql") else duckdb.connect(url) as connection:
        for statement in statements:
            connection.execute(statement)


def test_a_new_warehouse_says_what_its_tables_and_columns_mean_and_which_are_never_null(url: str) -> None:
    bring_up_to_date(url)
    assert said_by(url) == DECLARED


def test_an_older_warehouse_says_the_same_but_of_columns_that_are_null_in_its_rows(url: str) -> None:
    bring_up_to_date(url)
    without = [f"COMMENT ON COLUMN {table}.{name} IS NULL" for table in ALL_TABLES for name, *_ in describe(table)]
    without += [f"COMMENT ON TABLE {table} IS NULL" for table in ALL_TABLES]
    row = f"INSERT INTO agent_now (hour, agent_id) VALUES ('{START.isoformat()}', 'a')"
    change(url, *drop_constraints(), *without, row, f"UPDATE warehouse_version SET version = {OLDER_VERSION}")
    assert set(said_by(url)[1].values()) == {(True, None)}
    bring_up_to_date(url)
    tables, columns = said_by(url)
    still = {place for place, said in columns.items() if said != DECLARED[1][place]}
    lacks = {name for name, _, nullable, _ in describe("agent_now") if not nullable} - {"hour", "agent_id"}
    assert (tables, still) == (DECLARED[0], {("agent_now", name) for name in lacks})
    assert all(columns[place] == (True, DECLARED[1][place][1]) for place in still)


def test_a_column_that_may_be_null_by_now_takes_rows_without_it(url: str) -> None:
    bring_up_to_date(url)
    [name, *_] = [name for name, _, nullable, _ in describe("agent_now") if nullable]
    change(
        url,
        f"ALTER TABLE agent_now ALTER {name} SET NOT NULL",
        f"UPDATE warehouse_version SET version = {OLDER_VERSION}",
    )
    bring_up_to_date(url)
    assert said_by(url) == DECLARED


def test_a_row_without_a_required_value_is_refused_in_a_sentence_and_nothing_is_kept(url: str) -> None:
    bring_up_to_date(url)
    names, marks = ", ".join(LACKING), ", ".join("?" for _ in LACKING)
    with (
        pytest.raises(
            HealthAssetsError, match="a row of now_components has no failed_at_end, which the table declares"
        ),
        Warehouse(url).write() as session,
    ):
        session.query("INSERT INTO raw_roots VALUES ('kept')")
        session.query(f"INSERT INTO now_components ({names}) VALUES ({marks})", [*LACKING.values()])
    with Warehouse(url).read() as session:
        assert session.query("SELECT * FROM raw_roots") == []
