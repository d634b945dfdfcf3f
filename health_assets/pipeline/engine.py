"""The engine: runs the steps of a plan one after another in this process, and yields what happens.

What belongs here: the order of steps, and which are left out after a failure. What does not: the steps
(`record_step`, `system_step`) and the consumers of the events: Dagster (`defs`) and the command line (`cli`).
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence

from health_assets.pipeline.events import (
    Checked,
    Event,
    StepFailed,
    StepFinished,
    StepSkipped,
    StepStarted,
)
from health_assets.pipeline.plan import INGEST, Graph, Plan
from health_assets.pipeline.record_step import record_step
from health_assets.pipeline.resource import Pipeline
from health_assets.pipeline.system_step import OneByOneError, steps_together, system_step

_log = logging.getLogger(__name__)


def run(pipeline: Pipeline, graph: Graph, plan: Plan) -> Iterator[Event]:
    """Make and check what the plan asks for.

    A step that fails, or has a failing check of severity `error`, blocks every step that follows from it, as it does in
    Dagster; all others run. Steps of few records are one transaction together, so that readers see all of their tables
    change at once, unless something fails.

    Raises:
        HealthAssetsError: a step failed: the first error, when all others have run.
    """
    blocked: set[str] = set()
    errors: dict[str, Exception] = {}
    joint_error: BaseException | None = None
    made: Mapping[str, Iterable[Event]] = {}
    steps = planned_steps(graph, plan)
    first = next((place for place, step in enumerate(steps) if step != INGEST), None)
    for place, step in enumerate(steps):
        assets = graph.steps[step]
        if graph.depends_on_any(step, blocked) and plan.selects_any(assets):
            blocked.update(assets)
            yield StepSkipped(step)
            continue
        yield StepStarted(step)
        has_failed = False
        try:
            if place == first and not blocked and not errors:
                made, joint_error = _made_together(pipeline, graph, steps[place:], plan)
            for event in made[step] if step in made else _events(pipeline, graph, step, plan):
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
    if joint_error is not None and not blocked:
        _log.warning("the steps were run one by one, since together they failed", exc_info=joint_error)


def _made_together(
    pipeline: Pipeline, graph: Graph, steps: Sequence[str], plan: Plan
) -> tuple[Mapping[str, Iterable[Event]], BaseException | None]:
    """The events of steps that one transaction made, by step; none where each is to be run by itself, and why."""
    if len(steps) == 1:  # which tries that itself
        return {}, None
    try:
        events = steps_together(pipeline, graph, steps, plan)
    except OneByOneError as error:
        return {}, error.__cause__
    return {step: [event for event in events if event.asset in graph.steps[step]] for step in steps}, None


def _events(pipeline: Pipeline, graph: Graph, step: str, plan: Plan) -> Iterator[Event]:
    if step == INGEST:
        return record_step(pipeline, graph, plan)
    return system_step(pipeline, graph, step, plan)


def planned_steps(graph: Graph, plan: Plan) -> list[str]:
    """The steps that have anything to do, in order."""
    checked = {asset for asset, names in plan.checks.items() if names}
    return [step for step, assets in graph.steps.items() if checked.union(plan.assets).intersection(assets)]
