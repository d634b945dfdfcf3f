"""Hours that need lines which cannot be read now: they are held, and all others of the range are built."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.storage.partition_status_cache import get_and_update_asset_status_cache_value

from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HOUR, HourRange
from health_assets.defs.pruning_job import COMPONENTS
from health_assets.pipeline.retention import prune
from health_assets.warehouse.holds import EVERY_HOUR_WAS_BUILT, Holds
from health_assets_tests.defs.test_dagster_runs import schedule_tick, sensor_tick
from health_assets_tests.pipeline.test_unreadable_logs import back, executions, hidden
from health_assets_tests.support.dagster_world import FLEET_ASSETS, NOON, World, requested_hours
from health_assets_tests.support.dagster_world import execution as world_execution
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import (
    FLEET,
    ONE_SYSTEM_BY_DAY,
    Project,
    assert_same_tables,
    forked_command,
    hours_from,
    materialize_arguments,
)

HOURS = hours_from(START, 4)
HELD = START + 2 * HOUR


def two_logs(project: Project) -> None:
    """Two logs of which the third hour was never asked for, though the run that read them saw its lines."""
    for agent in ("a", "b"):
        made = [execution(f"{agent}{number}", agent, START + number * HOUR) for number in range(4)]
        project.write_log(f"{agent}.jsonl", map(line, made))
    project.materialize(hours_from(START, 2), only=FLEET)


def held(project: Project) -> list[tuple]:
    return project.query("SELECT hour, source_file, lines FROM held_hours ORDER BY ALL")


@pytest.mark.parametrize("only", ONE_SYSTEM_BY_DAY)
def test_an_hour_whose_known_lines_cannot_be_read_is_held_and_the_others_are_built(
    project: Project, only: Sequence[str] | None
) -> None:
    two_logs(project)
    if only is None:
        project.materialize(hours_from(START, 2))
    away = hidden(project, "b.jsonl")
    project.write_log("c.jsonl", [line(execution("c1", "c", START + HOUR)), line(execution("c2", "c", HELD))])
    before = project.tables()
    project.materialize(HOURS, only=only)
    assert held(project) == [(HELD, "b.jsonl", 1), (HELD + HOUR, "b.jsonl", 1)]
    assert executions(project) == ["a0", "a1", "b0", "b1", "c1"], "nothing of a held hour, not even of other logs"
    assert project.built_hours("agent_health") == project.built_hours("executions") == {START, START + HOUR}
    assert project.tables(hours_from(START, 1))["agent_health"] == [
        row for row in before["agent_health"] if row["hour"] == START
    ]
    since = project.query("SELECT held_at FROM held_hours")
    project.materialize(HOURS, only=FLEET)
    assert project.query("SELECT held_at FROM held_hours") == since
    back(project, "b.jsonl", away)
    project.materialize(HOURS, only=only)
    assert held(project) == []
    assert_same_tables(project.tables(), project.clean_rebuild(HOURS, only=only).tables())


def test_an_hour_waits_for_a_log_for_a_while_and_is_built_without_it_then(project: Project) -> None:
    two_logs(project)
    away = hidden(project, "b.jsonl")
    project.materialize(HOURS, only=FLEET)
    assert project.query("SELECT DISTINCT held_until - held_at FROM held_hours") == [(timedelta(hours=2),)]
    project.change("UPDATE held_hours SET held_until = held_at")
    for _ in range(2):  # what has held an hour for long enough holds it no second time
        project.materialize(HOURS, only=FLEET)
        assert project.built_hours("agent_health") == project.built_hours("executions") == set(HOURS)
        assert executions(project) == ["a0", "a1", "a2", "a3", "b0", "b1"]
    with project.warehouse.read() as session:
        assert Holds(session).within() == []
        assert [hold.source_file for hold in Holds(session).overdue()] == ["b.jsonl", "b.jsonl"]
    back(project, "b.jsonl", away)
    project.materialize(HOURS, only=FLEET)
    assert held(project) == []
    assert_same_tables(project.tables(), project.clean_rebuild(HOURS, only=FLEET).tables())


def test_where_no_hour_may_wait_each_is_built_without_what_cannot_be_read(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEALTH_HOLD_HOURS", "0")
    two_logs(project)
    hidden(project, "b.jsonl")
    project.materialize(HOURS, only=FLEET)
    assert project.built_hours("agent_health") == set(HOURS)
    assert executions(project) == ["a0", "a1", "a2", "a3", "b0", "b1"]


def test_a_held_hour_keeps_what_it_had_and_windows_that_look_back_on_it_see_that(project: Project) -> None:
    two_logs(project)
    project.write_log("b.jsonl", [line(execution("b1", "b", START + HOUR))])
    project.materialize(hours_from(START, 2), only=FLEET)
    project.change("DELETE FROM executions WHERE execution_id = 'b1'")
    before = project.tables(hours_from(START, 2))
    away = hidden(project, "b.jsonl")
    project.write_log("a.jsonl", [line(execution("late", "a", START))])
    project.materialize(HOURS, only=FLEET)
    assert held(project) == [(START + HOUR, "b.jsonl", 1)]
    after = project.tables(hours_from(START + HOUR, 1))
    for table in ("executions", "health_components", "agent_health"):
        assert after[table] == [row for row in before[table] if row["hour"] == START + HOUR], table
    assert "late" in executions(project)
    assert project.built_hours("agent_health") == set(HOURS)
    back(project, "b.jsonl", away)
    project.materialize(HOURS, only=FLEET)
    assert_same_tables(project.tables(), project.clean_rebuild(HOURS, only=FLEET).tables())


def test_a_log_that_cannot_be_read_holds_no_hour_that_lacks_nothing(project: Project) -> None:
    two_logs(project)
    project.materialize(HOURS, only=FLEET)
    hidden(project, "b.jsonl")
    project.materialize(HOURS, only=FLEET)
    assert held(project) == []
    assert project.built_hours("agent_health") == set(HOURS)


def test_all_causes_of_all_hours_are_named_at_once_and_the_command_fails(project: Project) -> None:
    two_logs(project)
    project.write_log("c.jsonl", [line(execution("c1", "c", START + HOUR)), line(execution("c3", "c", HELD + HOUR))])
    project.materialize(hours_from(START, 2), only=FLEET)
    for name in ("b.jsonl", "c.jsonl"):
        hidden(project, name)
    project.write_log("d.jsonl", [line(execution("d", "d", START))])
    done = forked_command(*materialize_arguments(project, HOURS, "agent_health_model"), folder=project.folder)
    assert done.returncode == 1
    why = "{0}.jsonl: cannot read the raw log {1}/{0}.jsonl: it is a link that leads nowhere, to nowhere"
    sentence = (
        "2 of 4 h are held, and all others were built: "
        f"2026-06-07T02 to 2026-06-07T04 (2 h) needs 2 lines of {why.format('b', project.raw)}; "
        f"2026-06-07T03 to 2026-06-07T04 (1 h) needs 1 line of {why.format('c', project.raw)}"
    )
    assert sentence in done.stderr
    assert "check raw_logs.every_hour_was_built failed (error): 2 hours\n" in done.stdout
    assert "materialized in part in" in done.stdout
    assert "d" in executions(project)

    told = forked_command("alerts", "--warehouse", project.warehouse_url, folder=project.folder)
    late, first, second, *_ = told.stdout.splitlines()
    assert late.endswith("UTC was not materialized in time; the newest is 2026-06-07 01:00")
    assert told.returncode == 3, "for whoever watches nothing but exit codes"
    assert "no rules are configured, so no hour is judged; name a file of rules" in told.stdout
    assert f"not read: {why.format('b', project.raw).partition(': ')[2]}\n" in told.stdout
    assert [first, second] == [f"held: {cause}" for cause in sentence.partition("built: ")[2].split("; ")]


# -- with retention --

PRUNED_STEPS = ["ingest", "health_components", "agent_health"]


def pruned_logs(folder: Path) -> Project:
    """Two logs of ten hours, of which all but the last two were dropped."""
    project = Project(folder / "project", None, window_hours=2, lookback_hours=3)
    for agent in ("a", "b"):
        made = [execution(f"{agent}{number}", agent, START + number * HOUR) for number in range(10)]
        project.write_log(f"{agent}.jsonl", map(line, made))
    project.materialize(hours_from(START, 10), only=PRUNED_STEPS)
    prune(project.warehouse, COMPONENTS, START + 8 * HOUR, project.lookback_hours)
    return project


def test_a_dropped_hour_whose_log_cannot_be_read_is_refused_and_its_scores_stay(tmp_path: Path) -> None:
    project = pruned_logs(tmp_path)
    before = project.tables()
    built = {name: project.built_hours(name) for name in ("executions", "health_components", "agent_health")}
    away = hidden(project, "b.jsonl")
    why = (
        r"^cannot read the raw log .*b\.jsonl: .*, and the hour 2026-06-07T0\d cannot be built without the 1 line of b"
    )
    with pytest.raises(HealthAssetsError, match=why):
        project.materialize(hours_from(START + 6 * HOUR, 2), only=PRUNED_STEPS)
    assert_same_tables(project.tables(), before)
    assert {name: project.built_hours(name) for name in built} == built
    back(project, "b.jsonl", away)
    hours = hours_from(START + 6 * HOUR, 2)
    project.materialize(hours, only=PRUNED_STEPS)
    assert_same_tables(
        project.tables(hours), project.clean_rebuild(hours_from(START, 10), only=PRUNED_STEPS).tables(hours)
    )


def test_retention_forgets_holds_before_its_cutoff_and_tells_the_lines_that_waited(tmp_path: Path) -> None:
    project = Project(tmp_path / "project", None, window_hours=2, lookback_hours=3)
    for agent in ("a", "b"):
        made = [execution(f"{agent}{number}", agent, START + number * HOUR) for number in range(10)]
        project.write_log(f"{agent}.jsonl", map(line, made))
    project.materialize(hours_from(START, 2), only=PRUNED_STEPS)
    hidden(project, "b.jsonl")
    project.materialize(hours_from(START, 10), only=PRUNED_STEPS)
    assert [hour for hour, *_ in held(project)] == [*hours_from(HELD, 8)]
    pruned = prune(project.warehouse, COMPONENTS, START + 6 * HOUR, project.lookback_hours)
    assert [hour for hour, *_ in held(project)] == [*hours_from(START + 6 * HOUR, 4)]
    assert pruned.late == [(hour, 2) for hour in hours_from(HELD, 4)]


# -- in Dagster --


def test_in_dagster_the_held_hour_fails_alone_and_is_asked_for_once_its_cause_is_gone(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    world = World.at(tmp_path / "world", window_hours=3, lookback_hours=6)
    for name, hours in (("a", 3), ("b", 2)):
        made = [world_execution(NOON + number * HOUR, f"{name}{number}") for number in range(hours)]
        world.write(f"{name}.jsonl", made)
    world.materialize(HourRange.of(NOON), only=FLEET)
    path, away = Path(world.settings.raw, "b.jsonl"), tmp_path / "away"
    path.rename(away)
    path.symlink_to("nowhere")
    hours = HourRange(NOON + HOUR, NOON + 3 * HOUR)
    result = world.run(instance, hours, assets=FLEET_ASSETS)
    (failure,) = [event.step_failure_data for event in result.get_step_failure_events()]
    assert failure.user_failure_data.description.startswith("1 of 2 h are held, and all others were built: ")
    (found,) = [one for one in result.get_asset_check_evaluations() if one.check_name == EVERY_HOUR_WAS_BUILT]
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert world.query("SELECT hour, source_file, lines FROM held_hours") == [(NOON + HOUR, "b.jsonl", 1)]
    partitions = world.definitions().resolve_assets_def("executions").partitions_def
    for asset in ("executions", "agent_health"):
        status = get_and_update_asset_status_cache_value(instance, dg.AssetKey(asset), partitions)
        assert set(status.deserialize_failed_partition_subsets(partitions).get_partition_keys()) == {"2026-06-07-13:00"}

    for assets in (["health_components", "agent_health"], ["executions"]):
        [failed] = world.run(instance, hours, assets=assets).get_step_failure_events()
        assert failed.node_name == ("agent_health_model" if "agent_health" in assets else "ingest")
        assert failed.step_failure_data.user_failure_data.description.startswith("1 of 2 h are held, and all others")

    tick = sensor_tick(world, instance)
    assert not tick.run_requests
    assert tick.skip_message.endswith("b.jsonl: it is a link that leads nowhere, to nowhere; 1 hour held for it")
    request = schedule_tick(world, instance, NOON + 4 * HOUR + timedelta(minutes=5))
    assert requested_hours(request.tags) == HourRange.of(NOON + 3 * HOUR), "what is held is not caught up with"
    path.unlink()
    away.rename(path)
    for wanted in sensor_tick(world, instance).run_requests:
        world.materialize(tags=wanted.tags, only=FLEET)
    clean = world.rebuilt(tmp_path / "clean", HourRange(NOON, NOON + 3 * HOUR), only=FLEET)
    assert world.tables() == clean.tables()
    assert not sensor_tick(world, instance).run_requests


def test_in_dagster_held_hours_are_told_also_where_a_check_of_the_records_fails(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    """The check that names them follows from the records, and so does not run then."""
    world = World.at(tmp_path / "world", window_hours=3, lookback_hours=6)
    for name, hours in (("a", 3), ("b", 2)):
        world.write(
            f"{name}.jsonl", [world_execution(NOON + number * HOUR, f"{name}{number}") for number in range(hours)]
        )
    world.materialize(HourRange.of(NOON), only=["ingest"])
    path = Path(world.settings.raw, "b.jsonl")
    path.unlink()
    path.symlink_to("nowhere")
    world.materialize(HourRange.of(NOON + 2 * HOUR), only=["ingest"])
    world.query("UPDATE executions SET confidence = 7 WHERE execution_id = 'a2'")
    result = world.run(instance, HourRange(NOON + HOUR, NOON + 3 * HOUR), assets=FLEET_ASSETS)
    [failure] = result.get_step_failure_events()
    assert failure.node_name == "ingest"
    assert failure.step_failure_data.user_failure_data.description.startswith(
        "1 of 2 h are held, and all others were built: "
    )
    assert "executions.shares_are_between_0_and_1" in {
        f"{one.asset_key.to_user_string()}.{one.check_name}"
        for one in result.get_asset_check_evaluations()
        if not one.passed
    }


def test_a_run_whose_hours_are_all_held_fails_no_check_but_the_one_that_names_them(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    world = World.at(tmp_path / "world", window_hours=3, lookback_hours=6)
    world.write("a.jsonl", [world_execution(NOON, "a0")])
    world.write("b.jsonl", [world_execution(NOON + number * HOUR, f"b{number}") for number in range(2)])
    world.materialize(HourRange.of(NOON), only=FLEET)
    path = Path(world.settings.raw, "b.jsonl")
    path.rename(tmp_path / "away")
    path.symlink_to("nowhere")
    result = world.run(instance, HourRange.of(NOON + HOUR), assets=["raw_logs", "executions", "health_components"])
    failed = [one for one in result.get_asset_check_evaluations() if not one.passed]
    errors = {one.check_name for one in failed if one.severity == dg.AssetCheckSeverity.ERROR}
    assert errors == {EVERY_HOUR_WAS_BUILT}
    (failure,) = result.get_step_failure_events()
    assert failure.step_key == "check_every_hour_was_built"
    assert world.query(
        f"SELECT count(*) FROM expectation_results WHERE hour = '{NOON + HOUR}' AND severity = 'error'"
    ) == [(0,)]
