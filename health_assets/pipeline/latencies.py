"""Latencies of windows: where the hourly lists of buckets are merged, by the warehouse, or by a function.

What belongs here: that choice, for any asset that has latencies. What does not: how they are merged
(`scoring.window_latencies`).
"""

from collections.abc import Mapping, Sequence
from functools import partial

from ibis import ir

from health_assets.pipeline.derived import Inputs
from health_assets.scoring.window_latencies import AGENT, PERCENTS, sliding_window_buckets, window_buckets


def latencies(
    inputs: Inputs, components: ir.Table, keys: Sequence[str] = AGENT, percents: Mapping[str, int] = PERCENTS
) -> ir.Table:
    """Buckets at the nearest ranks of the window of each hour.

    Args:
        inputs: the inputs of an asset; its hours are those to give rows for.
        components: `hour`, the keys and `latency_buckets` of the hours of the windows.
        keys: columns that tell apart whose latencies they are.
        percents: columns of the result, and the percentile in each.

    Returns:
        One row per hour and key with a latency: `hour`, the keys, and a bucket for each of `percents`.
    """
    parts = components.filter(components.latency_buckets.notnull()).select("hour", *keys, "latency_buckets")
    if len(inputs.hours) == 1 and inputs.session.unnests_in_engine:
        return window_buckets(parts, inputs.hours, keys, percents)
    buckets = partial(
        sliding_window_buckets,
        hours=inputs.hours, window_hours=inputs.settings.window_hours, keys=tuple(keys), percents=dict(percents),
    )  # fmt: skip
    return inputs.session.grouped(parts, keys, [*keys, "hour"], buckets)
