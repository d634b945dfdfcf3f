"""Latency quantiles of windows: the hourly lists of buckets, merged by concatenation, read at their nearest ranks.

What belongs here: median and 99th percentile per window, as buckets. What does not: what a bucket is
(`latency_buckets`) and who is known (`windows`).

One hour is an aggregation by the database. Many hours overlap in all but one hour of their windows, so they are read
from one array per group of agents (`range_ranks`) instead of being concatenated once for every hour.
"""

from datetime import datetime

import ibis
import ibis.expr.datatypes as dt
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from ibis import ir

from health_assets.hours import HourRange
from health_assets.scoring.latency_buckets import LAST_BUCKET
from health_assets.scoring.range_ranks import Integers, kth_smallest

PERCENTS = {"p50_bucket": 50, "p99_bucket": 99}
VALUES_AT_ONCE = 2_000_000


def window_buckets(parts: ir.Table, hours: HourRange) -> ir.Table:
    """Buckets at the nearest ranks of one hour's window.

    Args:
        parts: `agent_id` and `latency_buckets`, not null, of the hours of the window.
        hours: the one hour.

    Returns:
        One row per agent with an execution: `hour`, `agent_id`, `p50_bucket`, `p99_bucket`.
    """
    unnested = parts.select("agent_id", bucket=parts.latency_buckets.unnest())
    shares = ibis.array([percent / 100 for percent in PERCENTS.values()])
    found = unnested.group_by("agent_id").aggregate(found=_quantile_disc(unnested.bucket, shares))
    return found.select(
        "agent_id", hour=ibis.literal(hours.start, "timestamp('UTC')"),
        **{name: found.found[place] for place, name in enumerate(PERCENTS)},
    )  # fmt: skip


@ibis.udf.agg.builtin(name="quantile_disc")
def _quantile_disc(value: dt.int16, shares: dt.Array(dt.float64)) -> dt.Array(dt.int16):  # type: ignore[valid-type]
    """DuckDB's quantiles at the nearest ranks, several from one sort; elsewhere it is called `percentile_disc`."""


def sliding_window_buckets(parts: pa.Table, hours: HourRange, window_hours: int) -> pa.Table:
    """Buckets at the nearest ranks of the windows of many hours; rows and columns as of `window_buckets`.

    Args:
        parts: `hour`, `agent_id` and `latency_buckets`, not null, by agent and hour, of all hours of the windows.
        hours: the hours to give rows for; at least one.
        window_hours: length of the evaluation window.
    """
    if not len(parts):
        return _RESULT.empty_table()
    agents = pc.dictionary_encode(parts["agent_id"].combine_chunks())
    lists = parts["latency_buckets"].combine_chunks()
    offsets, buckets = lists.offsets.to_numpy(), lists.values.to_numpy(zero_copy_only=False)
    # each agent has a stretch of places, one an hour; a part is at the place of its agent and hour
    stretch = len(hours) + window_hours - 1
    span_start = hours.extended_back(window_hours - 1).start
    places = agents.indices.to_numpy().astype(np.int64) * stretch + _hours_since(span_start, parts["hour"])
    first_buckets = offsets[np.searchsorted(places, np.arange(len(agents.dictionary) + 1) * stretch)]
    results = []
    for group in _groups_of_agents(first_buckets, len(hours)):
        agent, hour = (array.ravel() for array in np.meshgrid(group, np.arange(len(hours)), indexing="ij"))
        window = agent * stretch + hour
        starts, ends = (offsets[np.searchsorted(places, edge)] for edge in (window, window + window_hours))
        results.append(_of_group(buckets, starts, ends, agent, hour))
    agent, hour, *found = (np.concatenate(arrays) for arrays in zip(*results, strict=True))
    hour_starts = pa.array(list(hours), _RESULT.field("hour").type)
    return pa.table([hour_starts.take(pa.array(hour)), agents.dictionary.take(pa.array(agent)), *found], _RESULT)


_RESULT = pa.schema({"hour": pa.timestamp("us", "UTC"), "agent_id": pa.string(), **dict.fromkeys(PERCENTS, pa.int16())})


def _hours_since(start: datetime, hours: pa.ChunkedArray) -> Integers:
    start_us = int(start.timestamp()) * 10**6
    return (hours.combine_chunks().cast(pa.int64()).to_numpy() - start_us) // (3600 * 10**6)


def _groups_of_agents(first_buckets: Integers, hour_count: int) -> list[Integers]:
    """Numbers of agents, in groups with no more than about `VALUES_AT_ONCE` buckets and windows, to keep memory small.

    Args:
        first_buckets: where each agent's buckets start, and where those of the last one end.
        hour_count: windows of each agent.
    """
    agents = np.arange(len(first_buckets) - 1)
    values = first_buckets[1:] - first_buckets[0] + (agents + 1) * hour_count
    cuts = np.searchsorted(values, np.arange(VALUES_AT_ONCE, values[-1], VALUES_AT_ONCE))
    return [group for group in np.split(agents, np.unique(cuts)) if len(group)]


def _of_group(buckets: Integers, starts: Integers, ends: Integers, agent: Integers, hour: Integers) -> list[Integers]:
    """Agent, hour and the buckets at the nearest ranks, of the windows with an execution."""
    is_used = ends > starts
    agent, hour, starts, ends = (array[is_used] for array in (agent, hour, starts, ends))
    if not len(starts):
        return [agent, hour, *(np.zeros(0, np.int16) for _ in PERCENTS)]
    first, last = starts.min(), ends.max()
    ranks = [nearest_rank(ends - starts, percent) for percent in PERCENTS.values()]
    found = kth_smallest(buckets[first:last], starts - first, ends - first, ranks, LAST_BUCKET.bit_length())
    return [agent, hour, *(array.astype(np.int16) for array in found)]


def nearest_rank(count: Integers, percent: int) -> Integers:
    """Rank of a percentile among `count` values, from 1: the least whole number from percent/100 x count on."""
    return (count.astype(np.int64) * percent + 99) // 100
