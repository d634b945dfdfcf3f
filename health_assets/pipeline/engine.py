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

    An asset with a failing check of severity `error` stops every asset that is made from it; all others are made.

    Raises:
        HealthAssetsError: a step failed, or hours of the plan are held; what steps before it made is kept.
    """
    stopped: set[str] = set()
    for step in steps_of(graph, plan):
        yield StepStarted(step)
        if step == INGEST:
            events = record_step(pipeline, graph, plan)
        elif step == HELD_HOURS:
            events = held_hours_step(pipeline, plan.hours)
        else:
            events = system_step(pipeline, graph, step, plan, stopped)
        made = 0
        for event in events:
            made += 1
            if isinstance(event, Checked) and event.blocks:
                stopped.add(event.asset)
            yield event
        yield StepFinished(step) if made else StepSkipped(step)


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
