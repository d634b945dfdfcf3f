"""Batches of session scores."""

import pandas as pd
from ibis import ir

from health_assets.quality.batches import Source, hours, rows, with_facts


def scored_sessions(source: Source) -> ir.Table:
    """Rows of `session_scores`, with whether there is a risk and an instability, and whether there should be."""
    own = rows(source)
    return own.mutate(
        has_risk=own.raw_risk.notnull().cast("int64"),
        is_evaluated=(own.traces_evaluated > 0).cast("int64"),
        has_instability=own.raw_instability.notnull().cast("int64"),
        is_uncertain=(own.consistency_traces_evaluated > 0).cast("int64"),
    )


def hours_of_traces(source: Source) -> pd.DataFrame:
    """`hours`, with the rows of `trace_risks`, and the executions that must be among them."""
    frame = with_facts(hours(source), ["traces"], source.by_hour("SELECT hour, count(*) FROM trace_risks"))
    in_session = source.by_hour("SELECT hour, count(*) FROM executions", "session_id IS NOT NULL")
    return with_facts(frame, ["executions_in_sessions"], in_session)


def hours_of_sessions(source: Source) -> pd.DataFrame:
    """`hours`, with the rows of `session_scores`, and the sessions of the hour's traces."""
    frame = with_facts(hours(source), ["scored_sessions"], source.by_hour("SELECT hour, count(*) FROM session_scores"))
    touched = source.by_hour("SELECT hour, count(DISTINCT session_id) FROM trace_risks")
    return with_facts(frame, ["touched_sessions"], touched)
