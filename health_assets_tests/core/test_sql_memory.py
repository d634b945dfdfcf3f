"""The SQL that is remembered is the SQL that ibis writes."""

import re
import stat
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from random import Random

import ibis
import pyarrow as pa
import pytest
from ibis import ir
from ibis.backends.duckdb import Backend

from health_assets.core import duckdb_sql, sql_memory
from health_assets.core.expression_keys import ExpressionKey, NoExpressionKeyError
from health_assets.core.hours import HOUR
from health_assets.core.sql_memory import SqlMemory
from health_assets.warehouse.engines.postgres import sql as postgres_sql
from health_assets_tests.support.logs_made import START, cut_into_files, random_lines, random_targets
from health_assets_tests.support.projects import DUCKDB_BY_DAY, Project, hours_from

TABLE = ibis.table({"hour": "timestamp('UTC')", "x": "int64"}, name="of_hours")


class Counted:
    """A compiler that notes how often it was asked for a whole query."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, rows: ir.Table) -> str:
        self.count += TABLE.op() in rows.op().find(type(TABLE.op()))
        return compiled(rows)


def compiled(rows: ir.Table) -> str:
    return Backend.compile(ibis.duckdb.connect(), rows)


def of_hours(first: int, last: int) -> ir.Table:
    """Rows of the table from an hour to another, of which a small one in memory has the hour."""
    times = pa.array([START + n * HOUR for n in range(first, last)], pa.timestamp("us", "UTC"))
    rows = TABLE.filter(TABLE.hour >= START + first * HOUR, TABLE.hour < START + last * HOUR)
    return rows.semi_join(ibis.memtable(pa.table({"hour": times})), "hour").mutate(until=ibis.literal(START))


def test_other_hours_and_other_tables_in_memory_are_filled_in() -> None:
    counted = Counted()
    remembered = SqlMemory(counted, "test", []).sql
    for hours in [(1, 3), (2, 7), (5, 6)]:
        rows = of_hours(*hours)
        assert remembered(rows) == compiled(rows)
    assert counted.count == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows.mutate(y=rows.x + 1),
        lambda rows: rows.mutate(y=rows.x + 2),
        lambda rows: rows.mutate(y=rows.x - 1),
        lambda rows: rows.mutate(z=rows.x + 1),
        lambda rows: rows.mutate(y=ibis.literal(0.0)),
        lambda rows: rows.mutate(y=ibis.literal(-0.0)),
        lambda rows: rows.mutate(y=ibis.literal(True)),
        lambda rows: rows.mutate(y=ibis.literal(1)),
        lambda rows: rows.mutate(y=ibis.literal("1")),
        lambda rows: rows.mutate(y=rows.hour - ibis.interval(hours=1)),
        lambda rows: rows.mutate(y=rows.hour - ibis.interval(minutes=1)),
        lambda rows: rows.filter(rows.hour != START),  # equals a time that is there already
        lambda rows: rows.filter(rows.hour != START + timedelta(microseconds=1)),
        lambda rows: rows.semi_join(TABLE, "x"),
        lambda rows: rows.anti_join(TABLE, "x"),
        lambda rows: rows.order_by("x"),
        lambda rows: rows.order_by(ibis.desc("x")),
    ],
)
def test_an_expression_of_another_form_has_a_statement_of_its_own(change: Callable[[ir.Table], ir.Table]) -> None:
    remembered = ALL_CHANGES
    for hours in [(0, 2), (3, 9)]:
        rows = change(of_hours(*hours))
        assert remembered(rows) == compiled(rows)


ALL_CHANGES = SqlMemory(compiled, "test", []).sql
"""One memory for all of them."""


def in_order(sql: str) -> str:
    """SQL without what differs from one compilation to the next: the order of a set of columns, and made-up names."""
    sorted_sets = re.sub(r"EXCLUDE \(([^()]*)\)", lambda match: str(sorted(match[1].split(", "))), sql)
    return re.sub(r"ibis_pg_arr_sum_\w+", "made_up", sorted_sets)


def kept_by_another_process(cache: Path, rows: ir.Table, modules: Sequence[str] = ()) -> None:
    """Compile an expression and keep its SQL, as another process does before this one begins."""
    memory = SqlMemory(compiled, "test", modules)
    memory.sql(rows)
    memory.keep()
    assert [path.name for path in (cache / "health-assets").iterdir()] == ["sql-test.json"]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_the_next_process_compiles_no_form_that_was_kept(cache: Path) -> None:
    kept_by_another_process(cache, of_hours(1, 3))
    counted = Counted()
    rows = of_hours(4, 9)
    assert SqlMemory(counted, "test", ()).sql(rows) == compiled(rows)
    assert counted.count == 0


def test_what_was_kept_by_another_state_of_the_program_is_compiled_anew(cache: Path) -> None:
    module = cache / "compiler.py"
    module.write_text("before")
    kept_by_another_process(cache, of_hours(1, 3), [str(module)])
    module.write_text("after")
    counted = Counted()
    SqlMemory(counted, "test", [str(module)]).sql(of_hours(1, 3))
    assert counted.count == 1


def test_a_process_keeps_nothing_under_the_name_of_code_that_it_does_not_have(cache: Path) -> None:
    module = cache / "compiler.py"
    module.write_text("before")
    memory = SqlMemory(compiled, "test", [str(module)])
    module.write_text("after")
    memory.sql(of_hours(1, 3))
    memory.keep()
    counted = Counted()
    SqlMemory(counted, "test", [str(module)]).sql(of_hours(1, 3))
    assert counted.count == 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: path.write_bytes(path.read_bytes().replace(b"SELECT", b"DELETE")),
        lambda path: path.write_bytes(b""),
        lambda path: path.chmod(0o666),
        lambda path: path.rename(path.with_name("elsewhere")).with_name("sql-test.json").symlink_to("elsewhere"),
        lambda path: (path.unlink(), path.mkdir()),
    ],
)
def test_a_file_that_is_damaged_or_that_others_may_write_is_left_aside(
    cache: Path, damage: Callable[[Path], object]
) -> None:
    kept_by_another_process(cache, of_hours(1, 3))
    damage(cache / "health-assets" / "sql-test.json")
    counted = Counted()
    memory = SqlMemory(counted, "test", ())
    rows = of_hours(1, 3)
    assert memory.sql(rows) == compiled(rows)
    assert counted.count == 1
    memory.keep()  # which raises nothing, whatever is there


def test_a_kept_file_is_its_owners_alone(cache: Path) -> None:
    kept_by_another_process(cache, of_hours(1, 3))
    folder = cache / "health-assets"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (folder, folder / "sql-test.json")] == [0o700, 0o600]


def test_a_home_that_cannot_be_written_keeps_nothing_and_stops_nothing(cache: Path) -> None:
    (cache / "health-assets").write_text("no folder")
    memory = SqlMemory(compiled, "test", ())
    rows = of_hours(1, 3)
    assert memory.sql(rows) == compiled(rows)
    memory.keep()
    assert (cache / "health-assets").read_text() == "no folder"


@pytest.mark.usefixtures("cache")
def test_no_more_is_remembered_than_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_memory, "MOST_EXPRESSIONS", 2)
    counted = Counted()
    memory = SqlMemory(counted, "test", ())
    for number in (1, 2, 1, 3, 1, 2):
        memory.sql(TABLE.mutate(y=TABLE.x + number))
    assert counted.count == 4  # the second was forgotten for the third, not the first, which was asked for meanwhile


def test_a_function_of_python_has_no_form() -> None:
    @ibis.udf.scalar.python
    def doubled(x: int) -> int:
        return 2 * x

    with pytest.raises(NoExpressionKeyError):
        ExpressionKey(TABLE.mutate(y=doubled(TABLE.x)).op())


@pytest.mark.parametrize("engine", DUCKDB_BY_DAY)
def test_every_statement_of_every_system_is_the_one_that_ibis_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    written = compiled if engine == "duckdb" else postgres_sql.postgres_sql.__wrapped__
    remembered = SqlMemory(written, "test", []).sql
    met_once: dict[str, tuple[ir.Table, str]] = {}
    met_again: set[str] = set()
    wrong = []

    def compare(rows: ir.Table, told: str) -> None:
        expected = written(rows)
        if in_order(told) != in_order(expected):
            wrong.append((told, expected))

    def compared(rows: ir.Table) -> str:
        form, told = ExpressionKey(rows.op()).key, remembered(rows)
        if form in met_once or form in met_again:  # so that it is remembered
            met_once.pop(form, None)
            met_again.add(form)
            compare(rows, told)
        else:
            met_once[form] = rows, told
        return told

    if engine == "duckdb":
        monkeypatch.setattr(duckdb_sql, "compiled", compared)
    else:
        monkeypatch.setattr(postgres_sql, "postgres_sql", compared)
    random = Random(8)
    project = Project(tmp_path / "project", random_targets(random), 4, 8, engine=engine)
    for name, lines in cut_into_files(random, random_lines(random, 300, 8)).items():
        project.write_log(name, lines)
    for hours in (hours_from(START, 2), hours_from(START + 2 * HOUR, 4)):
        project.materialize(hours)
    for rows, told in met_once.values():
        compare(rows, told)
    assert wrong == []
    assert len(met_again) > 50
