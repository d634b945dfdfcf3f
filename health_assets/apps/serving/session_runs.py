"""The runs of a session, as its page shows them over time; read from the warehouse in the reader's process.

What belongs here: the executions behind the traces of a session, and the calls inside them, so many that an answer
stays small. What does not: whose session it is (`reader_process`) and how it is drawn
(`apps.serving.pages.session_timeline`).
"""

from datetime import datetime
from typing import Any

import ibis
import pyarrow as pa
from ibis import ir

from health_assets.core.hours import HOUR, HourRange, floor_hour
from health_assets.core.settings import Settings
from health_assets.scoring.identities import CLAIMANT, claimant_of, names_of_runs
from health_assets.systems.session_scores.merged_traces import TRACE
from health_assets.systems.session_scores.session_scores import SETTINGS_USED
from health_assets.systems.session_scores.signal_risks import with_weighted_risks
from health_assets.warehouse.session import HOUR_TYPE, Session

MOST_TRACES = 200
MOST_CALLS = 2000
ERROR_CHARACTERS = 300
MADE_OF_RISKS = ("step_risk", "situational_penalty", "weighted_uncertainty", "is_flagged")
OF_RUN = ("started_at", "ended_at", "runtime_s", "status", "source_file", "line_number", "model", "task_id")


def runs_of(session: Session, score: dict[str, Any], traces: ir.Table, settings: Settings) -> dict[str, Any]:
    """The riskiest traces of a session with their executions, and the calls inside these.

    Args:
        session: a session.
        score: the row of `session_scores`; the traces are weighed as it was.
        traces: the newest row of each of its traces in `trace_risks`, with `CLAIMANT`.
        settings: the other settings.

    Returns:
        traces: by risk, as rows of `trace_risks` with `OF_RUN` and `error`, which are null of a trace without an
        execution, and `place`, the number of each in the list; calls: by end, of the first `MOST_CALLS`, with the
        `place` of the trace that each is inside of; calls_not_listed: how many more there are.
    """
    used = settings.model_copy(update={name: score[name] for name in SETTINGS_USED})
    weighed = with_weighted_risks(traces.drop("hour", "formula_version", *MADE_OF_RISKS), used)
    in_order = (weighed.step_risk.desc(), weighed.traced_at.desc(), *(weighed[name] for name in TRACE))
    listed = [
        {**trace, "place": place}
        for place, trace in enumerate(session.dicts(weighed.order_by(*in_order).limit(MOST_TRACES)))
    ]
    runs = _executions(session, listed)
    nothing = dict.fromkeys((*OF_RUN, "error"))
    calls, more = _calls(session, list(runs.values()))
    return {
        "traces": [{**nothing, **runs.get(trace["place"], {}), **trace} for trace in listed],
        "calls": calls,
        "calls_not_listed": more,
    }


def _executions(session: Session, traces: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """The execution of each trace that has one, by place: its agent's that ended when the trace says it did."""
    if not traces:
        return {}
    wanted = ibis.memtable(
        pa.table(
            {
                "place": pa.array([trace["place"] for trace in traces], pa.int64()),
                "execution_id": pa.array([trace["trace_id"] for trace in traces], pa.string()),
                "ended_at": pa.array([trace["traced_at"] for trace in traces], HOUR_TYPE),
                CLAIMANT: pa.array([trace[CLAIMANT] for trace in traces], pa.string()),
            }
        )
    )
    runs = session.hours_of("executions", _hours([trace["traced_at"] for trace in traces]))
    runs = runs.mutate(claimant=claimant_of(runs))
    runs = runs.inner_join(wanted, ["execution_id", "ended_at", CLAIMANT])
    found = runs.select(
        "place", "agent_id", CLAIMANT, *OF_RUN, trace_id=runs.execution_id, error=runs.error.substr(0, ERROR_CHARACTERS)
    )
    return {row["place"]: row for row in session.dicts(found)}


def _calls(session: Session, runs: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], int]:
    """The calls of tools and models inside executions, and how many more there are than are listed.

    A call that names another agent than its execution's is not among them. One that names none is inside every
    execution of the id that it names.
    """
    if not runs:
        return [], 0
    texts = {name: pa.array([run[name] for run in runs], pa.string()) for name in ("trace_id", "agent_id", CLAIMANT)}
    wanted = ibis.memtable(pa.table({"place": pa.array([run["place"] for run in runs], pa.int64()), **texts}))
    wanted = names_of_runs(wanted, "place", "trace_id")
    hours = _hours([run[name] for run in runs for name in ("started_at", "ended_at")])

    def of(table: str, name: str, kind: str) -> ir.Table:
        calls = session.hours_of(table, hours)
        calls = calls.mutate(caller=claimant_of(calls))
        inside = calls.join(wanted, [calls.execution_id == wanted.trace_id, calls.caller == wanted.named])
        return inside.select(
            wanted.place, calls.call_id, calls.execution_id, calls.ended_at, calls.status, calls.latency_ms,
            name=calls[name], kind=ibis.literal(kind), error=calls.error.substr(0, ERROR_CHARACTERS),
        )  # fmt: skip

    calls = ibis.union(of("tool_calls", "tool", "tool"), of("model_calls", "model", "model"))
    listed = session.dicts(calls.order_by("ended_at", "call_id", "place").limit(MOST_CALLS))
    more = session.count(calls) - MOST_CALLS if len(listed) == MOST_CALLS else 0
    return listed, more


def _hours(moments: list[datetime]) -> HourRange:
    return HourRange(floor_hour(min(moments)), floor_hour(max(moments)) + HOUR)
