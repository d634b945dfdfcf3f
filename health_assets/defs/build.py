"""Puts assets, checks, schedules and sensors together into Dagster definitions."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta

import dagster as dg

from health_assets.core.hours import HourRange
from health_assets.core.settings import Settings, load_settings
from health_assets.defs.alerting import alerts_sensor
from health_assets.defs.assets import all_assets
from health_assets.defs.checks import newest_hour_check
from health_assets.defs.dagster_internals import is_loaded_for_a_run
from health_assets.defs.judge_job import judge_safety_job, judge_safety_schedule
from health_assets.defs.naming import STANDALONE, Naming
from health_assets.defs.page_links import linked
from health_assets.defs.partitions import begun_hours, finished_hours, hourly_partitions
from health_assets.defs.pipeline import pipeline_resource
from health_assets.defs.pruning_job import prune_hours_job, prune_hours_schedule
from health_assets.defs.publishing import published_tables
from health_assets.defs.run_retention import prune_runs_job, prune_runs_schedule
from health_assets.defs.schedules import freshness_schedule, hourly_schedule, running_hour_schedule
from health_assets.defs.sensors import late_logs_sensor
from health_assets.defs.specs import due_every_hour, shown_as_stored_in
from health_assets.defs.survey import SYSTEM as SURVEY
from health_assets.defs.survey import survey_assets, survey_schedule
from health_assets.pipeline.fingerprints import upstream
from health_assets.pipeline.first_hour import EARLIEST, first_hour
from health_assets.pipeline.resource import Pipeline
from health_assets.schema.records import RECORD_TABLES
from health_assets.systems.declared_assets import DERIVED, SYSTEMS, require_known_systems
from health_assets.warehouse.location import published_folder

JOB = "materialize_hours"
FRESHNESS_JOB = "check_freshness"
SURVEY_JOB = "survey_agents"
ALWAYS = ("agent_health_model",)
"""Systems that are defined whatever is chosen."""


def build_definitions(
    settings: Settings | None = None,
    hours: HourRange | dg.PartitionsDefinition | None = None,
    systems: Collection[str] = (),
    pipeline: Pipeline | None = None,
    *,
    defined: Collection[str] = (),
    naming: Naming = STANDALONE,
) -> dg.Definitions:
    """Definitions for these settings (the environment's by default).

    Args:
        settings: where logs, targets and warehouse are.
        hours: the hours that can be materialized, as a range or as partitions; by default all from the settings' first,
            or else the logs', to the newest finished one.
        systems: scoring systems that the job of the hours materializes, keys of `SYSTEMS`; all where none is named.
        pipeline: the resource of a run in this process; without one, every run has its own write lock and DuckDB.
        defined: scoring systems whose assets there are at all, with those that they are made from; all where none is
            named. `ALWAYS` is among them, since its last table tells which hours are done.
        naming: keys and names among those of another project.

    Raises:
        HealthAssetsError: there is no such system.
    """
    settings = settings or load_settings()
    partitions: dg.PartitionsDefinition
    if hours is None:
        partitions = _partitions(settings)
    else:
        partitions = hourly_partitions(hours) if isinstance(hours, HourRange) else hours
    tables = _tables(defined)
    own_assets = all_assets(partitions, naming, tables)
    assets = linked(due_every_hour(shown_as_stored_in(settings.warehouse, own_assets), settings), settings)
    has_survey = not defined or SURVEY in defined
    own_surveyed = [survey_assets(partitions, naming)] if has_survey else []
    if published_folder(settings) is not None:
        assets.append(published_tables(sorted(tables), partitions, naming))
    surveyed = linked(shown_as_stored_in(settings.warehouse, own_surveyed), settings)
    names = {job: naming.name(job) for job in (JOB, FRESHNESS_JOB, SURVEY_JOB)}
    in_time = newest_hour_check(timedelta(minutes=settings.late_after_minutes), names[FRESHNESS_JOB], naming)
    jobs = [
        dg.define_asset_job(
            names[JOB],
            dg.AssetSelection.assets(*assets) - _left_out(systems, naming) - dg.AssetSelection.checks(in_time),
            description="All assets that follow from the logs, and their checks, for an hour or a range of hours.",
            executor_def=dg.in_process_executor,
        ),
        dg.define_asset_job(
            names[FRESHNESS_JOB],
            dg.AssetSelection.checks(in_time),
            description="Was the newest finished hour materialized in time?",
            executor_def=dg.in_process_executor,
        ),
    ]
    schedules = [
        hourly_schedule(names[JOB], settings, naming),
        running_hour_schedule(names[JOB], settings, naming),
        freshness_schedule(names[FRESHNESS_JOB], settings, naming),
    ]
    if has_survey:
        jobs.append(
            dg.define_asset_job(
                names[SURVEY_JOB],
                dg.AssetSelection.assets(*surveyed),
                description="Asks every agent of the registry for its health, for the running hour.",
                executor_def=dg.in_process_executor,
            )
        )
        schedules.append(survey_schedule(names[SURVEY_JOB], settings, naming))
    upkeep = _upkeep(settings, naming)
    sensors = [
        late_logs_sensor(names[JOB], settings, _start_of(partitions), naming, tables),
        alerts_sensor(settings, naming),
    ]
    return dg.Definitions(
        assets=[*assets, *surveyed],
        asset_checks=[in_time],
        jobs=[*jobs, *(job for job, _ in upkeep)],
        schedules=[*schedules, *(schedule for _, schedule in upkeep)],
        sensors=sensors,
        resources={naming.resource: pipeline_resource(pipeline or Pipeline(settings=settings))},
        loggers=None if naming.is_embedded else {"console": dg.colored_console_logger},
        executor=None if naming.is_embedded else dg.in_process_executor,
    )


def _upkeep(settings: Settings, naming: Naming) -> list[tuple[dg.JobDefinition, dg.ScheduleDefinition]]:
    """Jobs that make no asset, each with its schedule; the old runs of another project are not ours to delete."""
    found = []
    if not naming.is_embedded:
        found.append((prune_runs_job(settings), prune_runs_schedule(settings)))
    if settings.keep_days is not None:
        found.append((prune_hours_job(settings, naming), prune_hours_schedule(settings, naming)))
    if settings.has_judge:
        found.append((judge_safety_job(settings, naming), judge_safety_schedule(settings, naming)))
    return found


def _tables(defined: Collection[str]) -> set[str]:
    """The tables of these systems and all that they are made from, back to the logs; of all where none is named."""
    require_known_systems(defined, [*SYSTEMS, SURVEY])
    if not defined:
        return {"raw_logs", *RECORD_TABLES, *DERIVED}
    chosen = {*defined, *ALWAYS} - {SURVEY}
    assets = {asset.name for system in chosen for asset in SYSTEMS[system]}
    return assets.union(*(upstream(asset, DERIVED) for asset in assets))


def _partitions(settings: Settings) -> dg.HourlyPartitionsDefinition:
    if is_loaded_for_a_run():
        return begun_hours(settings.first_hour or EARLIEST)
    return finished_hours(settings.first_hour or first_hour(settings, datetime.now(UTC)))


def _start_of(partitions: dg.PartitionsDefinition) -> datetime:
    """The first hour that the pages offer; the command line's own partitions may have holes, and no pages."""
    return partitions.start if isinstance(partitions, dg.HourlyPartitionsDefinition) else EARLIEST


def _left_out(systems: Collection[str], naming: Naming) -> dg.AssetSelection:
    """The assets of the systems that are not named, where any is."""
    require_known_systems(systems, SYSTEMS)
    others = [assets for name, assets in SYSTEMS.items() if systems and name not in systems]
    return dg.AssetSelection.assets(*naming.keys(asset.name for assets in others for asset in assets))
