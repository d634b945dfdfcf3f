"""Changes of an agent that its document tells of, however long ago: restarts, models and capability updates.

The table is small, since an hour in which nothing changed has no row, and retention leaves it. So the latest change is
looked for in all of its hours.
"""

import ibis
from ibis import ir

from health_assets.core.hours import HourRange
from health_assets.scoring.relations import lookup

_TIME = "timestamp('UTC')"
TIMES = ("last_restart_at", "last_model_update_at", "last_capability_update_at")
MODELS = ("first_model", "last_model", "first_model_at", "last_model_switch_at")


def agent_changes(parts: ir.Table, hours: HourRange, lookback_hours: int) -> ir.Table:
    """One row per (hour, agent_id) with a change, or with a model where the hours just before show none.

    A row that says again which model it is does no harm, so it does not matter where the hours before begin.

    Args:
        parts: `state_components` of these hours, and of as many before as there are of a look-back.
        hours: the hours to give rows for.
        lookback_hours: how far an agent's last model is looked for.
    """
    order = ibis.window(group_by="agent_id", order_by="hour")
    named = parts.filter(parts.first_model.notnull())
    named = named.select(
        "hour",
        "agent_id",
        *MODELS,
        model_before=named.last_model.lag().over(order),
        seen_at=named.hour.lag().over(order),
    )
    is_new = ibis.or_(
        named.seen_at.isnull(),
        named.seen_at <= named.hour - ibis.interval(hours=lookback_hours),
        named.first_model != named.model_before,
        named.last_model_switch_at.notnull(),
    )
    models = named.filter(named.hour >= hours.start, is_new).select("hour", "agent_id", *MODELS)
    own = parts.filter(parts.hour >= hours.start)
    updates = own.filter(ibis.or_(*(own[name].notnull() for name in TIMES))).select("hour", "agent_id", *TIMES)
    keys = ibis.union(models.select("hour", "agent_id"), updates.select("hour", "agent_id"), distinct=True)
    return lookup(lookup(keys, updates, ["hour", "agent_id"]), models, ["hour", "agent_id"])


def with_latest_changes(rows: ir.Table, changes: ir.Table, hours: HourRange) -> ir.Table:
    """Add the latest of each change up to each row's hour: `TIMES` and `last_model_change_at`, null without any.

    A model changes by an update that says so, or with the execution that shows another model than the agent's
    execution before it; executions without a model do not count.

    Args:
        rows: one row per `hour` and `agent_id`, for these hours.
        changes: `agent_changes` up to the end of these hours.
        hours: at least one hour.
    """
    merged = _one_hour(rows, changes) if len(hours) == 1 else _many_hours(rows, changes)
    latest = ibis.greatest(merged.last_model_update_at, merged.last_switch_at)
    changed = ibis.coalesce(latest, merged.last_model_update_at, merged.last_switch_at)
    return merged.select(*rows.columns, *TIMES, last_model_change_at=changed)


def _switches(changes: ir.Table) -> ir.Table:
    """Executions that showed another model than the one before: `hour`, `agent_id` and `switched_at`."""
    named = changes.filter(changes.first_model.notnull())
    models = named.group_by("agent_id").aggregate(
        least=ibis.least(named.first_model, named.last_model).min(),
        greatest=ibis.greatest(named.first_model, named.last_model).max(),
    )
    several = models.filter(models.least != models.greatest)  # few agents ever change theirs
    order = ibis.window(group_by="agent_id", order_by="hour")
    in_order = named.semi_join(several, "agent_id")
    in_order = in_order.mutate(model_before=in_order.last_model.lag().over(order))
    between_hours = in_order.filter(in_order.first_model != in_order.model_before)
    within_hours = changes.filter(changes.last_model_switch_at.notnull())
    return ibis.union(
        between_hours.select("hour", "agent_id", switched_at="first_model_at"),
        within_hours.select("hour", "agent_id", switched_at="last_model_switch_at"),
    )


def _one_hour(rows: ir.Table, changes: ir.Table) -> ir.Table:
    times = changes.group_by("agent_id").aggregate(**{name: changes[name].max() for name in TIMES})
    switches = _switches(changes)
    last_switches = switches.group_by("agent_id").aggregate(last_switch_at=switches.switched_at.max())
    return lookup(lookup(rows, times, "agent_id"), last_switches, "agent_id")


def _many_hours(rows: ir.Table, changes: ir.Table) -> ir.Table:
    updates = changes.filter(ibis.or_(*(changes[name].notnull() for name in TIMES))).select("hour", "agent_id", *TIMES)
    switches = _switches(changes).rename(last_switch_at="switched_at")
    changing = ibis.union(updates.select("agent_id"), switches.select("agent_id"), distinct=True)
    names = (*TIMES, "last_switch_at")
    asked = rows.mutate(is_asked=ibis.literal(True), **dict.fromkeys(names, ibis.null(_TIME)))
    followed = asked.semi_join(changing, "agent_id")
    line = ibis.union(followed, _shaped(updates, asked), _shaped(switches, asked))
    so_far = ibis.range_window(preceding=None, following=0, group_by="agent_id", order_by="hour")
    merged = line.mutate(**{name: line[name].max().over(so_far) for name in names})
    steady = asked.anti_join(changing, "agent_id")  # mostly most of them
    return ibis.union(merged.filter(merged.is_asked), steady).drop("is_asked")


def _shaped(part: ir.Table, rows: ir.Table) -> ir.Table:
    """The part in the columns of `rows`; null where the part does not have them."""
    return part.select(
        **{name: part[name] if name in part.columns else ibis.null(kind) for name, kind in rows.schema().items()}
    )
