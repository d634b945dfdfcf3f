"""Puts assets, checks, schedules and sensors together into Dagster definitions."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta

import dagster as dg

from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HourRange
from health_assets.core.settings import Settings, load_settings
from health_assets.defs.alerting import alerts_sensor
from health_assets.defs.assets import all_assets
from health_assets.defs.checks import (
    all_suite_checks,
    every_line_is_still_there_check,
    every_log_was_read_check,
    newest_hour_check,
)
from health_assets.defs.dagster_internals import is_loaded_for_a_run
from health_assets.defs.holding import every_hour_was_built_check
from health_assets.defs.judge_job import judge_safety_job, judge_safety_schedule
from health_assets.defs.partitions import begun_hours, finished_hours, hourly_partitions
from health_assets.defs.pipeline import Pipeline, pipeline_resource
from health_assets.defs.progress_logger import progress_logger
from health_assets.defs.pruning_job import prune_hours_job, prune_hours_schedule
from health_assets.defs.run_retention import prune_runs_job, prune_runs_schedule
from health_assets.defs.schedules import freshness_schedule, hourly_schedule
from health_assets.defs.sensors import late_logs_sensor
from health_assets.defs.specs import shown_as_stored_in
from health_assets.defs.survey import survey_assets, survey_schedule
from health_assets.defs.turns.turns import Turn
from health_assets.pipeline.first_hour import EARLIEST, first_hour
from health_assets.systems.declared_assets import SYSTEMS
from health_assets.warehouse.engines.duckdb.shared import SharedDuckDB

JOB = "materialize_hours"
FRESHNESS_JOB = "check_freshness"
SURVEY_JOB = "survey_agents"


def build_definitions(
    settings: Settings | None = None,
    hours: HourRange | dg.PartitionsDefinition | None = None,
    systems: Collection[str] = (),
    shared_duckdb: SharedDuckDB | None = None,
    turn: Turn | None = None,
    *,
    is_partitioned: bool = True,
) -> dg.Definitions:
    """Definitions for these settings (the environment's by default).

    Args:
        settings: where logs, targets and warehouse are.
        hours: the hours that can be materialized, as a range or as partitions; by default all from the settings' first,
            or else the logs', to the newest finished one.
        systems: scoring systems that the job of the hours materializes, keys of `SYSTEMS`; all where none is named.
        shared_duckdb: the DuckDB that the steps of a run in this process share.
        turn: that run's turn to write; without one, every run gets its own.
        is_partitioned: whether the assets have partitions; without any, a run names its hours in `HOURS_TAG`.

    Raises:
        HealthAssetsError: there is no such system.
    """
    settings = settings or load_settings()
    partitions: dg.PartitionsDefinition
    if hours is None:
        partitions = _partitions(settings)
    else:
        partitions = hourly_partitions(hours) if isinstance(hours, HourRange) else hours
    assets = shown_as_stored_in(settings.warehouse, all_assets(partitions if is_partitioned else None))
    surveyed = shown_as_stored_in(settings.warehouse, survey_assets(partitions))
    checks = [
        *all_suite_checks(),
        every_log_was_read_check(),
        every_line_is_still_there_check(),
        every_hour_was_built_check(),
    ]
    in_time = newest_hour_check(timedelta(minutes=settings.late_after_minutes), FRESHNESS_JOB)
    hours_job = dg.define_asset_job(
        JOB,
        dg.AssetSelection.assets(*assets) - _left_out(systems) - dg.AssetSelection.checks(in_time),
        description="All assets that follow from the logs, and their checks, for an hour or a range of hours.",
    )
    freshness_job = dg.define_asset_job(
        FRESHNESS_JOB,
        dg.AssetSelection.checks(in_time),
        description="Was the newest finished hour materialized in time?",
    )
    pruning = [] if settings.keep_days is None else [prune_hours_job(settings)]
    judging = [judge_safety_job(settings)] if settings.has_judge else []
    survey_job = dg.define_asset_job(
        SURVEY_JOB,
        dg.AssetSelection.assets(*surveyed),
        description="Asks every agent of the registry for its health, for the hour that runs.",
    )
    return dg.Definitions(
        assets=[*assets, *surveyed],
        asset_checks=[*checks, in_time],
        jobs=[hours_job, freshness_job, survey_job, prune_runs_job(settings), *pruning, *judging],
        schedules=[
            hourly_schedule(JOB, settings),
            freshness_schedule(FRESHNESS_JOB, settings),
            survey_schedule(SURVEY_JOB, settings),
            prune_runs_schedule(settings),
            *([prune_hours_schedule(settings)] if pruning else []),
            *([judge_safety_schedule(settings)] if settings.has_judge else []),
        ],
        sensors=[late_logs_sensor(JOB, settings, _start_of(partitions)), alerts_sensor(settings)],
        resources={"pipeline": pipeline_resource(Pipeline(settings=settings, shared_duckdb=shared_duckdb, turn=turn))},
        loggers={"console": dg.colored_console_logger, "progress": progress_logger},
        executor=dg.in_process_executor,
    )


def _partitions(settings: Settings) -> dg.HourlyPartitionsDefinition:
    if is_loaded_for_a_run():
        return begun_hours(settings.first_hour or EARLIEST)
    return finished_hours(settings.first_hour or first_hour(settings, datetime.now(UTC)))


def _start_of(partitions: dg.PartitionsDefinition) -> datetime:
    """The first hour that the pages offer; the command line's own partitions may have holes, and no pages."""
    return partitions.start if isinstance(partitions, dg.HourlyPartitionsDefinition) else EARLIEST


def _left_out(systems: Collection[str]) -> dg.AssetSelection:
    """The assets of the systems that are not named, where any is."""
    if unknown := set(systems) - set(SYSTEMS):
        raise HealthAssetsError(f"there is no system {min(unknown)!r}; choose from {', '.join(SYSTEMS)}")
    others = [assets for name, assets in SYSTEMS.items() if systems and name not in systems]
    return dg.AssetSelection.assets(*(asset.name for assets in others for asset in assets))
