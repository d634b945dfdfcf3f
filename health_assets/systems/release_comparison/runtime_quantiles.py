"""Quantiles of the runtimes of both versions of each pair at each hour, as latency buckets, with ends of intervals.

What belongs here: order statistics of hourly lists of buckets. What does not: differences (`release_comparison`), and
which ranks the ends have (`scoring.confidence_sequences`).
"""

import numpy as np
import pyarrow as pa
from ibis import ir

from health_assets.core.hours import HourRange
from health_assets.scoring.confidence_sequences import quantile_ranks
from health_assets.scoring.latency_buckets import LAST_BUCKET
from health_assets.scoring.range_ranks import Integers, kth_smallest
from health_assets.scoring.relations import lookup
from health_assets.scoring.window_latencies import hours_since, nearest_rank, owners_of
from health_assets.systems.release_comparison.names import BASELINE, CANDIDATE, PERCENTS
from health_assets.systems.release_comparison.pairs import PAIR

ALPHA_OF_SIDE = 0.025
"""Of each side's interval: both hold their true quantiles with twice that at most of misses."""
SIDE_OF_PAIR = (*PAIR, "side")
IN_ORDER = (*SIDE_OF_PAIR, "ran_at")
ENDS = ("", "_low", "_high")
"""The estimate, and the ends of its interval."""
COLUMNS = tuple(f"{measure}{end}" for measure in PERCENTS for end in ENDS)


def runtime_quantiles(parts: pa.Table, hours: HourRange, comparison_hours: int) -> pa.Table:
    """One row per hour and side of a pair that has a runtime by then.

    Args:
        parts: rows of `pairs.buckets_of_pairs`, in the order of `IN_ORDER`.
        hours: the hours to give rows for; at least one.
        comparison_hours: how long a pair is compared.

    Returns:
        `hour`, `SIDE_OF_PAIR` and `COLUMNS`: buckets; an end is null where there are too few runtimes for it.
    """
    lists = parts["latency_buckets"].combine_chunks()
    offsets, buckets = lists.offsets.to_numpy(), lists.values.to_numpy(zero_copy_only=False)
    # each side has a stretch of places, one an hour; what ran before the first hour counts from it on
    owners = owners_of(parts, SIDE_OF_PAIR)
    _, firsts = np.unique(owners, return_index=True)
    places = owners * len(hours) + np.maximum(hours_since(hours.start, parts["ran_at"]), 0)
    released = hours_since(hours.start, parts["released_at"])[firsts]
    owner, hour = (array.ravel() for array in np.meshgrid(np.arange(len(firsts)), np.arange(len(hours)), indexing="ij"))
    starts, ends = offsets[firsts][owner], offsets[np.searchsorted(places, owner * len(hours) + hour, side="right")]
    is_compared = (hour >= released[owner]) & (hour < released[owner] + comparison_hours) & (ends > starts)
    owner, hour, starts, ends = (array[is_compared] for array in (owner, hour, starts, ends))
    named = parts.select(list(SIDE_OF_PAIR)).take(pa.array(firsts[owner]))
    named = named.add_column(0, "hour", pa.array(list(hours), pa.timestamp("us", "UTC")).take(pa.array(hour)))
    for name, values in zip(COLUMNS, _at_ranks(buckets, starts, ends), strict=True):
        named = named.append_column(name, values)
    return named


def _at_ranks(buckets: Integers, starts: Integers, ends: Integers) -> list[pa.Array]:
    """The columns of `COLUMNS` for stretches of buckets."""
    if not len(starts):
        return [pa.array([], pa.int16())] * len(COLUMNS)
    runs = ends - starts
    ranks = []
    for percent in PERCENTS.values():
        ranks += [nearest_rank(runs, percent), *quantile_ranks(runs, percent / 100, ALPHA_OF_SIDE)]
    known = [np.clip(rank, 1, runs) for rank in ranks]
    found = kth_smallest(buckets, starts, ends, known, LAST_BUCKET.bit_length())
    return [
        pa.array(values.astype(np.int16), mask=rank != clipped)
        for values, rank, clipped in zip(found, ranks, known, strict=True)
    ]


def with_runtime_quantiles(sums: ir.Table, quantiles: ir.Table) -> ir.Table:
    """Add `baseline_` and `candidate_` columns of `COLUMNS` to sums of pairs."""
    for side in (BASELINE, CANDIDATE):
        own = quantiles.filter(quantiles.side == side).drop("side")
        sums = lookup(sums, own.rename({f"{side}_{name}": name for name in COLUMNS}), ["hour", *PAIR])
    return sums
