"""Facts of an agent from the look-back: its first event, its latest restart, model change and capability update.

What belongs here: merging hourly parts (`systems.agent_health_state.state_components`) over the look-back. What does
not: what is made of these times (`systems.agent_health_state.agent_health_state`).

One hour is an aggregation per agent. In many hours the rows asked for and the parts stand in one line per agent, with
a frame of hours rather than of rows, so that holes do not matter; agents without any change skip the line of changes.
"""

import ibis
from ibis import ir

from health_assets.core.hours import HourRange
from health_assets.scoring.relations import lookup

_TIME = "timestamp('UTC')"
TIMES = ("first_event_at", "last_restart_at", "last_model_update_at", "last_capability_update_at")


def with_look_back(rows: ir.Table, parts: ir.Table, hours: HourRange, lookback_hours: int) -> ir.Table:
    """Add what the look-back of each row tells: `TIMES` and `last_model_change_at`, null where there was none.

    A model changes by an update that says so, or with the execution that shows another model than the agent's
    execution before it in the look-back; executions without a model do not count (contract, section 4).

    Args:
        rows: one row per `hour` and `agent_id`, for these hours.
        parts: `state_components`, of the look-backs of these hours and no others.
        hours: at least one hour.
        lookback_hours: length of the look-back.
    """
    merged = _one_hour(rows, parts) if len(hours) == 1 else _many_hours(rows, parts, lookback_hours)
    latest = ibis.greatest(merged.last_model_update_at, merged.last_switch_at)
    changed = ibis.coalesce(latest, merged.last_model_update_at, merged.last_switch_at)
    return merged.select(*rows.columns, *TIMES, last_model_change_at=changed)


def model_switches(parts: ir.Table) -> ir.Table:
    """Executions that showed another model than the one before: `hour`, `agent_id`, `switched_at` and `seen_from`.

    `seen_from` is the hour of the execution before: with a look-back that starts later, there is no change to be seen.
    """
    named = parts.filter(parts.first_model.notnull())
    models = named.group_by("agent_id").aggregate(
        least=ibis.least(named.first_model, named.last_model).min(),
        greatest=ibis.greatest(named.first_model, named.last_model).max(),
    )
    several = models.filter(models.least != models.greatest)  # few agents ever change theirs
    order = ibis.window(group_by="agent_id", order_by="hour")
    in_order = named.semi_join(several, "agent_id")
    in_order = in_order.mutate(
        model_before=in_order.last_model.lag().over(order), seen_from=in_order.hour.lag().over(order)
    )
    between_hours = in_order.filter(in_order.first_model != in_order.model_before)
    within_hours = parts.filter(parts.last_model_switch_at.notnull())
    return ibis.union(
        between_hours.select("hour", "agent_id", "seen_from", switched_at="first_model_at"),
        within_hours.select("hour", "agent_id", seen_from="hour", switched_at="last_model_switch_at"),
    )


def _one_hour(rows: ir.Table, parts: ir.Table) -> ir.Table:
    first, *latest = TIMES
    times = parts.group_by("agent_id").aggregate(
        **{first: parts[first].min()}, **{name: parts[name].max() for name in latest}
    )
    switches = model_switches(parts)
    last_switches = switches.group_by("agent_id").aggregate(last_switch_at=switches.switched_at.max())
    return lookup(lookup(rows, times, "agent_id"), last_switches, "agent_id")


def _many_hours(rows: ir.Table, parts: ir.Table, lookback_hours: int) -> ir.Table:
    length = ibis.interval(hours=lookback_hours - 1)
    first, *latest = TIMES
    rows = _with_first_event(rows, parts.select("hour", "agent_id", first), length)
    changes = parts.filter(ibis.or_(*(parts[name].notnull() for name in latest))).select("hour", "agent_id", *latest)
    switches = model_switches(parts)
    changing = ibis.union(changes.select("agent_id"), switches.select("agent_id"), distinct=True)
    followed = _with_latest(rows.semi_join(changing, "agent_id"), changes, switches, length)
    steady = _shaped(rows.anti_join(changing, "agent_id"), followed)  # mostly most of them
    return ibis.union(followed, steady)


def _with_first_event(rows: ir.Table, parts: ir.Table, length: ir.IntervalValue) -> ir.Table:
    """Add the earliest `first_event_at` of each look-back."""
    keys, first = ["hour", "agent_id"], TIMES[0]
    own = lookup(rows, parts, keys).mutate(is_asked=ibis.literal(True))
    line = ibis.union(own, _shaped(parts.anti_join(rows, keys), own))
    look_back = ibis.range_window(
        preceding=length, following=ibis.interval(hours=0), group_by="agent_id", order_by="hour"
    )
    merged = line.mutate(line[first].min().over(look_back).name(first))
    return merged.filter(merged.is_asked).drop("is_asked")


def _with_latest(rows: ir.Table, changes: ir.Table, switches: ir.Table, length: ir.IntervalValue) -> ir.Table:
    """Add the latest of each change in the look-back; `last_switch_at` is that of `switches`."""
    _, *latest = TIMES
    asked = rows.mutate(
        is_asked=ibis.literal(True), **dict.fromkeys([*latest, "switched_at", "seen_from"], ibis.null(_TIME))
    )
    line = ibis.union(asked, _shaped(changes, asked), _shaped(switches, asked))
    # what is latest needs no frame of its own, which would cost ten times as much: it is recent enough or nothing is
    so_far = ibis.range_window(preceding=None, following=0, group_by="agent_id", order_by="hour")
    merged = line.mutate(**{name: line[name].max().over(so_far) for name in (*latest, "switched_at", "seen_from")})
    merged = merged.filter(merged.is_asked)
    start = merged.hour - length
    recent = {name: _from(merged[name], merged[name], start) for name in latest}
    return merged.select(*rows.columns, **recent, last_switch_at=_from(merged.switched_at, merged.seen_from, start))


def _from(value: ir.TimestampValue, known_since: ir.TimestampValue, start: ir.TimestampValue) -> ir.TimestampValue:
    """The value, or null where it is known since before `start`."""
    return (known_since >= start).ifelse(value, ibis.null(_TIME))


def _shaped(part: ir.Table, rows: ir.Table) -> ir.Table:
    """The part in the columns of `rows`; null where the part does not have them."""
    return part.select(
        **{name: part[name] if name in part.columns else ibis.null(kind) for name, kind in rows.schema().items()}
    )
