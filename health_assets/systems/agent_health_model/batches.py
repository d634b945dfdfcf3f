"""Batches of the Agent Health Model."""

import ibis
import pandas as pd
from ibis import _, ir

from health_assets.quality.batches import Source, hours, hours_with_windows, rows, with_fact, with_facts
from health_assets.systems.agent_health_model.claims import by_agent, claims_of

ROUNDING = 1e-8
"""Points: more than the score and the points at stake, of nine decimals each, may be off together."""


def scored_agents(source: Source) -> ir.Table:
    """Rows of `agent_health`, with their least score, and what they should say of having one and being provisional."""
    own = rows(source)
    return own.mutate(
        points_kept=_points_kept(own),
        has_score=own.health_score.notnull().cast("int64"),
        is_active=(own.n > 0).cast("int64"),
        is_called_provisional=own.is_provisional.fill_null(False).cast("int64"),
        rests_on_few=((own.n > 0) & (own.n < own.n_full)).cast("int64"),
        window_hours=ibis.literal(source.settings.window_hours),
    )


def claims(source: Source) -> ir.Table:
    """One row per (hour, agent_id) with claims that evidence contradicts: how many executions make each of them."""
    return by_agent(claims_of(source.session, source.hours))


def hours_of_components(source: Source) -> pd.DataFrame:
    """`hours`, with sums over the components and counts of the events that they were made from."""
    sums = source.facts("health_components", _.executions.sum(), _.triggers.sum())
    frame = with_facts(hours(source), ["summed_executions", "summed_triggers"], sums)
    for name, table in (("counted_executions", "executions"), ("counted_triggers", "trigger_events")):
        frame = with_fact(frame, name, source.counts(table))
    return frame


def hours_of_windows(source: Source) -> pd.DataFrame:
    """`hours`, with the executions of all agents' windows, and those of the hours that the windows are made of."""
    return hours_with_windows(source, "n")


def scores_in_short_windows(source: Source) -> ir.Table:
    """Rows of `agent_health_short`, with their least score, and what they should say of being provisional."""
    own = rows(source)
    return own.mutate(
        points_kept=_points_kept(own),
        is_called_provisional=own.is_provisional.fill_null(False).cast("int64"),
        rests_on_few=(own.n < own.n_full).cast("int64"),
    )


def hours_of_short_windows(source: Source) -> pd.DataFrame:
    """`hours`, with the executions of all agents' short windows together, and those of the hours they are made of."""
    frame = with_facts(hours(source), ["executions_in_windows"], source.facts(source.asset, _.n.sum()))
    of_hours = [
        hours_with_windows(source, "n", window_hours=length)["executions_of_hours"]
        for length in source.settings.short_windows
    ]
    return frame.assign(executions_of_hours=sum(of_hours) if of_hours else 0)


def hours_of_fleet(source: Source) -> pd.DataFrame:
    """`hours`, with the rows of `system_health` and what they count, and the same counted in `agent_health`."""
    in_states = _.healthy + _.degraded + _.unhealthy + _.inactive
    own = source.facts("system_health", _.count(), _.agents.sum(), in_states.sum(), _.provisional.sum())
    frame = with_facts(hours(source), ["fleet_rows", "agents", "agents_in_states", "provisional"], own)
    agents = source.facts("agent_health", _.count(), _.count(where=_.is_provisional))
    return with_facts(frame, ["agent_rows", "provisional_rows"], agents)


def _points_kept(rows: ir.Table) -> ir.FloatingValue:
    """The least score: the points that were not at stake, less what rounding may take."""
    return 100 - rows.points_at_stake - ROUNDING
