"""Latency quantiles of windows: the hourly lists of buckets, merged by concatenation, read at their nearest ranks.

What belongs here: percentiles per window, as buckets, of agents or whatever else has latencies. What does not: what a
bucket is (`latency_buckets`) and who is known (`windows`).

One hour may be an aggregation by the database. Many hours overlap in all but one hour of their windows, so they are
read from one array per group of keys (`range_ranks`) instead of being concatenated once for every hour.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

import ibis
import ibis.expr.datatypes as dt
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from ibis import ir
from numpy.typing import NDArray

from health_assets.core.hours import HourRange
from health_assets.scoring.latency_buckets import LAST_BUCKET
from health_assets.scoring.range_ranks import Integers, kth_smallest

PERCENTS = {"p50_bucket": 50, "p99_bucket": 99}
AGENT = ("agent_id",)
VALUES_AT_ONCE = 2_000_000


def window_buckets(
    parts: ir.Table, hours: HourRange, keys: Sequence[str] = AGENT, percents: Mapping[str, int] = PERCENTS
) -> ir.Table:
    """Buckets at the nearest ranks of one hour's window, for engines that have DuckDB's `quantile_disc`.

    Args:
        parts: the keys and `latency_buckets`, not null, of the hours of the window.
        hours: the one hour.
        keys: columns that tell apart whose latencies they are.
        percents: columns of the result, and the percentile in each.

    Returns:
        One row per key with a latency: `hour`, the keys, and a bucket for each of `percents`.
    """
    unnested = parts.select(*keys, bucket=parts.latency_buckets.unnest())
    shares = ibis.array([percent / 100 for percent in percents.values()])
    found = unnested.group_by(keys).aggregate(found=_quantile_disc(unnested.bucket, shares))
    return found.select(
        *keys, hour=ibis.literal(hours.start, "timestamp('UTC')"),
        **{name: found.found[place] for place, name in enumerate(percents)},
    )  # fmt: skip


@ibis.udf.agg.builtin(name="quantile_disc")
def _quantile_disc(value: dt.int16, shares: dt.Array(dt.float64)) -> dt.Array(dt.int16):  # type: ignore[valid-type]
    """DuckDB's quantiles at the nearest ranks, several from one sort."""


def sliding_window_buckets(
    parts: pa.Table,
    hours: HourRange,
    window_hours: int,
    keys: Sequence[str] = AGENT,
    percents: Mapping[str, int] = PERCENTS,
) -> pa.Table:
    """Buckets at the nearest ranks of the windows of many hours; rows and columns as of `window_buckets`.

    Args:
        parts: `hour`, the keys and `latency_buckets`, not null, by keys and hour, of all hours of the windows.
        hours: the hours to give rows for; at least one.
        window_hours: length of the evaluation window.
        keys: columns that tell apart whose latencies they are.
        percents: columns of the result, and the percentile in each.
    """
    schema = _result_schema(parts, keys, percents)
    if not len(parts):
        return schema.empty_table()
    owners = owners_of(parts, keys)
    lists = parts["latency_buckets"].combine_chunks()
    offsets, buckets = lists.offsets.to_numpy(), lists.values.to_numpy(zero_copy_only=False)
    # each owner has a stretch of places, one an hour; a part is at the place of its owner and hour
    stretch = len(hours) + window_hours - 1
    span_start = hours.extended_back(window_hours - 1).start
    places = owners * stretch + hours_since(span_start, parts["hour"])
    first_buckets = offsets[np.searchsorted(places, np.arange(owners[-1] + 2) * stretch)]
    results = []
    for group in _groups_of_owners(first_buckets, len(hours)):
        owner, hour = (array.ravel() for array in np.meshgrid(group, np.arange(len(hours)), indexing="ij"))
        window = owner * stretch + hour
        starts, ends = (offsets[np.searchsorted(places, edge)] for edge in (window, window + window_hours))
        results.append(_of_group(buckets, starts, ends, owner, hour, list(percents.values())))
    owner, hour, *found = (np.concatenate(arrays) for arrays in zip(*results, strict=True))
    hour_starts = pa.array(list(hours), schema.field("hour").type)
    named = parts.select(list(keys)).take(pa.array(np.searchsorted(owners, owner)))
    return pa.table([hour_starts.take(pa.array(hour)), *named.columns, *found], schema)


def _result_schema(parts: pa.Table, keys: Sequence[str], percents: Mapping[str, int]) -> pa.Schema:
    return pa.schema(
        {
            "hour": pa.timestamp("us", "UTC"),
            **{key: parts.schema.field(key).type for key in keys},
            **dict.fromkeys(percents, pa.int16()),
        }
    )


def owners_of(parts: pa.Table, keys: Sequence[str]) -> NDArray[np.int64]:
    """For each part, whose it is: numbers from 0 on, in the order of the parts, in which equal keys stand together."""
    begins = np.zeros(len(parts), bool)
    for key in keys:
        column = parts[key].combine_chunks()
        begins[1:] |= pc.not_equal(column[1:], column[:-1]).to_numpy(zero_copy_only=False)
    return np.cumsum(begins, dtype=np.int64)


def hours_since(start: datetime, hours: pa.ChunkedArray) -> Integers:
    """How many hours after a time each of these hours is."""
    start_us = int(start.timestamp()) * 10**6
    return (hours.combine_chunks().cast(pa.int64()).to_numpy() - start_us) // (3600 * 10**6)


def _groups_of_owners(first_buckets: Integers, hour_count: int) -> list[Integers]:
    """Numbers of owners, in groups with no more than about `VALUES_AT_ONCE` buckets and windows, to keep memory small.

    Args:
        first_buckets: where each owner's buckets start, and where those of the last one end.
        hour_count: windows of each owner.
    """
    owners = np.arange(len(first_buckets) - 1)
    values = first_buckets[1:] - first_buckets[0] + (owners + 1) * hour_count
    cuts = np.searchsorted(values, np.arange(VALUES_AT_ONCE, values[-1], VALUES_AT_ONCE))
    return [group for group in np.split(owners, np.unique(cuts)) if len(group)]


def _of_group(
    buckets: Integers, starts: Integers, ends: Integers, owner: Integers, hour: Integers, percents: Sequence[int]
) -> list[Integers]:
    """Owner, hour and the buckets at the nearest ranks, of the windows with a latency."""
    is_used = ends > starts
    owner, hour, starts, ends = (array[is_used] for array in (owner, hour, starts, ends))
    if not len(starts):
        return [owner, hour, *(np.zeros(0, np.int16) for _ in percents)]
    first, last = starts.min(), ends.max()
    ranks = [nearest_rank(ends - starts, percent) for percent in percents]
    found = kth_smallest(buckets[first:last], starts - first, ends - first, ranks, LAST_BUCKET.bit_length())
    return [owner, hour, *(array.astype(np.int16) for array in found)]


def nearest_rank(count: Integers, percent: int) -> Integers:
    """Rank of a percentile among `count` values, from 1: the least whole number from percent/100 x count on."""
    return (count.astype(np.int64) * percent + 99) // 100
