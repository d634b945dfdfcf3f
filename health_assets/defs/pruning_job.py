"""The job that keeps the warehouse from growing without end; off unless `HEALTH_KEEP_DAYS` says how long to keep rows.

Dagster's own runs are another matter (`defs.run_retention`).
"""

import dagster as dg

from health_assets.core.settings import Settings
from health_assets.defs.naming import STANDALONE, Naming
from health_assets.defs.pipeline import readable_failures
from health_assets.defs.schedules import default_status
from health_assets.pipeline.retention import Pruned
from health_assets.systems.pruning import prune_old_hours

JOB = "prune_old_hours"


def prune_hours_job(settings: Settings, naming: Naming = STANDALONE) -> dg.JobDefinition:
    """A job that drops what is older than the setting says."""

    @dg.op(name=naming.name("drop_old_hours"), required_resource_keys={naming.resource})
    def drop_old_hours(context: dg.OpExecutionContext) -> None:
        with readable_failures():
            pruned = prune_old_hours(naming.pipeline(context), None)
        context.add_output_metadata(metadata_of(pruned))

    @dg.job(
        name=naming.name(JOB),
        description=f"Drops record and component rows older than {settings.keep_days} days.",
        executor_def=dg.in_process_executor,
    )
    def dropping() -> None:
        drop_old_hours()

    return dropping


def prune_hours_schedule(settings: Settings, naming: Naming = STANDALONE) -> dg.ScheduleDefinition:
    """Once a day, between two hourly runs."""

    @dg.schedule(
        name=naming.name("prune_old_hours_daily"),
        job_name=naming.name(JOB),
        required_resource_keys={naming.resource},
        cron_schedule="51 3 * * *",
        execution_timezone="UTC",
        description="Drops old rows of records and components; scores stay.",
        default_status=default_status(settings),
    )
    def _prune_daily(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        if not naming.pipeline(context).open().exists:
            return dg.SkipReason("nothing has been materialized yet, so there is nothing to drop")
        return dg.RunRequest()

    return _prune_daily


def metadata_of(pruned: Pruned) -> dict[str, dg.MetadataValue]:
    """Metadata of the job: the cutoff, the rows of each table, and the lines that came late for dropped hours."""
    rows = {f"rows of {table}": dg.MetadataValue.int(count) for table, count in pruned.rows.items()}
    return {
        "before": dg.MetadataValue.text(f"{pruned.before:%Y-%m-%dT%H}"),
        "hours dropped": dg.MetadataValue.int(pruned.hours),
        "dropped hours with other lines since": dg.MetadataValue.int(len(pruned.late)),
        **rows,
    }
