"""The version or model in which most of a drift's failures are."""

import ibis
from ibis import ir

from health_assets.scoring.relations import lookup
from health_assets.systems.agent_drift.names import DIMENSIONS, LOOK_BACK_HOURS, SUCCESS_RATE

CAUSE = ("cause_dimension", "cause", "cause_share")
HINT = "hint"
KEYS = ("hour", "agent_id", "measure")
LEAST_SHARE = 0.5
LEAST_LEAD = 0.2
"""How much greater its share of the excess has to be than its share of the executions, since then or before."""


def with_causes(rows: ir.Table, components: ir.Table) -> ir.Table:
    """Add `CAUSE` and `HINT`, of success rates that drift; null where no version or model stands out.

    Failures in excess are those beyond the baseline's share of the executions.

    Args:
        rows: rows of `drift`.
        components: `release_components` of their hours and the look-back before them.
    """
    own = rows.filter(rows.is_drifting, rows.measure == SUCCESS_RATE)
    own = own.select(*KEYS, "since", "runs", "value", "baseline")
    counts = components.select(
        "agent_id", "executions", *DIMENSIONS.values(),
        ran_at="hour", failures=components.executions - components.successes,
    )  # fmt: skip
    joined = own.inner_join(counts, "agent_id")
    look_back = ibis.interval(hours=LOOK_BACK_HOURS)
    joined = joined.filter(joined.ran_at <= joined.hour, joined.ran_at + look_back > joined.hour)
    before = (joined.ran_at < joined.since).ifelse(joined.executions, 0)
    joined = joined.mutate(runs_before=before, all_before=before.sum().over(group_by=list(KEYS)))
    found = ibis.union(*(_of_dimension(joined, dimension) for dimension in DIMENSIONS))
    order = [ibis.desc("lead"), "cause_dimension", "cause"]
    placed = found.mutate(place=ibis.row_number().over(group_by=list(KEYS), order_by=order))
    told = lookup(rows, placed.filter(placed.place == 0).select(*KEYS, *CAUSE), KEYS)
    percent = (told.cause_share * 100).round().cast("int64").cast("string")
    return told.mutate(hint=told.cause_dimension + " " + told.cause + ": " + percent + "% of the failures in excess")


def _of_dimension(joined: ir.Table, dimension: str) -> ir.Table:
    name = DIMENSIONS[dimension]
    named = joined.filter(joined[name] != "").rename(cause=name)
    is_since = named.ran_at >= named.since
    summed = named.group_by([*KEYS, "runs", "value", "baseline", "all_before", "cause"]).aggregate(
        own_runs=named.executions.sum(where=is_since).fill_null(0),
        own_failures=named.failures.sum(where=is_since).fill_null(0),
        own_before=named.runs_before.sum(),
    )
    excess = summed.own_failures - summed.own_runs * (1 - summed.baseline)
    share = ibis.least(1.0, excess / (summed.runs * (summed.baseline - summed.value)))
    told = summed.mutate(cause_dimension=ibis.literal(dimension), cause_share=share)
    usual = ibis.least(told.own_runs / told.runs, told.own_before / told.all_before.nullif(0).cast("float64"))
    told = told.mutate(lead=told.cause_share - usual)
    return told.filter(told.cause_share >= LEAST_SHARE, told.lead >= LEAST_LEAD).select(*KEYS, *CAUSE, "lead")
