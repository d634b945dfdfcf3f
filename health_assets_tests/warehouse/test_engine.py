"""One DuckDB for many sessions: between two of them the file is free, and nothing of one is left in the next."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import ibis
import pytest

from health_assets.core.errors import HealthAssetsError, WarehouseBusyError
from health_assets.logs.reader import parser_connection
from health_assets.warehouse.engines.duckdb.shared import SharedDuckDB
from health_assets.warehouse.store import Warehouse

COUNT_IN_ANOTHER_PROCESS = "import duckdb, sys; print(duckdb.connect(sys.argv[1]).sql('FROM raw_roots').fetchall())"


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    with SharedDuckDB() as shared_duckdb:
        yield Warehouse(str(tmp_path / "it's a folder" / "w.duckdb"), lock_timeout_s=0.2, shared_duckdb=shared_duckdb)


def roots(warehouse: Warehouse) -> list[tuple]:
    with warehouse.read() as session:
        return session.query("FROM raw_roots")


def test_a_session_of_one_thread_leaves_all_threads_to_the_next(warehouse: Warehouse) -> None:
    threads = "SELECT current_setting('threads')"
    with warehouse.write() as session:
        whole = session.query(threads)
        session.use_one_thread()
        assert session.query(threads) == [(1,)]
    with warehouse.read() as session:
        assert session.query(threads) == whole


def test_another_process_may_write_between_two_sessions(warehouse: Warehouse) -> None:
    with warehouse.write() as session:
        session.query("INSERT INTO raw_roots VALUES ('one')")
    seen = subprocess.run(
        [sys.executable, "-c", COUNT_IN_ANOTHER_PROCESS, str(warehouse.path)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert seen.stdout.strip() == "[('one',)]"
    assert [path.name for path in warehouse.path.parent.iterdir()] == ["w.duckdb"], "no log is left to be replayed"
    assert roots(warehouse) == [("one",)]


@pytest.mark.parametrize("has_engine", [True, False])
@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.parquet", "a.db"])
def test_a_file_of_another_kind_is_no_warehouse_and_stays_as_it_is(tmp_path: Path, name: str, has_engine: bool) -> None:
    """DuckDB would look into some of them as data, and keep what is written in memory."""
    path = tmp_path / name
    for content in ('{"type": "execution"}\n', ""):
        path.write_text(content)
        path.chmod(0o644)
        with SharedDuckDB() as shared_duckdb:
            warehouse = Warehouse(str(path), shared_duckdb=shared_duckdb if has_engine else None)
            for session in (warehouse.read, warehouse.write):
                with (
                    pytest.raises(
                        HealthAssetsError, match=f"cannot open the warehouse .*{name}: it is not a DuckDB file"
                    ),
                    session(),
                ):
                    pass
        assert (path.read_text(), path.stat().st_mode & 0o777) == (content, 0o644)


def test_a_session_that_fails_leaves_nothing_and_the_next_one_works(warehouse: Warehouse) -> None:
    with warehouse.write() as session:
        session.query("INSERT INTO raw_roots VALUES ('one')")
    with pytest.raises(ZeroDivisionError), warehouse.write() as session:
        session.query("INSERT INTO raw_roots VALUES ('two')")
        raise ZeroDivisionError
    assert roots(warehouse) == [("one",)]


def test_what_a_session_keeps_for_itself_ends_with_it(warehouse: Warehouse) -> None:
    with warehouse.write() as session:
        kept, count = session.persist(ibis.memtable({"a": [1, 2, 3]}))
        assert (count, session.count(kept)) == (3, 3)
    with warehouse.read() as session:
        assert session.query("SELECT table_name FROM duckdb_tables() WHERE temporary") == []
        assert session.query("SELECT current_setting('TimeZone')") == [("UTC",)]


def test_a_session_that_reads_cannot_write(warehouse: Warehouse) -> None:
    with warehouse.write():
        pass
    with pytest.raises(duckdb.Error, match="read-only"), warehouse.read() as session:
        session.query("INSERT INTO raw_roots VALUES ('one')")


def test_a_file_that_another_process_holds_is_waited_for_and_its_holder_named(warehouse: Warehouse) -> None:
    with warehouse.write():
        pass
    holder = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print(1, flush=True); sys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", holder, str(warehouse.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout
    process.stdout.readline()
    with pytest.raises(WarehouseBusyError, match=str(process.pid)), warehouse.write():
        pass
    process.communicate()
    assert roots(warehouse) == []


def test_rows_that_do_not_fit_into_memory_go_beside_the_file(warehouse: Warehouse) -> None:
    with warehouse.write() as session:
        assert session.query("SELECT current_setting('temp_directory')") == [(f"{warehouse.path}.tmp",)]


def test_what_the_parser_cannot_hold_goes_to_a_folder_that_is_gone_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with parser_connection() as connection:
        connection.execute("SET memory_limit = '40MB'")
        connection.execute(
            "CREATE TEMP TABLE large AS SELECT range AS number, hash(range) AS noise FROM range(5_000_000)"
        )
        [(folder,)] = connection.execute("SELECT current_setting('temp_directory')").fetchall()
        assert list(Path(folder).iterdir())
    assert not Path(folder).exists()
    assert list(tmp_path.iterdir()) == []


def test_a_second_session_beside_an_open_one_is_an_error_that_says_so(warehouse: Warehouse) -> None:
    with warehouse.write():
        pass
    with pytest.raises(RuntimeError, match="one session at a time"), warehouse.read(), warehouse.read():
        pass
    assert roots(warehouse) == []


def test_what_was_committed_stays_and_is_no_error_though_the_disk_is_too_full_to_tidy_up(tmp_path: Path) -> None:
    """The log of the commit fits; to move it into the file, as letting go of it does, would take more."""
    program = """
import os, resource, signal, sys
from pathlib import Path
from health_assets.warehouse.engines.duckdb.shared import SharedDuckDB
from health_assets.warehouse.store import Warehouse
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with SharedDuckDB() as shared_duckdb:
    warehouse = Warehouse(sys.argv[1], shared_duckdb=shared_duckdb)
    with warehouse.write() as session:
        session.query("INSERT INTO raw_roots VALUES ('one')")
    limit = os.path.getsize(sys.argv[1]) + 3000
    with warehouse.write() as session:
        session.query("INSERT INTO raw_roots SELECT md5(i::VARCHAR) FROM range(12000) AS numbers(i)")
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    assert Path(sys.argv[1] + ".wal").exists(), "the disk was not too full"
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    with warehouse.read() as session:
        print(session.query("SELECT count(*) FROM raw_roots"))
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "w.duckdb")], capture_output=True, text=True, check=False
    )
    assert (done.stdout.strip(), done.returncode) == ("[(12001,)]", 0), done.stderr


def test_a_query_that_ctrl_c_stops_is_an_interrupt_and_rolls_back(warehouse: Warehouse) -> None:
    """The signal itself is not sent: DuckDB 2.0 now and then goes on with a long query."""
    with warehouse.write():
        pass
    with pytest.raises(KeyboardInterrupt), warehouse.write() as session:
        session.query("INSERT INTO raw_roots VALUES ('one')")
        raise RuntimeError("Query interrupted")  # what DuckDB makes of it
    assert roots(warehouse) == []


@pytest.mark.parametrize("statement", ["DETACH", "SELECT"])
def test_ctrl_c_within_a_statement_is_no_error_of_the_database(tmp_path: Path, statement: str) -> None:
    """Where it comes while the file is let go of, nothing else would end the run."""

    class Interrupted:
        def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
            self._connection = connection

        def execute(self, sql: str) -> object:
            if sql.startswith(statement):
                raise duckdb.InterruptException("INTERRUPT Error: Interrupted!")
            return self._connection.execute(sql)

        def __getattr__(self, name: str) -> object:
            return getattr(self._connection, name)

    with SharedDuckDB() as shared_duckdb:
        warehouse = Warehouse(str(tmp_path / "w.duckdb"), shared_duckdb=shared_duckdb)
        with warehouse.write():
            pass
        with pytest.raises(KeyboardInterrupt), warehouse.write() as session:
            shared_duckdb._started = Interrupted(shared_duckdb._started)  # type: ignore[assignment,arg-type]
            if statement == "SELECT":
                Interrupted(session._connection).execute("SELECT 1")  # type: ignore[attr-defined]
        with warehouse.read() as session:
            assert session.query("SELECT 1") == [(1,)]
