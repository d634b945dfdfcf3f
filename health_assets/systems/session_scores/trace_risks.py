"""Risks of traces (source 5, per-trace steps): of those that end in an hour, and of those whose signals are given then.

A row says what was known of the trace at the end of its hour, over the look-back that ends there. A trace whose signals
come later has a row in each hour in which they come; the newest of its rows counts.
"""

import ibis
from ibis import ir

from health_assets.core.hours import HourRange
from health_assets.core.settings import Settings
from health_assets.scoring.identities import NOBODY, claimant_of, names_of_runs, with_columns_of_runs
from health_assets.systems.session_scores.merged_traces import OF_RUN, is_trace, known_traces, with_run
from health_assets.systems.session_scores.names import CALL_COUNTS
from health_assets.systems.session_scores.signal_risks import SIGNALS, with_risks, with_weighted_risks


def trace_risks(
    executions: ir.Table, signals: ir.Table, computed: ir.Table, hours: HourRange, settings: Settings
) -> ir.Table:
    """One row per hour and trace that has a session or a signal: every column of `trace_risks`.

    Args:
        executions: cleaned executions of `hours` and the look-back before them.
        signals: cleaned signals records of the same hours.
        computed: rows of `computed_signals` of the same hours.
        hours: the hours to make rows for.
        settings: look-back, weights and flag threshold.
    """
    ended = executions.filter(executions.hour >= hours.start).mutate(trace_id=lambda rows: rows.execution_id)
    ended = with_columns_of_runs(ended, computed.filter(computed.hour >= hours.start), CALL_COUNTS)
    wanted = _ids_with_signals(ended, signals, hours, settings.lookback_hours)
    rows = ibis.union(
        _from_executions_alone(ended, wanted),
        _from_executions_and_signals(ended, executions, signals, computed, wanted, hours, settings.lookback_hours),
    )
    return with_weighted_risks(with_risks(rows), settings)


COLUMNS = (
    "hour",
    "trace_id",
    "session_id",
    "agent_id",
    "agent_id_reported",
    "traced_at",
    "oldest_event_at",
    *SIGNALS,
    *OF_RUN,
)


def _ids_with_signals(ended: ir.Table, signals: ir.Table, hours: HourRange, lookback_hours: int) -> ir.Table:
    """(hour, trace_id) of the hour's traces about which the look-back, too, has signals records; mostly few."""
    about = signals.select(given_in=signals.hour, trace_id=signals.execution_id).distinct()
    given = about.filter(about.given_in >= hours.start).select("trace_id", hour="given_in")
    early = ended.inner_join(
        about,
        [
            ended.trace_id == about.trace_id,
            about.given_in <= ended.hour,
            about.given_in > ended.hour - ibis.interval(hours=lookback_hours),
        ],
    )
    return ibis.union(given.select("hour", "trace_id"), early.select(ended.hour, ended.trace_id), distinct=True)


def _from_executions_alone(ended: ir.Table, wanted: ir.Table) -> ir.Table:
    alone = ended.anti_join(wanted, ["hour", "trace_id"])
    alone = alone.filter(is_trace(alone))
    alone = with_run(alone)
    return alone.mutate(traced_at=alone.ended_at, oldest_event_at=alone.ended_at).select(*COLUMNS)


def _from_executions_and_signals(
    ended: ir.Table,
    executions: ir.Table,
    signals: ir.Table,
    computed: ir.Table,
    wanted: ir.Table,
    hours: HourRange,
    lookback_hours: int,
) -> ir.Table:
    # the look-back is searched for those alone that may be about a run that ended before their hour
    elsewhere = _signals_of_earlier_executions(ended, signals, hours)
    before = executions.filter(executions.hour < hours.start).mutate(trace_id=lambda rows: rows.execution_id)
    before = with_columns_of_runs(before.semi_join(elsewhere, "trace_id"), computed, CALL_COUNTS)
    own = ended.semi_join(wanted, "trace_id")
    about = ibis.union(own, before.select(*own.columns))
    merged = known_traces(about, signals, wanted, lookback_hours)
    # an empty execution adds nothing, also where another agent's signals are about its id
    return merged.filter(merged.newest_event_at >= merged.hour, is_trace(merged)).select(*COLUMNS)


def _signals_of_earlier_executions(ended: ir.Table, signals: ir.Table, hours: HourRange) -> ir.Table:
    """The (hour, trace_id) of signals given in these hours, without those of an agent whose run ended in the hour."""
    given = signals.filter(signals.hour >= hours.start)
    given = given.select("hour", trace_id=given.execution_id, named=claimant_of(given)).distinct()
    traces = ended.filter(is_trace(ended)).mutate(claimant=claimant_of)
    own = names_of_runs(traces, "hour", "trace_id")
    return given.anti_join(own.filter(own.named != NOBODY), ["hour", "trace_id", "named"]).select("hour", "trace_id")
