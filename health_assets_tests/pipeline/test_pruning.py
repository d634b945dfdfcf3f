"""Retention: old rows go, scores stay, nothing brings the rows back by itself, and any hour can be made again exactly."""

import os
import re
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import dagster as dg
import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

from health_assets.cli.commands import app
from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HOUR, HourRange, floor_hour
from health_assets.core.settings import Settings
from health_assets.core.targets import Targets
from health_assets.defs.build import build_definitions
from health_assets.defs.pruning_job import JOB, prune_hours_job
from health_assets.defs.schedules import _hours_due
from health_assets.defs.sensors import late_logs_sensor
from health_assets.defs.write_lock.write_lock import WriteLock
from health_assets.pipeline.retention import Pruned, cutoff, prune
from health_assets.quality.batches import Source
from health_assets.quality.evaluation import evaluate
from health_assets.systems.pruning import PRUNED_COMPONENTS, prune_old_hours
from health_assets.systems.suites import SUITES
from health_assets.warehouse.store import Warehouse
from health_assets_tests.pipeline.test_ingestion_properties import late_logs_tick
from health_assets_tests.support.logs_made import AGENTS, START, Record, execution, line, random_lines
from health_assets_tests.support.projects import (
    RECORD_TABLES,
    REPOSITORY,
    RESULT_TABLES,
    Project,
    Row,
    assert_lines_are_conserved,
    assert_same_tables,
    hours_from,
    tick,
)
from health_assets_tests.support.traces_made import agent, in_lines, otlp_line, random_spans, tool

DROPPED = (*RECORD_TABLES, *PRUNED_COMPONENTS)
HISTORY = tuple(name for name in RESULT_TABLES if name not in DROPPED)
HOURS = hours_from(START, 24)
CUT = START + 14 * HOUR
OLD, KEPT = HourRange(START, CUT), HourRange(CUT, HOURS.end)
WINDOW_HOURS, LOOKBACK_HOURS = 2, 3
REACH_HOURS = 4
"""Twice the window is more than the look-back."""

STEPS = ["ingest", "health_components", "agent_health", "system_health", "trace_risks"]
"""Assets that stand for all where the test is not about one of the others."""
NEXT_HOUR = HourRange.of(HOURS.end - HOUR)

Tables = dict[str, list[Row]]


def small_project(folder: Path, name: str = "project", engine: str = "duckdb") -> Project:
    targets = {"agents": {name: {} for name in AGENTS}}
    return Project(folder / name, targets, WINDOW_HOURS, LOOKBACK_HOURS, engine=engine)


def steady_records(hour: datetime) -> list[Record]:
    """Two sessions' executions, one of them with a signal given some hours later."""
    at = hour + HOUR / 2
    given_at = min(at + 2 * HOUR, HOURS.end - HOUR / 4) if hour in HOURS else at
    return [
        execution(f"{agent} {hour:%H}", agent, at, session_id=f"s {agent}", task_id="t", signals={"confidence": 0.7})
        for agent in ("a", "b")
    ] + [{"type": "signals", "execution_id": f"a {hour:%H}", "at": given_at.isoformat(), "coherence": 0.5}]


def steady_lines(hour: datetime) -> list[str]:
    """Those, and spans: the root of the trace of the hour, and tools of the traces two hours before and after."""
    at, number = hour + HOUR / 3, trace_of(hour)
    spans = [agent(number, 1, at), tool(number - 2, 2, at, 1), tool(number + 2, 3, at, 1)]
    return [*map(line, steady_records(hour)), otlp_line(*spans)]


def trace_of(hour: datetime) -> int:
    return (hour - START) // HOUR + 100


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A log an hour, all of it materialized."""
    project = Project(tmp_path_factory.mktemp("made") / "project", None, WINDOW_HOURS, LOOKBACK_HOURS)
    for hour in HOURS:
        project.write_log(f"{hour:%H}.jsonl", steady_lines(hour))
    project.materialize(HOURS, only=STEPS)
    return project


@pytest.fixture
def steady(made_once: Project, tmp_path: Path) -> Project:
    """A copy of it, with the hours before `CUT` dropped."""
    shutil.copytree(made_once.folder, tmp_path / "project")
    project = Project(tmp_path / "project", None, WINDOW_HOURS, LOOKBACK_HOURS)
    with project.warehouse.write() as session:  # the raw logs have moved
        session.query("DELETE FROM raw_roots")
    assert pruned_at(project, CUT).hours == len(OLD)
    return project


def pruned_at(project: Project, before: datetime) -> Pruned:
    return prune(project.warehouse, PRUNED_COMPONENTS, before, project.lookback_hours)


def assert_history_is(project: Project, before: Tables) -> None:
    assert_same_tables(project.tables(None, list(before)), before)


def clean_rebuild(project: Project) -> Tables:
    """What `STEPS` make of the logs as they are now, in an empty warehouse."""
    twin = Project(project.folder / "clean", None, WINDOW_HOURS, LOOKBACK_HOURS)
    twin.raw.rmdir()
    twin.raw = project.raw
    twin.materialize(HOURS, only=STEPS)
    return twin.tables(None, [*RECORD_TABLES, *STEPS[1:]])


def of_hours(tables: Tables, hours: HourRange) -> Tables:
    return {name: [row for row in rows if row["hour"] in hours] for name, rows in tables.items()}


# -- dropping and making again -----------------------------------------------------------------------------------------


def test_what_is_dropped_is_what_can_be_made_again_and_all_else_is_kept() -> None:
    assert set(PRUNED_COMPONENTS) == {
        "health_components", "state_components", "model_components", "trace_risks", "evidence_components",
        "tool_components", "usage_components", "now_components", "computed_signals",
        "evaluated_signals", "release_components", "fallback_components",
    }  # fmt: skip
    assert set(HISTORY) >= {
        "agent_changes", "agent_health", "system_health", "session_scores", "agent_reliability", "error_budget", "tool_health", "agent_usage",
        "usage_breakdown", "release_comparison", "drift", "model_fallback",
    }  # fmt: skip


def random_project(folder: Path, random: Random, engine: str) -> Project:
    """Native lines and traces that reach over hours, in the same few files."""
    project = small_project(folder, engine=engine)
    spans = in_lines(random, random_spans(random, 20, len(HOURS)))
    for number in range(3):
        lines = [*random_lines(random, 100, len(HOURS)), *spans[number::3]]
        project.write_log(f"{number}.jsonl", lines, modified=START + 5 * HOUR)
    return project


@pytest.mark.parametrize(
    ("engine", "only"),
    [
        ("duckdb", STEPS), pytest.param("postgres", STEPS, marks=pytest.mark.nightly),
        pytest.param("duckdb", None, marks=pytest.mark.nightly),
    ],
    ids=["duckdb", "postgres", "all systems"],
)  # fmt: skip
def test_pruned_hours_come_back_as_a_clean_rebuild_makes_them_and_history_never_changes(
    tmp_path: Path, engine: str, only: list[str] | None
) -> None:
    random = Random(5)
    project = random_project(tmp_path, random, engine)
    project.materialize(HOURS, only=only)
    made = project.tables()
    history = {name: made[name] for name in HISTORY}
    assert {row["span_id"] is None for row in made["executions"]} == {True, False}
    before = START + random.randrange(8, 22) * HOUR
    left = of_hours(made, HourRange(before, HOURS.end))
    left["spans"] = of_hours(made, HourRange(before - LOOKBACK_HOURS * HOUR, HOURS.end))["spans"]
    pruned = pruned_at(project, before)
    assert pruned.rows == {name: len(made[name]) - len(left[name]) for name in DROPPED}
    assert pruned.late == []
    assert_same_tables(project.tables(), {name: left[name] for name in DROPPED} | history)
    assert_lines_are_conserved(project)
    assert late_logs_tick(project, only) == []

    some = hours_from(START + random.randrange(3, 8) * HOUR, random.choice([1, 4]))
    project.materialize(some, only=STEPS[:2])
    assert_same_tables(of_hours(project.tables(), some), of_hours(of_steps(made), some))
    assert_history_is(project, history)
    assert_lines_are_conserved(project)

    assert pruned_at(project, before + 2 * HOUR).late == []
    assert project.query("SELECT count(*) FROM executions WHERE hour < ?", [before + 2 * HOUR]) == [(0,)]
    project.materialize(HOURS, only=only)
    assert_same_tables(project.tables(), made)  # which were made from nothing, in one go
    assert late_logs_tick(project, only) == []


def of_steps(tables: Tables) -> Tables:
    return {name: tables[name] for name in (*RECORD_TABLES, STEPS[1])}


def test_pruning_again_drops_nothing_and_a_later_cutoff_only_what_is_new(steady: Project) -> None:
    assert pruned_at(steady, CUT).hours == 0
    assert pruned_at(steady, CUT + 3 * HOUR).hours == 3
    assert pruned_at(steady, HOURS.end + 100 * HOUR).hours == len(KEPT) - 3  # not those that nobody materialized


# -- nothing comes back by itself --------------------------------------------------------------------------------------


def test_sensor_and_schedule_leave_dropped_hours_alone(steady: Project) -> None:
    left = steady.tables()
    assert late_logs_tick(steady) == []
    for hour in (START, CUT - HOUR, CUT):
        os.utime(steady.raw / f"{hour:%H}.jsonl")
    assert late_logs_tick(steady) == []
    newest = HOURS.end - HOUR
    assert _hours_due(newest, steady.pipeline) == [HourRange.of(newest)]
    steady.materialize(HourRange.of(newest), only=STEPS)  # reads the files that were touched
    assert steady.tables() == left
    assert_lines_are_conserved(steady)


def test_a_file_that_grew_brings_back_only_the_hours_that_its_new_lines_need(steady: Project) -> None:
    late = CUT + 2 * HOUR
    steady.write_log("00.jsonl", [*steady_lines(START), line(execution("late", "c", late))])
    assert late_logs_tick(steady, STEPS) == [hours_from(late, REACH_HOURS)]
    assert late_logs_tick(steady, STEPS) == []
    clean = clean_rebuild(steady)
    assert_same_tables(of_hours(steady.tables(), KEPT), of_hours(clean, KEPT))
    assert_history_is(steady, {name: clean[name] for name in ("agent_health", "system_health")})
    back = late - 2 * (REACH_HOURS - 1) * HOUR
    assert first_hours(steady) == (back, back - LOOKBACK_HOURS * HOUR)
    pruned_at(steady, CUT)
    assert first_hours(steady) == (CUT, CUT - LOOKBACK_HOURS * HOUR)
    assert late_logs_tick(steady) == []


def first_hours(project: Project) -> tuple[datetime, datetime]:
    """The first hours with executions and with spans."""
    return project.query("SELECT min(hour) FROM executions")[0][0], project.query("SELECT min(hour) FROM spans")[0][0]


def test_lines_and_spans_that_come_late_for_dropped_hours_wait_and_are_told_until_their_hour_is_asked_for(
    steady: Project,
) -> None:
    history = steady.tables(None, HISTORY)
    hit = START + 5 * HOUR
    spans = [agent(number, 1, hit, gen_ai__agent__name="d") for number in (1, 2)]
    steady.write_log("late.jsonl", [*(line(execution(f"late {n}", "c", hit)) for n in range(3)), otlp_line(*spans)])
    assert late_logs_tick(steady) == []
    steady.materialize(NEXT_HOUR, only=STEPS[:1])  # the next hour's run reads the file
    assert first_hours(steady) == (CUT, CUT - LOOKBACK_HOURS * HOUR)
    assert_history_is(steady, history)
    assert pruned_at(steady, CUT).late == [(hit, 3 + 2)]
    assert "besides 1 hours that retention dropped" in skip_reason(steady)
    assert_lines_are_conserved(steady)

    steady.materialize(HourRange.of(hit), only=STEPS)
    # the sensor follows: components that look back on the hour, and the scores that look back on these
    assert late_logs_tick(steady, STEPS) == [hours_from(hit + HOUR, REACH_HOURS + LOOKBACK_HOURS - 2)]
    assert late_logs_tick(steady, STEPS) == []
    clean = clean_rebuild(steady)
    mended = {name: clean[name] for name in ("agent_health", "system_health")}
    assert mended["agent_health"] != history["agent_health"]
    assert_history_is(steady, mended)
    assert pruned_at(steady, CUT).late == []
    assert_history_is(steady, mended)


def skip_reason(project: Project) -> str:
    told = tick(late_logs_sensor("job", project.settings), project.pipeline)
    assert told.skip_message is not None
    return told.skip_message


def test_a_late_span_of_a_trace_that_reaches_over_the_cutoff_is_counted_in_the_hours_that_are_kept(
    steady: Project,
) -> None:
    earliest = CUT - LOOKBACK_HOURS * HOUR
    steady.write_log("late.jsonl", [otlp_line(tool(trace_of(CUT), 9, earliest, 1))])
    steady.materialize(NEXT_HOUR, only=STEPS[:1])
    assert late_logs_tick(steady, STEPS) == [hours_from(CUT, REACH_HOURS)]
    assert late_logs_tick(steady, STEPS) == [], "the components that later scores look back on are what they were"
    assert pruned_at(steady, CUT).late == []
    assert first_hours(steady) == (CUT, earliest)
    assert late_logs_tick(steady, STEPS) == []
    assert_same_tables(of_hours(steady.tables(), KEPT), of_hours(clean_rebuild(steady), KEPT))
    assert [row["action_count"] for row in steady.rows("executions", HourRange.of(CUT)) if row["span_id"]] == [3]


def test_a_late_span_that_is_kept_for_the_traces_of_kept_hours_is_told_where_it_may_change_dropped_ones(
    steady: Project,
) -> None:
    at, root = CUT - 2 * HOUR, CUT - 5 * HOUR
    steady.write_log("late.jsonl", [otlp_line(tool(trace_of(root), 9, at, 1))])
    steady.materialize(NEXT_HOUR, only=STEPS[:1])
    assert late_logs_tick(steady, STEPS) == []
    # the trace's other tool, an hour before, might belong to another execution now
    assert [told for told, _ in pruned_at(steady, CUT).late] == [at - HOUR, at]
    steady.materialize(HourRange(at - HOUR, at + HOUR), only=STEPS)
    assert late_logs_tick(steady, STEPS) == []
    assert pruned_at(steady, root).late == []
    assert [row["action_count"] for row in steady.rows("executions", HourRange.of(root)) if row["span_id"]] == [3]


# -- hours that no run was asked for -----------------------------------------------------------------------------------


def test_rows_of_hours_that_no_run_was_asked_for_go_with_the_others_and_come_back(tmp_path: Path) -> None:
    project = small_project(tmp_path)
    for hour in HOURS:
        project.write_log(f"{hour:%H}.jsonl", steady_lines(hour))
    project.ingest(NEXT_HOUR)
    assert {row["hour"] for row in project.rows("executions")} == {*HOURS}
    assert pruned_at(project, CUT).late == []
    assert {row["hour"] for row in project.rows("executions")} == {*KEPT}
    asked = HourRange.of(CUT - 4 * HOUR)
    project.ingest(asked)
    assert_same_tables(
        project.tables(asked, RECORD_TABLES), project.clean_rebuild(HOURS, only=["ingest"]).tables(asked, RECORD_TABLES)
    )
    assert_lines_are_conserved(project)


def test_records_before_the_horizon_are_counted_and_loaded_when_their_hours_are_asked_for(tmp_path: Path) -> None:
    project = small_project(tmp_path)
    for hour in HOURS:
        project.write_log(f"{hour:%H}.jsonl", steady_lines(hour))
    project.ingest(NEXT_HOUR, horizon=CUT)
    assert {row["hour"] for row in project.rows("executions")} == {*KEPT}
    assert {row["hour"] for row in project.rows("spans")} == {*HourRange(CUT - LOOKBACK_HOURS * HOUR, HOURS.end)}
    counted = project.query("SELECT DISTINCT hour FROM raw_logs WHERE record_type = 'execution'")
    assert {hour for (hour,) in counted} == {*HOURS}
    asked = HourRange.of(CUT - 8 * HOUR)
    project.ingest(asked, horizon=CUT)
    assert_same_tables(
        project.tables(asked, RECORD_TABLES), project.clean_rebuild(HOURS, only=["ingest"]).tables(asked, RECORD_TABLES)
    )
    project.ingest(NEXT_HOUR, horizon=CUT)
    assert project.rows("executions", asked), "what was loaded stays"
    assert_lines_are_conserved(project)


# -- what cannot be made again is left as it is ------------------------------------------------------------------------


def test_an_hour_whose_traces_have_spans_in_a_dropped_hour_after_it_is_refused_if_the_log_of_that_is_gone(
    steady: Project,
) -> None:
    (steady.raw / "09.jsonl").unlink()
    left = steady.tables()
    with pytest.raises(HealthAssetsError, match=r"09\.jsonl is gone.*2026-06-07T09 cannot be built"):
        steady.materialize(HourRange.of(START + 7 * HOUR))
    assert steady.tables() == left
    steady.materialize(HourRange.of(START + 5 * HOUR), only=STEPS)  # sees less far
    assert steady.tables(None, HISTORY) == {name: left[name] for name in HISTORY}


def test_a_dropped_hour_whose_log_is_gone_is_refused_also_where_a_later_hour_looks_back_on_it(steady: Project) -> None:
    (steady.raw / "12.jsonl").unlink()
    left = steady.tables()
    for hour in (START + 12 * HOUR, START + 13 * HOUR, CUT):
        with pytest.raises(HealthAssetsError, match=r"12\.jsonl is gone.*2026-06-07T12 cannot be built"):
            steady.materialize(HourRange.of(hour))
    assert steady.tables() == left
    steady.materialize(NEXT_HOUR, only=STEPS[:1])  # looks back less far
    assert_history_is(steady, {name: left[name] for name in HISTORY})


@pytest.mark.parametrize("name", ["agent_health", "session_scores", "health_components", "error_budget"])
def test_an_asset_alone_is_not_made_from_hours_that_were_dropped(steady: Project, name: str) -> None:
    left = steady.tables()
    with pytest.raises(HealthAssetsError, match=rf"{name} of .* needs .* that retention dropped"):
        steady.materialize(HourRange.of(START), only=[name])
    assert steady.tables() == left


# -- how long ----------------------------------------------------------------------------------------------------------

NOW = datetime(2026, 6, 30, 12, 34, tzinfo=UTC)


def test_the_cutoff_is_so_many_days_before_the_hour_that_runs() -> None:
    assert cutoff(Settings(), 14, NOW) == datetime(2026, 6, 16, 12, tzinfo=UTC)
    assert cutoff(Settings(keep_days=20), None, NOW) == datetime(2026, 6, 10, 12, tzinfo=UTC)
    assert cutoff(Settings(keep_days=20), 30, NOW) == datetime(2026, 5, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("days", "settings", "sentence"),
    [
        (13, {}, "13 days are too few to keep: .* at least 14 days"),
        (14, {"lookback_hours": 169}, "at least 15 days"),
        (19, {"evaluation_window_hours": 240}, "look back 240 h, .* at least 20 days"),
        (10**9, {}, "before the first year"),
        (None, {}, "use --older-than-days or HEALTH_KEEP_DAYS"),
    ],
)
def test_days_that_current_hours_would_miss_are_refused(days: int | None, settings: dict, sentence: str) -> None:
    with pytest.raises(HealthAssetsError, match=sentence):
        cutoff(Settings(**settings), days, NOW)


def test_an_impossible_setting_is_refused_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValidationError, match="13 days are too few"):
        Settings(keep_days=13)
    monkeypatch.setenv("HEALTH_KEEP_DAYS", "13")
    code, text = invoke("prune")
    assert (code, text.count("\n")) == (1, 1)
    assert re.search("^health-assets: HEALTH_KEEP_DAYS: 13 days are too few", text)


# -- the command and the job -------------------------------------------------------------------------------------------


def invoke(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.output


def project_of_old_logs(folder: Path, ages_days: Sequence[int] = (20, 1)) -> Project:
    """Executions so many days before now."""
    project = Project(folder / "project", None, WINDOW_HOURS, LOOKBACK_HOURS)
    hours = [floor_hour(datetime.now(UTC)) - timedelta(days=age) for age in ages_days]
    for place, hour in enumerate(hours):
        project.write_log(f"{place}.jsonl", map(line, steady_records(hour)))
        project.materialize(hours_from(hour, 2), only=STEPS[:3])
    return project


def test_the_command_drops_old_rows_and_says_what_it_dropped_and_what_waits(tmp_path: Path) -> None:
    project = project_of_old_logs(tmp_path)
    where = ("--warehouse", str(project.warehouse_path))
    code, text = invoke("prune", "--older-than-days", "15", *where)
    assert code == 0, text
    assert re.search(r"dropped [\d,]+ rows of \d+ h before 20..-..-..T..; every score stays", text)
    assert re.search(r"^ +2 executions$", text, re.M)
    assert project.query("SELECT count(*) FROM executions") == [(2,)]
    assert project.query("SELECT count(DISTINCT hour) FROM agent_health") == [(4,)]

    [(old,)] = project.query("SELECT min(hour) FROM agent_health")
    project.write_log("late.jsonl", [line(execution("late", "a", old))])
    project.materialize(HourRange.of(floor_hour(datetime.now(UTC)) - HOUR), only=STEPS[:3])
    code, text = invoke("prune", "--older-than-days", "15", *where)
    assert code == 0, text
    assert "nothing to drop" in text
    assert "1 dropped hour has other lines or traces since (1 line waits)" in text
    assert f"--from {old:%Y-%m-%dT%H} --to {old + HOUR:%Y-%m-%dT%H}" in text


def test_the_command_waits_while_a_run_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project(tmp_path / "project", {})
    project.write_log("a.jsonl", [line(execution("e", "a", START))])
    project.ingest(HourRange.of(START))
    (tmp_path / "dagster").mkdir()
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "dagster"))
    monkeypatch.setenv("HEALTH_WAREHOUSE", str(project.warehouse_path))
    monkeypatch.setenv("HEALTH_LEASE_TIMEOUT_S", "1")
    with (
        dg.DagsterInstance.get() as instance,
        WriteLock(instance, project.settings, "run", "a run that writes") as write_lock,
    ):
        write_lock.take()
        code, text = invoke("prune", "--older-than-days", "30")
        assert (code, project.query("SELECT count(*) FROM executions")) == (75, [(1,)]), text
        assert "it is held by a run that writes" in " ".join(text.split())
    code, text = invoke("prune", "--older-than-days", "30")
    assert (code, project.query("SELECT count(*) FROM executions")) == (0, [(0,)]), text


def test_rows_that_were_dropped_are_no_lines_that_are_missing(tmp_path: Path) -> None:
    project = Project(tmp_path / "project", {})
    project.write_log("a.jsonl", [line(execution("e", "a", START)), "no JSON"])
    hour = HourRange.of(START)
    project.ingest(hour)
    prune(project.warehouse, PRUNED_COMPONENTS, hour.end, 1)
    with project.warehouse.read() as session:
        for asset in ("executions", "rejected_records"):
            source = Source(asset=asset, session=session, hours=hour, targets=Targets(), settings=project.settings)
            [result] = evaluate(SUITES[asset], source, ["every_line_is_a_row"])
            assert (result.unexpected_count, session.counts_by_hour(asset, hour)) == (0, {})


def test_days_that_reach_before_the_first_hour_of_all_drop_nothing(tmp_path: Path) -> None:
    with Warehouse(str(tmp_path / "w.duckdb")).write():
        pass
    code, text = invoke("prune", "--older-than-days", "36500", "--warehouse", str(tmp_path / "w.duckdb"))
    assert code == 0, text
    assert "nothing to drop" in text


def test_the_command_says_in_one_sentence_what_is_missing(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "none.duckdb")
    assert "use --older-than-days or HEALTH_KEEP_DAYS" in invoke("prune", "--warehouse", nowhere)[1]
    code, text = invoke("prune", "--older-than-days", "30", "--warehouse", nowhere)
    assert (code, text.count("\n")) == (1, 1)
    assert "there is no warehouse" in text
    assert not Path(nowhere).exists()


def test_the_job_drops_what_the_setting_says_and_is_there_only_with_the_setting(tmp_path: Path) -> None:
    project = project_of_old_logs(tmp_path)
    kept = project.settings.model_copy(update={"keep_days": 15})
    pipeline = project.pipeline.__class__(settings=kept)
    result = prune_hours_job(kept).execute_in_process(resources={"pipeline": pipeline})
    metadata = result.get_step_success_events()[0].logging_tags
    assert result.success and metadata
    assert project.query("SELECT count(*) FROM executions") == [(2,)]
    for settings, is_there in ((project.settings, False), (kept, True)):
        definitions = build_definitions(settings, HOURS)
        names = {one.name for one in [*(definitions.jobs or []), *(definitions.schedules or [])]}
        assert ({JOB, f"{JOB}_daily"} <= names) == is_there


def test_the_days_are_counted_by_the_clock_of_the_pipeline(tmp_path: Path) -> None:
    project = Project(tmp_path, window_hours=WINDOW_HOURS, lookback_hours=LOOKBACK_HOURS)
    project.write_log("a.jsonl", [line(execution("a", "planner", START))])
    project.materialize(hours_from(START, 1), only=["ingest"])
    for days_later, rows in ((2, 0), (4, 1)):
        project.now = START + timedelta(days=days_later)
        pruned = prune_old_hours(project.pipeline, 3)
        assert (pruned.before, pruned.rows.get("executions", 0)) == (project.now - timedelta(days=3), rows)


def test_the_copy_that_the_documentation_shows_is_the_same_warehouse(
    steady: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (REPOSITORY / "docs" / "retention.md").read_text(encoding="utf-8")
    left = steady.tables()
    (steady.folder / "data").mkdir()
    steady.warehouse_path.rename(steady.folder / "data" / "health.duckdb")
    monkeypatch.chdir(steady.folder)
    exec(page.split("```python")[1].split("```")[0], {})
    (steady.folder / "data" / "smaller.duckdb").rename(steady.warehouse_path)
    assert steady.tables() == left
