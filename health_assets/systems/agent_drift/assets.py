"""Agent drift: each agent beside its own past."""

from collections.abc import Mapping, Sequence
from functools import partial

import ibis
from ibis import ir

from health_assets.core.hours import HourRange
from health_assets.pipeline.derived import Derived, Inputs, of_newest_hour
from health_assets.scoring.target_columns import with_targets_used
from health_assets.systems.agent_drift import FORMULA_VERSION
from health_assets.systems.agent_drift.agent_drift import drifts
from health_assets.systems.agent_drift.causes import with_causes
from health_assets.systems.agent_drift.hourly_counts import KEYS, hourly_counts
from health_assets.systems.agent_drift.names import LOOK_BACK_HOURS, MEASURES
from health_assets.warehouse.partition_states import PartitionStates

MOST_ROWS = 5_000_000
"""Components of hours that are computed in one pass; of more, each hour for itself."""


def _drifts(inputs: Inputs) -> ir.Table:
    rows = [_drifts_of(inputs, hours) for hours in _passes(inputs)]
    found, _ = inputs.session.persist(rows[0] if len(rows) == 1 else ibis.union(*rows))
    components = inputs.table("release_components", back_hours=LOOK_BACK_HOURS)
    return inputs.with_as_of(with_causes(found, components))


def _passes(inputs: Inputs) -> Sequence[HourRange]:
    looked_at = inputs.hours.extended_back(LOOK_BACK_HOURS - 1)
    if PartitionStates(inputs.session).row_count(["health_components"], looked_at) <= MOST_ROWS:
        return [inputs.hours]
    return [HourRange.of(hour) for hour in inputs.hours]


def _drifts_of(inputs: Inputs, hours: HourRange) -> ir.Table:
    settings, session = inputs.settings, inputs.session
    components = session.hours_of("health_components", hours.extended_back(LOOK_BACK_HOURS - 1))
    if settings.reach_hours < LOOK_BACK_HOURS:  # what lies farther back would not be made again in time
        components = components.filter(ibis.literal(False))
    counts = with_targets_used(hourly_counts(components, hours), inputs.targets, [])  # without agents that are retired
    find = partial(
        drifts,
        hours=hours,
        open_hours=sum(hour in inputs.as_of for hour in hours),
        margin=settings.comparison_margin,
        alarms_a_week=settings.drift_alarms_a_week,
    )
    # in one call: how much evidence is enough depends on how many agents there are
    return session.grouped(counts, ["agent_id"], KEYS, find, calls=1)


def _drifting_first(rows: ir.Table) -> ir.Table:
    latest = of_newest_hour(rows)
    return latest.order_by(ibis.desc("is_drifting"), ibis.desc("evidence"), "agent_id", "measure").select(
        "hour", "agent_id", "measure", "is_drifting", "since", "value", "baseline", "runs", "evidence"
    )


def _drifting(rows: ir.Table) -> Mapping[str, ir.Value]:
    return {f"drifting {measure}": (rows.is_drifting & (rows.measure == measure)).sum() for measure in MEASURES}


ASSETS = (
    Derived(
        name="drift", upstream=("health_components", "release_components"), rows=_drifts,
        preview_title="agents with most evidence of drift", preview_rows=_drifting_first,
        empty_without="an agent with a past of some days, and evidence that it became worse",
        back_hours=lambda settings: min(LOOK_BACK_HOURS, settings.reach_hours),
        curves=_drifting, formula_version=FORMULA_VERSION,
    ),
)  # fmt: skip
