"""The optional job that lets a model judge the safety of unjudged evaluation runs.

Its verdicts are a log, which the late-log sensor finds like any other. Neither job nor schedule exists unless a judge
is configured, and the schedule waits to be switched on, because a judge costs money.
"""

from datetime import UTC, datetime

import dagster as dg

from health_assets.apps.judge.judging import Report, judge, unjudged_runs
from health_assets.core.settings import Settings
from health_assets.defs.naming import STANDALONE, Naming
from health_assets.defs.pipeline import readable_failures
from health_assets.pipeline.resource import Pipeline

JOB = "judge_safety"
MINUTES_AFTER_THE_HOUR = 10
"""How long after the hourly run it starts."""


def judge_safety_job(settings: Settings, naming: Naming = STANDALONE) -> dg.JobDefinition:
    """A job that judges at most as many runs as the budget says."""

    @dg.op(name=naming.name("judge_unjudged_runs"), required_resource_keys={naming.resource})
    def judge_unjudged_runs(context: dg.OpExecutionContext) -> None:
        report = judge_due_runs(naming.pipeline(context), datetime.now(UTC))
        context.log.info(f"judged {report.judged} of {report.found} unjudged evaluation runs")
        context.add_output_metadata(metadata_of(report))

    @dg.job(
        name=naming.name(JOB),
        description=f"Lets {settings.judge_model} judge up to {settings.judge_max_runs} evaluation runs.",
        executor_def=dg.in_process_executor,
    )
    def judge_safety() -> None:
        judge_unjudged_runs()

    return judge_safety


def judge_safety_schedule(settings: Settings, naming: Naming = STANDALONE) -> dg.ScheduleDefinition:
    """Once an hour, some minutes after it was materialized; off until somebody switches it on."""
    return dg.ScheduleDefinition(
        name=naming.name("judge_safety_hourly"),
        job_name=naming.name(JOB),
        cron_schedule=f"{(settings.schedule_minute + MINUTES_AFTER_THE_HOUR) % 60} * * * *",
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.STOPPED,
    )


def judge_due_runs(pipeline: Pipeline, now: datetime) -> Report:
    """Find the runs, and judge them with the warehouse closed again."""
    with readable_failures():
        redaction = pipeline.load_targets().redact
        with pipeline.open().read() as session:
            runs, found = unjudged_runs(session, pipeline.settings, now)
        report = judge(runs, pipeline.settings, now, redaction)
    report.found = found
    return report


def metadata_of(report: Report) -> dict[str, dg.MetadataValue]:
    """Metadata of the job: counts, the file of the judgements, and the reasons why runs stay unjudged."""
    counts = {"unjudged runs found": report.found, "judged": report.judged, "with a violation": report.violated}
    counts |= {
        "sent in parts": report.parts,
        "sent in part": report.sampled,
        "texts cut": report.cut,
        "secrets redacted": report.secrets,
    }
    counts["left for later"] = report.found - report.judged - report.failures.total()
    metadata: dict[str, dg.MetadataValue] = {name: dg.MetadataValue.int(count) for name, count in counts.items()}
    metadata |= {f"no verdict: {reason}": dg.MetadataValue.int(count) for reason, count in report.failures.items()}
    return metadata | ({"file": dg.MetadataValue.text(report.file)} if report.file else {})
