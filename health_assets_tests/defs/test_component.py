"""Another Dagster project embeds us: `docs/embedding.md` as it is written, in a project that `create-dagster` makes."""

import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest
import yaml

from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HOUR, KEY_FORMAT
from health_assets.core.settings import Settings
from health_assets.core.yaml_files import refuse_misread_numbers
from health_assets.defs.component import HealthAssetsComponent
from health_assets.warehouse.store import Warehouse
from health_assets_tests.support.dagster_world import World
from health_assets_tests.support.projects import REPOSITORY

PAGE = (REPOSITORY / "docs" / "embedding.md").read_text(encoding="utf-8")
HOURS = [datetime(2026, 6, 7, hour, tzinfo=UTC) for hour in (0, 1)]
PROGRAMS = Path(sys.executable).parent
RUN_S = 300


def example() -> dict:
    """The file that the page shows."""
    [text] = re.findall(r"```yaml\n(type: .*?)```", PAGE, re.DOTALL)
    return yaml.safe_load(text)


def component(folder: Path, **attributes: object) -> HealthAssetsComponent:
    return HealthAssetsComponent(raw=str(folder / "raw"), warehouse=str(folder / "health.duckdb"), **attributes)


def defined(*components: HealthAssetsComponent) -> dg.Definitions:
    made = dg.Definitions.merge(*map(dg.build_defs_for_component, components))
    dg.Definitions.validate_loadable(made)
    return made


def dg_command(project: Path, *arguments: str, **environment: str) -> str:
    """Run `dg` in a project as its developer does; returns what it says."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HEALTH_", "DAGSTER_"))}
    paths = os.pathsep.join([str(REPOSITORY), str(project / "src")])
    own = {"PYTHONPATH": paths, "DAGSTER_HOME": str(project / "home"), "DAGSTER_DG_UPDATE_CHECK_ENABLED": "0"}
    done = subprocess.run(
        [str(PROGRAMS / "dg"), *arguments],
        cwd=project, env=kept | own | environment, capture_output=True, text=True, timeout=RUN_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """An empty project as `create-dagster` scaffolds it, without its environment, with two hours of logs."""
    made = subprocess.run(
        [str(PROGRAMS / "create-dagster"), "project", "shop", "--no-uv-sync"],
        cwd=tmp_path, env={**os.environ, "DAGSTER_DG_UPDATE_CHECK_ENABLED": "0"},
        capture_output=True, text=True, timeout=RUN_S, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stdout + made.stderr
    folder = tmp_path / "shop"
    world = World.at(folder / "data")
    for hour in HOURS:
        world.write(f"{hour:%H}.jsonl", [*_lines(hour)])
    (folder / "data" / "targets.yaml").write_text("agents:\n  ada:\n    expected_success_rate: 0.9\n", encoding="utf-8")
    (folder / "home").mkdir()
    (folder / "home" / "dagster.yaml").write_text("telemetry:\n  enabled: false\n", encoding="utf-8")
    return folder


def _lines(hour: datetime) -> list[dict]:
    at = (hour + HOUR / 2).isoformat()
    tool_call = {"type": "tool_call", "call_id": f"k-{hour:%H}", "tool": "search", "agent_id": "ada", "ended_at": at}
    run = {"type": "execution", "execution_id": f"e-{hour:%H}", "agent_id": "ada", "started_at": at, "ended_at": at}
    return [{**tool_call, "status": "failure"}, {**run, "status": "success"}]


def with_example(project: Path) -> dict:
    """Add the file of the page to a project."""
    wanted = example()
    folder = project / "src" / "shop" / "defs" / "health"
    folder.mkdir()
    (folder / "defs.yaml").write_text(yaml.safe_dump(wanted), encoding="utf-8")
    return wanted


@pytest.mark.nightly
def test_dg_checks_the_project_of_the_page(project: Path) -> None:
    """By day it is loaded, too, by the launches below; `test_dg` checks definitions by `dg`."""
    with_example(project)
    assert "All definitions loaded successfully" in dg_command(project, "check", "defs", "--use-active-venv")


@pytest.mark.nightly
def test_the_project_of_the_page_runs_in_its_own_instance(project: Path) -> None:
    wanted = with_example(project)
    url = str(project / wanted["attributes"]["warehouse"])
    first, last = (f"{hour:{KEY_FORMAT}}" for hour in (HOURS[0], HOURS[1]))
    dg_command(project, "launch", "--job", "agents_health_materialize_hours", "--partition-range", f"{first}...{last}")
    # the executor of the project, which gives each step a process and a lock of its own
    dg_command(project, "launch", "--assets", 'key:"agents/tool_health"', "--partition", last)

    with Warehouse.of(Settings(warehouse=url)).read() as session:
        assert session.query("SELECT calls, failures FROM tool_health ORDER BY hour") == [(1, 1), (2, 2)]
        assert session.query("SELECT count(*) FROM error_budget") == [(2,)]
        assert session.query("SELECT count(*) FROM partition_states WHERE asset = 'session_scores'") == [(0,)]
        assert session.query("SELECT max(expected_success_rate) FROM agent_health") == [(0.9,)]
    ref = dg.DagsterInstance.from_config(str(project / "home"))
    with ref as instance:
        runs = instance.get_runs()
        assert [run.status for run in runs] == [dg.DagsterRunStatus.SUCCESS] * 2
        key = dg.AssetKey(["agents", "tool_health"])
        event = instance.get_latest_materialization_event(key)
        assert event is not None and event.asset_materialization is not None
        assert event.asset_materialization.metadata["failures"].value == 2
        said = [entry.message for run in runs for entry in instance.all_logs(run.run_id)]
        assert not [message for message in said if "lost the write lock" in message]


def test_chosen_systems_bring_what_they_are_made_from_and_nothing_else(tmp_path: Path) -> None:
    graph = defined(component(tmp_path, systems=["model_health"], key_prefix="a")).resolve_asset_graph()
    names = {key.path[-1] for key in graph.get_all_asset_keys()}
    assert {"raw_logs", "model_calls", "model_components", "model_health", "system_health"} <= names
    assert not names & {"tool_health", "agent_probes", "score_evidence", "agent_usage"}
    assert {key.path[0] for key in graph.get_all_asset_keys()} == {"a"}


def test_all_systems_have_plain_keys_and_groups_of_their_own_where_nothing_is_chosen(tmp_path: Path) -> None:
    graph = defined(component(tmp_path)).resolve_asset_graph()
    assert graph.get(dg.AssetKey("tool_health")).group_name == "tool_health"
    assert graph.get(dg.AssetKey("agent_probes")).group_name == "survey"
    one = defined(component(tmp_path, group="fleet", owners=["team:x"])).resolve_asset_graph()
    assert {one.get(key).group_name for key in one.get_all_asset_keys()} == {"fleet"}
    assert one.get(dg.AssetKey("executions")).owners == ["team:x"]


def test_two_fleets_stand_in_one_project_beside_a_resource_of_the_same_name(tmp_path: Path) -> None:
    @dg.asset(required_resource_keys={"pipeline"})
    def executions() -> None:
        """An asset of the other project's."""

    others = dg.Definitions(assets=[executions], resources={"pipeline": "theirs"}, executor=dg.multiprocess_executor)
    fleets = [component(tmp_path / name, key_prefix=name, systems=["tool_health"]) for name in ("red", "blue")]
    made = dg.Definitions.merge(others, *map(dg.build_defs_for_component, fleets))
    dg.Definitions.validate_loadable(made)
    jobs = {job.name for job in made.resolve_all_job_defs()}
    assert {"red_health_materialize_hours", "blue_health_materialize_hours"} <= jobs


def test_an_embedded_project_deletes_no_old_runs_and_starts_nothing_unasked(tmp_path: Path) -> None:
    made = defined(component(tmp_path))
    assert not [job.name for job in made.resolve_all_job_defs() if "prune_run" in job.name]
    assert {schedule.default_status for schedule in made.schedules} == {dg.DefaultScheduleStatus.STOPPED}
    assert {sensor.default_status for sensor in made.sensors} == {dg.DefaultSensorStatus.STOPPED}
    started = defined(component(tmp_path, schedules=True))
    off = {
        schedule.name for schedule in started.schedules if schedule.default_status != dg.DefaultScheduleStatus.RUNNING
    }
    assert off == {"health_running_hour"}, "each time of it is a run, so somebody switches it on"
    assert {sensor.default_status for sensor in started.sensors} == {dg.DefaultSensorStatus.RUNNING}


@pytest.mark.parametrize(
    ("attributes", "told"),
    [
        ({"systems": ["tool_helth"]}, "there is no system 'tool_helth'"),
        ({"settings": {"window_hours": 0}}, "window_hours: Input should be greater than or equal to 1"),
        ({"settings": {"windows": 3}}, "there is no setting 'windows'"),
        ({"settings": {"raw": "elsewhere"}}, "raw is an attribute of the component"),
        ({"settings": {"window_hours": True}}, "settings: window_hours: YAML reads yes, on and true as a flag"),
        ({"settings": {"host_agent": 1}}, "host_agent: Input should be a valid string"),
    ],
)
def test_an_impossible_attribute_is_told_by_its_name(tmp_path: Path, attributes: dict, told: str) -> None:
    with pytest.raises(HealthAssetsError, match=re.escape(told)):
        dg.build_defs_for_component(component(tmp_path, **attributes))


@pytest.mark.parametrize("given", ["1:30", "0777", "-1:30", "012_3"])
@pytest.mark.parametrize("place", ["window_hours: {}", "sessions: [{{deep: {}}}]"])
def test_a_number_that_yaml_reads_as_another_is_refused_with_its_place(tmp_path: Path, given: str, place: str) -> None:
    """Dagster has read the file by then, and gives 90 for 1:30, 511 for 0777."""
    (tmp_path / "defs.yaml").write_text(
        f"type: other.Component\nattributes: {{at: {given}}}\n---\n"
        "type: health_assets.defs.component.HealthAssetsComponent\n"
        f"attributes:\n  settings:\n    {place.format(given)}\n",
        encoding="utf-8",
    )
    with pytest.raises(HealthAssetsError, match=r"defs\.yaml: YAML reads digits .*, line 7, column"):
        refuse_misread_numbers(tmp_path / "defs.yaml", "HealthAssetsComponent")


def test_texts_in_quotes_and_files_of_other_components_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "defs.yaml").write_text(
        "type: other.Component\nattributes: {at: 1:30}\n---\n"
        "type: health_assets.defs.component.HealthAssetsComponent\n"
        "attributes: {raw: '0777', key_prefix: \"1:30\", settings: {window_hours: 12}}\n",
        encoding="utf-8",
    )
    refuse_misread_numbers(tmp_path / "defs.yaml", "HealthAssetsComponent")


def test_the_sensor_of_an_embedded_project_asks_for_its_own_assets_alone(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    """Hours lack the systems that are not defined, and for good."""
    world = World.at(tmp_path)
    for hour in HOURS:
        world.write(f"{hour:%H}.jsonl", [*_lines(hour)])
    made = defined(component(tmp_path, systems=["model_health"], key_prefix="a"))
    job = made.resolve_job_def("a_health_materialize_hours")
    assert job.execute_in_process(instance=instance, partition_key=f"{HOURS[0]:{KEY_FORMAT}}").success
    [sensor] = [own for own in made.sensors if own.name == "a_health_late_logs"]
    with dg.build_sensor_context(instance=instance, resources=dict(made.resources or {})) as context:
        asked = sensor.evaluate_tick(context).run_requests
    own = made.resolve_asset_graph().get_all_asset_keys()
    assert {key for request in asked for key in request.asset_selection or ()} <= own
    assert [request.tags["dagster/partition"] for request in asked] == [f"{HOURS[1]:{KEY_FORMAT}}"]
