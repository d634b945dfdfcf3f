"""The engine: runs the steps of a plan one after another in this process, and yields what happens.

What belongs here: the order of steps, and which are left out after a failing check. What does not: the steps
themselves (`record_step`, `system_step`), and whoever consumes the events: Dagster (`defs`), the command line (`cli`).
"""

from collections.abc import Iterator

from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HourGroups
from health_assets.pipeline.checking import check_held_hours
from health_assets.pipeline.events import Checked, Event, StepFinished, StepSkipped, StepStarted
from health_assets.pipeline.plan import HELD_HOURS, INGEST, Graph, Plan
from health_assets.pipeline.record_step import record_step
from health_assets.pipeline.resource import Pipeline
from health_assets.pipeline.system_step import system_step
from health_assets.warehouse.holds import EVERY_HOUR_WAS_BUILT


def run(pipeline: Pipeline, graph: Graph, plan: Plan) -> Iterator[Event]:
    """Make and check what the plan asks for.

    A failing check of severity `error` stops what its step makes from the asset, and every step that follows from this
    one; all others go on.

    Raises:
        HealthAssetsError: a step failed, or hours of the plan are held; what steps before it made is kept.
    """
    stopped: set[str] = set()
    for step in steps_of(graph, plan):
        if stopped.intersection(graph.sources_of_step(step)):
            stopped.update(graph.steps[step])
            yield StepSkipped(step)
            continue
        yield StepStarted(step)
        has_failed = False
        for event in _events(pipeline, graph, step, plan):
            has_failed |= isinstance(event, Checked) and event.blocks
            yield event
        if has_failed:
            stopped.update(graph.steps.get(step, ()))
        yield StepFinished(step)


def _events(pipeline: Pipeline, graph: Graph, step: str, plan: Plan) -> Iterator[Event]:
    if step == INGEST:
        return record_step(pipeline, graph, plan)
    return held_hours_step(pipeline, plan.hours) if step == HELD_HOURS else system_step(pipeline, graph, step, plan)


def steps_of(graph: Graph, plan: Plan) -> list[str]:
    """The steps that have anything to do, in order."""
    wanted = {*plan.assets, *(asset for asset, names in plan.checks.items() if names)}
    found = [step for step, assets in graph.steps.items() if wanted.intersection(assets)]
    if EVERY_HOUR_WAS_BUILT in plan.checks.get("raw_logs", ()):
        found.append(HELD_HOURS)
    return found


def held_hours_step(pipeline: Pipeline, hours: HourGroups) -> Iterator[Checked]:
    """Check that every hour was built.

    Raises:
        HealthAssetsError: some of these hours are held.
    """
    with pipeline.write() as session:
        found, failure = check_held_hours(session, pipeline.settings, hours)
    yield found
    if failure:
        raise HealthAssetsError(failure)
