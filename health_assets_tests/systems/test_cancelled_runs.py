"""Runs that their users cancelled: shown with what they took, and neither successes nor failures of any system."""

from collections.abc import Sequence
from datetime import timedelta
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

import pytest
from rich.console import Console

from health_assets.core.hours import HOUR, HourRange
from health_assets.systems.agent_usage import report as usage_report
from health_assets.systems.declared_assets import DERIVED
from health_assets.systems.session_scores import report as sessions_report
from health_assets_tests.quality.test_suites import red, results_of
from health_assets_tests.support.logs_made import (
    START,
    Record,
    cancellation,
    cut_into_files,
    execution,
    line,
    random_lines,
    random_targets,
)
from health_assets_tests.support.projects import (
    DUCKDB_BY_DAY,
    FLEET,
    Project,
    Row,
    assert_lines_are_conserved,
    assert_same_tables,
    hours_from,
    rolled_back,
)

TABLES = (
    "cancellations",
    "usage_components",
    "agent_usage",
    "usage_breakdown",
    "session_scores",
)
STEPS = (
    "ingest", "usage_components", "agent_usage", "usage_breakdown",
    "computed_signals", "evaluated_signals", "trace_risks", "session_scores",
)  # fmt: skip
"""What makes the tables that tell of cancelled runs."""
RECORD_STEPS = tuple(name for name in STEPS if name not in {"computed_signals", "evaluated_signals"})
"""The same where nobody made a signal."""
SHOWN_IN = {"agent_usage", "usage_breakdown", "usage_components", "session_scores"}
"""The tables that tell of cancelled runs."""


def call(call_id: str, execution_id: str, hour: int = 0, **amounts: Any) -> Record:
    at = (START + hour * HOUR + HOUR / 4).isoformat()
    told = {"call_id": call_id, "model": "m", "ended_at": at, "status": "success", "execution_id": execution_id}
    return {"type": "model_call", **told, **amounts}


def cancelled(execution_id: str, hour: int = 0, agent_id: str = "a", **fields: Any) -> Record:
    return cancellation(execution_id, agent_id, START + hour * HOUR + HOUR / 2, **fields)


def made_of(project: Project, records: Sequence[Record], hours: HourRange, only: Sequence[str] = STEPS) -> None:
    """Materialize hours of these records: the steps that show cancelled runs, or others."""
    project.write_log("a.jsonl", [line(record) for record in records])
    project.materialize(hours, only=only)


# -- no score is another one -------------------------------------------------------------------------------------------


def test_no_system_counts_a_cancelled_run_as_a_success_or_a_failure(tmp_path: Path) -> None:
    """The same fleet with cancelled runs beside its executions has the same rows in every table, but for their counts."""
    random = Random(5)
    plain = Project(tmp_path / "plain", random_targets(random), 4, 9)
    for name, lines in cut_into_files(random, random_lines(random, 300, 8, bad_share=0)).items():
        plain.write_log(name, lines, modified=START)
    hours = hours_from(START, 10)
    plain.materialize(hours)
    runs = [row for row in plain.rows("executions") if row["hour"] in hours]
    with_cancelled = plain.copied(tmp_path / "with cancelled")
    added = [
        cancellation(f"x{number}", row["agent_id_reported"] or row["agent_id"], row["hour"] + HOUR - timedelta(seconds=1),
                     session_id=row["session_id"], agent_version=row["agent_version"], model=row["model"],
                     input_tokens=7, cost_usd=0.5)
        for number, row in enumerate(runs)
    ]  # fmt: skip
    with_cancelled.write_log("cancelled.jsonl", map(line, added), modified=START)
    with_cancelled.materialize(hours)
    expected, found = plain.tables(hours, [*DERIVED]), with_cancelled.tables(hours, [*DERIVED])
    told = {name: without_counts(rows) for name, rows in found.items()}
    assert_same_tables(told, {name: without_counts(rows) for name, rows in expected.items()})
    assert {name for name, rows in found.items() if rows != expected[name]} == SHOWN_IN


def without_counts(rows: list[Row]) -> list[Row]:
    return [{name: value for name, value in row.items() if not name.startswith("cancelled_")} for row in rows]


def test_a_fleet_of_nothing_but_cancelled_runs_has_no_score(project: Project) -> None:
    records = [cancelled("e1", session_id="s"), cancelled("e2", 1, session_id="s")]
    scores = (*FLEET, "now_components", "agent_now", "trace_risks",
              "task_consistency", "agent_reliability")  # fmt: skip
    made_of(project, records, hours_from(START, 3), only=scores)
    assert {(row["state"], row["health_score"], row["n"]) for row in project.rows("agent_health")} == {
        ("inactive", None, 0)
    }
    assert {row["agent_id"] for row in project.rows("agent_health")} == {"a"}, "it was seen"
    assert {row["verdict"] for row in project.rows("agent_now")} == {"quiet"}
    assert project.rows("agent_reliability") == project.rows("trace_risks") == []


# -- usage -------------------------------------------------------------------------------------------------------------


def test_what_cancelled_runs_took_stands_beside_what_executions_did(tmp_path: Path) -> None:
    """A window of 2 hours; an hour has a success of a dollar and a cancelled run whose calls cost a quarter."""
    project = Project(tmp_path / "project", None, 2, 4)
    records = [
        record
        for hour in range(2)
        for record in (
            execution(f"e{hour}", "a", START + hour * HOUR, cost_usd=1.0, input_tokens=10, output_tokens=1),
            cancelled(f"x{hour}", hour, model="m", agent_version="2"),
            call(f"c{hour}", f"x{hour}", hour, input_tokens=100, output_tokens=5, cost_usd=0.25),
        )
    ]
    made_of(project, records, hours_from(START, 3))
    rows = project.rows("agent_usage")
    assert [(row["executions"], row["successes"], row["cost_usd"], row["cost_per_success_usd"]) for row in rows] == [
        (1, 1, 1.0, 1.0), (2, 2, 2.0, 1.0), (1, 1, 1.0, 1.0),
    ]  # fmt: skip
    took = ("cancelled_runs", "cancelled_input_tokens", "cancelled_output_tokens", "cancelled_cost_usd")
    assert [tuple(row[name] for name in took) for row in rows] == [
        (1, 100, 5, 0.25), (2, 200, 10, 0.5), (1, 100, 5, 0.25),
    ]  # fmt: skip
    [part] = [row for row in project.rows("usage_breakdown", HourRange.of(START)) if row["model"] == "m"]
    assert (part["agent_version"], part["executions"], part["successes"], part["input_tokens"]) == ("2", 0, 0, None)
    assert tuple(part[name] for name in took) == (1, 100, 5, 0.25)


@pytest.fixture(scope="module")
def one_hour(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """An hour of agents with cancelled runs; tests change only copies."""
    project = Project(tmp_path_factory.mktemp("hour") / "project")
    records = [
        cancelled("x", session_id="of x", cost_usd=2.0, input_tokens=9),
        cancelled("e", agent_id="both", session_id="of both"),
        execution("e", "both", START, session_id="of both"),
    ]
    made_of(project, records, HourRange.of(START))
    return project


def row_of(project: Project, table: str, agent_id: str) -> Row:
    [row] = [row for row in project.rows(table) if row["agent_id"] == agent_id]
    return row


def test_an_agent_whose_every_run_was_cancelled_has_its_usage(one_hour: Project) -> None:
    row = row_of(one_hour, "agent_usage", "a")
    assert (row["executions"], row["cost_usd"], row["cost_per_success_usd"]) == (0, None, None)
    assert (row["cancelled_runs"], row["cancelled_input_tokens"], row["cancelled_cost_usd"]) == (1, 9, 2.0)


def test_a_call_that_comes_late_is_added_to_its_cancelled_run_and_one_that_goes_is_taken_away(project: Project) -> None:
    def took() -> tuple[Any, ...]:
        project.materialize(HourRange.of(START), only_stale=True, only=("ingest", "usage_components", "agent_usage"))
        [row], [usage] = project.rows("cancellations"), project.rows("agent_usage")
        return row["input_tokens"], row["cost_usd"], usage["cancelled_input_tokens"], usage["cancelled_cost_usd"]

    project.write_log("a.jsonl", [line(cancelled("x", cost_usd=2.5))])
    assert took() == (None, 2.5, None, 2.5)
    project.write_log("b.jsonl", [line(call("c", "x", input_tokens=7, cost_usd=1))])
    assert took() == (7, 2.5, 7, 2.5)
    project.write_log("b.jsonl", [line(call("c", "other", input_tokens=7, cost_usd=1))], modified=START)
    assert took() == (None, 2.5, None, 2.5)


# -- sessions ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def short_look_back(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Six hours with a look-back of 3, with a session of an execution and cancelled runs, and one of these alone."""
    project = Project(tmp_path_factory.mktemp("look-back") / "project", None, 1, 3)
    records = [
        execution("e", "a", START, session_id="s", status="failure"),
        cancelled("x0", 0, session_id="s"),
        cancelled("x2", 2, session_id="s"),
        cancelled("other", 2),
        cancelled("x", 0, "c", session_id="cancelled"),
        cancelled("y", 4, "b", session_id="cancelled"),
    ]
    made_of(project, records, hours_from(START, 6))
    return project


def test_a_session_tells_how_many_of_its_runs_were_cancelled_in_the_look_back(short_look_back: Project) -> None:
    told = [
        (row["hour"], row["runs"], row["failures"], row["cancelled_runs"])
        for row in short_look_back.rows("session_scores")
        if row["session_id"] == "s"
    ]
    assert told == [(START, 1, 1, 1), (START + 2 * HOUR, 1, 1, 2)], "the look-back of the last one holds the execution"


def test_a_session_of_nothing_but_cancelled_runs_has_a_row_without_a_score(short_look_back: Project) -> None:
    rows = short_look_back.rows("session_scores")
    first, last = (row for row in rows if row["session_id"] == "cancelled")
    for row, agent_id in ((first, "c"), (last, "b")):
        assert (row["agent_id"], row["cancelled_runs"], row["runs"], row["failures"]) == (agent_id, 1, 0, 0)
        assert (row["total_traces"], row["traces_evaluated"], row["raw_risk"]) == (0, 0, None)
        assert (row["agent_reliability"], row["flagged_traces"]) == (1.0, []), "as of any session that nobody evaluated"
    console = Console(file=StringIO(), width=160)
    with short_look_back.warehouse.read() as session:
        sessions_report.print_block(console, session, HourRange(START + 3 * HOUR, START + 6 * HOUR))
    assert console.file.getvalue().split("\n")[1] == (
        "Sessions: none scored: 1 without signals, not evaluated  1 with cancelled runs"
    )


# -- records -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", DUCKDB_BY_DAY)
def test_late_repeated_and_changed_records_in_any_order_come_to_what_a_rebuild_does(
    tmp_path: Path, engine: str
) -> None:
    random = Random(3)
    project = Project(tmp_path / "project", None, 2, 4, engine=engine)
    records = [
        cancelled(f"x{random.randrange(12)}", random.randrange(5), random.choice("ab"),
                  session_id=random.choice(["s", "t", None]), cost_usd=random.choice([None, 0.1]))
        for _ in range(40)
    ]  # fmt: skip
    records += [call(f"c{n}", f"x{n % 12}", n % 5, input_tokens=n, cost_usd=0.3) for n in range(20)]
    records += [execution(f"e{n}", "a", START + n * HOUR, session_id="s") for n in range(3)]
    hours = hours_from(START, 6)
    for turn in range(3):
        some = random.sample(records, 30)
        project.write_log(f"{turn % 2}.jsonl", [line(one) for one in some], modified=START + turn * HOUR)
        project.materialize(hours_from(START + random.randrange(4) * HOUR, 2), only_stale=True, only=RECORD_STEPS)
    project.write_log("all.jsonl", [line(record) for record in [*records, *records[::-1]]], modified=START)
    project.materialize(hours, only_stale=True, only=RECORD_STEPS)
    before = project.tables(hours, TABLES)
    assert_same_tables(before, project.clean_rebuild(hours, only=RECORD_STEPS).tables(hours, TABLES))
    project.materialize(hours, only=RECORD_STEPS)
    assert_same_tables(project.tables(hours, TABLES), before)
    assert_lines_are_conserved(project)
    identities = [(row["hour"], row["execution_id"], row["agent_id"]) for row in before["cancellations"]]
    assert len(identities) == len(set(identities)) > 12


def test_a_run_that_has_a_cancellation_and_an_execution_counts_as_both(one_hour: Project) -> None:
    usage, session = (row_of(one_hour, table, "both") for table in ("agent_usage", "session_scores"))
    assert (usage["executions"], usage["cancelled_runs"], session["runs"], session["cancelled_runs"]) == (1, 1, 1, 1)


@pytest.mark.parametrize(
    ("asset", "change", "check"),
    [
        ("usage_components", "UPDATE usage_components SET cancelled_runs = 2", "sums_agree_with_the_executions"),
        ("agent_usage", "UPDATE agent_usage SET cancelled_runs = 0 WHERE agent_id = 'a'", "every_row_has_a_run"),
        ("agent_usage", "UPDATE agent_usage SET cancelled_cost_usd = -1", "amounts_are_not_negative"),
        (
            "session_scores",
            "UPDATE session_scores SET cancelled_runs = 0 WHERE agent_id = 'a'",
            "every_session_has_a_trace_or_a_cancelled_run",
        ),
        ("session_scores", "DELETE FROM session_scores", "every_session_of_the_hour_is_scored"),
        ("cancellations", "DELETE FROM cancellations", "every_line_is_a_row"),
        (
            "cancellations",
            "UPDATE cancellations SET started_at = ended_at + INTERVAL 1 HOUR",
            "cancelled_runs_end_after_they_start",
        ),
    ],
)
def test_a_check_fails_where_a_table_of_cancelled_runs_is_wrong(
    one_hour: Project, asset: str, change: str, check: str
) -> None:
    with rolled_back(one_hour) as session:
        assert red(results_of(one_hour, session, asset, HourRange.of(START))) == set()
        session.query(change)
        assert red(results_of(one_hour, session, asset, HourRange.of(START))) == {check}


# -- what people read --------------------------------------------------------------------------------------------------


def test_the_terminal_tells_what_cancelled_runs_took(project: Project) -> None:
    records = [
        execution("e", "a", START, session_id="s", cost_usd=1.0, status="failure"),
        *(cancelled(f"x{n}", session_id="s", input_tokens=1000, output_tokens=20, cost_usd=0.125) for n in range(2)),
    ]
    made_of(project, records, HourRange.of(START))
    console = Console(file=StringIO(), width=200)
    with project.warehouse.read() as session:
        usage_report.print_block(console, session, HourRange.of(START))
        sessions_report.print_block(console, session, HourRange.of(START))
    told = console.file.getvalue()
    assert "in no sum above: 2 runs that users cancelled took 2,000 tokens in, 40 tokens out, $0.250" in told
    [heads] = [row.split() for row in told.splitlines() if row.startswith("worst sessions")]
    [row] = [row.split() for row in told.splitlines() if row.startswith("s ")]
    assert (heads[2:5], row[1:4]) == (["runs", "failed", "cancelled"], ["1", "1", "2"])
