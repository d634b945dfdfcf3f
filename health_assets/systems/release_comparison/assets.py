"""Release comparison: each hour's sums by version and model, and every new one beside the one before it."""

from collections.abc import Mapping
from functools import partial

import ibis
from ibis import ir

from health_assets.pipeline.derived import Derived, Inputs, of_newest_hour
from health_assets.scoring.target_columns import with_targets_used
from health_assets.systems.release_comparison import FORMULA_VERSION
from health_assets.systems.release_comparison.names import UNDECIDED, VERDICTS
from health_assets.systems.release_comparison.pairs import (
    buckets_of_pairs,
    compared_pairs,
    sums_of_pairs,
    sums_of_releases,
)
from health_assets.systems.release_comparison.release_comparison import KEYS, compared
from health_assets.systems.release_comparison.release_components import release_components
from health_assets.systems.release_comparison.runtime_quantiles import (
    IN_ORDER,
    SIDE_OF_PAIR,
    runtime_quantiles,
    with_runtime_quantiles,
)


def _components(inputs: Inputs) -> ir.Table:
    return release_components(inputs.table("executions"), inputs.table_if_any("computed_signals"))


def _comparisons(inputs: Inputs) -> ir.Table:
    settings = inputs.settings
    components = inputs.table("release_components", back_hours=2 * settings.comparison_hours)
    parts = sums_of_releases(components)
    pairs = compared_pairs(parts, inputs.hours, settings.comparison_hours)
    pairs = with_targets_used(pairs, inputs.targets, [])  # without agents that are retired
    pairs, _ = inputs.session.persist(pairs)
    sums = sums_of_pairs(parts, pairs, inputs.hours, settings.comparison_hours)
    sums = with_runtime_quantiles(sums, _runtime_quantiles(inputs, components, pairs))
    compare = partial(compared, margin=settings.comparison_margin, ratio_margin=settings.comparison_ratio_margin)
    rows = inputs.session.grouped(sums, KEYS, KEYS, compare)
    rows = inputs.with_as_of(rows)
    return rows.mutate(baseline_starts_at=rows.released_at - ibis.interval(hours=settings.comparison_hours))


def _runtime_quantiles(inputs: Inputs, components: ir.Table, pairs: ir.Table) -> ir.Table:
    hours, comparison_hours = inputs.hours, inputs.settings.comparison_hours
    buckets = buckets_of_pairs(components, pairs, hours, comparison_hours)
    quantiles = partial(runtime_quantiles, hours=hours, comparison_hours=comparison_hours)
    return inputs.session.grouped(buckets, SIDE_OF_PAIR, IN_ORDER, quantiles)


def _most_run(rows: ir.Table) -> ir.Table:
    summed = rows.group_by("agent_id").aggregate(
        versions=rows.agent_version.nunique(), models=rows.model.nunique(), executions=rows.executions.sum()
    )
    return summed.order_by(ibis.desc("versions"), ibis.desc("models"), ibis.desc("executions"), "agent_id")


def _worst_first(rows: ir.Table) -> ir.Table:
    latest = of_newest_hour(rows)
    urgency = latest.verdict.cases(*((verdict, place) for place, verdict in enumerate(VERDICTS)))
    return latest.order_by(urgency, "agent_id", "dimension", "candidate", "measure").select(
        "hour", "agent_id", "candidate", "baseline", "measure", "verdict", "difference", "difference_low",
        "difference_high", "candidate_runs", "baseline_runs", "more_runs",
    )  # fmt: skip


def _rows_by_verdict(rows: ir.Table) -> Mapping[str, ir.Value]:
    return {f"measures {verdict}": (rows.verdict == verdict).sum() for verdict in VERDICTS if verdict != UNDECIDED}


ASSETS = (
    Derived(
        name="release_components", upstream=("executions", "computed_signals"), rows=_components,
        preview_title="agents with most versions and models", preview_rows=_most_run, blocked_by=("raw_logs",),
        empty_without="an execution", is_component=True, formula_version=FORMULA_VERSION,
    ),
    Derived(
        name="release_comparison", upstream=("release_components",), rows=_comparisons,
        preview_title="new versions and models, the worst first", preview_rows=_worst_first,
        empty_without="a version or model that is new, with another one before it",
        back_hours=lambda settings: 2 * settings.comparison_hours,
        curves=_rows_by_verdict, formula_version=FORMULA_VERSION,
    ),
)  # fmt: skip
