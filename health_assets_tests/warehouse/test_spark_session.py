"""A session on Spark reads and writes the lake as one on DuckDB does its tables, and publishes with its ledger alone."""

import gc
import logging
import weakref
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from random import Random

import ibis
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ibis import ir

pytest.importorskip("pysail", reason="the extra `spark` is not installed")

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.connect.client.reattach import ExecutePlanResponseReattachableIterator

from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HOUR, HourRange
from health_assets.schema.catalog import SUPERSEDED
from health_assets.warehouse.engines.spark import connect
from health_assets.warehouse.engines.spark.connect import connected, end
from health_assets.warehouse.engines.spark.lake import GRACE, Lake
from health_assets.warehouse.engines.spark.lake_place import LakePlace
from health_assets.warehouse.session import Session
from health_assets.warehouse.store import Warehouse
from health_assets_tests.support.examples import tried_with
from health_assets_tests.support.lakes_made import copy_tables, session_on
from health_assets_tests.support.logs_made import START, cut_into_files, random_lines
from health_assets_tests.support.projects import (
    RECORD_TABLES,
    Project,
    assert_tables_equal_to_9_digits,
    hours_from,
    lasting_folder,
)
from health_assets_tests.support.spark_servers import sail

HOURS = hours_from(START, 8)
FIRST = HourRange.of(START)
KEYS = ["hour", "source_file", "line_number", "execution_id"]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with sail() as made:
        yield made


@pytest.fixture(scope="module")
def records() -> Project:
    """Random records in a warehouse that nobody changes."""
    project, random = Project(lasting_folder() / "records"), Random(5)
    for name, lines in cut_into_files(random, random_lines(random, 300, 8)).items():
        project.write_log(name, lines)
    project.ingest(HOURS)
    return project


TABLES = (*RECORD_TABLES, *SUPERSEDED.values())


class Both:
    """The same records in two sessions: a DuckDB file's, and one on Spark with that file as its ledger."""

    def __init__(self, duckdb: Session, spark: Session) -> None:
        self.duckdb, self.spark = duckdb, spark

    def do(self, change: Callable[[Session], object]) -> None:
        """Change both, and compare what is told of it and what is there then."""
        told = [change(session) for session in (self.spark, self.duckdb)]
        assert _in_order(told[0]) == _in_order(told[1])
        found, expected = (
            {name: session.arrow(session.table(name)).to_pylist() for name in TABLES}
            for session in (self.spark, self.duckdb)
        )
        assert_tables_equal_to_9_digits(found, expected)


def _in_order(told: object) -> object:
    return sorted(told, key=repr) if isinstance(told, list) else told


@pytest.fixture
def both(records: Project, url: str, tmp_path: Path) -> Iterator[Both]:
    project = records.copied(tmp_path / "copy")
    with project.warehouse.write() as duckdb, session_on(url, tmp_path, duckdb) as spark:
        copy_tables(TABLES, duckdb, spark)
        yield Both(duckdb, spark)


def doubled(session: Session) -> None:
    """Insert the first hours' executions again, a line further down."""
    rows = session.hours_of("executions", hours_from(START, 3))
    session.insert("executions", rows.mutate(line_number=rows.line_number + 1))


def without_models(session: Session) -> None:
    rows = session.hours_of("executions", FIRST)
    session.rewrite_hours("executions", FIRST, rows.mutate(model=ibis.null("string")))


def slower(session: Session) -> set[datetime]:
    rows = session.table("executions")
    slow = rows.filter(rows.runtime_s > 60).select(*KEYS, runtime_s=rows.runtime_s * 2, model=ibis.null("string"))
    return session.update_rows("executions", slow, KEYS)


def renamed_models(session: Session) -> None:
    session.query(
        "UPDATE executions SET model = 'm\\' WHERE hour < $end AND agent_id IN (SELECT unnest($agents))",
        {"end": START + 3 * HOUR, "agents": ["planner", "coder"]},
    )


def without_a_planner(session: Session) -> None:
    span = {"end": START + 3 * HOUR, "agent": "planner"}
    session.query("DELETE FROM executions WHERE hour < $end AND agent_id = $agent", span)


CHANGES: dict[str, Callable[[Session], object]] = {
    "hours are deleted": lambda session: session.delete_hours("executions", hours_from(START, 2)),
    "rows are deleted by a condition": without_a_planner,
    "rows of hours without any are deleted": lambda session: session.delete_hours("executions", hours_from(START - HOUR, 1)),
    "rows are inserted": doubled,
    "hours are rewritten": without_models,
    "rows are updated": slower,
    "no row is updated": lambda session: session.update_rows(
        "executions", session.table("executions").filter(ibis.literal(False)).select(*KEYS, "model"), KEYS
    ),
    "columns are set by a condition": renamed_models,
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_after_a_change_the_lake_holds_what_duckdb_does(both: Both, name: str) -> None:
    both.do(CHANGES[name])


def test_of_several_rows_with_one_key_the_greatest_stays(both: Both) -> None:
    order = ["ended_at", "source_file", "line_number"]
    drop = partial(_drop_duplicates, order=order)
    both.do(drop)  # none: ingestion leaves no duplicate
    doubled(both.duckdb)
    doubled(both.spark)
    both.do(drop)
    equal_but_for_a_model(both.duckdb)
    equal_but_for_a_model(both.spark)
    both.do(drop)


def equal_but_for_a_model(session: Session) -> None:
    """Insert the first hours' executions again, in the same places."""
    rows = session.hours_of("executions", hours_from(START, 3))
    session.insert("executions", rows.mutate(model=ibis.literal("m").concat(rows.model.fill_null(""))))


def _drop_duplicates(session: Session, order: list[str]) -> int:
    return session.delete_duplicates("executions", HOURS, KEYS, order, into="superseded_executions")


def test_a_row_that_would_be_there_twice_after_a_change_is_a_fault(both: Both) -> None:
    rows = both.spark.hours_of("executions", FIRST).limit(1).select(*KEYS)
    twice = ibis.union(rows.mutate(model=ibis.literal("a")), rows.mutate(model=ibis.literal("b")))
    with pytest.raises(RuntimeError, match=r"\d+ rows were made of \d+ rows of executions, of which 0 had to go"):
        both.spark.update_rows("executions", twice, KEYS)


def test_counts_and_dicts_are_those_of_duckdb(both: Both) -> None:
    def told(session: Session) -> list[object]:
        rows = session.hours_of("executions", hours_from(START, 3))
        by_agent = rows.group_by("agent_id").aggregate(runs=rows.count(), last=rows.ended_at.max())
        return [
            session.count(rows), session.count_hours("executions", HOURS), session.counts_by_hour("executions", HOURS),
            session.latest_hour("executions", HOURS), session.latest_hour("executions", hours_from(START - HOUR, 1)),
            sorted(session.dicts(by_agent), key=str), session.persist(by_agent)[1], session.has_tables(["executions", "raw_logs"]),
            session.column_types("executions"), session.counts_by_hour("raw_logs", HOURS),
            sum(len(batch) for batch in session.stream(rows.select("hour", "agent_id"), 10)),
            session.query("SELECT count(*) FROM signals WHERE source_file = ? AND hour >= ?", ["a.jsonl", START]),
        ]  # fmt: skip

    assert told(both.spark) == told(both.duckdb)


def figures(rows: ir.Table) -> dict[str, ir.Value]:
    """Sums and counts of a condition that is null for all rows, and of one that is not."""
    unknown, known = rows.nothing > 1, rows.runtime_s > 60
    return {
        "rows": rows.count(), "unknown": rows.count(where=unknown), "known": rows.count(where=known),
        "either": rows.count(where=unknown | known), "values": rows.session_id.count(where=unknown),
        "kinds": rows.model.nunique(where=unknown), "sum": rows.sla_s.sum(where=unknown), "any": unknown.any(),
        "all": unknown.all(), "longest": rows.runtime_s.max(where=unknown), "of_condition": unknown.sum(),
        "mean": rows.runtime_s.mean(where=unknown),
    }  # fmt: skip


def test_sums_and_counts_of_nothing_and_of_conditions_that_are_null_are_those_of_duckdb(both: Both) -> None:
    def told(session: Session) -> list[list[dict]]:
        rows = session.hours_of("executions", HOURS).mutate(nothing=ibis.null("float64"))
        nobody = rows.filter(rows.agent_id == "nobody")
        return [
            session.dicts(rows.aggregate(figures(rows))), session.dicts(nobody.aggregate(figures(nobody))),
            session.dicts(nobody.group_by("agent_id").aggregate(figures(nobody))),
            session.dicts(rows.group_by("agent_id").aggregate(figures(rows)).order_by("agent_id")),
        ]  # fmt: skip

    found, expected = told(both.spark), told(both.duckdb)
    assert found == expected
    assert found[0][0]["unknown"] == 0 and found[0][0]["known"] > 0


def test_a_fingerprint_shows_every_change_and_no_order(both: Both) -> None:
    session = both.spark
    before = session.digests("executions", HOURS)
    assert len(before) == len(HOURS)
    rows = session.arrow(session.hours_of("executions", HOURS))
    session.delete_hours("executions", HOURS)
    session.insert_arrow("executions", rows.take(list(range(len(rows)))[::-1]))
    assert session.digests("executions", HOURS) == before
    # a value that moves from one column to the next, past a null, is another row
    swapped = session.hours_of("executions", FIRST).mutate(session_id=ibis.literal("x"), task_id=ibis.null("string"))
    other = session.hours_of("executions", FIRST).mutate(session_id=ibis.null("string"), task_id=ibis.literal("x"))
    digests = []
    for changed in (swapped, other):
        session.rewrite_hours("executions", FIRST, changed)
        digests.append(session.digests("executions", HOURS))
    assert digests[0][START] != digests[1][START] and before[START] not in {one[START] for one in digests}
    assert {hour: digest for hour, digest in digests[0].items() if hour != START} == {
        hour: digest for hour, digest in before.items() if hour != START
    }


@given(text=st.text(max_size=20))
@tried_with(20, 200)
def test_any_text_is_a_parameter(both: Both, text: str) -> None:
    [found] = both.spark.query("SELECT ?, count(*) FROM executions WHERE agent_id = ?", [text, text])
    assert found[0] == text


# -- what is published ---------------------------------------------------------------------------------------------------


def test_what_was_written_counts_once_its_ledger_has_committed_and_not_before(url: str, tmp_path: Path) -> None:
    warehouse = Warehouse(url, lake=str(tmp_path / "lake"), ledger=str(tmp_path / "ledger.duckdb"))
    hour = pa.array([START], pa.timestamp("us", "UTC"))

    def insert(session: Session) -> None:
        kinds = session.column_types("system_health")
        session.insert_arrow(
            "system_health", pa.table({name: _nulls(kind) for name, kind in kinds.items()} | {"hour": hour})
        )

    with warehouse.write():
        pass
    with pytest.raises(KeyError), warehouse.write() as session:
        insert(session)
        assert session.count_hours("system_health", FIRST) == 1
        raise KeyError("a run that dies")
    with warehouse.write() as session:
        assert session.count_hours("system_health", FIRST) == 0
        insert(session)
    with warehouse.read() as session:
        assert session.count_hours("system_health", FIRST) == 1


def _nulls(kind: str) -> pa.Array:
    return pa.nulls(1, ibis.dtype(kind).to_pyarrow())


def test_replaced_files_stay_while_a_reader_may_need_them(both: Both, tmp_path: Path) -> None:
    lake = Lake(LakePlace(str(tmp_path / "lake")), both.duckdb)
    [folder] = lake.folders("executions", FIRST)
    without_models(both.spark)
    assert both.duckdb.query("SELECT withdrawn_at FROM lake_withdrawn") == [(None,)], "readers see it until the commit"
    lake.sweep()
    [(withdrawn_at,)] = both.duckdb.query("SELECT withdrawn_at FROM lake_withdrawn")
    assert withdrawn_at and both.duckdb.now() - withdrawn_at < HOUR
    assert Path(lake.place.path_of(folder)).is_dir()
    both.duckdb.query("UPDATE lake_withdrawn SET withdrawn_at = ?", [both.duckdb.now() - 2 * GRACE])
    lake.sweep()
    assert not Path(lake.place.path_of(folder)).exists() and lake.folders("executions", FIRST) != [folder]
    assert not both.duckdb.query("SELECT * FROM lake_withdrawn")


def test_a_session_that_ended_leaves_the_threads_of_others_alone_when_it_is_forgotten(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = connected(url)
    end(ended)
    forgotten = weakref.ref(ended)
    closed: list[str] = []
    gc.collect()  # what others forgot before is not meant
    monkeypatch.setattr(ExecutePlanResponseReattachableIterator, "shutdown", lambda: closed.append("all sessions'"))
    del ended
    gc.collect()
    assert forgotten() is None
    assert closed == []


def test_the_client_writes_no_page_about_an_error_that_it_raises(
    url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As under Dagster, which turns on the loggers of all libraries."""
    monkeypatch.setattr(logging.getLogger(connect._CLIENT_LOGGER), "disabled", False)
    spark = connected(url)
    with pytest.raises(PySparkException):
        spark.sql("SELECT nothing FROM nowhere").collect()
    end(spark)
    assert not caplog.records


def test_a_session_that_cannot_be_set_up_is_ended(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[SparkSession] = []

    def refused(spark: SparkSession, labels: Sequence[str]) -> None:
        del labels
        begun.append(spark)
        raise PySparkException("no such label")

    monkeypatch.setattr(connect, "_label", refused)
    with pytest.raises(HealthAssetsError, match=r"cannot connect to Spark at .*: no such label"):
        connected(url)
    assert [spark.is_stopped for spark in begun] == [True]
