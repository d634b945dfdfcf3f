"""Windows of any key: hourly components of what happened, merged over the window that ends with each hour.

What belongs here: sums over windows, and where in a window something stood last, for whatever a component is kept of.
What does not: agents that are known although nothing happened (`windows`), and latencies (`window_latencies`).

A key has a row in every hour whose window holds a component of it. Sums are exact, so that one hour alone,
many hours in one pass and any order give the same number to the last bit.
"""

from collections.abc import Sequence
from datetime import timedelta

import ibis
from ibis import ir

from health_assets.core.hours import HourRange
from health_assets.scoring.exact_sums import as_number, exact_sum
from health_assets.scoring.relations import lookup, spine

_TIME = "timestamp('UTC')"


def merged_windows(
    components: ir.Table,
    keys: Sequence[str],
    hours: HourRange,
    window_hours: int,
    sums: Sequence[str],
    last: Sequence[str] = (),
) -> ir.Table:
    """One row per key and hour of `hours` whose window holds a component of the key.

    Args:
        components: hourly components, at least of `hours` and the window before them; one row per hour and key.
        keys: columns that tell apart what a component is of, beside `hour`.
        hours: hours to give rows for; at least one.
        window_hours: length of the window.
        sums: columns to add up; null where no component of the window has a value.
        last: columns to look for: the latest hour of the window that has a value.

    Returns:
        `hour`, the keys, the sums under their own names, and of each of `last` the hour as `<name>_in`.

    Raises:
        ValueError: there is no hour.
    """
    if not len(hours):
        raise ValueError("a range of at least one hour is needed")
    first = hours.start - timedelta(hours=window_hours - 1)
    parts = components.filter(components.hour >= first, components.hour < hours.end)
    parts = parts.select("hour", *keys, *sums, **{f"{name}_in": _hour_of(parts, name) for name in last})
    if len(hours) == 1:
        return _one_hour(parts, keys, hours, sums, last)
    return _many_hours(parts, keys, hours, window_hours, sums, last)


def _hour_of(parts: ir.Table, name: str) -> ir.TimestampValue:
    return parts[name].notnull().ifelse(parts.hour, ibis.null(_TIME))


def _one_hour(
    parts: ir.Table, keys: Sequence[str], hours: HourRange, sums: Sequence[str], last: Sequence[str]
) -> ir.Table:
    merged = parts.group_by(keys).aggregate(
        **{name: as_number(exact_sum(parts[name])) for name in sums},
        **{f"{name}_in": parts[f"{name}_in"].max() for name in last},
    )
    return merged.mutate(hour=ibis.literal(hours.start, _TIME))


def _many_hours(
    parts: ir.Table,
    keys: Sequence[str],
    hours: HourRange,
    window_hours: int,
    sums: Sequence[str],
    last: Sequence[str],
) -> ir.Table:
    """One pass with a sliding frame over a grid without holes, since the frame counts rows."""
    seen = parts.group_by(keys).aggregate(first_hour=parts.hour.min(), last_hour=parts.hour.max())
    each = spine(HourRange(hours.start - timedelta(hours=window_hours - 1), hours.end))
    in_reach = [
        each.hour >= seen.first_hour,
        each.hour <= seen.last_hour + ibis.interval(hours=window_hours - 1),
    ]
    grid = seen.inner_join(each, in_reach).select("hour", *keys)
    filled = lookup(grid, parts.mutate(component_hour=parts.hour), ["hour", *keys])
    frame = ibis.window(preceding=window_hours - 1, following=0, group_by=keys, order_by="hour")
    slid = filled.select(
        "hour", *keys,
        **{name: as_number(exact_sum(filled[name]).over(frame)) for name in sums},
        **{f"{name}_in": filled[f"{name}_in"].max().over(frame) for name in last},
        newest=filled.component_hour.max().over(frame),
    )  # fmt: skip
    return slid.filter(slid.hour >= hours.start, slid.newest.notnull()).drop("newest")
