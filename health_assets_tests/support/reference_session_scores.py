"""The independent reference of session scores: source 5 and the contract in plain Python loops over records.

"Source 5" is the page on session metrics. Records come from `reference.read_lines` and `reference.deduplicate`; nothing
here imports the product.
"""

import math
from collections import defaultdict
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from health_assets_tests.support.reference import ONE_HOUR, SIGNALS, Record, parse_timestamp
from health_assets_tests.support.reference_agent_usage import amount
from health_assets_tests.support.reference_computed_signals import signals_of

DEFAULTS: dict[str, Any] = {
    "lookback_hours": 168,
    "weight_confidence": 1.0,
    "weight_loop_detection": 1.0,
    "weight_tool_correctness": 0.8,
    "weight_coherence": 1.0,
    "flag_threshold": 0.5,
    "pass_threshold": 0.5,
    "top_k_share": 0.15,
    "ensemble_weight": 0.1,
}
RISK_OF = {
    "confidence": "confidence_risk",
    "loop_detection": "loop_risk",
    "tool_correctness": "tool_risk",
    "coherence": "coherence_risk",
}


def traces_at(records: list[Record], hour: datetime, lookback_hours: int) -> list[Record]:
    """Every trace about which the look-back that ends with the hour says something, as known at its end.

    An id is a trace for each agent with an execution of it, else for each agent that signals name, else one of nobody.
    """
    end = hour + ONE_HOUR
    start = end - timedelta(hours=lookback_hours)
    said: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        if record["type"] in ("execution", "signals") and start <= record["_at"] < end:
            said[record["execution_id"]].append(record)
    traces = []
    for trace_id, about in said.items():
        agents = {record["agent_id"] for record in about if record["type"] == "execution"}
        agents |= {record["agent_id"] for record in about if record.get("agent_id") is not None}
        for agent_id in agents or {None}:
            own = [record for record in about if record.get("agent_id") in (None, agent_id)]
            traces.append(_trace(trace_id, own, records, lookback_hours))
    return traces


def _trace(trace_id: str, about: list[Record], records: list[Record], lookback_hours: int) -> Record:
    about = sorted(about, key=lambda record: (record["_at"], record["_source_file"], record["_line_number"]))
    executions = [record for record in about if record["type"] == "execution"]
    given = [record for record in about if record["type"] == "signals"]
    traced = [record for record in executions if record.get("session_id") is not None or _own_signals(record)]
    execution = (traced or executions or [None])[-1]  # of executions with the same id, the latest that says anything
    statements = [record for record in about if record["type"] == "signals" or record is execution]
    trace: Record = {"trace_id": trace_id, "hours": {record["_hour"] for record in statements}}
    for name in ("session_id", "agent_id"):
        trace[name] = None if execution is None else execution.get(name)
        for record in reversed(given):
            if trace[name] is None:
                trace[name] = record.get(name)
    trace["traced_at"] = (execution or given[-1])["_at"]
    trace["oldest_event_at"] = statements[0]["_at"]
    trace["signals"] = {}
    for record in statements:
        said = _own_signals(record) if record["type"] == "execution" else record
        for name in SIGNALS:
            if said.get(name) is not None:
                trace["signals"][name] = said[name]
    trace["run"] = dict.fromkeys(RUN) if execution is None else _run(execution, records, lookback_hours)
    return trace


AMOUNTS = ("input_tokens", "output_tokens", "cost_usd")
COUNTS = ("tool_calls", "tool_failures", "steps", "repeated_steps")
RUN = ("status", "started_at", *AMOUNTS, *COUNTS, "cost_source", "error")


def _run(execution: Record, records: list[Record], lookback_hours: int) -> Record:
    """What is told of a trace's execution, in `RUN`."""
    calls = [record for record in records if record["type"] == "model_call"]
    amounts = {name: amount(execution, calls, name, lookback_hours) for name in AMOUNTS}
    lines = [text.strip() for text in (execution.get("error") or "").split("\n") if text.strip()]
    is_failed = execution["status"] == "failure"
    counted = signals_of(execution, records, lookback_hours) or {}
    return {
        "status": execution["status"],
        "started_at": parse_timestamp(execution["started_at"]),
        **{name: value if value is None else _as_told(name, value) for name, value in amounts.items()},
        **{name: counted.get(name) for name in COUNTS},
        "cost_source": None if amounts["cost_usd"] is None else "stated",
        "error": lines[0][:300] if is_failed and lines else None,
    }


def _as_told(name: str, value: Fraction) -> float | int:
    return float(value) if name == "cost_usd" else int(value)


def _own_signals(execution: Record) -> dict[str, float]:
    return {
        name: value for name, value in (execution.get("signals") or {}).items() if name in SIGNALS and value is not None
    }


def risks(signals: dict[str, float], settings: dict[str, Any]) -> Record:
    """Source 5, "Convert signals to risks", "Weight and max-compose" and "Compute weighted uncertainty"."""
    row: Record = {RISK_OF[name]: None if name not in signals else 1.0 - signals[name] for name in SIGNALS}
    weighted = {name: settings[f"weight_{name}"] * (1.0 - signals[name]) for name in signals}
    row["step_risk"] = max(weighted.values()) if weighted else None
    row["situational_penalty"] = row["weighted_uncertainty"] = None
    if "confidence" in signals:
        row["situational_penalty"] = sum(value for name, value in weighted.items() if name != "confidence")
        row["weighted_uncertainty"] = (1 + row["situational_penalty"]) * weighted["confidence"]
    row["is_flagged"] = row["step_risk"] is not None and row["step_risk"] > settings["flag_threshold"]
    return row


def trace_risks(records: list[Record], hours: list[datetime], settings: dict[str, Any]) -> list[Record]:
    """Contract section 4: traces that end in an hour, or whose signals are given in it."""
    rows = []
    for hour in hours:
        for trace in traces_at(records, hour, settings["lookback_hours"]):
            if hour in trace["hours"] and (trace["session_id"] is not None or trace["signals"]):
                names = ("trace_id", "session_id", "agent_id", "traced_at", "oldest_event_at")
                row = {"hour": hour, **{name: trace[name] for name in names}}
                rows.append(row | trace["run"] | risks(trace["signals"], settings))
    return rows


def session_scores(records: list[Record], hours: list[datetime], settings: dict[str, Any]) -> list[Record]:
    """Contract section 4: sessions with an execution or a signal in the hour, over their traces in the look-back.

    A run that was cancelled in the hour makes a row, too, also of a session without any trace.
    """
    rows = []
    for hour in hours:
        first = hour - timedelta(hours=settings["lookback_hours"] - 1)
        cancelled: dict[str, list[Record]] = defaultdict(list)
        for record in records:
            if record["type"] == "cancellation" and record.get("session_id") and first <= record["_hour"] <= hour:
                cancelled[record["session_id"]].append(record)
        sessions: dict[str, list[Record]] = defaultdict(list)
        for trace in traces_at(records, hour, settings["lookback_hours"]):
            if trace["session_id"] is not None:
                sessions[trace["session_id"]].append(trace)
        for session_id in sessions.keys() | cancelled.keys():
            traces, own = sessions.get(session_id, []), cancelled.get(session_id, [])
            hours_of_it = {record["_hour"] for record in own}.union(*(trace["hours"] for trace in traces))
            if hour in hours_of_it:
                of_hour = {"hour": hour, "as_of": hour + ONE_HOUR, "is_final": True, "session_id": session_id}
                row = of_hour | score(traces, settings) | runs(traces)
                if not traces:
                    row["agent_id"] = max(own, key=lambda one: (one["_at"], one["execution_id"]))["agent_id"]
                rows.append(row | {"cancelled_runs": len(own)})
    return rows


def score(traces: list[Record], settings: dict[str, Any]) -> Record:
    """Source 5: both metrics of one session."""
    weighed = [(trace, risks(trace["signals"], settings)) for trace in traces]
    steps = sorted((row["step_risk"] for _, row in weighed if row["step_risk"] is not None), reverse=True)
    uncertainties = [row["weighted_uncertainty"] for _, row in weighed if row["weighted_uncertainty"] is not None]
    named = [trace for trace in traces if trace["agent_id"] is not None]
    latest = max(
        named, key=lambda trace: (trace["traced_at"], trace["trace_id"], trace["agent_id"]), default={"agent_id": None}
    )
    row: Record = {
        "agent_id": latest["agent_id"],
        "total_traces": len(traces),
        "traces_evaluated": len(steps),
        "agent_reliability": 1.0,
        "raw_risk": None,
        "mean_top_k_risk": None,
        "max_risk": None,
        "agent_consistency": 1.0,
        "raw_instability": None,
        "consistency_traces_evaluated": len(uncertainties),
    }
    if steps:
        k = max(1, math.ceil(len(steps) * Decimal(str(settings["top_k_share"]))))
        row["mean_top_k_risk"], row["max_risk"] = sum(steps[:k]) / k, steps[0]
        weight = settings["ensemble_weight"]
        row["raw_risk"] = (1 - weight) * row["mean_top_k_risk"] + weight * row["max_risk"]
        row["agent_reliability"] = min(1.0, max(0.0, 1.0 - row["raw_risk"]))
    if uncertainties:
        row["raw_instability"] = math.sqrt(sum(value * value for value in uncertainties) / len(uncertainties))
        row["agent_consistency"] = min(1.0, max(0.0, 1.0 - row["raw_instability"]))
    flagged = [(-risk["step_risk"], trace["trace_id"]) for trace, risk in weighed if risk["is_flagged"]]
    row["flagged_traces"] = [trace_id for _, trace_id in sorted(flagged)]
    row["reliability_passed"] = row["agent_reliability"] >= settings["pass_threshold"]
    row["consistency_passed"] = row["agent_consistency"] >= settings["pass_threshold"]
    row["reliability_band"] = reliability_band(row["agent_reliability"])
    row["consistency_band"] = consistency_band(row["agent_consistency"])
    return row


def runs(traces: list[Record]) -> Record:
    """What is known of a session's executions without any signal."""
    ran = [trace for trace in traces if trace["run"]["status"] is not None]
    told = {name: [trace["run"][name] for trace in ran if trace["run"][name] is not None] for name in RUN}
    errors = [trace for trace in ran if trace["run"]["error"] is not None]
    last = max(errors, key=lambda trace: (trace["traced_at"], trace["trace_id"], trace["agent_id"]), default=None)
    return {
        "runs": len(ran),
        "failures": told["status"].count("failure"),
        "first_started_at": min(told["started_at"], default=None),
        "last_ended_at": max((trace["traced_at"] for trace in ran), default=None),
        **{name: sum(told[name]) if told[name] else None for name in (*AMOUNTS, *COUNTS)},
        "cost_source": min(told["cost_source"], default=None),
        "last_error": last and last["run"]["error"],
        "last_error_at": last and last["traced_at"],
    }


def reliability_band(value: float) -> str:
    """Source 5, "Interpreting the score" of Agent Reliability."""
    if value >= 0.9:
        return "highly_reliable"
    if value >= 0.7:
        return "generally_reliable"
    if value >= 0.5:
        return "moderate_risk"
    return "elevated_risk" if value >= 0.3 else "high_risk"


def consistency_band(value: float) -> str:
    """Source 5, "Interpreting the score" of Agent Consistency."""
    if value >= 0.9:
        return "highly_consistent"
    if value >= 0.7:
        return "generally_consistent"
    if value >= 0.5:
        return "moderate_instability"
    return "high_instability" if value >= 0.3 else "unstable"
