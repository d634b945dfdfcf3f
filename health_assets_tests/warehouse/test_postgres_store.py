"""The warehouse on PostgreSQL: its URL, its tables, who may do what, and what it says when something is wrong."""

import re
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import alembic.autogenerate
import alembic.command
import alembic.migration
import ibis
import psutil
import psycopg
import pytest
import sqlalchemy as sa

from health_assets.core.errors import HealthAssetsError, NoWarehouseError, WarehouseBusyError
from health_assets.core.hours import HourRange
from health_assets.schema.catalog import ALL_TABLES, SCHEMA_VERSION, describe, schema_of
from health_assets.warehouse.engines.postgres.sql import numbered, postgres_sql
from health_assets.warehouse.engines.postgres.tables import metadata
from health_assets.warehouse.file_slices import FileSlice
from health_assets.warehouse.ledger import Ledger
from health_assets.warehouse.location import database_of, is_postgres
from health_assets.warehouse.migrations import migrate
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.store import Warehouse
from health_assets_tests.support.constraints import drop_constraints
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.postgres_server import (
    PASSWORD,
    QUOTED_PASSWORD,
    administer,
    empty_database,
    fresh_warehouse,
    server_url,
)
from health_assets_tests.support.projects import REPOSITORY, Project, forked_command
from health_assets_tests.support.serving_made import fill_agents, score, served, state

HOUR = HourRange.of(START)


def drop_constraints_in(url: str, table: str) -> None:
    """Let rows of a table be of a part of its columns."""
    with psycopg.connect(database_of(url).uri) as connection:
        for statement in drop_constraints(table):
            connection.execute(statement)


@pytest.fixture(scope="module")
def url() -> str:
    return fresh_warehouse()


@pytest.fixture
def warehouse(url: str) -> Warehouse:
    return Warehouse(url)


# -- the URL and SQL -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg", "postgresql+psycopg2"])
def test_a_database_is_named_as_sqlalchemy_and_libpq_name_it(scheme: str) -> None:
    assert is_postgres(f"{scheme}://host/db")
    assert database_of(f"{scheme}://me:secret@host:5433/db?sslmode=require").uri == (
        "postgresql://me:secret@host:5433/db?sslmode=require"
    )


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("postgresql://me:secret@host:5433/db", "db on host:5433"),
        ("postgresql://host/db", "db on host"),
        ("postgresql:///db?host=/run/postgresql&password=secret", "db on /run/postgresql"),
        ("postgresql://me@host", "me on host"),
    ],
)
def test_a_database_is_shown_without_user_and_password(url: str, name: str) -> None:
    assert database_of(url).name == name


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:se@cret@host/db",
        "postgresql://me:s#cret@host/db",
        "postgresql://me:se/cret@host/db",
        "postgresql://me:se?cret@host/db",
        "postgresql://h:x/db",
        "postgresql:/me:secret@host/db",
    ],
)
def test_a_url_that_cannot_be_read_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(HealthAssetsError, match="special characters") as caught:
        Warehouse(url)
    assert "cret" not in str(caught.value)


@pytest.mark.parametrize("secret", ["s%2Fcret", "s%2fcret", "%73ecret", "secret"])
@pytest.mark.parametrize("url", ["postgresql://me:{}@host/db", "postgresql://me@host/db?password={}"])
def test_no_message_shows_a_password_as_the_url_has_it_or_as_it_is_meant(url: str, secret: str) -> None:
    database = database_of(url.format(secret))
    for spelling in (secret, unquote(secret)):
        assert database.without_password(f"cannot use\n{spelling}.") == "cannot use …."
    assert secret not in database.name


def test_sqlalchemy_would_take_or_show_passwords_that_are_refused_or_hidden_here() -> None:
    assert sa.make_url("postgresql://me:se/cret@host/db").host == "host"
    assert "s%2fcret" not in str(sa.make_url("postgresql://me:s%2fcret@host/db").password)
    assert "secret" in str(sa.make_url("postgresql://me@host/db?password=secret"))


def test_sqlalchemy_is_given_the_same_database_by_its_own_driver() -> None:
    url = database_of("postgres://me:s%2Fcret@host:5433/db?sslmode=require").sqlalchemy_url
    assert (url.drivername, url.username, url.password, url.host) == ("postgresql+psycopg", "me", "s/cret", "host")
    assert (url.port, url.database, dict(url.query)) == (5433, "db", {"sslmode": "require"})
    assert "cret" not in repr(url)


@pytest.mark.parametrize(
    ("sql", "parameters", "text", "values"),
    [
        ("a = ? AND b = ?", [1, "x"], "a = $1 AND b = $2", [1, "x"]),
        ("a = $a OR $b > $a", {"a": 1, "b": 2}, "a = $1 OR $2 > $1", [1, 2]),
        ("a = '?' AND \"?\" = ? -- ?", ["it's"], "a = '?' AND \"?\" = $1 -- ?", ["it's"]),
        ("a = 'it''s $a' || $a", {"a": None}, "a = 'it''s $a' || $1", [None]),
        ("a IN (SELECT unnest(?))", [["x", "y"]], "a IN (SELECT unnest($1))", [["x", "y"]]),
        ("SELECT '?'", [], "SELECT '?'", []),
    ],
)
def test_parameters_are_numbered_and_text_is_left_alone(sql: str, parameters: Any, text: str, values: list) -> None:
    found, bound = numbered(sql, parameters)
    assert found == text
    assert ([] if bound is None else [column[0].as_py() for column in bound.columns]) == values


def test_values_of_every_kind_go_in_and_come_out_as_they_were(warehouse: Warehouse) -> None:
    now = datetime(2026, 6, 7, 13, 0, 0, 500_000, UTC)
    values = [True, 2**62, 0.1, "ü'\"?$1", now, ["a", "b"], [now], [1, 2]]
    with warehouse.read() as session:
        for value in values:
            assert session.query("SELECT ?", [value]) == [(value,)]
        assert session.query("SELECT sum(n), sum(n) / 2.0, NULL FROM (SELECT unnest(?) AS n) AS one", [[1, 2]]) == [
            (3, 1.5, None)
        ]
        assert session.query("SELECT count(*) FROM executions WHERE agent_id IN (SELECT unnest(?))", [[]]) == [(0,)]


@pytest.mark.parametrize("number", [-2.6, -0.4, 0.4, 0.5, 1.5, 2.5, 1e15 + 0.5, 123456789.5])
def test_numbers_are_rounded_the_same_on_both_engines(warehouse: Warehouse, tmp_path: Path, number: float) -> None:
    rounded = ibis.memtable({"n": [number]}).mutate(r=lambda rows: rows.n.round())
    with warehouse.read() as session, Warehouse(str(tmp_path / "w.duckdb")).write() as other:
        assert session.arrow(rounded).to_pylist() == other.arrow(rounded).to_pylist()


def test_a_query_that_makes_a_column_runs_once_a_row_however_often_the_column_is_named(url: str) -> None:
    events = ibis.table(schema_of("score_evidence"), name="score_evidence")
    lists = events.group_by("agent_id").aggregate(runtimes_s=events.runtime_s.collect())
    summed = lists.select("agent_id", runtime_s=lists.runtimes_s.sums())
    shown = summed.mutate(twice=summed.runtime_s + summed.runtime_s, thrice=summed.runtime_s * summed.runtime_s * 3)
    with psycopg.connect(url) as connection:
        plan = connection.execute(f"EXPLAIN {postgres_sql(shown)}").fetchall()
    assert str(plan).count("unnest") == 1, plan


@pytest.mark.timeout(60)
def test_rows_chosen_by_another_table_are_the_same_on_both_engines_wherever_they_are_used(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    """ibis gives both selects one join; sqlglot's pass for such joins then never ends, and its memory grows."""
    rows = ibis.memtable({"key": [1, 2, 3, 4], "kind": ["a", "b", "a", "b"]})
    wanted, refused = ibis.memtable({"key": [1, 2, 3]}), ibis.memtable({"key": [2]})
    chosen = rows.semi_join(wanted, "key").anti_join(refused, "key")
    again = chosen.select("key", said=chosen.kind.upper())
    used = ibis.union(chosen.select("key", said=chosen.kind), again.semi_join(wanted, "key")).order_by("key", "said")
    with warehouse.read() as session, Warehouse(str(tmp_path / "w.duckdb")).write() as other:
        found = session.arrow(used).to_pylist()
        assert found == other.arrow(used).to_pylist()
    assert [(row["key"], row["said"]) for row in found] == [(1, "A"), (1, "a"), (3, "A"), (3, "a")]


# -- sessions ------------------------------------------------------------------------------------------------------------


def test_a_session_that_fails_leaves_no_trace_and_one_that_reads_cannot_change_anything(warehouse: Warehouse) -> None:
    with pytest.raises(ZeroDivisionError), warehouse.write() as session:
        session.query("INSERT INTO raw_roots VALUES ('one')")
        raise ZeroDivisionError
    with warehouse.read() as session:
        session.query("INSERT INTO raw_roots VALUES ('two')")
    with warehouse.read() as session:
        assert session.query("SELECT * FROM raw_roots") == []


def test_what_a_session_keeps_for_itself_ends_with_it(warehouse: Warehouse) -> None:
    for opened in (warehouse.write, warehouse.read):
        with opened() as session:
            kept, count = session.persist(ibis.memtable({"a": [1, 2, 3]}))
            assert (count, session.count(kept)) == (3, 3)
    with warehouse.read() as session:
        assert session.query("SELECT relname FROM pg_class WHERE relpersistence = 't'") == []
        assert session.query("SELECT current_setting('TimeZone')") == [("UTC",)]


def test_a_reader_sees_one_moment_and_never_waits(warehouse: Warehouse) -> None:
    count = "SELECT count(*) FROM raw_files"
    with warehouse.read() as reader:
        before = reader.query(count)
        with warehouse.write() as writer:
            writer.query(
                "INSERT INTO raw_files (source_file, size_bytes, modified_ns, lines, rejected) VALUES ('a', 1, 1, 1, 0)"
            )
            assert reader.query(count) == before
        assert reader.query(count) == before
    with warehouse.read() as reader:
        assert reader.query(count) == [(before[0][0] + 1,)]


def test_a_writer_waits_for_another_and_says_who_holds_the_warehouse(warehouse: Warehouse, url: str) -> None:
    with (
        warehouse.write(),
        pytest.raises(WarehouseBusyError, match=r"held by health-assets@.* within 0.3 s"),
        Warehouse(url, lock_timeout_s=0.3).write(),
    ):
        pass
    done = []

    def write() -> None:
        with Warehouse(url).write():
            done.append("second")

    with warehouse.write():
        other = threading.Thread(target=write)
        other.start()
        other.join(timeout=0.3)
        done.append("first")
    other.join()
    assert done == ["first", "second"]


def test_warehouses_in_two_schemas_do_not_hold_each_other_up(url: str) -> None:
    administer('CREATE SCHEMA "other one"', database=url.rpartition("/")[2])
    second = f"{url}?options=-csearch_path%3D%22other%5C%20one%22"
    migrate(second, 1)
    with Warehouse(url).write() as one, Warehouse(second).write() as other:
        one.query("INSERT INTO raw_roots VALUES ('one')")
        other.query("INSERT INTO raw_roots VALUES ('other')")
    with Warehouse(second).read() as session:
        assert session.query("SELECT root FROM raw_roots") == [("other",)]


def test_the_time_of_writing_is_the_servers(warehouse: Warehouse) -> None:
    with warehouse.write() as session:
        first = session.now()
        assert abs(first - datetime.now(UTC)) < timedelta(seconds=60)
        assert session.now() > first, "the time goes on within a transaction"


# -- tables and migrations -------------------------------------------------------------------------------------------------


def test_the_tables_that_migrations_make_are_those_that_are_declared(url: str) -> None:
    engine = sa.create_engine(database_of(url).sqlalchemy_url)
    with engine.connect() as connection:
        context = alembic.migration.MigrationContext.configure(connection, opts={"compare_type": True})
        changes = alembic.autogenerate.compare_metadata(context, metadata())
        flat = [part for change in changes for part in (change if isinstance(change, list) else [change])]
        # both are brought after the revisions (`declared_columns`)
        assert {kind for kind, *_ in flat} <= {"modify_nullable", "modify_comment", "remove_table_comment"}
    engine.dispose()
    with Warehouse(url).read() as session:
        for table in ALL_TABLES:
            assert session.column_types(table) == {name: kind for name, kind, *_ in describe(table)}
        of_text = "SELECT attrelid::regclass::text, attname::text FROM pg_attribute JOIN pg_class ON oid = attrelid"
        elsewhere = "relnamespace = 'public'::regnamespace AND attnum > 0 AND attcollation NOT IN (0, 'pg_catalog.\"C\"'::regcollation)"
        assert session.query(f"{of_text} WHERE {elsewhere} AND relname <> 'alembic_version' AND relkind = 'r'") == []


def test_an_hour_is_found_by_its_index(url: str) -> None:
    drop_constraints_in(url, "executions")
    with Warehouse(url).write() as session:
        session.query(
            "INSERT INTO executions (hour, agent_id) "
            "SELECT TIMESTAMPTZ '2026-06-01T00:00Z' + n / 100 * INTERVAL '1 hour', 'a' FROM generate_series(1, 20000) AS n"
        )
        session.query("ANALYZE executions")
        plan = session.query(
            "EXPLAIN SELECT count(*) FROM executions WHERE hour >= ? AND hour < ?", [START, START + timedelta(hours=1)]
        )
    assert "executions_by_hour" in str(plan)


def test_rows_of_an_hour_are_deleted_and_corrected_without_a_look_at_the_other_hours(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans = []
    drop_constraints_in(url, "model_calls")
    with Warehouse(url).write() as session:
        session.query(
            "INSERT INTO model_calls (hour, source_file, model) "
            "SELECT TIMESTAMPTZ '2026-06-01T00:00Z' + n / 100 * INTERVAL '1 hour', 'a.jsonl', 'm' "
            "FROM generate_series(1, 20000) AS n"
        )
        session.query("ANALYZE model_calls")
        run = session.query

        def explained(sql: str, parameters: Any = ()) -> list[tuple]:
            if sql.startswith(("DELETE FROM model_calls", "UPDATE model_calls")):
                plans.append(str(run(f"EXPLAIN {sql}", parameters)))
            return run(sql, parameters)

        monkeypatch.setattr(session, "query", explained)
        correct = ibis.memtable({"hour": [START], "model": ["m"], "error": ["late"]})
        PartitionStates(session).correct_rows("model_calls", correct, ["hour", "model"])
        assert run("SELECT count(*) FROM model_calls WHERE error = 'late'") == [(100,)]
        Ledger(session).delete_rows([FileSlice("a.jsonl", "model_call", START)])
        assert run("SELECT count(*) FROM model_calls") == [(19_900,)]
    assert len(plans) == 2
    assert all("model_calls_by_hour" in plan and "Seq Scan on model_calls" not in plan for plan in plans)


def test_migrating_again_changes_nothing_and_a_newer_version_is_refused() -> None:
    url = fresh_warehouse()
    migrate(url, 1)
    with Warehouse(url).write() as session:
        assert session.query("SELECT version FROM warehouse_version") == [(SCHEMA_VERSION,)]
    assert forked_command("migrate", environment={"HEALTH_WAREHOUSE": url}).returncode == 0
    with Warehouse(url).write() as session:
        assert session.query("SELECT version FROM warehouse_version") == [(SCHEMA_VERSION,)]
        session.query("UPDATE warehouse_version SET version = ?", [SCHEMA_VERSION + 1])
    for opened in (Warehouse(url).write, Warehouse(url).read):
        with pytest.raises(HealthAssetsError, match="upgrade health-assets"), opened():
            pass
    with pytest.raises(HealthAssetsError, match="upgrade health-assets"):
        migrate(url, 1)


def test_a_migration_waits_for_a_writer(url: str) -> None:
    with Warehouse(url).write(), pytest.raises(WarehouseBusyError, match=r"did not come free within 0\.2 s"):
        migrate(url, 0.2)


def test_a_database_without_tables_is_no_warehouse_yet() -> None:
    url = empty_database()
    for opened in (Warehouse(url).write, Warehouse(url).read):
        with pytest.raises(NoWarehouseError, match="make its tables with health-assets migrate"), opened():
            pass
    assert not Warehouse(url).exists


# -- roles -----------------------------------------------------------------------------------------------------------------


def documented_grants() -> list[str]:
    page = (REPOSITORY / "docs" / "postgresql.md").read_text(encoding="utf-8")
    blocks = "".join(re.findall(r"```sql\n--[^\n]*\n(.*?)```", page, re.S))
    return [
        statement.strip()
        for statement in blocks.replace("health_owner", "owner").split(";")
        if statement.strip() and not re.search(r"CREATE (ROLE owner|DATABASE)", statement)
    ]


def test_the_documented_privileges_are_enough_to_write_and_to_read_and_not_for_more(tmp_path: Path) -> None:
    url = empty_database()
    database = url.rpartition("/")[2]
    administer(*documented_grants(), database=database)
    administer(*(f"ALTER ROLE health_{role} PASSWORD '{PASSWORD}'" for role in ("writer", "reader")))
    migrate(url, 1)
    host = url.rpartition("@")[2]
    writer, reader = (f"postgresql://health_{role}:{QUOTED_PASSWORD}@{host}" for role in ("writer", "reader"))
    project = Project(tmp_path / "project", {"agents": {"listed": {}}}, engine="postgres", url=writer)
    record = execution("e", "a", START, session_id="s", task_id="t", events=[], signals={"confidence": 1})
    project.write_log("a.jsonl", [line(record), "bad"], modified=START)
    project.materialize(HOUR)
    assert len(project.rows("agent_health")) == 2
    with served(reader) as server:
        assert {agent["agent_id"] for agent in server.ask("/agents").json["agents"]} == {"a", "listed"}
    with Warehouse(reader).read() as session:
        assert session.persist(session.table("executions"))[1] == 1
    refused = r"lacks a privilege that docs/postgresql\.md grants"
    with pytest.raises(HealthAssetsError, match=refused), Warehouse(reader).write() as session:
        session.query("DELETE FROM executions")
    for role, statement in (
        (writer, "DROP TABLE executions"), (writer, "TRUNCATE executions"), (writer, "ALTER TABLE executions ADD x int"),
        (writer, "CREATE TABLE mine (n int)"), (reader, "UPDATE agent_health SET n = 1"), (reader, "INSERT INTO raw_roots VALUES ('x')"),
    ):  # fmt: skip
        with pytest.raises(HealthAssetsError, match=r"privilege|cannot"), Warehouse(role).write() as session:
            session.query(statement)
    with pytest.raises(HealthAssetsError, match="cannot make or change the tables"):
        migrate(writer.replace(database, _empty_for_writer()), 1)


def _empty_for_writer() -> str:
    return empty_database().rpartition("/")[2]


# -- what can go wrong -------------------------------------------------------------------------------------------------------


def wrong_urls() -> dict[str, tuple[str, str]]:
    url = server_url()
    return {
        "password": (url.replace(QUOTED_PASSWORD, "wr0ng%20s3cret"), "refuses user or password"),
        "no password": (url.replace(f":{QUOTED_PASSWORD}", ""), "wants a password"),
        "user": (url.replace("owner:", "nobody:"), "refuses user or password"),
        "database": (
            url.rpartition("/")[0] + "/nowhere",
            "cannot open the warehouse nowhere on 127.0.0.1.*does not exist",
        ),
        "port": (re.sub(r":\d+/", ":1/", url), "cannot reach the server of postgres on 127.0.0.1:1"),
        "host": (
            re.sub(r"@[^/]*/", "@no.such.host.invalid/", url),
            "cannot reach the server of postgres on no.such.host",
        ),
        "parameter": (f"{url}?sslmood=x", "cannot connect to the warehouse"),
    }


@pytest.mark.parametrize("what", ["password", "no password", "user", "database", "port", "host", "parameter"])
def test_a_warehouse_that_cannot_be_opened_is_one_sentence_without_the_password(what: str) -> None:
    url, sentence = wrong_urls()[what]
    opened = Warehouse(url, lock_timeout_s=0.2)
    for attempt in (opened.read, opened.write, lambda: _migrating(url)):
        with pytest.raises(HealthAssetsError) as caught, attempt():
            pass
        text = "".join(map(str, (caught.value, caught.value.__cause__)))
        assert not any(secret in text for secret in (PASSWORD, QUOTED_PASSWORD, "s3cret")), "the password is shown"
        assert "\n" not in str(caught.value)
        if attempt in (opened.read, opened.write):
            assert re.search(sentence, str(caught.value)), str(caught.value)


class _migrating:  # a context, as the other ways of opening are
    def __init__(self, url: str) -> None:
        self._url = url

    def __enter__(self) -> None:
        migrate(self._url, 1)

    def __exit__(self, *_: object) -> None:
        pass


def test_the_command_says_what_is_wrong_in_one_line_without_the_password(tmp_path: Path) -> None:
    (tmp_path / "registry.yaml").write_text("[{name: a, platform: p, url: 'http://127.0.0.1:1'}]", encoding="utf-8")
    url, sentence = wrong_urls()["database"]
    failed = forked_command(
        "survey", environment={"HEALTH_WAREHOUSE": url, "HEALTH_REGISTRY": "registry.yaml"}, folder=tmp_path
    )
    assert failed.returncode == 1
    assert re.search(sentence, failed.stderr), failed.stderr
    assert PASSWORD not in failed.stderr + failed.stdout
    assert QUOTED_PASSWORD not in failed.stderr + failed.stdout


def test_a_connection_that_the_server_ends_is_one_sentence_and_leaves_nothing(warehouse: Warehouse) -> None:
    with pytest.raises(HealthAssetsError, match="nothing of this step was kept"), warehouse.write() as session:
        session.query("INSERT INTO raw_roots VALUES ('gone')")
        [(pid,)] = session.query("SELECT pg_backend_pid()")
        administer(f"SELECT pg_terminate_backend({pid})")
        session.query("SELECT 1")
    with warehouse.write() as session:
        assert session.query("SELECT count(*) FROM raw_roots WHERE root = 'gone'") == [(0,)]


@pytest.mark.parametrize(
    ("state", "sentence"), [("53100", "the disk of the server of .* is full"), ("53200", "out of memory")]
)
def test_a_server_without_room_is_one_sentence(warehouse: Warehouse, state: str, sentence: str) -> None:
    with (
        pytest.raises(HealthAssetsError, match=f"{sentence}.*nothing of this step was kept"),
        warehouse.write() as session,
    ):
        session.query(f"DO $$ BEGIN RAISE 'no room' USING ERRCODE = '{state}'; END $$")


def test_an_error_of_ours_stays_loud(warehouse: Warehouse) -> None:
    with pytest.raises(Exception, match="no_such_table") as caught, warehouse.read() as session:
        session.query("SELECT * FROM no_such_table")
    assert not isinstance(caught.value, HealthAssetsError)


def test_a_reader_process_is_not_given_the_password_on_its_command_line(url: str) -> None:
    fill_agents(url, (state("a"), score("a")))
    with psycopg.connect(url) as connection:
        connection.execute("LOCK TABLE partition_states IN ACCESS EXCLUSIVE MODE")  # so that the reader has to wait
        with served(url, is_ready=False) as server:
            lines = _command_lines_of_readers()
            connection.rollback()
            server.wait_for(lambda status: status["is_ready"])
    assert lines
    assert not any(QUOTED_PASSWORD in text for text in lines)


def _command_lines_of_readers() -> list[str]:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        found = []
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.NoSuchProcess):  # it has ended meanwhile
                found.append(process.cmdline())
        if readers := [" ".join(words) for words in found if "health_assets.apps.serving.reader_process" in words]:
            return readers
        time.sleep(0.05)
    return []
