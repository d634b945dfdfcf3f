"""The process that reads the warehouse for the server: `python -m health_assets.apps.serving.reader_process`.

The first line on standard input are the settings. Then there is one request a line, and one reply a line on standard
output, all JSON. It ends when its input ends, so it never outlives the server. Requests:

- `{"snapshot": FOLDER, "known": VERSION}`: write the newest hour into FOLDER, unless it is VERSION.
- `{"session": ID}`: the scores of a session.

A reply is `{"ok": ...}`, or `{"fault": KIND, "sentence": TEXT}`: the kind is for the world, the sentence for the
operator.
"""

import hashlib
import json
import math
import os
import sys
import traceback
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

import duckdb
import ibis
import pyarrow as pa
from ibis import ir

from health_assets.apps.serving.aggregates import hidden_models
from health_assets.apps.serving.documents import agents_of, with_texts
from health_assets.apps.serving.list_files import LISTS, write_list
from health_assets.apps.serving.ordering import AGENTS_FILE, POSITIONS_FILE, Slices, positions_in_order
from health_assets.apps.serving.ownership import Ownership
from health_assets.apps.serving.vocabulary import STATES
from health_assets.core.errors import HealthAssetsError, NoWarehouseError, WarehouseBusyError
from health_assets.core.hours import HourRange
from health_assets.core.private_files import FOLDER_MODE
from health_assets.core.settings import Settings
from health_assets.core.targets import load_targets
from health_assets.warehouse.in_memory import stream_through
from health_assets.warehouse.materialized import MaterializedHours, WrittenHour
from health_assets.warehouse.session import Session
from health_assets.warehouse.store import Warehouse

ROWS_PER_BATCH = 4096
"""Small enough that freeing a batch of documents never holds the server up."""
MOST_TRACES = 1000
"""Traces, and flagged traces, of one session that an answer lists; the riskiest first where there are more."""
MEMORY_LIMIT = "256MB"
SNAPSHOT_LOCK_TIMEOUT_S = 10.0
SESSION_LOCK_TIMEOUT_S = 2.0
NICENESS = 10
ASSETS = (
    "agent_health_state", "agent_health", "score_evidence", "model_health", "session_scores",
    *(served.table for served in LISTS.values()),
)  # fmt: skip
"""The assets that are served."""


class EmptyWarehouseError(HealthAssetsError):
    """The warehouse holds no hour of health states yet."""


class TargetsError(HealthAssetsError):
    """The targets file cannot be used."""


FAULTS: tuple[tuple[type[Exception], str], ...] = (
    (NoWarehouseError, "missing"),
    (EmptyWarehouseError, "empty"),
    (WarehouseBusyError, "busy"),
    (TargetsError, "targets"),
    (HealthAssetsError, "unreadable"),
    (duckdb.Error, "unreadable"),
    (OSError, "unreadable"),
)


def main() -> None:
    """Answer requests until the input ends."""
    os.umask(0o777 & ~FOLDER_MODE)  # this process is ours alone
    settings = Settings.model_validate_json(sys.stdin.readline())
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints must not look like a reply
    os.nice(NICENESS)
    serve(settings, sys.stdin, replies)


def serve(settings: Settings, requests: Iterable[str], replies: TextIO) -> None:
    """Reply to every request; no fault of the warehouse ends the process."""
    for line in requests:
        print(json.dumps(_reply(settings, json.loads(line))), file=replies, flush=True)


def _reply(settings: Settings, request: dict[str, Any]) -> dict[str, Any]:
    try:
        if "session" in request:
            return {"ok": read_session(settings, request["session"])}
        return {"ok": write_snapshot(settings, Path(request["snapshot"]), request["known"])}
    except Exception as error:  # told to the operator, with its traceback where it is ours
        kind = next((kind for known, kind in FAULTS if isinstance(error, known)), None)
        return {"fault": kind or "unreadable", "sentence": str(error) if kind else traceback.format_exc()}


def write_snapshot(
    settings: Settings, folder: Path, known: str | None, now: datetime | None = None
) -> dict[str, Any] | None:
    """Write the newest hour into a folder: agents as `documents.with_texts` makes them, their orders, lists.

    An hour that is not over by `now` hides no other: what it holds so far is not the health of anybody.

    Returns:
        What is true of the whole: version, hour, models, teams, lists; None where the hour is the known version.

    Raises:
        HealthAssetsError: there is no warehouse or hour, it is held, or the targets cannot be used.
    """
    ownership = _ownership(settings)
    with _warehouse(settings, SNAPSHOT_LOCK_TIMEOUT_S).read() as session:
        session.use_one_thread()
        hours = MaterializedHours(session).newest_of_each(ASSETS, now or datetime.now(UTC))
        if "agent_health_state" not in hours:
            raise EmptyWarehouseError("no hour of agent_health_state has been materialized yet")
        version = _version(hours, [ownership.fingerprint, settings.min_agents_per_aggregate])
        if version == known:
            return None
        hour = hours["agent_health_state"].hour
        agents = session.stream(agents_of(session, hour, has_evidence="score_evidence" in hours), ROWS_PER_BATCH)
        slices = _write(stream_through(ownership.with_owners(agents), with_texts, ROWS_PER_BATCH), folder)
        model_hour = hours["model_health"].hour if "model_health" in hours else hour
        models = _rows(session, session.hours_of("model_health", HourRange.of(model_hour)).order_by("model"))
        hidden = hidden_models(session, settings, model_hour, ownership)
        return {
            "version": version,
            "hour": hour.isoformat(),
            "slices": slices,
            "model_hour": model_hour.isoformat(),
            "models": [{**model, "is_public": model["model"] not in hidden} for model in models],
            "teams": ownership.teams,
            "lists": {
                name: write_list(session, name, hours[served.table].hour, folder, ownership, settings)
                for name, served in LISTS.items()
                if served.table in hours
            },
        }


def _write(batches: pa.RecordBatchReader, folder: Path) -> Slices:
    """Write agents as they come and their positions after them; returns where each list of positions lies."""
    path = str(folder / AGENTS_FILE)
    with pa.OSFile(path, "wb") as file, pa.ipc.new_stream(file, batches.schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    with pa.memory_map(path) as file, pa.ipc.open_stream(file) as stream:
        positions, slices = positions_in_order(stream.read_all(), STATES)
    (folder / POSITIONS_FILE).write_bytes(positions)
    return slices


def read_session(settings: Settings, session_id: str, now: datetime | None = None) -> dict[str, Any] | None:
    """The newest scores of a session that had a trace or signal in the look-back; None where there is none.

    Returns:
        is_personal, teams (of all agents, null where one is of none), and the answer as source 5 words its metadata.

    Raises:
        HealthAssetsError: as `write_snapshot`.
    """
    ownership = _ownership(settings)
    with _warehouse(settings, SESSION_LOCK_TIMEOUT_S).read() as session:
        session.use_one_thread()
        latest = MaterializedHours(session).newest_of_each(ASSETS, now or datetime.now(UTC)).get("session_scores")
        if latest is None:
            raise EmptyWarehouseError("no hour of session_scores has been materialized yet")
        # anybody may ask for any id, so it stands in a table rather than in the text of a query
        wanted = ibis.memtable(pa.table({"session_id": pa.array([session_id], pa.string())}))

        def of_session(table: str, hours: HourRange) -> ir.Table:
            return session.hours_of(table, hours).semi_join(wanted, "session_id")

        span = HourRange.of(latest.hour).extended_back(settings.lookback_hours - 1)
        scores = _rows(session, _newest_score(of_session("session_scores", span)))
        if not scores:
            return None
        span = HourRange.of(datetime.fromisoformat(scores[0]["hour"])).extended_back(settings.lookback_hours - 1)
        # a session has a score in every hour in which one of its traces has risks, so only these hours are read
        scored = of_session("session_scores", span)
        [scored_from] = session.dicts(scored.aggregate(hour=scored.hour.min()))
        risks = of_session("trace_risks", HourRange(scored_from["hour"], span.end))
        traces = _rows(session, _riskiest_traces(risks))
        of_traces = [row["agent_id"] for row in session.dicts(risks.select("agent_id").distinct())]  # listed or not
    agents = {scores[0]["agent_id"], *of_traces}
    return {
        "is_personal": any(map(ownership.is_personal, agents)),
        "teams": list({ownership.team(agent_id) for agent_id in agents}),
        "answer": session_answer(scores[0], traces),
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
    place = ibis.row_number().over(group_by="trace_id", order_by=risks.hour.desc())
    newest = risks.mutate(place=place).filter(lambda rows: rows.place == 0).drop("place")
    return newest.order_by(newest.step_risk.desc(), newest.trace_id).limit(MOST_TRACES)


RISKS = ("confidence_risk", "loop_risk", "tool_risk", "coherence_risk")


def session_answer(score: dict[str, Any], traces: list[dict[str, Any]]) -> dict[str, Any]:
    """Both session metrics with their metadata, named as in source 5; signals that a trace lacks are left out.

    Args:
        score: a row of `session_scores`, its `flagged_traces` cut short, and how many that leaves out.
        traces: rows of `trace_risks` of that session, in the order in which they are to be listed.
    """

    def signals_of(names: tuple[str, ...], needed: str) -> dict[str, dict[str, float]]:
        return {
            trace["trace_id"]: {name: trace[name] for name in names if trace[name] is not None}
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
        "traces_not_listed": max(0, score["total_traces"] - len(traces)),
        "agent_reliability": {
            **_verdict(score, "reliability", score["traces_evaluated"], "No traces or signals to evaluate."),
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
            **_verdict(score, "consistency", score["consistency_traces_evaluated"], "No evaluable traces."),
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


def _verdict(score: dict[str, Any], metric: str, evaluated: int, reason: str) -> dict[str, Any]:
    """A metric's score and what follows from it; null with the reason where nothing could be evaluated.

    The table keeps the source's score of 1 there. Whoever asks for a session's score must not take it for a good one.

    Args:
        score: a row of `session_scores`.
        metric: `reliability` or `consistency`.
        evaluated: traces that could be evaluated.
        reason: what the source says where there is none (source 5, "Edge cases").
    """
    is_evaluated = evaluated > 0
    said = {"score": f"agent_{metric}", "passed": f"{metric}_passed", "band": f"{metric}_band"}
    return {
        "is_evaluated": is_evaluated,
        **{name: score[column] if is_evaluated else None for name, column in said.items()},
        "threshold": score["pass_threshold"],
        "reason": None if is_evaluated else reason,
    }


def _warehouse(settings: Settings, lock_timeout_s: float) -> Warehouse:
    return Warehouse(settings.warehouse, lock_timeout_s=lock_timeout_s, memory_limit=MEMORY_LIMIT)


def _ownership(settings: Settings) -> Ownership:
    try:
        return Ownership(load_targets(settings.targets))
    except HealthAssetsError as error:
        raise TargetsError(str(error)) from error


def _version(hours: dict[str, WrittenHour], rules: list[Any]) -> str:
    """A fingerprint of all that a snapshot depends on: what was written when, whose the agents are, what is hidden."""
    written = [(asset, [moment.isoformat() for moment in when]) for asset, when in hours.items()]
    return hashlib.sha256(json.dumps([written, rules]).encode()).hexdigest()


def _rows(session: Session, rows: ir.Table) -> list[dict[str, Any]]:
    """Few rows as JSON can write them."""
    return [{name: _plain(value) for name, value in row.items()} for row in session.dicts(rows)]


def _plain(value: Any) -> Any:
    """The value as JSON can write it; a number that JSON cannot write becomes null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.isoformat() if isinstance(value, datetime) else value


if __name__ == "__main__":
    main()
