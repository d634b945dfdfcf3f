"""Agent drift: each agent beside its own past."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import groupby

import ibis
from ibis import ir

from health_assets.core.hours import HourRange
from health_assets.pipeline.derived import Derived, Inputs, of_newest_hour
from health_assets.scoring.relations import lookup
from health_assets.scoring.target_columns import with_targets_used
from health_assets.systems.agent_drift import FORMULA_VERSION
from health_assets.systems.agent_drift.agent_drift import judged
from health_assets.systems.agent_drift.causes import with_causes
from health_assets.systems.agent_drift.detectors import Search, run_detectors
from health_assets.systems.agent_drift.names import LOOK_BACK_HOURS, MEASURES
from health_assets.systems.agent_drift.run_counts import (
    agents_with_past,
    run_counts,
    threshold,
    with_lists_counted,
    with_thresholds,
)
from health_assets.systems.agent_drift.tool_mix import OTHERS, called_tools, tool_counts, tool_detectors
from health_assets.warehouse.partition_states import PartitionStates

MOST_ROWS = 5_000_000
"""Components of hours that are computed in one pass; of more, each hour for itself."""


def _drifts(inputs: Inputs) -> ir.Table:
    rows = [_drifts_of(inputs, hours) for hours in _passes(inputs)]
    drifts, _ = inputs.session.persist(rows[0] if len(rows) == 1 else ibis.union(*rows))
    components = inputs.table("release_components", back_hours=LOOK_BACK_HOURS)
    explained = with_causes(drifts, components, inputs.table("tool_components", back_hours=LOOK_BACK_HOURS))
    explained = explained.mutate(threshold=threshold(explained.measure, explained.threshold_bucket)).drop(
        "threshold_bucket"
    )
    return inputs.with_as_of(explained)


def _passes(inputs: Inputs) -> Iterator[HourRange]:
    states = PartitionStates(inputs.session)
    for hours in _days(inputs.hours):
        looked_at = hours.extended_back(LOOK_BACK_HOURS - 1)
        is_small = states.row_count(["release_components"], looked_at) <= MOST_ROWS
        yield from [hours] if is_small else map(HourRange.of, hours)


def _days(hours: HourRange) -> Iterable[HourRange]:
    for _, day in groupby(hours, key=lambda hour: hour.date()):
        first, *others = day
        yield HourRange(first, HourRange.of(others[-1] if others else first).end)


def _drifts_of(inputs: Inputs, hours: HourRange) -> ir.Table:
    settings, session = inputs.settings, inputs.session
    components = session.hours_of("release_components", hours.extended_back(LOOK_BACK_HOURS - 1))
    if settings.reach_hours < LOOK_BACK_HOURS:  # what lies farther back would not be made again in time
        components = components.filter(ibis.literal(False))
    agents = agents_with_past(components, hours, settings.comparison_ratio_margin)
    agents = with_targets_used(agents, inputs.targets, [])  # without agents that are retired
    agents, _ = session.persist(agents.mutate(number=ibis.row_number().over(order_by=agents.agent_id)))
    search = Search(
        hours=hours,
        open_hours=sum(hour in inputs.as_of for hour in hours),
        margin=settings.comparison_margin,
        alarms_a_week=settings.drift_alarms_a_week,
    )
    called = session.hours_of("tool_components", hours.extended_back(LOOK_BACK_HOURS - 1))
    tools, _ = session.persist(called_tools(called, agents, hours))
    of_runs = session.grouped(
        run_counts(components, agents, hours), ["number"], [], partial(run_detectors, search=search),
        shorten=with_lists_counted,
    )  # fmt: skip
    of_tools = session.grouped(
        tool_counts(called, tools, hours), ["number"], [], partial(tool_detectors, search=search)
    )
    # all agents together: how much evidence is enough depends on how many there are
    judge = partial(judged, alarms_a_week=search.alarms_a_week)
    rows = session.grouped(ibis.union(of_runs, of_tools), ["hour"], [], judge)
    usual = tools.filter(tools.part < OTHERS).select("number", "part", "tool")
    rows = lookup(rows, usual, ["number", "part"])
    rows = lookup(rows, usual.group_by("number").aggregate(usual_tools=usual.tool.collect()), "number")
    return with_thresholds(rows.inner_join(agents, "number")).drop("number", "part")


def _drifting_first(rows: ir.Table) -> ir.Table:
    latest = of_newest_hour(rows)
    return latest.order_by(ibis.desc("is_drifting"), ibis.desc("evidence"), "agent_id", "measure").select(
        "hour", "agent_id", "measure", "is_drifting", "since", "value", "baseline", "runs", "evidence"
    )


def _drifting(rows: ir.Table) -> Mapping[str, ir.Value]:
    return {f"drifting {measure}": (rows.is_drifting & (rows.measure == measure)).sum() for measure in MEASURES}


ASSETS = (
    Derived(
        name="drift", upstream=("release_components", "tool_components"), rows=_drifts,
        preview_title="agents with most evidence of drift", preview_rows=_drifting_first,
        empty_without="an agent with a past of some days, and evidence that it became worse",
        back_hours=lambda settings: min(LOOK_BACK_HOURS, settings.reach_hours),
        curves=_drifting, formula_version=FORMULA_VERSION,
    ),
)  # fmt: skip
