"""Traces as known at an hour: an execution and the signals given about it, merged over the look-back.

What belongs here: which statement about a trace counts. What does not: what signals mean (`signal_risks`).

An execution and every `signals` record about it are statements, ordered by (time, source_file, line_number), where an
execution speaks at its end. Of each signal the latest statement counts. An id that several executions of the look-back
carry is one trace: the latest of them that says its session or a signal. What it says of session and agent counts;
where it is silent or unknown, the latest signals record that names them.
"""

import ibis
from ibis import ir

from health_assets.systems.session_scores.signal_risks import SIGNALS

_SAID = ("source_file", "line_number", "session_id", "agent_id", *SIGNALS)


def known_traces(executions: ir.Table, signals: ir.Table, wanted: ir.Table, lookback_hours: int) -> ir.Table:
    """One row per wanted trace and hour about which anything was said in the look-back that ends with the hour.

    Args:
        executions: cleaned executions, at least those of the wanted traces in the look-backs.
        signals: cleaned signals records, likewise.
        wanted: distinct (hour, trace_id).
        lookback_hours: length of the look-back.

    Returns:
        `hour`, `trace_id`, `session_id`, `agent_id`, `traced_at` (when the execution ended; of a trace known from
        signals alone, when they were last given), `oldest_event_at` and `newest_event_at` (the earliest and the latest
        statement) and `SIGNALS`.
    """
    said = _latest_executions(_said_about(wanted, _statements(executions, signals), lookback_hours))
    place = ibis.row_number().over(group_by=["hour", "trace_id"], order_by=["said_at", "source_file", "line_number"])
    said = said.mutate(place=place)

    def latest(name: str, condition: ir.BooleanValue) -> ir.Value:
        return said[name].argmax(said.place, where=condition & said[name].notnull())

    by_execution, by_signals = said.is_execution, ~said.is_execution
    return said.group_by(["hour", "trace_id"]).aggregate(
        **{
            name: ibis.coalesce(latest(name, by_execution), latest(name, by_signals))
            for name in ("session_id", "agent_id")
        },
        traced_at=ibis.coalesce(said.said_at.max(where=by_execution), said.said_at.max()),
        oldest_event_at=said.said_at.min(),
        newest_event_at=said.said_at.max(),
        **{name: latest(name, ibis.literal(True)) for name in SIGNALS},
    )


def is_trace(rows: ir.Table) -> ir.BooleanValue:
    """Whether an execution says anything that session metrics look at: its session, or a signal."""
    return ibis.or_(rows.session_id.notnull(), *(rows[name].notnull() for name in SIGNALS))


def _statements(executions: ir.Table, signals: ir.Table) -> ir.Table:
    def of(rows: ir.Table, said_at: str, *, is_execution: bool) -> ir.Table:
        return rows.select(
            "hour", *_SAID, trace_id=rows.execution_id, said_at=rows[said_at], is_execution=ibis.literal(is_execution)
        )

    return ibis.union(of(executions, "ended_at", is_execution=True), of(signals, "given_at", is_execution=False))


def _said_about(wanted: ir.Table, statements: ir.Table, lookback_hours: int) -> ir.Table:
    """Every wanted (hour, trace_id) with each statement in its look-back."""
    statements = statements.rename(said_in="hour")
    return wanted.inner_join(
        statements,
        [
            wanted.trace_id == statements.trace_id,
            statements.said_in <= wanted.hour,
            statements.said_in > wanted.hour - ibis.interval(hours=lookback_hours),
        ],
    ).select(wanted.hour, wanted.trace_id, *(statements[name] for name in ("said_at", "is_execution", *_SAID)))


def _latest_executions(said: ir.Table) -> ir.Table:
    """The executions without those whose id a later one carries; one that is a trace comes before one that is none."""
    latest_first = [ibis.desc(name) for name in ("is_trace", "said_at", "source_file", "line_number")]
    said = said.mutate(is_trace=is_trace(said))
    ranked = said.mutate(
        rank=ibis.row_number().over(group_by=["hour", "trace_id", "is_execution"], order_by=latest_first)
    )
    return ranked.filter(~ranked.is_execution | (ranked["rank"] == 0)).drop("rank")
