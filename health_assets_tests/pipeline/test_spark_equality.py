"""The same logs on DuckDB and on Spark: the same rows in every table, also after logs came late, changed and went."""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

pytest.importorskip("pysail", reason="the extra `spark` is not installed")

from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HOUR, HourRange
from health_assets.pipeline import executor_sharding
from health_assets.systems.declared_assets import DERIVED
from health_assets.warehouse.store import Warehouse
from health_assets_tests.quality.test_suites import results_of
from health_assets_tests.support import postgres_server
from health_assets_tests.support.clocks import settable_clock
from health_assets_tests.support.logs_made import (
    EVALUATORS,
    START,
    cut_into_files,
    execution,
    line,
    random_lines,
    random_targets,
)
from health_assets_tests.support.projects import (
    FLEET,
    OF_A_WEEK,
    RESULT_TABLES,
    Project,
    assert_lines_are_conserved,
    assert_tables_equal_to_9_digits,
    hours_from,
)
from health_assets_tests.support.spark_servers import apache_spark, needs_apache_spark, sail
from health_assets_tests.systems.test_agent_drift import NOW, STEPS, past, runs

HOURS = hours_from(START, 8)
AS_OF_NOW = (
    *FLEET, "now_components", "agent_now", "state_components", "agent_changes", "agent_health_state", "error_budget",
)  # fmt: skip
"""The steps whose rows depend on how much of their hour has passed."""


class Pair(NamedTuple):
    """Two projects with the same logs and targets."""

    duckdb: Project
    spark: Project

    def write_log(self, name: str, lines: list[str]) -> None:
        for project in self:
            project.write_log(name, lines, modified=START + HOUR)

    def materialize(self, hours: HourRange, *, only_stale: bool = False) -> None:
        for project in self:
            project.materialize(hours, only_stale=only_stale)

    def assert_equal(self) -> None:
        tables, expected = self.spark.tables(), self.duckdb.tables()
        assert_tables_equal_to_9_digits(tables, expected)
        empty = {name for name, rows in expected.items() if not rows}
        assert not empty & set(DERIVED) - OF_A_WEEK, f"nothing was compared in {empty}"
        for bookkeeping in ("SELECT asset, hour, rows FROM partition_states", "SELECT source_file, record_type, hour, lines, digest, is_loaded, lost FROM raw_logs"):  # fmt: skip
            noted = [sorted(project.query(bookkeeping), key=str) for project in self]
            assert noted[0] == noted[1]
        assert_lines_are_conserved(self.spark)


on_both = pytest.mark.parametrize(
    "url", ["sail", pytest.param("spark", marks=[pytest.mark.nightly, needs_apache_spark])], indirect=True
)


@pytest.fixture(scope="module")
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with sail() if request.param == "sail" else apache_spark(tmp_path_factory.mktemp("spark")) as made:
        yield made


@pytest.fixture(scope="module", autouse=True)
def small_passes() -> Iterator[None]:
    """Let executors read few files at a time, so that there are many passes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(executor_sharding, "BYTES_PER_SHARD", 10_000)
        yield


@pytest.fixture(scope="module")
def pair(url: str, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    folder, random = tmp_path_factory.mktemp("pair"), Random(31)
    targets = random_targets(random) | {"evaluators": EVALUATORS}
    made = Pair(
        Project(folder / "duckdb", targets, 4, 9), Project(folder / "spark", targets, 4, 9, engine="spark", url=url)
    )
    lines = random_lines(random, 600, 12, evaluation_share=0.1, cancelled_share=0.1)
    for name, part in cut_into_files(random, lines).items():
        made.write_log(name, part)
    made.materialize(HOURS)
    return made


@on_both
def test_every_table_of_random_logs_is_the_same_on_spark(pair: Pair) -> None:
    pair.assert_equal()


@on_both
def test_the_hour_that_runs_is_the_same_on_spark(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settable_clock(monkeypatch)(START + 7.6 * HOUR)
    own = Pair(Project(tmp_path / "duckdb", {}, 4, 9), Project(tmp_path / "spark", {}, 4, 9, engine="spark", url=url))
    own.write_log("a.jsonl", random_lines(Random(5), 200, 8))
    for project in own:
        project.materialize(HourRange.of(START + 7 * HOUR), only=AS_OF_NOW)
    tables, expected = own.spark.tables(), own.duckdb.tables()
    assert expected["agent_health_state"] and expected["error_budget"]
    assert {row["is_final"] for row in tables["agent_now"]} == {False}
    assert_tables_equal_to_9_digits(tables, expected)


@on_both
def test_every_check_of_every_table_can_be_evaluated_on_spark(pair: Pair) -> None:
    looked_at = set()
    for asset in (*RESULT_TABLES, "raw_logs"):
        found = []
        for project in pair:
            with project.warehouse.write() as session:
                results = results_of(project, session, asset, HOURS)
            found.append(
                {name: (one.success, one.element_count, one.unexpected_count) for name, one in results.items()}
            )
        assert found[0] == found[1], asset
        looked_at |= {asset for _, count, _ in found[1].values() if count}
    assert looked_at == {*RESULT_TABLES, "raw_logs"}


@on_both
def test_drift_is_the_same_on_spark(url: str, tmp_path: Path) -> None:
    own = Pair(Project(tmp_path / "duckdb"), Project(tmp_path / "spark", engine="spark", url=url))
    week = [*past(4), *(record for hour in range(3) for record in runs(hour, 8, failed=6, agent_version="2"))]
    own.write_log("a.jsonl", [line(record) for record in week])
    for project in own:
        project.materialize(HourRange.of(NOW + 2 * HOUR), only=STEPS)
    found, expected = (project.rows("drift") for project in (own.spark, own.duckdb))
    assert {row["measure"] for row in expected if row["is_drifting"]} >= {"success_rate"}
    assert_tables_equal_to_9_digits({"drift": found}, {"drift": expected})


@pytest.mark.nightly
@on_both
def test_logs_that_come_late_shrink_move_and_go_leave_the_same_tables_on_spark(pair: Pair) -> None:
    hours = hours_from(START, 4)
    late = [execution(f"e{n}", "late", START + n * HOUR / 4, session_id="s1", task_id="t") for n in range(12)]
    for name, records in {"shrinks": late, "moves": late[3:9], "goes": late[2:7]}.items():
        pair.write_log(f"{name}.jsonl", [*map(line, records), f"{name}: not json"])
    pair.materialize(hours)
    pair.assert_equal()
    pair.write_log("shrinks.jsonl", list(map(line, late[:5])))
    for project in pair:
        (project.raw / "moves.jsonl").rename(project.raw / "moved.jsonl")
        (project.raw / "goes.jsonl").unlink()
        project.write_targets({**(project.targets or {}), "names": [{"match": "coder", "agent": "planner"}]})
    pair.materialize(hours)
    pair.assert_equal()
    lost = pair.spark.query("SELECT sum(lost) FROM raw_logs")
    assert lost == pair.duckdb.query("SELECT sum(lost) FROM raw_logs")
    assert pair.spark.query("SELECT count(*) FROM executions WHERE agent_id_reported = 'coder'") != [(0,)]


@pytest.mark.nightly
@on_both
def test_the_ledger_may_be_postgresql(pair: Pair, tmp_path: Path) -> None:
    ledger = postgres_server.fresh_warehouse()
    targets = pair.duckdb.targets
    projects = Pair(
        Project(tmp_path / "duckdb", targets, 4, 9),
        Project(tmp_path / "spark", targets, 4, 9, engine="spark", url=pair.spark.url, ledger=ledger),
    )
    lines = random_lines(Random(7), 100, 4)
    for count, steps in ((50, ["ingest"]), (100, [*FLEET, "trace_risks", "session_scores"])):
        projects.write_log("a.jsonl", lines[:count])
        for project in projects:
            project.materialize(hours_from(START, 4), only=steps)
    found, expected = (project.tables() for project in (projects.spark, projects.duckdb))
    assert_tables_equal_to_9_digits(found, expected)
    assert expected["session_scores"] and expected["agent_health"]


# -- what is refused -----------------------------------------------------------------------------------------------------


def test_a_cluster_without_lake_or_ledger_is_refused_in_a_sentence() -> None:
    with pytest.raises(HealthAssetsError, match="needs a lake and a ledger: set HEALTH_LAKE and HEALTH_LEDGER"):
        Warehouse("sc://127.0.0.1:1")


def test_a_cluster_that_nobody_answers_for_is_told_without_its_token(tmp_path: Path) -> None:
    url, ledger = "sc://127.0.0.1:1/;token=secret", str(tmp_path / "ledger.duckdb")
    warehouse = Warehouse(url, lake=str(tmp_path), ledger=ledger)
    with (
        pytest.raises(HealthAssetsError, match=r"cannot connect to Spark at 127\.0\.0\.1:1: ") as told,
        warehouse.write(),
    ):
        pass
    assert "secret" not in str(told.value)


@on_both
def test_a_ledger_of_no_lake_has_nothing_to_read(pair: Pair, tmp_path: Path) -> None:
    ledger = str(pair.duckdb.warehouse_path)
    warehouse = Warehouse(pair.spark.url, lake=str(tmp_path), ledger=ledger)
    with pytest.raises(HealthAssetsError, match="nothing was published in the lake"), warehouse.read():
        pass
