"""The SQL that tests remember is the SQL that ibis writes."""

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from random import Random

import ibis
import pyarrow as pa
import pytest
from ibis import ir
from ibis.backends.duckdb import Backend

from health_assets.core import duckdb_sql
from health_assets.core.hours import HOUR
from health_assets.warehouse.engines.postgres import sql as postgres_sql
from health_assets_tests.support import remembered_sql
from health_assets_tests.support.logs_made import START, cut_into_files, random_lines, random_targets
from health_assets_tests.support.projects import Project, hours_from
from health_assets_tests.support.remembered_sql import remembering

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
    remembered = remembering(counted)
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


ALL_CHANGES = remembering(compiled)
"""One memory for all of them."""


def in_order(sql: str) -> str:
    """SQL without what differs from one compilation to the next: the order of a set of columns, and made-up names."""
    sorted_sets = re.sub(r"EXCLUDE \(([^()]*)\)", lambda match: str(sorted(match[1].split(", "))), sql)
    return re.sub(r"ibis_pg_arr_sum_\w+", "made_up", sorted_sets)


@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
def test_every_statement_of_every_system_is_the_one_that_ibis_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    written = compiled if engine == "duckdb" else postgres_sql.postgres_sql.__wrapped__
    remembered, forms, wrong = remembering(written), set(), []

    def compared(rows: ir.Table) -> str:
        forms.add(tuple(remembered_sql.Form(rows.op()).parts))
        told, expected = remembered(rows), written(rows)
        if in_order(told) != in_order(expected):
            wrong.append((told, expected))
        return expected

    if engine == "duckdb":
        monkeypatch.setattr(duckdb_sql._compiler(), "compile", compared)
    else:
        monkeypatch.setattr(postgres_sql, "postgres_sql", compared)
    random = Random(8)
    project = Project(tmp_path / "project", random_targets(random), 4, 8, engine=engine)
    for name, lines in cut_into_files(random, random_lines(random, 300, 8)).items():
        project.write_log(name, lines)
    for hours in (hours_from(START, 2), hours_from(START + 2 * HOUR, 4)):
        project.materialize(hours)
    assert wrong == []
    assert len(forms) > 50
