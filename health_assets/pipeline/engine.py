"""The engine: runs the steps of a plan one after another in this process, and yields what happens.

What belongs here: the order of steps, and which are left out after a failure. What does not: the steps
(`record_step`, `system_step`) and the consumers of the events: Dagster (`defs`) and the command line (`cli`).
"""

from collections.abc import Iterator

from health_assets.pipeline.events import Checked, Event, StepFailed, StepFinished, StepSkipped, StepStarted
from health_assets.pipeline.plan import INGEST, Graph, Plan
from health_assets.pipeline.record_step import record_step
from health_assets.pipeline.resource import Pipeline
from health_assets.pipeline.system_step import system_step


def run(pipeline: Pipeline, graph: Graph, plan: Plan) -> Iterator[Event]:
    """Make and check what the plan asks for.

    A step that fails, or has a failing check of severity `error`, blocks every step that follows from it, as it does in
    Dagster; all others run.

    Raises:
        HealthAssetsError: a step failed: the first error, when all others have run.
    """
    blocked: set[str] = set()
    errors: dict[str, Exception] = {}
    for step in planned_steps(graph, plan):
        assets = graph.steps[step]
        if graph.depends_on_any(step, blocked) and plan.selects_any(assets):
            blocked.update(assets)
            yield StepSkipped(step)
            continue
        yield StepStarted(step)
        has_failed = False
        try:
            for event in _events(pipeline, graph, step, plan):
                has_failed |= isinstance(event, Checked) and event.blocks
                yield event
            yield StepFinished(step)
        except Exception as error:  # raised when the other steps have run
            has_failed = True
            errors[step] = error
            yield StepFailed(step)
        if has_failed:
            blocked.update(assets)
    if errors:
        raise next(iter(errors.values()))


def _events(pipeline: Pipeline, graph: Graph, step: str, plan: Plan) -> Iterator[Event]:
    if step == INGEST:
        return record_step(pipeline, graph, plan)
    return system_step(pipeline, graph, step, plan)


def planned_steps(graph: Graph, plan: Plan) -> list[str]:
    """The steps that have anything to do, in order."""
    checked = {asset for asset, names in plan.checks.items() if names}
    return [step for step, assets in graph.steps.items() if checked.union(plan.assets).intersection(assets)]
