"""Traces as known at an hour: an execution and the signals given about it, merged over the look-back.

What belongs here: which statement about a trace counts. What does not: what signals mean (`signal_risks`).

An execution and every `signals` record about it are statements, ordered by (time, source_file, line_number), where an
execution speaks at its end. Of each signal the latest statement counts. Agents number their runs independently, so an
id is a trace for each agent, its claimant, that has an execution of it. Signals that name an agent are about that
agent's trace, signals that name none about every trace of the id (`scoring.identities`); where no execution is known,
they make a trace of their own.

An id that several executions of one claimant carry in the look-back is one trace: the latest of them that says its
session or a signal. What it says of the session counts; where it is silent or unknown, the latest signals record that
names it.
"""

import ibis
from ibis import ir

from health_assets.schema.log_fields import SIGNALS as NAMES_OF_SIGNALS
from health_assets.scoring.identities import CLAIMANT, NOBODY, claimant_of, names_of_runs
from health_assets.scoring.relations import first_line
from health_assets.systems.session_scores.names import CALL_COUNTS
from health_assets.systems.session_scores.signal_risks import SIGNALS

TRACE = ("trace_id", CLAIMANT)
"""Columns that tell traces apart."""
AMOUNTS = ("input_tokens", "output_tokens", "cost_usd")
OF_RUN = ("status", "started_at", *AMOUNTS, "cost_source", *CALL_COUNTS, "error")
"""What a trace has of its execution and its calls; null of one that is known from signals alone."""
ERROR_CHARACTERS = 300
_SAID = ("source_file", "line_number", "session_id", "agent_id", *SIGNALS)
STATEMENT = (
    "hour", "source_file", "line_number", "execution_id", "given_at", "agent_id", "agent_id_reported", "session_id",
    *SIGNALS,
)  # fmt: skip
"""Columns of `signals` that say something about a trace."""


def known_traces(executions: ir.Table, signals: ir.Table, wanted: ir.Table, lookback_hours: int) -> ir.Table:
    """One row per hour and trace of the wanted ids about which anything was said in the look-back that ends with it.

    Args:
        executions: cleaned executions with `CALL_COUNTS`, at least those of the wanted ids in the look-backs.
        signals: cleaned signals records, likewise.
        wanted: distinct (hour, trace_id).
        lookback_hours: length of the look-back.

    Returns:
        `hour`, `TRACE`, `session_id`, `agent_id`, `agent_id_reported`, `traced_at` (when the execution ended; of a
        trace known from signals alone, when they were last given), `oldest_event_at` and `newest_event_at` (the
        earliest and the latest statement), `SIGNALS` and `OF_RUN`.
    """
    executions = with_run(executions)
    by_runs = _said_about(wanted, _statements(executions, "ended_at"), lookback_hours)
    not_given = {name: ibis.null(executions[name].type()) for name in OF_RUN}
    given = _said_about(wanted, _statements(signals.mutate(**not_given), "given_at"), lookback_hours)
    said = ibis.union(_latest_executions(by_runs), _with_claimants(given, by_runs).mutate(is_execution=False))
    # several results of evaluators may stand in one line, given at once: the lower one counts
    in_order = ["said_at", "source_file", "line_number", *(ibis.desc(name) for name in SIGNALS)]
    place = ibis.row_number().over(group_by=["hour", *TRACE], order_by=in_order)
    said = said.mutate(place=place)

    def latest(name: str, condition: ir.BooleanValue) -> ir.Value:
        return said[name].argmax(said.place, where=condition & said[name].notnull())

    by_execution, by_signals = said.is_execution, ~said.is_execution
    traces = said.group_by(["hour", *TRACE]).aggregate(
        **{
            name: ibis.coalesce(latest(name, by_execution), latest(name, by_signals))
            for name in ("session_id", "agent_id")
        },
        traced_at=ibis.coalesce(said.said_at.max(where=by_execution), said.said_at.max()),
        oldest_event_at=said.said_at.min(),
        newest_event_at=said.said_at.max(),
        **{name: latest(name, ibis.literal(True)) for name in SIGNALS},
        **{name: latest(name, by_execution) for name in OF_RUN},
    )
    return traces.mutate(agent_id_reported=traces[CLAIMANT].nullif(NOBODY).nullif(traces.agent_id))


def as_statements(evaluated: ir.Table) -> ir.Table:
    """Rows of `evaluated_signals` that are signals, as the `signals` records that say the same."""
    evaluated = evaluated.filter(evaluated.signal.isin(NAMES_OF_SIGNALS))
    signals = {
        f"signal_{name}": ibis.ifelse(evaluated.signal == name, evaluated.value, ibis.null("float64"))
        for name in NAMES_OF_SIGNALS
    }
    return evaluated.mutate(given_at=evaluated.evaluated_at, **signals).select(*STATEMENT)


def with_run(executions: ir.Table) -> ir.Table:
    """Executions whose `error` is what a trace keeps of it: the first line, where they failed."""
    error = first_line(executions.error).substr(0, ERROR_CHARACTERS)
    return executions.mutate(error=(executions.status == "failure").ifelse(error, None))


def is_trace(rows: ir.Table) -> ir.BooleanValue:
    """Whether an execution says anything that session metrics look at: its session, or a signal."""
    return ibis.or_(rows.session_id.notnull(), *(rows[name].notnull() for name in SIGNALS))


def _statements(rows: ir.Table, said_at: str) -> ir.Table:
    return rows.select(
        "hour", *_SAID, *OF_RUN, trace_id=rows.execution_id, claimant=claimant_of(rows), said_at=rows[said_at]
    )


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
    ).select(wanted.hour, wanted.trace_id, *(statements[name] for name in (CLAIMANT, "said_at", *_SAID, *OF_RUN)))


def _latest_executions(said: ir.Table) -> ir.Table:
    """The executions without those whose id a later one carries; one that is a trace comes before one that is none."""
    latest_first = [ibis.desc(name) for name in ("is_trace", "said_at", "source_file", "line_number")]
    said = said.mutate(is_trace=is_trace(said))
    ranked = said.mutate(rank=ibis.row_number().over(group_by=["hour", *TRACE], order_by=latest_first))
    return ranked.filter(ranked["rank"] == 0).drop("rank", "is_trace").mutate(is_execution=True)


def _with_claimants(given: ir.Table, by_runs: ir.Table) -> ir.Table:
    """The signals, each once for every trace that it is about."""
    of_runs = names_of_runs(by_runs, "hour", *TRACE).distinct()
    given = given.rename(named=CLAIMANT)
    keys = ["hour", "trace_id", "named"]
    unclaimed = given.anti_join(of_runs, keys)
    # signals alone: those that name an agent make its trace, and the others belong to it too
    named = unclaimed.filter(unclaimed.named != NOBODY)
    of_signals = named.select("hour", "trace_id", claimant="named").distinct()
    of_signals = ibis.union(
        of_signals.mutate(named=of_signals[CLAIMANT]), of_signals.mutate(named=ibis.literal(NOBODY))
    )
    traces = ibis.union(of_runs.select(*keys, CLAIMANT), of_signals.select(*keys, CLAIMANT), distinct=True)
    joined = given.left_join(traces, keys)
    return joined.select(
        "hour", "trace_id", claimant=ibis.coalesce(joined[CLAIMANT], NOBODY), said_at=joined.said_at,
        **{name: joined[name] for name in (*_SAID, *OF_RUN)},
    )  # fmt: skip
