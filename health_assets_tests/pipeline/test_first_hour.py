"""Which hours Dagster's pages offer and which ones its runs take, where HEALTH_FIRST_HOUR is not set."""

import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.definitions_load_context import DefinitionsLoadContext, DefinitionsLoadType
from dagster._core.definitions.partitions.context import partition_loading_context

from health_assets.core.hours import HOUR, KEY_FORMAT, HourRange, floor_hour
from health_assets.defs.build import SURVEY_JOB, build_definitions
from health_assets.defs.partitions import begun_hours, hours_tags
from health_assets.pipeline import first_hour as module
from health_assets.pipeline.first_hour import EARLIEST, first_hour
from health_assets.systems.survey.surveying import keep_probes
from health_assets.warehouse.partition_states import PartitionStates
from health_assets_tests.support.dagster_world import NOON, QUIET, World, execution
from health_assets_tests.support.projects import Project
from health_assets_tests.support.surveys_made import made_probe

NOW = NOON + timedelta(minutes=40)
NEWEST = NOON - HOUR
LOOKBACK_HOURS = 168


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World.at(tmp_path / "world")


def write(world: World, *hours: datetime) -> None:
    """A raw log with one execution in each hour."""
    world.write("log.jsonl", [execution(hour, f"e{number}", minute=5) for number, hour in enumerate(hours)])


def load(world: World, *hours: datetime) -> None:
    """Write such a log, materialize its last hour, and take the log away: what is known is in the warehouse."""
    write(world, *hours)
    world.materialize(HourRange.of(max(hours)), only=["ingest"])
    (world.settings.raw / "log.jsonl").unlink()


def test_the_first_hour_is_that_of_the_first_event_that_the_warehouse_knows(world: World) -> None:
    load(world, NOON - 400 * HOUR, NOON - 3 * HOUR)
    assert first_hour(world.settings, NOW) == NOON - 400 * HOUR


@pytest.mark.parametrize(("days", "counts"), [(92, True), (93, False), (3000, False)])
def test_a_line_that_lies_months_before_all_others_does_not_count(world: World, days: int, counts: bool) -> None:
    lone = NOON - 10 * HOUR - timedelta(days=days)
    load(world, lone, NOON - 10 * HOUR, NOON - 2 * HOUR)
    assert first_hour(world.settings, NOW) == (lone if counts and lone >= EARLIEST else NOON - 10 * HOUR)


def test_traces_that_lie_weeks_apart_are_one_history(world: World) -> None:
    load(world, *(NOON - timedelta(days=40 * number) for number in range(1, 14)))
    assert first_hour(world.settings, NOW) == NOON - timedelta(days=40 * 13)


def test_logs_that_end_long_ago_are_offered_all_the_same(world: World) -> None:
    load(world, NOON - timedelta(days=800), NOON - timedelta(days=790))
    assert first_hour(world.settings, NOW) == NOON - timedelta(days=800)


def test_before_a_warehouse_small_logs_are_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    write(world, NOON - 400 * HOUR, NOON - 3 * HOUR)
    assert first_hour(world.settings, NOW) == NOON - 400 * HOUR
    monkeypatch.setattr(module, "MOST_BYTES_READ", 10)
    assert first_hour(world.settings, NOW) == NOON - LOOKBACK_HOURS * HOUR, "the newest hours where they are large"
    assert not Path(world.settings.warehouse).exists(), "looking makes no warehouse"


@pytest.mark.parametrize("raw", ["empty", "missing", "memory://nothing"])
def test_without_any_log_the_newest_hours_are_offered(world: World, raw: str) -> None:
    roots = {"empty": world.settings.raw, "missing": Path("/nowhere/raw")}
    settings = world.settings.model_copy(update={"raw": roots.get(raw, raw)})
    assert first_hour(settings, NOW) == NOON - LOOKBACK_HOURS * HOUR


def test_a_log_that_has_just_begun_offers_the_newest_finished_hour(world: World) -> None:
    write(world, NOON)
    assert first_hour(world.settings, NOW) == NEWEST


def test_what_lies_after_now_or_before_2020_does_not_count(world: World) -> None:
    load(world, datetime(2011, 5, 5, tzinfo=UTC), NOON - 5 * HOUR, NOON + timedelta(days=400))
    assert first_hour(world.settings, NOW) == NOON - 5 * HOUR


def test_an_hour_of_which_there_is_only_a_survey_is_offered(project: Project) -> None:
    hour = NOON - 30 * HOUR
    with project.warehouse.write() as session:
        keep_probes(session, [made_probe("a", "p", hour, status="healthy")])
        PartitionStates(session).note("agent_probes", HourRange.of(hour), ())
    assert first_hour(project.settings, NOW) == hour


def test_where_the_warehouse_cannot_be_read_every_hour_is_offered_and_the_reason_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "world").mkdir()
    (tmp_path / "world" / "health.duckdb").write_text("no database" * 1000)
    with caplog.at_level(logging.WARNING):
        assert first_hour(World.at(tmp_path / "world").settings, NOW) == EARLIEST
    assert "the logs' first is not known" in caplog.text


# -- what Dagster makes of it ------------------------------------------------------------------------------------------


def keys(hour: datetime) -> str:
    return f"{hour:{KEY_FORMAT}}"


def partitions_of(definitions: dg.Definitions) -> dg.HourlyPartitionsDefinition:
    """The one partitions definition that all assets share."""
    graph = definitions.resolve_asset_graph()
    (shared,) = {graph.get(key).partitions_def for key in graph.get_all_asset_keys()}
    assert isinstance(shared, dg.HourlyPartitionsDefinition)
    return shared


def this_hour() -> datetime:
    return floor_hour(datetime.now(UTC))


def test_all_assets_offer_the_same_hours_from_the_logs_first_to_the_newest_finished_one(world: World) -> None:
    hour = this_hour()
    write(world, hour - 30 * HOUR)
    offered = partitions_of(build_definitions(world.settings)).get_partition_keys()
    assert (offered[0], offered[-1], len(offered)) == (keys(hour - 30 * HOUR), keys(hour - HOUR), 30)


def test_the_setting_wins_over_the_logs(world: World) -> None:
    hour = this_hour()
    write(world, hour - 30 * HOUR)
    settings = world.settings.model_copy(update={"first_hour": hour - 50 * HOUR})
    assert partitions_of(build_definitions(settings)).get_first_partition_key() == keys(hour - 50 * HOUR)


def test_a_run_takes_hours_from_before_and_the_one_that_runs_which_are_not_offered(project: Project) -> None:
    """Dagster loads the definitions anew for a run; the survey is made in the running hour."""
    hour = this_hour()
    with DefinitionsLoadContext.scoped(DefinitionsLoadContext(DefinitionsLoadType.RECONSTRUCTION)):
        for_a_run = build_definitions(project.settings)
    taken = partitions_of(for_a_run)
    assert taken.get_first_partition_key() == keys(EARLIEST)
    assert taken.has_partition_key(keys(hour))
    with dg.instance_for_test() as instance:
        result = for_a_run.resolve_job_def(SURVEY_JOB).execute_in_process(
            instance=instance, tags=hours_tags(HourRange.of(hour)), run_config=QUIET
        )
        assert result.success
        assert instance.get_materialized_partitions(dg.AssetKey("agent_probes")) == {keys(hour)}


def test_the_hours_that_a_run_takes_are_listed_anew_once_the_hour_turns() -> None:
    taken = begun_hours(NOON - 2 * HOUR)
    for end in (NOON + HOUR, NOON + 2 * HOUR, NOON + HOUR):
        with partition_loading_context(end - HOUR / 2):
            assert taken.get_partition_keys() == list(map(keys, HourRange(NOON - 2 * HOUR, end)))


def test_loading_for_a_run_opens_no_warehouse(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> datetime:
        raise AssertionError("the first hour was looked for")

    monkeypatch.setattr("health_assets.defs.build.first_hour", refused)
    with DefinitionsLoadContext.scoped(DefinitionsLoadContext(DefinitionsLoadType.RECONSTRUCTION)):
        build_definitions(world.settings)
    with pytest.raises(AssertionError, match="looked for"):
        build_definitions(world.settings)
