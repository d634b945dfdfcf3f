"""The survey (source 3, appendix B): probes of every agent of the registry, and their summary by platform.

These assets stand apart from the others. A probe is an observation of the present, no function of logs: it can be made
for the running hour, and never again. So they have a job and a schedule of their own, whose runs are for that hour,
although Dagster's pages offer it for no asset until it is over; and materializing an hour that is over keeps what is
stored.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import dagster as dg
import ibis
from ibis import ir

from health_assets.core.hours import HOUR, KEY_FORMAT, HourRange, floor_hour
from health_assets.core.settings import Settings
from health_assets.defs.checks import suite_specs
from health_assets.defs.multi_assets import derived_spec, multi_assets
from health_assets.defs.naming import STANDALONE, Naming
from health_assets.defs.partitions import hours_tags
from health_assets.defs.schedules import default_status
from health_assets.defs.specs import asset_spec
from health_assets.defs.write_lock.write_lock import URGENT
from health_assets.pipeline.checking import check_suites
from health_assets.pipeline.derived import Derived, Inputs, of_newest_hour
from health_assets.pipeline.events import Checked, Event, Materialized, Value
from health_assets.pipeline.plan import Graph, Plan
from health_assets.pipeline.resource import Pipeline
from health_assets.pipeline.summaries import summary
from health_assets.pipeline.system_step import system_step
from health_assets.systems.suites import SUITES
from health_assets.systems.survey import FORMULA_VERSION
from health_assets.systems.survey.survey_summary import survey_summary
from health_assets.systems.survey.surveyed_agents import load_registry
from health_assets.systems.survey.surveying import Survey, survey
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.session import Session

SYSTEM = "survey"
PROBES = "agent_probes"
NO_REGISTRY = "no registry is configured; name its file in HEALTH_REGISTRY"


def survey_assets(partitions: dg.PartitionsDefinition, naming: Naming = STANDALONE) -> dg.AssetsDefinition:
    """`agent_probes` and `survey_summary`."""
    graph = Graph(systems={SYSTEM: (SUMMARY,)}, suites=SUITES)
    probes = asset_spec(PROBES, kind="python", system=SYSTEM, source=survey, naming=naming)
    return multi_assets(
        SYSTEM, [probes, derived_spec(graph, SUMMARY, naming)], suite_specs(graph, SURVEY_TABLES, naming),
        lambda pipeline, plan: _events(pipeline, graph, plan), partitions, naming,
    )  # fmt: skip


def _events(pipeline: Pipeline, graph: Graph, plan: Plan) -> Iterator[Event]:
    """Survey, and sum up what was found."""
    checks: list[Checked] = []
    if PROBES in plan.assets or plan.checks.get(PROBES):
        hours = plan.hours.span
        told = _told(_survey_if_now(pipeline, hours), hours) if PROBES in plan.assets else {}
        with pipeline.write() as session:
            made = _probes(session, plan, told) if PROBES in plan.assets else []
            checks = check_suites(session, graph, pipeline.settings, pipeline.load_targets(), plan, [PROBES])
        yield from made
        yield from checks
    failed = [PROBES] if any(check.blocks for check in checks) else []
    yield from system_step(pipeline, graph, SYSTEM, plan, failed)


def _probes(session: Session, plan: Plan, told: Mapping[str, Value]) -> list[Materialized]:
    hours = plan.hours.span
    PartitionStates(session).note(PROBES, hours, ())
    metadata = summary(session, PROBES, hours, "probes by platform and outcome", _outcomes, "a probe")
    return [Materialized(asset=PROBES, hours=plan.hours, metadata={**metadata, **told})]


def _survey_if_now(pipeline: Pipeline, hours: HourRange) -> Survey | str:
    """Survey if the running hour is among these, and there is a registry; else why not."""
    now = datetime.now(UTC)
    if now >= hours.end:
        return "these hours are over, so nobody was asked; what is stored was kept"
    if now < hours.start:
        return "these hours have not begun, so nobody was asked"
    if pipeline.settings.registry is None:
        return NO_REGISTRY
    return survey(pipeline.settings, load_registry(pipeline.settings.registry), until=floor_hour(now) + HOUR)


def _told(done: Survey | str, hours: HourRange) -> dict[str, Value]:
    """The outcome of a survey as metadata."""
    if isinstance(done, str):
        return {"survey": done}
    past = "; hours that are over keep what is stored" if len(hours) > 1 else ""
    return {"survey": f"{done}{past}", "agents_registered": done.agents, "agents_probed": done.probed}


def _summary_rows(inputs: Inputs) -> ir.Table:
    return survey_summary(inputs.table(PROBES))


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
    upstream=(PROBES,),
    rows=_summary_rows,
    preview_title="platforms",
    preview_rows=_latest_platforms,
    empty_without="a probe",
    curves=_agents_that_answer,
    is_external=True,
    formula_version=FORMULA_VERSION,
)


SURVEY_TABLES = (PROBES, SUMMARY.name)


def survey_schedule(job_name: str, settings: Settings, naming: Naming = STANDALONE) -> dg.ScheduleDefinition:
    """Survey the registry once an hour, in the running hour."""

    @dg.schedule(
        name=naming.name("survey"),
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
