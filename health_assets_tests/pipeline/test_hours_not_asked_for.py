"""Hours that a run was not asked for: what whole files bring into them, and what is left out until they are."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from health_assets.core.hours import HOUR, HourRange
from health_assets.core.targets import Targets
from health_assets.defs.sensors import late_logs_sensor
from health_assets.logs.files import list_files
from health_assets.pipeline.ingestion import ingest
from health_assets.pipeline.retention import prune
from health_assets.systems.stale_partitions import stale_hours, stale_statuses
from health_assets.warehouse.file_ledger import FileLedger
from health_assets.warehouse.ledger import Ledger
from health_assets.warehouse.loaded_state import LoadedState
from health_assets.warehouse.log_coverage import LogCoverage
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import FLEET, Project, assert_same_tables, hours_from, tick
from health_assets_tests.support.traces_made import agent, otlp_line, tool

WINDOW_HOURS, LOOKBACK_HOURS = 2, 4
HORIZON = START + 10 * HOUR
LAST = START + 20 * HOUR


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, None, WINDOW_HOURS, LOOKBACK_HOURS)


def run_line(execution_id: str, hour: datetime) -> str:
    return line(execution(execution_id, "a", hour + HOUR / 2, session_id="s", task_id="t"))


def executions(project: Project) -> list[tuple[str, datetime]]:
    return project.query("SELECT execution_id, hour FROM executions ORDER BY hour, execution_id")


def lacks_slices(project: Project) -> bool:
    with project.warehouse.read() as session:
        return LoadedState(session).lacks_slices(hours_from(LAST - 3 * HOUR, 4))


def test_an_hour_that_another_run_loaded_makes_the_hours_after_it_stale_once_it_is_made(project: Project) -> None:
    only, ninth = ["ingest", "trace_risks", "task_consistency"], START + 9 * HOUR
    late = {"type": "signals", "execution_id": "e9", "at": (ninth + 1.5 * HOUR).isoformat(), "coherence": 0.1}
    project.write_log("a.jsonl", [run_line("e10", ninth + HOUR), run_line("e11", ninth + 2 * HOUR), line(late)])
    project.materialize(hours_from(ninth + HOUR, 2), only=only)
    project.write_log("b.jsonl", [run_line("e9", ninth), run_line("e20", LAST)])
    project.materialize(HourRange.of(LAST), only=only)
    project.materialize(HourRange.of(ninth), only=only)
    with project.warehouse.read() as session:
        components, scores = stale_hours(stale_statuses(session, hours_from(START, 24), project.settings))
        assert ninth + HOUR in components | scores
    project.materialize(hours_from(ninth, 4), only=only, only_stale=True)
    clean = project.clean_rebuild(hours_from(ninth, 4), only=only)
    assert_same_tables(
        project.tables(hours_from(ninth, 4), ["trace_risks"]), clean.tables(hours_from(ninth, 4), ["trace_risks"])
    )


def test_rows_that_nobody_asked_for_follow_their_log_also_behind_the_horizon(project: Project) -> None:
    project.write_log("a.jsonl", [run_line("old", START), run_line("new", LAST)])
    project.ingest(HourRange.of(LAST), horizon=START - HOUR)
    project.write_log("a.jsonl", [run_line("another", START), run_line("newer", LAST)])
    project.ingest(HourRange.of(LAST), horizon=HORIZON)
    assert executions(project) == [("another", START), ("newer", LAST)]
    prune(project.warehouse, [], HORIZON, LOOKBACK_HOURS)
    assert executions(project) == [("newer", LAST)]


def test_lines_that_were_lost_before_their_hour_was_dropped_do_not_wait_once_it_is_back(project: Project) -> None:
    """No file has them, so nothing would ever load them."""
    project.write_log("a.jsonl", [run_line("one", LAST), run_line("two", LAST), run_line("three", LAST)])
    project.ingest(HourRange.of(LAST))
    project.write_log("a.jsonl", [run_line("other", LAST)])
    project.ingest(HourRange.of(LAST))
    assert project.query("SELECT source_file, lost FROM raw_logs WHERE lost > 0") == [("a.jsonl (cut)", 2)]
    prune(project.warehouse, [], LAST + HOUR, LOOKBACK_HOURS)
    assert not executions(project) and lacks_slices(project)
    project.ingest(HourRange.of(LAST))
    assert executions(project) == [("other", LAST)]
    assert not lacks_slices(project)


def test_what_the_horizon_leaves_out_is_nothing_that_the_next_run_has_to_do(project: Project) -> None:
    lines = [run_line("old", START), otlp_line(agent(1, 1, START + HOUR / 2)), run_line("new", LAST)]
    lines.append(otlp_line(agent(2, 1, HORIZON - 2 * HOUR)))  # spans of it are loaded for the hours after it
    project.write_log("a.jsonl", lines)
    project.ingest(HourRange.of(LAST), horizon=HORIZON)
    assert not lacks_slices(project)
    project.write_log("a.jsonl", [*lines[1:], run_line("newer", LAST)])
    project.ingest(HourRange.of(LAST), horizon=HORIZON)
    assert not lacks_slices(project)
    assert executions(project) == [("new", LAST), ("newer", LAST)]


def test_traces_that_the_horizon_left_out_are_put_together_when_their_hours_are_asked_for(project: Project) -> None:
    at = HORIZON - 2 * HOUR  # whose spans are there already, since later hours see them
    spans = [agent(1, 1, at + HOUR / 2), tool(1, 2, at + HOUR / 2, 1), agent(2, 1, START + HOUR / 2)]
    project.write_log("a.jsonl", [*map(otlp_line, spans), run_line("new", LAST)])
    project.ingest(HourRange.of(LAST), horizon=HORIZON)
    assert executions(project) == [("new", LAST)]
    old = HourRange(START, HORIZON)
    project.ingest(old, horizon=HORIZON)
    clean = Project(project.folder / "clean", None, WINDOW_HOURS, LOOKBACK_HOURS)
    clean.write_log("a.jsonl", [*map(otlp_line, spans), run_line("new", LAST)])
    clean.ingest(HourRange(START, LAST + HOUR))
    tables = ["executions", "tool_calls", "spans"]
    assert len(project.rows("executions", old)) == 2
    assert_same_tables(project.tables(None, tables), clean.tables(None, tables))


def test_hours_that_nobody_asked_for_stay_pruned_until_somebody_does(project: Project) -> None:
    log = project.write_log("a.jsonl", [run_line("old", START), run_line("new", LAST)])
    project.ingest(HourRange.of(LAST))
    prune(project.warehouse, [], HORIZON, LOOKBACK_HOURS)
    project.write_log("b.jsonl", [run_line("newer", LAST + HOUR)])
    assert project.ingest(HourRange.of(LAST + HOUR)).files_read == ["b.jsonl"]
    assert executions(project) == [("new", LAST), ("newer", LAST + HOUR)]
    project.ingest(HourRange.of(START))
    assert ("old", START) in executions(project)
    prune(project.warehouse, [], HORIZON, LOOKBACK_HOURS)
    log.unlink()
    project.ingest(HourRange.of(LAST))
    with project.warehouse.read() as session:
        assert not FileLedger(session).lost()


def test_a_left_out_hour_is_asked_for_while_a_log_of_it_cannot_be_read(project: Project) -> None:
    project.write_log("a.jsonl", [run_line("a", START)])
    project.write_log("b.jsonl", [run_line("b", START), run_line("new", LAST)])
    project.ingest(HourRange.of(LAST), horizon=HORIZON)
    readable = [file for file in list_files(project.raw) if file.source_file != "b.jsonl"]
    for unreadable in ({"b.jsonl": "it cannot be read"}, {}):
        files = readable if unreadable else list_files(project.raw)
        with project.warehouse.write() as session:
            ingest(
                session, files, HourRange.of(START), Targets(), LOOKBACK_HOURS,
                horizon=HORIZON, unreadable=unreadable,
            )  # fmt: skip
        with project.warehouse.read() as session:
            kept = LogCoverage(session).kept_by_hour("execution", HourRange.of(START))
            assert kept == session.counts_by_hour("executions", HourRange.of(START))
            waiting = [part.source_file for part in Ledger(session).not_loaded()]
        assert waiting == [*unreadable]
    assert executions(project) == [("a", START), ("b", START), ("new", LAST)]


def test_the_sensor_asks_for_no_hour_that_retention_would_drop(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEALTH_KEEP_DAYS", "30")
    newest = START + timedelta(days=60)
    project.now = newest + 2 * HOUR
    project.write_log("a.jsonl", [run_line("old", START), run_line("new", newest)])
    project.materialize(HourRange.of(newest), only=FLEET)
    [(is_loaded,)] = project.query("SELECT is_loaded FROM raw_logs WHERE hour = ?", [START])
    assert not is_loaded
    found = tick(late_logs_sensor("job", project.settings), project.pipeline)
    assert not found.run_requests
    assert "agree with all 1 raw logs" in str(found.skip_message)
