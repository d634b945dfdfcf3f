"""The version, model or tool in which most of what drifts is."""

import ibis
from ibis import ir

from health_assets.scoring.relations import lookup
from health_assets.systems.agent_drift.names import (
    BUCKETS,
    COST,
    DIMENSIONS,
    LATENCY,
    LOOK_BACK_HOURS,
    SHARES,
    SUCCESS_RATE,
    TOKENS,
    TOOL,
    TOOL_FAILURES,
    TOOL_MIX,
)
from health_assets.systems.agent_drift.run_counts import COUNTED, counted

CAUSE = ("cause_dimension", "cause", "cause_share")
IN_EXCESS = {
    SUCCESS_RATE: "failures", LATENCY: "slow runs", TOOL_FAILURES: "runs with a failed tool", TOKENS: "large runs",
    COST: "costly runs",
}  # fmt: skip
KEYS = ("hour", "agent_id", "measure")
LOOK_BACK = ibis.interval(hours=LOOK_BACK_HOURS)
LEAST_SHARE = 0.5
LEAST_LEAD = 0.2
"""How much greater its share of the excess has to be than its share of the runs, since then or before."""


def with_causes(rows: ir.Table, components: ir.Table, tool_components: ir.Table) -> ir.Table:
    """Add `CAUSE` and `hint` of what drifts, instead of tools; null of volumes, and where nothing stands out.

    Args:
        rows: rows of `drift`, with the `threshold_bucket` of their measures, the `tool` that they are about, and the
            `usual_tools` of their agents.
        components: `release_components` of their hours and the look-back before them.
        tool_components: likewise.
    """
    of_shares, of_mixes = _of_shares(rows, components), _of_mixes(rows, tool_components)
    explained = lookup(rows.drop("tool", "usual_tools"), ibis.union(of_shares, of_mixes), KEYS)
    percent = (explained.cause_share * 100).round().cast("int64").cast("string")
    share = ": " + percent + "% of the " + explained.measure.cases(*IN_EXCESS.items()) + " in excess"
    return explained.mutate(hint=explained.cause_dimension + " " + explained.cause + share.fill_null(""))


def _of_mixes(rows: ir.Table, tool_components: ir.Table) -> ir.Table:
    """`CAUSE` of tool mixes that drift: the tool they are about, or the other tool whose share grew most."""
    own = rows.filter(rows.is_drifting, rows.measure == TOOL_MIX)
    known = own.filter(own.tool.notnull()).select(*KEYS, "tool")
    joined = own.filter(own.tool.isnull()).select(*KEYS, "since", "usual_tools").inner_join(
        tool_components.select("agent_id", "calls", called_at="hour", called="tool"), "agent_id"
    )  # fmt: skip
    joined = joined.filter(joined.called_at <= joined.hour, joined.called_at + LOOK_BACK > joined.hour)
    is_since = joined.called_at >= joined.since
    summed = joined.group_by([*KEYS, "called"]).aggregate(
        is_usual=joined.usual_tools.contains(joined.called).fill_null(False).any(),
        now=joined.calls.sum(where=is_since).fill_null(0),
        before=joined.calls.sum(where=~is_since).fill_null(0),
    )
    growth = _share(summed.now) - _share(summed.before)
    grown = summed.mutate(growth=growth)
    grown = grown.filter(~grown.is_usual)
    order = [ibis.desc(grown.growth), grown.called]
    placed = grown.mutate(place=ibis.row_number().over(group_by=list(KEYS), order_by=order))
    grown = placed.filter(placed.place == 0).select(*KEYS, tool="called")
    causes = ibis.union(known, grown)
    return causes.select(*KEYS, cause_dimension=ibis.literal(TOOL), cause=causes.tool, cause_share=ibis.null("float64"))


def _share(calls: ir.IntegerColumn) -> ir.FloatingValue:
    """The share of all calls of the row."""
    return (calls / calls.sum().over(group_by=list(KEYS)).nullif(0)).fill_null(0.0)


def _of_shares(rows: ir.Table, components: ir.Table) -> ir.Table:
    """`CAUSE` of shares of runs that drift, of those with one.

    Runs in excess are those that count against the agent beyond the baseline's share of the runs.
    """
    own = rows.filter(rows.is_drifting, rows.measure.isin(list(SHARES)))
    own = own.select(*KEYS, "since", "value", "baseline", "threshold_bucket", all_runs="runs")
    joined = own.inner_join(components.rename(ran_at="hour"), "agent_id")
    joined = joined.filter(joined.ran_at <= joined.hour, joined.ran_at + LOOK_BACK > joined.hour)
    joined = ibis.union(*(_of_measure(joined, measure) for measure in SHARES))
    before = (joined.ran_at < joined.since).ifelse(joined.runs, 0)
    joined = joined.mutate(runs_before=before, all_before=before.sum().over(group_by=list(KEYS)))
    causes = ibis.union(*(_of_dimension(joined, dimension) for dimension in DIMENSIONS))
    order = [ibis.desc("lead"), "cause_dimension", "cause"]
    placed = causes.mutate(place=ibis.row_number().over(group_by=list(KEYS), order_by=order))
    return placed.filter(placed.place == 0).select(*KEYS, *CAUSE)


def _of_measure(joined: ir.Table, measure: str) -> ir.Table:
    """The rows of a measure, with the runs of each part of an hour, and those of them that count."""
    own = joined.filter(joined.measure == measure)
    base, now = ((1 - own[name] if measure == SUCCESS_RATE else own[name]) for name in ("baseline", "value"))
    own = own.mutate(base=base, now=now)
    columns = (*KEYS, "since", "ran_at", "all_runs", *DIMENSIONS.values(), "base", "now")
    if measure in COUNTED:
        runs, events = counted(own, measure).values()
    else:
        own = own.select(*columns, "threshold_bucket", bucket=own[BUCKETS[measure]].unnest())
        is_event = (own.bucket > own.threshold_bucket).cast("int64")
        own = own.group_by(list(columns)).aggregate(runs=own.count(), events=is_event.sum())
        runs, events = own.runs, own.events
    return own.select(*columns, runs=runs.cast("int64"), events=events.cast("int64"))


def _of_dimension(joined: ir.Table, dimension: str) -> ir.Table:
    name = DIMENSIONS[dimension]
    named = joined.filter(joined[name] != "").rename(cause=name)
    is_since = named.ran_at >= named.since
    summed = named.group_by([*KEYS, "all_runs", "base", "now", "all_before", "cause"]).aggregate(
        own_runs=named.runs.sum(where=is_since).fill_null(0),
        own_events=named.events.sum(where=is_since).fill_null(0),
        own_before=named.runs_before.sum(),
    )
    excess = summed.own_events - summed.own_runs * summed.base
    share = ibis.least(1.0, excess / (summed.all_runs * (summed.now - summed.base)))
    causes = summed.mutate(cause_dimension=ibis.literal(dimension), cause_share=share)
    usual = ibis.least(
        causes.own_runs / causes.all_runs, causes.own_before / causes.all_before.nullif(0).cast("float64")
    )
    causes = causes.mutate(lead=causes.cause_share - usual)
    return causes.filter(causes.cause_share >= LEAST_SHARE, causes.lead >= LEAST_LEAD).select(*KEYS, *CAUSE, "lead")
