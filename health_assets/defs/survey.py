"""The survey (source 3, appendix B): probes of every agent of the registry, and their summary by platform.

These assets stand apart from the others. A probe is an observation of the present, no function of logs: it can be made
for the hour that runs, and never again. So they have a job and a schedule of their own, whose runs are for that hour,
although Dagster's pages offer it for no asset until it is over; and materializing an hour that is over keeps what is
stored.
"""

from collections.abc import Mapping
from datetime import UTC, datetime

import dagster as dg
import ibis
from ibis import ir

from health_assets.core.hours import HOUR, KEY_FORMAT, HourRange, floor_hour
from health_assets.core.settings import Settings
from health_assets.defs.derived_assets import derived_asset
from health_assets.defs.partitions import hours_tags, run_hours
from health_assets.defs.pipeline import Pipeline, readable_failures
from health_assets.defs.placement import ALONE, Placement
from health_assets.defs.schedules import default_status
from health_assets.defs.specs import asset_spec
from health_assets.defs.summaries import summary
from health_assets.defs.turns.turns import URGENT
from health_assets.pipeline.derived import Derived, Inputs, of_newest_hour
from health_assets.systems.survey import FORMULA_VERSION
from health_assets.systems.survey.survey_summary import survey_summary
from health_assets.systems.survey.surveyed_agents import load_registry
from health_assets.systems.survey.surveying import Survey, survey
from health_assets.warehouse.materialized import MaterializedHours

SYSTEM = "survey"
NO_REGISTRY = "no registry is configured; name its file in HEALTH_REGISTRY"


def survey_assets(partitions: dg.PartitionsDefinition, placement: Placement = ALONE) -> list[dg.AssetsDefinition]:
    """`agent_probes` and `survey_summary`."""
    return [_probes_asset(partitions, placement), derived_asset(SUMMARY, SYSTEM, partitions, placement)]


def _probes_asset(partitions: dg.PartitionsDefinition, placement: Placement) -> dg.AssetsDefinition:
    @dg.multi_asset(
        name=placement.name("agent_probes"),
        specs=[asset_spec("agent_probes", kind="python", system=SYSTEM, source=survey, placement=placement)],
        partitions_def=partitions,
        required_resource_keys={placement.resource},
        backfill_policy=dg.BackfillPolicy.single_run(),
    )
    def _agent_probes(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        pipeline = placement.pipeline(context)
        hours = run_hours(context)
        with readable_failures():
            told = _told(_survey_if_now(pipeline, hours), hours)
        with pipeline.write() as session:
            MaterializedHours(session).note("agent_probes", hours, ())
            heading = "probes by platform and outcome"
            metadata = summary(session, "agent_probes", hours, heading, _outcomes, "a probe")
        return dg.MaterializeResult(metadata={**metadata, **told})

    return _agent_probes


def _survey_if_now(pipeline: Pipeline, hours: HourRange) -> Survey | str:
    """Survey if the hour that runs is among these, and there is a registry; else why not."""
    now = datetime.now(UTC)
    if now >= hours.end:
        return "these hours are over, so nobody was asked; what is stored was kept"
    if now < hours.start:
        return "these hours have not begun, so nobody was asked"
    if pipeline.settings.registry is None:
        return NO_REGISTRY
    return survey(pipeline.settings, load_registry(pipeline.settings.registry), until=floor_hour(now) + HOUR)


def _told(done: Survey | str, hours: HourRange) -> dict[str, dg.MetadataValue]:
    """The outcome of a survey as metadata."""
    if isinstance(done, str):
        return {"survey": dg.MetadataValue.text(done)}
    past = "; hours that are over keep what is stored" if len(hours) > 1 else ""
    return {
        "survey": dg.MetadataValue.text(f"{done}{past}"),
        "agents_registered": dg.MetadataValue.int(done.agents),
        "agents_probed": dg.MetadataValue.int(done.probed),
    }


def _summary_rows(inputs: Inputs) -> ir.Table:
    return survey_summary(inputs.table("agent_probes"))


def _outcomes(rows: ir.Table) -> ir.Table:
    counted = rows.group_by(["platform", "outcome"]).aggregate(probes=rows.count())
    return counted.order_by(ibis.desc("probes"), "platform", "outcome")


def _latest_platforms(rows: ir.Table) -> ir.Table:
    latest = of_newest_hour(rows)
    return latest.order_by(ibis.desc("agents"), "platform").select(
        "hour", "platform", "agents", "responsive", "healthy", "survival_rate"
    )


def _agents_that_answer(rows: ir.Table) -> Mapping[str, ir.Value]:
    return {"agents": rows.agents.sum(), "responsive": rows.responsive.sum(), "healthy": rows.healthy.sum()}


SUMMARY = Derived(
    name="survey_summary",
    deps=("agent_probes",),
    rows=_summary_rows,
    heading="platforms",
    top=_latest_platforms,
    needs="a probe",
    curves=_agents_that_answer,
    is_of_observations=True,
    formula_version=FORMULA_VERSION,
)


def survey_schedule(job_name: str, settings: Settings, placement: Placement = ALONE) -> dg.ScheduleDefinition:
    """Survey the registry once an hour, in the hour that runs."""

    @dg.schedule(
        name=placement.name("survey"),
        job_name=job_name,
        description="Asks every agent of the registry for its health, once an hour.",
        cron_schedule=f"{settings.survey_minute} * * * *",
        execution_timezone="UTC",
        default_status=default_status(settings),
    )
    def _survey(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        if settings.registry is None:
            return dg.SkipReason(NO_REGISTRY)
        hour = floor_hour(context.scheduled_execution_time)
        return dg.RunRequest(run_key=f"{hour:{KEY_FORMAT}}", tags={**hours_tags(HourRange.of(hour)), **URGENT})

    return _survey
