"""Windows: hourly components merged over the evaluation window that ends with each hour.

What belongs here: which agents are known at an hour, the sums over each agent's window, and its length. What does not:
what the sums mean (`health_components`, `systems.agent_health_model.agent_health`).

One hour is a plain aggregation over its window. Many hours are one pass with a sliding frame over a dense grid of
agents and hours; the frame counts rows, so the grid must not have holes. Sums are of integers, so both ways agree to
the last bit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import ibis
from ibis import ir

from health_assets.core.hours import HOUR, HourRange
from health_assets.scoring.health_components import SUMS
from health_assets.scoring.relations import lookup, spine, time_literal


@dataclass(frozen=True)
class WindowSum:
    """A component, summed up over the hours that end with each hour.

    Args:
        component: one of `COMPONENTS`; those of an hour's last minutes are summed over one hour alone.
        window_hours: over how many hours.
    """

    component: str
    window_hours: int


def window_sums(
    components: ir.Table,
    listed_agents: ir.Table,
    hours: HourRange,
    window_hours: int,
    lookback_hours: int,
    names: Sequence[str] = SUMS,
) -> ir.Table:
    """One row per known agent and hour of `hours`: `hour`, `agent_id` and the sums over its window.

    Args:
        components: hourly components, at least of `hours` and the look-back before them.
        listed_agents: agents (`agent_id`) that are known without any event.
        hours: hours to give rows for; at least one.
        window_hours: length of the evaluation window.
        lookback_hours: length of the look-back.
        names: some of `SUMS`.
    """
    sums = {name: WindowSum(name, window_hours) for name in names}
    return sums_over_windows(components, listed_agents, hours, sums, lookback_hours)


def sums_over_windows(
    components: ir.Table,
    listed_agents: ir.Table,
    hours: HourRange,
    sums: Mapping[str, WindowSum],
    lookback_hours: int,
) -> ir.Table:
    """Sums as those of `window_sums`, over several lengths at once: `hour`, `agent_id` and a column for each of `sums`.

    An agent is known at an hour when it has a component in the `lookback_hours` that end with the hour, or is listed.
    """
    if not len(hours):
        raise ValueError("a range of at least one hour is needed")
    merged = _one_hour if len(hours) == 1 else _many_hours
    return merged(components, listed_agents, hours, sums, lookback_hours)


def ends_of_hours(hour: ir.TimestampValue, as_of: Mapping[datetime, datetime]) -> ir.TimestampValue:
    """The end of each hour; of one that runs, up to when it is known.

    Args:
        hour: the hour of each row.
        as_of: up to when the hours are known that run.
    """
    end = hour + ibis.interval(hours=1)
    if not as_of:
        return end
    return ibis.cases(
        *((hour == time_literal(running), time_literal(known)) for running, known in as_of.items()), else_=end
    )


def window_lengths_s(
    hour: ir.TimestampValue, window_hours: int, as_of: Mapping[datetime, datetime]
) -> ir.FloatingValue:
    """The seconds that have passed of the window that ends with each hour: fewer where the hour runs.

    Args:
        hour: the hour of each row.
        window_hours: length of the window.
        as_of: up to when the hours are known that run.
    """
    whole = ibis.literal(window_hours * 3600.0, "float64")
    if not as_of:
        return whole
    before_us = (window_hours - 1) * HOUR // timedelta(microseconds=1)

    def passed_s(known: datetime) -> ir.FloatingValue:
        # by the database: as a number it would make other SQL of every time, which is compiled anew
        passed_us = time_literal(known).delta(hour, unit="microsecond") + before_us
        return passed_us.cast("float64") / 1e6

    return ibis.cases(*((hour == time_literal(own), passed_s(known)) for own, known in as_of.items()), else_=whole)


def _between(rows: ir.Table, start: datetime, end: datetime) -> ir.Table:
    return rows.filter(rows.hour >= start, rows.hour < end)


def _longest(sums: Mapping[str, WindowSum]) -> int:
    return max(one.window_hours for one in sums.values())


def _one_hour(
    components: ir.Table,
    listed_agents: ir.Table,
    hours: HourRange,
    sums: Mapping[str, WindowSum],
    lookback_hours: int,
) -> ir.Table:
    longest = _longest(sums)
    in_window = _between(components, hours.end - timedelta(hours=longest), hours.end)

    def inside(one: WindowSum) -> ir.Value:
        value = in_window[one.component]
        start = hours.end - timedelta(hours=one.window_hours)
        return value if one.window_hours == longest else (in_window.hour >= start).ifelse(value, 0)

    counted = in_window.select("agent_id", **{name: inside(one) for name, one in sums.items()})
    seen = _between(components, hours.end - timedelta(hours=lookback_hours), hours.end).select("agent_id").distinct()
    zeros = ibis.union(seen, listed_agents.select("agent_id")).select(
        "agent_id", **dict.fromkeys(sums, ibis.literal(0, "int64"))
    )
    both = ibis.union(counted, zeros)
    known = both.group_by("agent_id").aggregate(**{name: both[name].sum().cast("int64") for name in sums})
    if longest > lookback_hours:
        known = known.semi_join(zeros, "agent_id")
    return known.mutate(hour=ibis.literal(hours.start, "timestamp('UTC')"))


def _many_hours(
    components: ir.Table,
    listed_agents: ir.Table,
    hours: HourRange,
    sums: Mapping[str, WindowSum],
    lookback_hours: int,
) -> ir.Table:
    frame_start = hours.start - timedelta(hours=_longest(sums) - 1)
    before = _between(components, hours.start - timedelta(hours=lookback_hours - 1), frame_start)
    last_seen_before = before.group_by("agent_id").aggregate(seen_before=before.hour.max())
    recent = _between(components, frame_start, hours.end)
    agents = ibis.union(
        last_seen_before.select("agent_id"), recent.select("agent_id"), listed_agents.select("agent_id"), distinct=True
    )
    grid = agents.cross_join(spine(HourRange(frame_start, hours.end)))
    summed = dict.fromkeys(one.component for one in sums.values())
    filled = lookup(grid, recent.select("hour", "agent_id", *summed, seen=recent.hour), ["hour", "agent_id"])
    by_agent = {"group_by": "agent_id", "order_by": "hour"}
    so_far = ibis.window(preceding=None, following=0, **by_agent)

    def sliding(one: WindowSum) -> ir.Value:
        frame = ibis.window(preceding=one.window_hours - 1, following=0, **by_agent)
        return ibis.coalesce(filled[one.component].sum().over(frame), 0).cast("int64")

    slid = filled.select(
        "hour", "agent_id", last_seen=filled.seen.max().over(so_far),
        **{name: sliding(one) for name, one in sums.items()},
    )  # fmt: skip
    asked = slid.filter(slid.hour >= hours.start)
    is_listed = listed_agents.select("agent_id", is_listed=ibis.literal(True))
    joined = lookup(lookup(asked, last_seen_before, "agent_id"), is_listed, "agent_id")
    last_seen = ibis.coalesce(joined.last_seen, joined.seen_before)
    is_known = joined.is_listed.fill_null(False) | (last_seen > joined.hour - ibis.interval(hours=lookback_hours))
    return joined.filter(is_known).select("hour", "agent_id", *sums)
