"""Hourly counts of runs that drift is found in, by number of the agent and place, the number of the hour.

A run is slow, large or costly by a threshold of its agent: what nine of ten runs took at most, hour by hour and on
average, in each hour of the day once on the sixth to the fourth day before the day of the hours that drift is found in,
and a margin. So it is the same for all hours of a day, and older than all that is compared with the past. It may lie
anywhere: what share of runs is usual above it is estimated afterwards.
"""

import math
from datetime import datetime

import numpy as np
import pyarrow as pa
from ibis import ir
from numpy.typing import NDArray

from health_assets.core.hours import HOUR, HourRange
from health_assets.scoring.latency_buckets import GAMMA
from health_assets.scoring.relations import lookup, time_literal
from health_assets.systems.agent_drift.names import (
    BUCKETS,
    COST,
    DAY_HOURS,
    FEWEST_RUNS,
    LATENCY,
    LOOK_BACK_HOURS,
    SHARES,
    SUCCESS_RATE,
    TOOL_FAILURES,
)
from health_assets.systems.agent_drift.past import Integers

KEYS = ("number", "place")
THRESHOLDS = {measure: f"{measure}_threshold" for measure in BUCKETS}
"""Columns of agents: the buckets above which a run counts; null without a run on the days that they come from."""
NO_THRESHOLD = -1
THRESHOLD_DAYS = 3
"""Thresholds come from so many days, and each hour of the day from one of these."""
COUNTED = (SUCCESS_RATE, TOOL_FAILURES)
"""Measures whose runs the components count."""


def agents_with_past(components: ir.Table, hours: HourRange, ratio_margin: float) -> ir.Table:
    """`agent_id` and `THRESHOLDS` of the agents with enough executions for a past.

    Args:
        components: `release_components` of the hours to find drift in, and of the look-back before them.
        hours: the hours to find drift in, of one day.
        ratio_margin: largest growth of what a run takes that does not matter, as a share.
    """
    summed = components.group_by("agent_id").aggregate(executions=components.executions.sum())
    agents = summed.filter(summed.executions >= FEWEST_RUNS).select("agent_id")
    return lookup(agents, _thresholds(components, hours, ratio_margin), "agent_id")


def _thresholds(components: ir.Table, hours: HourRange, ratio_margin: float) -> ir.Table:
    rows = components.filter(components.hour.isin(threshold_hours(hours)))
    margin = math.ceil(math.log1p(ratio_margin) / math.log(GAMMA))
    thresholds: dict[str, ir.IntegerScalar] = {}
    for measure, name in BUCKETS.items():
        buckets = rows[name]
        runs = buckets.length()
        nearest_rank = buckets[(runs * 9 + 9) // 10 - 1].cast("int64")
        total = (nearest_rank * runs).sum().cast("float64")
        thresholds[THRESHOLDS[measure]] = ((total / runs.sum()).floor() + margin).cast("int16")
    return rows.group_by("agent_id").aggregate(**thresholds)


def threshold_hours(hours: HourRange) -> list[datetime]:
    """The hours that thresholds for hours of one day come from."""
    first = hours.start.replace(hour=0) - 2 * THRESHOLD_DAYS * DAY_HOURS * HOUR
    return [
        first + (day * DAY_HOURS + hour) * HOUR
        for day in range(THRESHOLD_DAYS)
        for hour in range(day, DAY_HOURS, THRESHOLD_DAYS)
    ]


def run_counts(components: ir.Table, agents: ir.Table, hours: HourRange) -> ir.Table:
    """One row per agent, version, model and hour: `KEYS`, counts of `COUNTED` and lists of `BUCKETS`, which add up.

    Beside them the `THRESHOLDS` of the agent, `NO_THRESHOLD` where it has none.

    Args:
        components: as of `agents_with_past`.
        agents: `number`, `agent_id` and `THRESHOLDS` of the agents that count.
        hours: the hours to find drift in.
    """
    rows = components.inner_join(agents, "agent_id")
    counts = {name: one.cast("int32") for measure in COUNTED for name, one in counted(rows, measure).items()}
    thresholds = {name: rows[name].fill_null(NO_THRESHOLD).cast("int16") for name in THRESHOLDS.values()}
    return rows.select("number", *BUCKETS.values(), place=place(rows.hour, hours), **counts, **thresholds)


def counted(rows: ir.Table, measure: str) -> dict[str, ir.IntegerValue]:
    """The runs of a measure of `COUNTED` in `release_components`, and those that count against the agent."""
    if measure == SUCCESS_RATE:
        counts = rows.executions, rows.executions - rows.successes
    else:
        counts = rows.runs_with_tool_calls, rows.runs_with_tool_failures
    return dict(zip(SHARES[measure], counts, strict=True))


def with_lists_counted(counts: pa.Table) -> pa.Table:
    """Rows of `run_counts` with the counts of all `SHARES` instead of lists and thresholds."""
    copied = (*KEYS, *(name for measure in COUNTED for name in SHARES[measure]))  # a column holds all of its batch
    columns = {name: counts[name].to_numpy().astype(np.int32) for name in copied}
    for measure, name in BUCKETS.items():
        counted_lists = _above(counts[name].combine_chunks(), counts[THRESHOLDS[measure]].to_numpy())
        columns.update(zip(SHARES[measure], counted_lists, strict=True))
    return pa.table(columns)


def _above(lists: pa.ListArray, thresholds: Integers) -> list[NDArray[np.int32]]:
    """The number of buckets in each list, and of those above the list's threshold; none where there is no threshold."""
    offsets = lists.offsets.to_numpy()
    lengths = np.diff(offsets)
    buckets = lists.values.to_numpy()[offsets[0] : offsets[-1]]
    is_above = buckets > np.repeat(thresholds, lengths)
    before = np.concatenate([[0], np.cumsum(is_above, dtype=np.int32)])
    ends = offsets - offsets[0]
    events = before[ends[1:]] - before[ends[:-1]]
    return [np.where(thresholds == NO_THRESHOLD, 0, counts).astype(np.int32) for counts in (lengths, events)]


def with_thresholds(rows: ir.Table) -> ir.Table:
    """`THRESHOLDS` of rows of agents and measures as `threshold_bucket`, that of the measure; null of the others."""
    buckets = ((measure, rows[name]) for measure, name in THRESHOLDS.items())
    return rows.mutate(threshold_bucket=rows.measure.cases(*buckets)).drop(*THRESHOLDS.values())


def threshold(measure: ir.StringValue, bucket: ir.IntegerValue) -> ir.FloatingValue:
    """The amount at the upper end of a bucket: seconds, tokens or US dollars."""
    amount = (bucket.cast("float64") * math.log(GAMMA)).exp()
    return measure.isin([LATENCY, COST]).ifelse(amount / 1e6, amount)


def place(hour: ir.TimestampValue, hours: HourRange) -> ir.IntegerValue:
    """Number of an hour, from 0 for the first of the look-back of the first of these hours."""
    first = time_literal(hours.extended_back(LOOK_BACK_HOURS - 1).start)
    seconds = hour.epoch_seconds().cast("int64") - first.epoch_seconds().cast("int64")
    return (seconds / 3600).floor().cast("int32")
