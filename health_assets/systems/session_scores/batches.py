"""Batches of session scores."""

import ibis
import pandas as pd
from ibis import _, ir

from health_assets.quality.batches import Source, hours, rows, with_fact, with_facts


def scored_sessions(source: Source) -> ir.Table:
    """Rows of `session_scores`, with whether there is a risk and an instability, and whether there should be."""
    own = rows(source)
    return own.mutate(
        traces_and_cancelled_runs=own.total_traces + own.cancelled_runs,
        has_risk=own.raw_risk.notnull().cast("int64"),
        is_evaluated=(own.traces_evaluated > 0).cast("int64"),
        has_instability=own.raw_instability.notnull().cast("int64"),
        is_uncertain=(own.consistency_traces_evaluated > 0).cast("int64"),
    )


def hours_of_computed_signals(source: Source) -> pd.DataFrame:
    """`hours`, with the rows of `computed_signals`, and the executions of the hour."""
    frame = with_fact(hours(source), "executions_with_signals", source.counts("computed_signals"))
    return with_fact(frame, "executions", source.counts("executions"))


def hours_of_traces(source: Source) -> pd.DataFrame:
    """`hours`, with the rows of `trace_risks`, and the executions that must be among them."""
    frame = with_fact(hours(source), "traces", source.counts("trace_risks"))
    return with_facts(frame, ["executions_in_sessions"], source.facts("executions", _.session_id.count()))


def hours_of_sessions(source: Source) -> pd.DataFrame:
    """`hours`, with the rows of `session_scores`, and the sessions of the hour's traces and cancelled runs."""
    frame = with_fact(hours(source), "scored_sessions", source.counts("session_scores"))
    parts = (source.session.table(name).select("hour", "session_id") for name in ("trace_risks", "cancellations"))
    return with_facts(frame, ["touched_sessions"], source.facts(ibis.union(*parts), _.session_id.nunique()))
