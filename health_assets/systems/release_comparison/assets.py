"""Release comparison: each hour's sums by version and model, and every new one beside the one before it."""

from collections.abc import Mapping
from functools import partial

import ibis
from ibis import ir

from health_assets.pipeline.derived import Derived, Inputs, of_newest_hour
from health_assets.scoring.relations import lookup, without_rows
from health_assets.scoring.target_columns import with_targets_used
from health_assets.systems.release_comparison import FORMULA_VERSION
from health_assets.systems.release_comparison.judged_runs import JUDGED, judged_runs
from health_assets.systems.release_comparison.names import BASELINE, CANDIDATE, UNDECIDED, VERDICTS
from health_assets.systems.release_comparison.pairs import (
    PAIR,
    buckets_of_pairs,
    compared_pairs,
    of_releases,
    sums_of_pairs,
)
from health_assets.systems.release_comparison.release_comparison import KEYS, compared
from health_assets.systems.release_comparison.release_components import release_components
from health_assets.systems.release_comparison.runtime_quantiles import (
    IN_ORDER,
    SIDE_OF_PAIR,
    runtime_quantiles,
    with_runtime_quantiles,
)
from health_assets.systems.release_comparison.task_groups import groups_of_pairs, sums_of_groups, with_tasks


def _components(inputs: Inputs) -> ir.Table:
    return release_components(inputs.table("executions"), inputs.table_if_any("computed_signals"))


def _comparisons(inputs: Inputs) -> ir.Table:
    settings = inputs.settings
    components = inputs.table("release_components", back_hours=2 * settings.comparison_hours)
    pairs = compared_pairs(components, inputs.hours, settings.comparison_hours)
    pairs = with_targets_used(pairs, inputs.targets, [])  # without agents that are retired
    pairs, count = inputs.session.persist(pairs)
    sums = sums_of_pairs(of_releases(components), pairs, inputs.hours, settings.comparison_hours)
    sums = with_runtime_quantiles(sums, _runtime_quantiles(inputs, components, pairs))
    executions = inputs.table("executions", back_hours=2 * settings.comparison_hours)
    executions = executions.semi_join(pairs, "agent_id") if count else without_rows(executions)
    sums = _with_judged_runs(inputs, sums, pairs, executions)
    sums = lookup(sums, _task_groups(inputs, pairs, executions), ["hour", *PAIR])
    compare = partial(compared, margin=settings.comparison_margin, ratio_margin=settings.comparison_ratio_margin)
    rows = inputs.session.grouped(sums, KEYS, KEYS, compare)
    rows = inputs.with_as_of(rows)
    return rows.mutate(baseline_starts_at=rows.released_at - ibis.interval(hours=settings.comparison_hours))


def _runtime_quantiles(inputs: Inputs, components: ir.Table, pairs: ir.Table) -> ir.Table:
    hours, comparison_hours = inputs.hours, inputs.settings.comparison_hours
    buckets = buckets_of_pairs(components, pairs, comparison_hours)
    quantiles = partial(runtime_quantiles, hours=hours, comparison_hours=comparison_hours)
    return inputs.session.grouped(buckets, SIDE_OF_PAIR, IN_ORDER, quantiles)


def _with_judged_runs(inputs: Inputs, sums: ir.Table, pairs: ir.Table, executions: ir.Table) -> ir.Table:
    """Add the counts of judged executions, of which none before a release say what to expect."""
    none = {f"prior_{name}": ibis.literal(0, "int64") for name in JUDGED}
    back_hours = 2 * inputs.settings.comparison_hours
    judgements = inputs.table_if_any("judgements", back_hours=back_hours)
    evaluated = inputs.table("evaluated_signals", back_hours=back_hours)
    evaluated = evaluated.filter(evaluated.is_violation.notnull())
    is_evaluated = inputs.session.count(evaluated.limit(1)) > 0
    if judgements is None and not is_evaluated:
        executions = executions.filter(executions.violations.notnull())
    changes = judged_runs(
        executions, inputs.table("judgements", back_hours=back_hours), evaluated if is_evaluated else None
    )
    judged = sums_of_pairs(
        of_releases(changes), pairs, inputs.hours, inputs.settings.comparison_hours, names=JUDGED, prior=()
    )
    columns = [f"{side}_{name}" for side in (BASELINE, CANDIDATE) for name in JUDGED]
    return lookup(sums, judged, ["hour", *PAIR]).fill_null(dict.fromkeys(columns, 0)).mutate(**none)


def _task_groups(inputs: Inputs, pairs: ir.Table, executions: ir.Table) -> ir.Table:
    hours, comparison_hours = inputs.hours, inputs.settings.comparison_hours
    parts = groups_of_pairs(with_tasks(executions), pairs, comparison_hours)
    return inputs.session.grouped(
        parts, PAIR, [*PAIR, "ran_at"], partial(sums_of_groups, hours=hours, comparison_hours=comparison_hours)
    )


def _most_run(rows: ir.Table) -> ir.Table:
    summed = rows.group_by("agent_id").aggregate(
        versions=rows.agent_version.nunique(), models=rows.model.nunique(), executions=rows.executions.sum()
    )
    return summed.order_by(ibis.desc("versions"), ibis.desc("models"), ibis.desc("executions"), "agent_id")


def _worst_first(rows: ir.Table) -> ir.Table:
    latest = of_newest_hour(rows)
    urgency = latest.verdict.cases(*((verdict, place) for place, verdict in enumerate(VERDICTS)))
    return latest.order_by(urgency, "agent_id", "dimension", "to_version", "measure").select(
        "hour", "agent_id", "to_version", "from_version", "measure", "verdict", "difference", "low",
        "high", "n_to", "n_from", "more_runs",
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
        name="release_comparison",
        upstream=("release_components", "executions", "judgements", "evaluated_signals"), rows=_comparisons,
        preview_title="new versions and models, the worst first", preview_rows=_worst_first,
        empty_without="a version or model that is new, with another one before it",
        back_hours=lambda settings: 2 * settings.comparison_hours,
        curves=_rows_by_verdict, formula_version=FORMULA_VERSION,
    ),
)  # fmt: skip
