"""Hourly parts of the agent health state: an hour's latencies, restarts, models and capability updates.

Parts merge without the events: lists of buckets by concatenation, first and last times by minimum and maximum. A model
that changes between two hours shows where an hour's first model is not the last one before (`agent_changes`).
"""

from collections.abc import Sequence

import ibis
from ibis import ir

from health_assets.scoring.latency_buckets import bucket_of
from health_assets.scoring.relations import lookup

KEYS = ("hour", "agent_id")


def state_components(executions: ir.Table, agent_updates: ir.Table, presence: Sequence[ir.Table]) -> ir.Table:
    """One row per (hour, agent_id) with any event: every column of the table `state_components`.

    Args:
        executions: cleaned executions.
        agent_updates: cleaned restarts, model changes and capability updates.
        presence: (hour, agent_id, first_event_at) of the other events, which make an agent known.
    """
    of_executions, of_updates = _of_executions(executions), _of_updates(agent_updates)
    seen = (of_executions, of_updates, *presence)
    known = ibis.union(*(rows.select(*KEYS, "first_event_at") for rows in seen))
    known = known.filter(known.agent_id.notnull())
    known = known.group_by(KEYS).aggregate(first_event_at=known.first_event_at.min())
    for part in (of_executions, of_updates):
        known = lookup(known, part.drop("first_event_at"), KEYS)
    return known


def _of_executions(executions: ir.Table) -> ir.Table:
    bucket = bucket_of(executions.runtime_s)
    rows = executions.mutate(bucket=executions.runtime_s.isnull().ifelse(ibis.null(bucket.type()), bucket))
    merged = rows.group_by(KEYS).aggregate(
        first_event_at=rows.ended_at.min(),
        latency_buckets=rows.bucket.collect().sort(),
        first_model_at=rows.ended_at.min(where=rows.model.notnull()),
        least_model=rows.model.min(),
        greatest_model=rows.model.max(),
    )
    buckets = merged.latency_buckets  # PostgreSQL sorts no list into an empty one
    merged = merged.mutate(latency_buckets=(buckets.length() > 0).ifelse(buckets, ibis.null(buckets.type())))
    # nearly always an hour knows one model, so only the others are looked at in order
    several = merged.filter(merged.least_model != merged.greatest_model).select(*KEYS)
    joined = lookup(merged, _models_in_order(executions.semi_join(several, KEYS)), KEYS)
    return joined.select(
        *KEYS, "first_event_at", "latency_buckets", "first_model_at", "last_model_switch_at",
        first_model=ibis.coalesce(joined.first_of_several, joined.least_model),
        last_model=ibis.coalesce(joined.last_of_several, joined.least_model),
    )  # fmt: skip


def _models_in_order(executions: ir.Table) -> ir.Table:
    """First and last model of each hour and agent, and when the latest execution ended that had another one."""
    named = executions.filter(executions.model.notnull())
    order = ibis.window(group_by=KEYS, order_by=["ended_at", "source_file", "line_number", "execution_id"])
    steps = named.select(
        *KEYS, "model", "ended_at", before=named.model.lag().over(order), after=named.model.lead().over(order)
    )
    return steps.group_by(KEYS).aggregate(
        first_of_several=steps.model.max(where=steps.before.isnull()),
        last_of_several=steps.model.max(where=steps.after.isnull()),
        last_model_switch_at=steps.ended_at.max(where=steps.model != steps.before),
    )


def _of_updates(agent_updates: ir.Table) -> ir.Table:
    rows = agent_updates
    return rows.group_by(KEYS).aggregate(
        first_event_at=rows.updated_at.min(),
        last_restart_at=rows.updated_at.max(where=rows.kind == "restart"),
        last_model_update_at=rows.updated_at.max(where=rows.kind == "model_change"),
        last_capability_update_at=rows.updated_at.max(where=rows.kind == "capability_update"),
    )
