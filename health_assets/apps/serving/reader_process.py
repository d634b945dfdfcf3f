"""The process that reads the warehouse for the server: `python -m health_assets.apps.serving.reader_process`.

`process_loop` says how it is asked. Requests:

- `{"snapshot": FOLDER, "known": VERSION}`: write the newest hour into FOLDER, unless it is VERSION; facts about hours,
  lines and incidents.
- `{"session": ID}`: the scores of a session.
- `{"session_runs": ID, "until": HOUR}`: its score by the end of that hour, null for the newest, with its runs.
- `{"trace": RUN}`: a run with what happened inside it; `RUN` has the fields of `TraceQuestion`.
- `{"line": FILE, "number": N}`: the text of a line of a raw log.
- `{"suggest": AGENT, "days": N}`: suggested targets, null for all agents'.
- `{"history": FOLDER}`: a step of `apps.serving.history.exporter`.
"""

import hashlib
import json
import math
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ibis
import pyarrow as pa
from ibis import ir

from health_assets.apps.serving.aggregates import hidden_models
from health_assets.apps.serving.documents import agents_of, with_texts
from health_assets.apps.serving.fleet_facts import fleet_scores, pipeline_facts
from health_assets.apps.serving.history.exporter import fill
from health_assets.apps.serving.list_files import LISTS, write_list
from health_assets.apps.serving.log_lines import known_file, line_of
from health_assets.apps.serving.ordering import AGENTS_FILE, POSITIONS_FILE, Slices, positions_in_order
from health_assets.apps.serving.ownership import Ownership
from health_assets.apps.serving.process_loop import EmptyWarehouseError, TargetsError, answer_requests
from health_assets.apps.serving.run_traces import trace_of
from health_assets.apps.serving.session_runs import runs_of
from health_assets.apps.serving.trace_question import TraceQuestion
from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.settings import Settings
from health_assets.core.targets import Targets, load_targets
from health_assets.scoring.identities import CLAIMANT
from health_assets.systems.session_scores.merged_traces import TRACE
from health_assets.systems.session_scores.names import CALL_COUNTS
from health_assets.systems.session_scores.session_scores import newest_traces
from health_assets.systems.session_scores.signal_risks import RISKS
from health_assets.warehouse.in_memory import stream_through
from health_assets.warehouse.partition_states import PartitionStates, WrittenHour
from health_assets.warehouse.session import Session
from health_assets.warehouse.store import Warehouse

if TYPE_CHECKING:
    from health_assets.apps.target_suggestions.statistics_of_days import Suggestion

ROWS_PER_BATCH = 4096
"""Small enough that freeing a batch of documents never holds the server up."""
MOST_TRACES = 1000
"""Traces, and flagged traces, of one session that an answer lists; the riskiest first where there are more."""
MOST_SUGGESTIONS = 2000
MEMORY_LIMIT = "256MB"
SNAPSHOT_LOCK_TIMEOUT_S = 10.0
SESSION_LOCK_TIMEOUT_S = 2.0
HISTORY_LOCK_TIMEOUT_S = 10.0
ASSETS = (
    "agent_health_state", "agent_health", "agent_health_short", "score_evidence", "model_health", "session_scores",
    *(served.table for served in LISTS.values()),
)  # fmt: skip
"""The assets that are served."""


def read(settings: Settings, request: dict[str, Any]) -> Any:
    """Read what a request asks for."""
    if "session" in request:
        return read_session(settings, request["session"])
    if "session_runs" in request:
        until = request["until"] and datetime.fromisoformat(request["until"])
        return read_session_runs(settings, request["session_runs"], until)
    if "trace" in request:
        return read_trace(settings, TraceQuestion.of_request(request["trace"]))
    if "line" in request:
        return read_line(settings, request["line"], request["number"])
    if "suggest" in request:
        return read_suggestions(settings, request["suggest"], request["days"])
    if "history" in request:
        return fill(settings, Path(request["history"]), warehouse_of(settings, HISTORY_LOCK_TIMEOUT_S))
    return read_newest(settings, Path(request["snapshot"]), request["known"])


def read_newest(settings: Settings, folder: Path, known: str | None, now: datetime | None = None) -> dict[str, Any]:
    """Write the newest hour into a folder, unless it is known, and gather facts about the warehouse as it is now.

    That is the running hour, once it has scores; an hour that has not begun by `now` hides no other.

    Returns:
        `snapshot`, None where the hour is the known version, and `pipeline`, as `fleet_facts.pipeline_facts` has it.

    Raises:
        HealthAssetsError: there is no warehouse or hour, it is held, or the targets cannot be used.
    """
    ownership, moment = _ownership(settings), now or datetime.now(UTC)
    with warehouse_of(settings, SNAPSHOT_LOCK_TIMEOUT_S).read() as session:
        session.use_one_thread()
        hours = PartitionStates(session).newest_of_each(ASSETS, moment + HOUR)
        if "agent_health_state" not in hours:
            raise EmptyWarehouseError("no hour of agent_health_state has been materialized yet")
        version = _version(hours, [ownership.fingerprint, settings.min_agents_per_aggregate])
        snapshot = None if version == known else _write_snapshot(session, settings, ownership, hours, folder)
        return {
            "snapshot": snapshot and {"version": version, **snapshot},
            "pipeline": pipeline_facts(session, settings, ownership, moment),
        }


def _write_snapshot(
    session: Session, settings: Settings, ownership: Ownership, hours: dict[str, WrittenHour], folder: Path
) -> dict[str, Any]:
    """Write agents as `documents.with_texts` makes them, their orders, lists; returns what is true of the whole."""
    hour = hours["agent_health_state"].hour
    agents = session.stream(agents_of(session, hour), ROWS_PER_BATCH)
    slices, scores = _write(stream_through(ownership.with_owners(agents), with_texts, ROWS_PER_BATCH), folder)
    model_hour = hours["model_health"].hour if "model_health" in hours else hour
    models = _rows(session, session.hours_of("model_health", HourRange.of(model_hour)).order_by("model"))
    of_personal = hidden_models(session, settings, HourRange.of(model_hour), ownership)
    hidden = {row["model"] for row in session.dicts(of_personal)}
    return {
        "hour": hour.isoformat(),
        "known_until": _known_until(session, hour).isoformat(),
        "slices": slices,
        "fleet_scores": scores,
        "model_hour": model_hour.isoformat(),
        "models": [{**model, "is_public": model["model"] not in hidden} for model in models],
        "teams": ownership.teams,
        "lists": {
            name: write_list(session, name, hours[served.table].hour, folder, ownership, settings)
            for name, served in LISTS.items()
            if served.table in hours
        },
    }


def _known_until(session: Session, hour: datetime) -> datetime:
    """The end of an hour, or an earlier time where it was not over when its documents were made."""
    return PartitionStates(session).as_of("agent_health_state", HourRange.of(hour)).get(hour, hour + HOUR)


def _write(batches: pa.RecordBatchReader, folder: Path) -> tuple[Slices, dict[str, float | None]]:
    """Write agents as they come and their positions after them; returns where each list lies, and the mean scores."""
    path = str(folder / AGENTS_FILE)
    with pa.OSFile(path, "wb") as file, pa.ipc.new_stream(file, batches.schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    with pa.memory_map(path) as file, pa.ipc.open_stream(file) as stream:
        agents_made = stream.read_all()
        positions, slices = positions_in_order(agents_made)
        scores = fleet_scores(agents_made)
    (folder / POSITIONS_FILE).write_bytes(positions)
    return slices, scores


def read_session(settings: Settings, session_id: str, now: datetime | None = None) -> dict[str, Any] | None:
    """The newest scores of a session that had a trace or signal in the look-back; None where there is none.

    Returns:
        is_personal, teams (of all agents, null where one is of none), the answer as source 5 words its metadata, and
        its members with texts of the logs.

    Raises:
        HealthAssetsError: as `read_newest`.
    """
    ownership = _ownership(settings)
    with warehouse_of(settings, SESSION_LOCK_TIMEOUT_S).read() as session:
        session.use_one_thread()
        found = _scored(session, settings, session_id, (now or datetime.now(UTC)) + HOUR)
        if found is None:
            return None
        score, risks, agents = found
        traces = _rows(session, _riskiest_traces(risks))
        owners = _owners(session, score, agents, ownership)
    told = _plain_row({**score, "duration_s": _duration_s(score)})
    return {**owners, "answer": session_answer(told, traces), "texts": {"last_error": told["last_error"]}}


def _duration_s(score: dict[str, Any]) -> float | None:
    """Seconds from the first start to the last end of the session's executions; None where one is unknown."""
    started, ended = score["first_started_at"], score["last_ended_at"]
    return (ended - started).total_seconds() if started and ended else None


def read_session_runs(
    settings: Settings, session_id: str, until: datetime | None, now: datetime | None = None
) -> dict[str, Any] | None:
    """The same of a session by the end of an hour, with its runs (`session_runs.runs_of`) in place of the metadata.

    Args:
        settings: the settings.
        session_id: the session.
        until: the hour; None for the newest.
        now: the time.

    Raises:
        HealthAssetsError: as `read_newest`.
    """
    ownership = _ownership(settings)
    with warehouse_of(settings, SESSION_LOCK_TIMEOUT_S).read() as session:
        session.use_one_thread()
        over_by = (now or datetime.now(UTC)) + HOUR
        found = _scored(session, settings, session_id, over_by if until is None else min(over_by, until + HOUR))
        if found is None:
            return None
        score, risks, agents = found
        owners = _owners(session, score, agents, ownership)
        runs = runs_of(session, score, newest_traces(risks), settings)
    told = {name: [_plain_row(row) for row in rows] if isinstance(rows, list) else rows for name, rows in runs.items()}
    return {**owners, "answer": {"score": _plain_row(score), **told}}


def read_trace(settings: Settings, question: TraceQuestion, now: datetime | None = None) -> dict[str, Any] | None:
    """A run with what happened inside it (`run_traces.trace_of`), told as a session's scores are; None without one.

    Whose it is follows from the run's agent; the page leaves out parts of agents that the caller may not see.

    Raises:
        HealthAssetsError: as `read_newest`.
    """
    targets = _targets(settings)
    ownership = Ownership(targets)
    with warehouse_of(settings, SESSION_LOCK_TIMEOUT_S).read() as session:
        session.use_one_thread()
        found = trace_of(session, settings, targets, question, now or datetime.now(UTC))
    if found is None:
        return None
    agent_id = found["run"]["agent_id"]
    return {"is_personal": ownership.is_personal(agent_id), "teams": [ownership.team(agent_id)], "answer": found}


def read_line(settings: Settings, source_file: str, number: int) -> dict[str, Any]:
    """The text of a line of a raw log, as a session's scores are told: of all teams, with personal agents among them.

    Raises:
        HealthAssetsError: as `read_newest`; the log cannot be read.
    """
    ownership = _ownership(settings)
    with warehouse_of(settings, SESSION_LOCK_TIMEOUT_S).read() as session:
        session.use_one_thread()
        known = known_file(session, source_file)
    answer = line_of(settings, load_targets(settings.targets).redact, known, number)
    return {"is_personal": ownership.has_personal, "teams": [None], "answer": answer}


def read_suggestions(
    settings: Settings, agent_id: str | None, days: int, now: datetime | None = None
) -> dict[str, Any]:
    """Suggested targets as a session's scores are told, visible to all: the server leaves out agents of others.

    Returns:
        `found` by agent and `lacking` with the reasons, the first `MOST_SUGGESTIONS` of each; none for an agent that
        did not run or is retired.

    Raises:
        HealthAssetsError: as `read_newest`.
    """
    from health_assets.apps.target_suggestions.suggesting import UnknownAgentError, suggest  # hardly ever asked for

    targets = _targets(settings)
    with warehouse_of(settings, SESSION_LOCK_TIMEOUT_S).read() as session:
        session.use_one_thread()
        agents = () if agent_id is None else (agent_id,)
        try:
            found = suggest(session, targets, now or datetime.now(UTC), days, agents)
        except UnknownAgentError:
            return {"is_personal": False, "teams": [], "answer": {"found": [], "lacking": []}}
    answer = {
        "first_day": found.first.isoformat(),
        "as_of": found.end.isoformat(),
        "found": [_told_suggestion(one, targets) for one in found.found[:MOST_SUGGESTIONS]],
        "lacking": [{"agent_id": one.agent_id, "reason": one.reason} for one in found.lacking[:MOST_SUGGESTIONS]],
    }
    return {"is_personal": False, "teams": [], "answer": answer}


def _told_suggestion(one: "Suggestion", targets: Targets) -> dict[str, Any]:
    """The suggested targets of an agent, each with its evidence and the present value."""
    present = targets.of(one.agent_id)
    return {
        "agent_id": one.agent_id,
        "runs": one.runs,
        "typical_days": one.days,
        "remark": one.remark,
        "targets": {
            name: {"suggested": value.value, "present": getattr(present, name), "evidence": value.evidence}
            for name, value in one.values.items()
        },
    }


def _scored(
    session: Session, settings: Settings, session_id: str, over_by: datetime
) -> tuple[dict[str, Any], ir.Table, ir.Table] | None:
    """The newest score of a session by a time, the rows of its traces in `trace_risks` behind it, and its `agent_id`s.

    Raises:
        EmptyWarehouseError: there is no score of any session.
    """
    latest = PartitionStates(session).newest_of_each(("session_scores",), over_by).get("session_scores")
    if latest is None:
        raise EmptyWarehouseError("no hour of session_scores has been materialized yet")
    # anybody may ask for any id, so it stands in a table rather than in the text of a query
    wanted = ibis.memtable(pa.table({"session_id": pa.array([session_id], pa.string())}))

    def of_session(table: str, hours: HourRange) -> ir.Table:
        return session.hours_of(table, hours).semi_join(wanted, "session_id")

    span = HourRange.of(latest.hour).extended_back(settings.lookback_hours - 1)
    scores = session.dicts(_newest_score(of_session("session_scores", span)))
    if not scores:
        return None
    span = HourRange.of(scores[0]["hour"]).extended_back(settings.lookback_hours - 1)
    # a session has a score in every hour in which one of its traces has risks, so only these hours are read
    scored = of_session("session_scores", span)
    [scored_from] = session.dicts(scored.aggregate(hour=scored.hour.min()))
    span = HourRange(scored_from["hour"], span.end)
    risks, cancelled = of_session("trace_risks", span), of_session("cancellations", span)
    return scores[0], risks, ibis.union(risks.select("agent_id"), cancelled.select("agent_id"))


def _owners(session: Session, score: dict[str, Any], agents: ir.Table, ownership: Ownership) -> dict[str, Any]:
    """The owners of a session's agents, of all of its runs, listed or not."""
    names = {score["agent_id"], *(row["agent_id"] for row in session.dicts(agents.distinct()))}
    return {
        "is_personal": any(map(ownership.is_personal, names)),
        "teams": list({ownership.team(agent_id) for agent_id in names}),
    }


def _newest_score(scores: ir.Table) -> ir.Table:
    """The newest row of a session in `session_scores`, its flagged traces cut short, and how many that leaves out."""
    flagged = scores.flagged_traces
    return (
        scores.order_by(scores.hour.desc())
        .limit(1)
        .mutate(
            flagged_traces=flagged[:MOST_TRACES],
            flagged_not_listed=ibis.greatest(flagged.length() - MOST_TRACES, 0),
        )
    )


def _riskiest_traces(risks: ir.Table) -> ir.Table:
    """The newest row of each trace of a session in `trace_risks`, as many as are listed."""
    traces = newest_traces(risks)
    return traces.order_by(traces.step_risk.desc(), *(traces[name] for name in TRACE)).limit(MOST_TRACES)


FIGURES = (
    "runs", "failures", "cancelled_runs", "first_started_at", "last_ended_at", "duration_s", "input_tokens",
    "output_tokens", "cost_usd", "cost_source", *CALL_COUNTS, "last_error_at",
)  # fmt: skip
"""What an answer says of a session's executions, which needs no signal."""
NO_SIGNALS = "No traces or signals to evaluate."
NO_EVALUABLE_TRACES = "No evaluable traces."
"""Source 5, "Edge cases": no signal at all, or none that the metric needs, such as a confidence."""


def session_answer(score: dict[str, Any], traces: list[dict[str, Any]]) -> dict[str, Any]:
    """Both session metrics with their metadata, named as in source 5; signals that a trace lacks are left out.

    Args:
        score: a row of `session_scores` with its `duration_s`, its `flagged_traces` cut short, and how many that leaves
            out.
        traces: rows of `trace_risks` of that session, in the order in which they are to be listed, with `CLAIMANT`.
    """
    ids = Counter(trace["trace_id"] for trace in traces)

    def name_of(trace: dict[str, Any]) -> str:
        """The id of a trace; where several agents have one of it, with the agent."""
        return trace["trace_id"] if ids[trace["trace_id"]] == 1 else f"{trace['trace_id']} ({trace[CLAIMANT]})"

    def signals_of(names: tuple[str, ...], needed: str) -> dict[str, dict[str, float]]:
        return {
            name_of(trace): {name: trace[name] for name in names if trace[name] is not None}
            for trace in traces
            if trace[needed] is not None
        }

    weights = {
        name: score[f"weight_{name}"] for name in ("confidence", "loop_detection", "tool_correctness", "coherence")
    }
    return {
        "session_id": score["session_id"],
        "agent_id": score["agent_id"],
        "hour": score["hour"],
        **{name: score[name] for name in FIGURES},
        "traces_not_listed": max(0, score["total_traces"] - len(traces)),
        "agent_reliability": {
            **_verdict(score, "reliability", score["traces_evaluated"]),
            "metadata": {
                "total_traces_in_session": score["total_traces"],
                "traces_evaluated": score["traces_evaluated"],
                "raw_risk": score["raw_risk"],
                "signal_weights": weights,
                "per_trace_signals": signals_of((*RISKS, "step_risk"), "step_risk"),
                "flagged_traces": score["flagged_traces"],
                "flagged_not_listed": score["flagged_not_listed"],
                "flag_threshold": score["flag_threshold"],
                "aggregation": {
                    "method": "max_compose_top_k",
                    "top_k_percentile": score["top_k_share"],
                    "ensemble_weight": score["ensemble_weight"],
                    "mean_top_k_risk": score["mean_top_k_risk"],
                    "max_risk": score["max_risk"],
                },
            },
        },
        "agent_consistency": {
            **_verdict(score, "consistency", score["consistency_traces_evaluated"]),
            "metadata": {
                "total_traces_in_session": score["total_traces"],
                "traces_evaluated": score["consistency_traces_evaluated"],
                "raw_instability": score["raw_instability"],
                "signal_weights": weights,
                "per_trace_signals": signals_of(
                    (*RISKS, "situational_penalty", "weighted_uncertainty"), "weighted_uncertainty"
                ),
                "aggregation": {"method": "weighted_rms", "rms_value": score["raw_instability"]},
            },
        },
    }


def _verdict(score: dict[str, Any], metric: str, evaluated: int) -> dict[str, Any]:
    """A metric's score and what follows from it; null with the reason where nothing could be evaluated.

    The table keeps the source's score of 1 there. Whoever asks for a session's score must not take it for a good one.

    Args:
        score: a row of `session_scores`.
        metric: `reliability` or `consistency`.
        evaluated: traces that could be evaluated.
    """
    is_evaluated = evaluated > 0
    reason = NO_EVALUABLE_TRACES if score["traces_evaluated"] else NO_SIGNALS
    said = {"score": f"agent_{metric}", "passed": f"{metric}_passed", "band": f"{metric}_band"}
    return {
        "is_evaluated": is_evaluated,
        **{name: score[column] if is_evaluated else None for name, column in said.items()},
        "threshold": score["pass_threshold"],
        "reason": None if is_evaluated else reason,
    }


def warehouse_of(settings: Settings, lock_timeout_s: float) -> Warehouse:
    """The warehouse, for a process that must stay small beside the server."""
    small = settings.model_copy(update={"memory_limit": MEMORY_LIMIT})
    return Warehouse.of(small, lock_timeout_s=lock_timeout_s)


def _ownership(settings: Settings) -> Ownership:
    return Ownership(_targets(settings))


def _targets(settings: Settings) -> Targets:
    try:
        return load_targets(settings.targets)
    except HealthAssetsError as error:
        raise TargetsError(str(error)) from error


def _version(hours: dict[str, WrittenHour], rules: list[Any]) -> str:
    """A fingerprint of all that a snapshot depends on: what was written when, whose the agents are, what is hidden."""
    written = [(asset, [moment.isoformat() for moment in when]) for asset, when in hours.items()]
    return hashlib.sha256(json.dumps([written, rules]).encode()).hexdigest()


def _rows(session: Session, rows: ir.Table) -> list[dict[str, Any]]:
    """Few rows as JSON can write them."""
    return [_plain_row(row) for row in session.dicts(rows)]


def _plain_row(row: dict[str, Any]) -> dict[str, Any]:
    return {name: _plain(value) for name, value in row.items()}


def _plain(value: Any) -> Any:
    """The value as JSON can write it; a number that JSON cannot write becomes null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.isoformat() if isinstance(value, datetime) else value


if __name__ == "__main__":
    answer_requests(read)
