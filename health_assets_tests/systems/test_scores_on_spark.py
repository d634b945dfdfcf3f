"""Every asset on Spark, one hour and many: each column of each row is that of DuckDB."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from random import Random

import pytest
from ibis import ir

pytest.importorskip("pysail", reason="the extra `spark` is not installed")

from health_assets.cli.demo import Demo
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.targets import load_targets
from health_assets.pipeline.derived import Derived, Inputs
from health_assets.schema.catalog import columns_of
from health_assets.schema.columns import FORMULA_VERSION
from health_assets.systems.declared_assets import DERIVED
from health_assets.warehouse.session import Session
from health_assets_tests.support.lakes_made import copy_tables, session_on
from health_assets_tests.support.logs_made import (
    EVALUATORS,
    START,
    Record,
    cut_into_files,
    execution,
    line,
    random_lines,
    random_targets,
)
from health_assets_tests.support.projects import (
    OF_A_WEEK,
    RESULT_TABLES,
    Project,
    assert_tables_equal_to_9_digits,
    hours_from,
    lasting_folder,
)
from health_assets_tests.support.spark_servers import apache_spark, needs_apache_spark, sail

HOURS = hours_from(START, 14)


def random_world(folder: Path) -> Project:
    random = Random(31)
    evaluators = [*EVALUATORS, {"match": "pii", "violation": "medium"}]
    project = Project(folder / "project", random_targets(random) | {"evaluators": evaluators}, 4, 9)
    lines = random_lines(random, 500, 20, evaluation_share=0.1, cancelled_share=0.1)
    for name, part in cut_into_files(random, lines).items():
        project.write_log(name, part, modified=START + HOUR)
    asked = [
        execution(f"e{n}", "asker", START + n * HOUR / 4, input=f"task {n % 3}", actions=["a", "b"][: n % 4], confidence=0.5,
                  status="failure" if n % 5 == 0 else "success")
        for n in range(40)
    ]  # fmt: skip
    project.write_log("asked.jsonl", map(line, [*asked, *calls_and_results(asked)]))
    project.materialize(HOURS)
    rows = [row for row in project.rows("agent_reliability") if row["agent_id"] == "asker"]
    assert any(row["r_fault"] and row["condition_source"] == "observed" for row in rows)
    assert any(0 < row["violated"] < row["judged"] for row in rows)
    return project


def calls_and_results(runs: list[Record]) -> list[Record]:
    """Of each run a tool that fails by a fault, by another error or not, and of some a result that tells of a violation."""
    errors = ["HTTP 503", "Too Many Requests", "row 500 is bad", None]
    calls = [
        {"type": "tool_call", "call_id": f"of {run['execution_id']}", "tool": "t", "ended_at": run["ended_at"],
         "execution_id": run["execution_id"], "agent_id": "asker", "status": "failure" if errors[n % 4] else "success",
         "error": errors[n % 4]}
        for n, run in enumerate(runs)
    ]  # fmt: skip
    results = [
        {"type": "evaluation", "name": "pii", "at": run["ended_at"], "execution_id": run["execution_id"],
         "agent_id": "asker", "value": n % 3 / 2}
        for n, run in enumerate(runs[::2])
    ]  # fmt: skip
    return [*calls, *results]


def demo_world(folder: Path) -> Project:
    """The demo's first hours, with windows that fit into them."""
    demo = Demo(folder / "demo")
    demo.make_samples(START + 24 * HOUR)
    project = Project(folder / "project", None, 4, 9)
    project.raw.rmdir()
    project.raw = demo.raw
    project.targets_path.write_bytes(demo.targets.read_bytes())
    project.targets = {}
    project.materialize(HOURS)
    return project


COMPARED = [name for name in DERIVED if name not in OF_A_WEEK]
WORLDS = {"random logs": random_world, "the demo": demo_world}


class Pair:
    """A project's tables in two sessions: DuckDB's, which is also the ledger, and one on Spark."""

    def __init__(self, project: Project, duckdb: Session, spark: Session) -> None:
        self.project, self.duckdb, self.spark = project, duckdb, spark

    def assert_equal(self, derived: Derived, hours: HourRange) -> None:
        settings = self.project.settings
        inputs = Inputs(
            session=self.duckdb, hours=hours, targets=load_targets(settings.targets), settings=settings
        )  # fmt: skip
        found, expected = (
            rows_of(session, derived.rows(replace(inputs, session=session)), derived.name)
            for session in (self.spark, self.duckdb)
        )
        assert_tables_equal_to_9_digits({derived.name: found}, {derived.name: expected})
        assert expected, f"nothing was compared of {derived.name}"


def rows_of(session: Session, rows: ir.Table, name: str) -> list[dict]:
    """The rows of an asset in the types of its table."""
    columns = [column for column in columns_of(name) if column != FORMULA_VERSION]
    chosen = rows.select(*columns)
    return session.arrow(chosen).cast(chosen.schema().to_pyarrow()).to_pylist()


@pytest.fixture(scope="module", params=["sail", pytest.param("spark", marks=[pytest.mark.nightly, needs_apache_spark])])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with sail() if request.param == "sail" else apache_spark(tmp_path_factory.mktemp("spark")) as made:
        yield made


@pytest.fixture(scope="module", params=["random logs", pytest.param("the demo", marks=pytest.mark.nightly)])
def pair(request: pytest.FixtureRequest, url: str) -> Iterator[Pair]:
    folder = lasting_folder()
    project = WORLDS[request.param](folder)
    with project.warehouse.write() as duckdb, session_on(url, folder, duckdb) as spark:
        copy_tables(RESULT_TABLES, duckdb, spark)
        yield Pair(project, duckdb, spark)


@pytest.mark.parametrize("name", COMPARED)
def test_an_asset_of_many_hours_is_the_same_on_spark(pair: Pair, name: str) -> None:
    pair.assert_equal(DERIVED[name], HOURS)


@pytest.mark.parametrize("name", COMPARED)
def test_an_asset_of_one_hour_is_the_same_on_spark(pair: Pair, name: str) -> None:
    [[newest]] = pair.duckdb.query(f"SELECT max(hour) FROM {name}")  # few of the logs' hours have rows of every asset
    pair.assert_equal(DERIVED[name], HourRange.of(newest.astimezone(UTC)))
