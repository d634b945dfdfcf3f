"""Hourly components by UTC day: sums, and runtimes at nearest ranks as buckets; no execution is read."""

from collections.abc import Sequence

import ibis
from ibis import ir

DAY_S = 86_400


def day_sums(components: ir.Table) -> ir.Table:
    """One row per agent and day with a run: `executions`, `successes`, `timed` and `runtime_us`.

    Args:
        components: rows of `health_components`.
    """
    rows = components.mutate(day=_day(components), timed=components.executions - components.untimed)
    sums = rows.group_by("agent_id", "day").aggregate(
        executions=rows.executions.sum().cast("int64"),
        successes=rows.successes.sum().cast("int64"),
        timed=rows.timed.sum().cast("int64"),
        runtime_us=rows.runtime_us_sum.sum().cast("int64"),
    )
    return sums.filter(sums.executions > 0)


def runs_by_bucket(components: ir.Table) -> ir.Table:
    """Runs of each agent, day and latency bucket.

    Args:
        components: rows of `state_components`.
    """
    timed = components.filter(components.latency_buckets.notnull())
    runs = timed.select("agent_id", day=_day(timed), bucket=timed.latency_buckets.unnest())
    return runs.group_by("agent_id", "day", "bucket").aggregate(runs=runs.count())


def nearest_ranks(runs: ir.Table, keys: Sequence[str], percent: int) -> ir.Table:
    """The bucket of a percentile, by nearest rank, of each key: `keys` and `bucket`.

    Args:
        runs: rows of `runs_by_bucket`.
        keys: whose percentiles.
        percent: which one.
    """
    summed = runs.group_by([*keys, "bucket"]).aggregate(runs=runs.runs.sum().cast("int64"))
    up_to = ibis.window(preceding=None, following=0, group_by=keys, order_by="bucket")
    placed = summed.mutate(
        so_far=summed.runs.sum().over(up_to).cast("int64"),
        of=summed.runs.sum().over(group_by=keys).cast("int64"),
    )
    reached = placed.filter(placed.so_far * 100 >= placed.of * percent)
    return reached.group_by(keys).aggregate(bucket=reached.bucket.min())


def _day(rows: ir.Table) -> ir.IntegerValue:
    """Days since 1970, whatever time zone an engine's session has."""
    return (rows.hour.epoch_seconds() // DAY_S).cast("int64")
