"""Every table of the warehouse, declared once: name, columns, types, units and meaning.

What belongs here: one SQLModel class per table, with a description for each column. DDL, docs and Dagster's column
metadata are generated from these classes. What does not belong here: how rows come about (`logs`, `scoring`) and what
must be true of them (`quality`).

Primary keys state identity, and columns that may not be null say so. Both are left out of the warehouse's DDL, because
an index over millions of rows an hour costs ten times the load; the transforms keep what is declared here, and the
expectations watch it.
"""

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlmodel import Field, SQLModel

SCHEMA_VERSION = 2


def _at(description: str, *, key: bool = False, nullable: bool = False) -> Any:
    return Field(description=description, primary_key=key, sa_type=sa.DateTime(timezone=True), nullable=nullable)


def _text(description: str, *, key: bool = False) -> Any:
    return Field(description=description, primary_key=key)


def _number(description: str) -> Any:
    return Field(description=description, sa_type=sa.Double)


def _count(description: str, *, key: bool = False) -> Any:
    keywords = {"autoincrement": False} if key else {}
    return Field(description=description, sa_type=sa.BigInteger, primary_key=key, sa_column_kwargs=keywords)


def _flag(description: str) -> Any:
    return Field(description=description)


class Hourly(SQLModel):
    """A table partitioned by hour."""

    hour: datetime = _at("Start of the UTC hour that the row belongs to.", key=True)


class Windowed(Hourly):
    """A table whose rows summarise the evaluation window that ends with their hour."""

    window_start: datetime = _at("Start of the evaluation window, included.")
    window_end: datetime = _at("End of the evaluation window, excluded.")
    hours_covered: int = _count("Hours of the window that were materialised or lie before the first log.")


class FromLine(Hourly):
    """A row cleaned from one line of a raw log."""

    source_file: str = _text("Raw log that holds the line, relative to the raw root.", key=True)
    line_number: int = _count("Line in that file, counted from 1.", key=True)


# -- what the raw logs hold ------------------------------------------------------------------------------------------


class RawLog(Hourly, table=True):
    """How many records of each kind every raw log holds for every hour, and whether the hour's tables have them."""

    __tablename__ = "raw_logs"

    source_file: str = _text(
        "Raw log, relative to the raw root; `(traces)` for what was put together from spans of any logs.", key=True
    )
    record_type: str = _text("Kind of record, or `rejected`.", key=True)
    lines: int = _count(
        "Records of that kind for that hour: a line each, but for spans, of which a line may hold many; 0 once a "
        "changed file no longer has any."
    )
    digest: str = _text("Fingerprint of these records and their places, to notice what changed in a changed file.")
    is_loaded: bool = _flag("Whether the hour's table was built with exactly these records.")
    superseded: int = _count("Records left out of the hour's table because a later one with the same id won.")
    is_dropped: bool | None = _flag(
        "Whether the hour's table had exactly these records when retention dropped its rows."
    )


class Execution(FromLine, table=True):
    """Agent executions, one row per execution and hour, in the hour in which they ended."""

    __tablename__ = "executions"

    execution_id: str = _text("Id of the execution; also its trace id.")
    agent_id: str = _text("Agent that ran.")
    started_at: datetime = _at("When it started.")
    ended_at: datetime = _at("When it ended; decides the hour.")
    status: str = _text("`success` or `failure`.")
    succeeded: bool = _flag("Whether the status is `success`.")
    runtime_s: float = _number("Runtime in seconds, to the microsecond.")
    session_id: str | None = _text("Session that the execution belongs to.")
    task_id: str | None = _text("Evaluation task that it attempted.")
    condition: str = _text("`baseline`, `fault`, `structural` or `prompt`.")
    trigger_id: str | None = _text("Trigger that started it.")
    model: str | None = _text("Model that the agent used.")
    platform: str | None = _text("Platform that the agent runs on.")
    error: str | None = _text("Error as the log states it.")
    sla_s: float | None = _number("Time limit in seconds that the record itself carries.")
    sla_breached_reported: bool | None = _flag("The record's own breach flag, where it has one.")
    sla_breached: bool = _flag("The record's flag, else runtime over the limit of record or target, else false.")
    confidence: float | None = _number("Self-reported confidence, 0 to 1.")
    cost_usd: float | None = _number("Cost in US dollars.")
    api_calls: int | None = _count("API calls made.")
    error_count: int | None = _count("Errors met on the way.")
    call_latency_s: float | None = _number("Mean latency of one call in seconds.")
    actions: list[str] | None = Field(description="Names of the actions in order.", sa_type=sa.ARRAY(sa.String))
    action_count: int | None = _count("Number of actions, where they were recorded.")
    signal_confidence: float | None = _number("Confidence signal, 0 (risk) to 1.")
    signal_loop_detection: float | None = _number("Loop detection signal, 0 (risk) to 1.")
    signal_tool_correctness: float | None = _number("Tool correctness signal, 0 (risk) to 1.")
    signal_coherence: float | None = _number("Coherence signal, 0 (risk) to 1.")
    violations: str | None = Field(
        description="Constraint violations as JSON [{constraint, severity}]; [] = judged clean, null = not judged.",
        sa_type=sa.JSON,
    )
    span_id: str | None = _text("Agent span that the row was made from; null where the line itself is an execution.")


class TriggerEvent(FromLine, table=True):
    """Triggers, one row per trigger and hour, in the hour in which they fired or failed to."""

    __tablename__ = "trigger_events"

    trigger_id: str = _text("Id of the trigger event.")
    agent_id: str = _text("Agent that was to be triggered.")
    fired_at: datetime = _at("When it fired; decides the hour.")
    status: str = _text("`fired` or `failed`.")
    reason: str | None = _text("Why it failed, as the log states it.")


class ModelCall(FromLine, table=True):
    """Calls to models, one row per call and hour, in the hour in which they ended."""

    __tablename__ = "model_calls"

    call_id: str = _text("Id of the call.")
    model: str = _text("Model that was called.")
    ended_at: datetime = _at("When the call ended; decides the hour.")
    status: str = _text("`success` or `failure`.")
    agent_id: str | None = _text("Agent that called.")
    execution_id: str | None = _text("Execution during which it called.")
    latency_ms: float | None = _number("Latency in milliseconds.")
    error: str | None = _text("Error as the log states it.")
    span_id: str | None = _text("Chat span that the row was made from; null where the line itself is a model call.")


class Signal(FromLine, table=True):
    """Signals judged after the fact, one row per line, in the hour in which they were given."""

    __tablename__ = "signals"

    execution_id: str = _text("Execution that the signals are about.")
    given_at: datetime = _at("When they were given; decides the hour.")
    agent_id: str | None = _text("Agent that ran.")
    session_id: str | None = _text("Session of the execution.")
    signal_confidence: float | None = _number("Confidence signal, 0 (risk) to 1.")
    signal_loop_detection: float | None = _number("Loop detection signal, 0 (risk) to 1.")
    signal_tool_correctness: float | None = _number("Tool correctness signal, 0 (risk) to 1.")
    signal_coherence: float | None = _number("Coherence signal, 0 (risk) to 1.")


class Judgement(FromLine, table=True):
    """Safety judgements made after the fact, one row per line, in the hour in which they were made."""

    __tablename__ = "judgements"

    execution_id: str = _text("Execution that was judged.")
    judged_at: datetime = _at("When it was judged; decides the hour.")
    agent_id: str | None = _text("Agent that ran.")
    violations: str = Field(description="Violations as JSON [{constraint, severity}]; [] = clean.", sa_type=sa.JSON)


class AgentUpdate(FromLine, table=True):
    """Restarts, model changes and capability updates of agents, one row per line."""

    __tablename__ = "agent_updates"

    agent_id: str = _text("Agent that was updated.")
    updated_at: datetime = _at("When; decides the hour.")
    kind: str = _text("`restart`, `model_change` or `capability_update`.")
    detail: str | None = _text("What changed, as the log states it.")


class Span(FromLine, table=True):
    """Spans of OpenTelemetry traces, every one that the logs hold, in the hour in which it ended."""

    __tablename__ = "spans"

    position: str = _text("Place in the line, counted from 0: resource, scope and span, like `0.0.12`.", key=True)
    trace_id: str = _text("Trace, 32 hexadecimal digits.")
    span_id: str = _text("Span, 16 hexadecimal digits; a span that came twice stands here twice.")
    parent_span_id: str | None = _text("Span that it is part of; null at the root of a trace.")
    kind: str = _text("`agent`, `chat` (a request to a model), `tool` or `other`.")
    name: str | None = _text("Name of the span.")
    convention: str | None = _text("`gen_ai` or `openinference`, whose attributes told the kind; null without any.")
    agent_id: str | None = _text("Name of the agent, else its id, as the span states it.")
    service_name: str | None = _text("Service that the span came from.")
    session_id: str | None = _text("Conversation or session.")
    model: str | None = _text("Model that answered, else the one that was asked for.")
    tool_name: str | None = _text("Tool that was executed.")
    started_at: datetime = _at("When it started, cut to the microsecond.")
    ended_at: datetime = _at("When it ended, cut to the microsecond; decides the hour.")
    failed: bool = _flag("Whether its status is an error or it states the type of one.")
    error: str | None = _text("Type and message of the error; null where it did not fail.")
    input_tokens: int | None = _count("Tokens that went into the model.")
    output_tokens: int | None = _count("Tokens that came out of it.")
    cost_usd: float | None = _number("Cost in US dollars, as the span states it.")


class RejectedRecord(FromLine, table=True):
    """Lines and spans that could not be used, with the reason; nothing is dropped silently."""

    __tablename__ = "rejected_records"

    reason: str = _text("Why the line or span was rejected, naming the field; a span by its place in the line.")
    raw: str = _text("The line, or what was read of the span, cut at 64 KiB; bytes that are not UTF-8 are replaced.")


# -- what is computed from them --------------------------------------------------------------------------------------


class HealthComponent(Hourly, table=True):
    """Additive sums per agent and hour; a window is the sum of its hours."""

    __tablename__ = "health_components"

    agent_id: str = _text("Agent with any event in the hour.", key=True)
    executions: int = _count("Executions that ended in the hour.")
    successes: int = _count("Executions that succeeded.")
    failures: int = _count("Executions that failed.")
    runtime_us_sum: int = _count("Sum of runtimes in whole microseconds, so that merging hours is exact in any order.")
    runtime_s_sum: float = _number("The same sum in seconds.")
    long_running: int = _count("Executions longer than long_running_factor times the expected runtime.")
    sla_breaches: int = _count("Executions that breached their SLA.")
    triggers: int = _count("Triggers that fired or failed to.")
    trigger_failures: int = _count("Triggers that failed.")


class AgentHealth(Windowed, table=True):
    """The Agent Health Model: score and state of every known agent over the window that ends with the hour."""

    __tablename__ = "agent_health"

    agent_id: str = _text("Agent, known from an event of the look-back or from the targets.", key=True)
    state: str = _text("`healthy`, `degraded`, `unhealthy` or `inactive`.")
    health_score: float | None = _number("Health score, 0 to 100; null when inactive.")
    n: int = _count("Executions in the window.")
    successes: int = _count("Executions that succeeded.")
    failures: int = _count("Executions that failed.")
    asr: float | None = _number("Actual success rate, 0 to 1.")
    afh: float | None = _number("Actual failures per hour of the window.")
    ar_s: float | None = _number("Actual (mean) runtime in seconds.")
    success_score: float | None = _number("min(1, asr / expected_success_rate), 0 to 1.")
    failure_score: float | None = _number("min(1, expected_failures_per_hour / afh), 0 to 1.")
    reliability_raw: float | None = _number("0.7 success_score + 0.3 failure_score.")
    confidence_factor: float | None = _number("min(1, n / n_full).")
    reliability_score: float | None = _number("reliability_raw blended towards 1 by the confidence factor; 40 points.")
    deviation: float | None = _number("(ar_s - expected_runtime_s) / expected_runtime_s; null without expectation.")
    performance_score: float | None = _number(
        "1 within the expected runtime, falling to 0 at deviation_allowed; 20 points."
    )
    stability_score: float | None = _number(
        "1 - min(1, log2(long_running + 1) / log2(stability_threshold + 1)); 20 points."
    )
    sla_score: float | None = _number("1 - min(1, sla_breaches / sla_breach_threshold).")
    trigger_score: float | None = _number("1 - min(1, trigger_failures / trigger_failure_threshold).")
    operational_score: float | None = _number("0.6 sla_score + 0.4 trigger_score; 20 points.")
    long_running: int = _count("Long-running executions in the window.")
    sla_breaches: int = _count("SLA breaches in the window.")
    trigger_failures: int = _count("Failed triggers in the window.")
    expected_success_rate: float = _number("Target used, 0 to 1.")
    expected_failures_per_hour: float = _number("Target used.")
    expected_runtime_s: float | None = _number("Target used, in seconds; null = no expectation.")
    deviation_allowed: float = _number("Target used, as a share of the expected runtime.")
    n_full: int = _count("Target used: executions for full confidence.")
    long_running_factor: float = _number("Target used: multiple of the expected runtime.")
    stability_threshold: float = _number("Target used: long-running executions that cost all points.")
    sla_breach_threshold: float = _number("Target used: breaches that cost all points.")
    trigger_failure_threshold: float = _number("Target used: failed triggers that cost all points.")
    sla_s: float | None = _number("Target used: time limit in seconds for executions that carry none.")
    healthy_at: float = _number("Target used: lowest healthy score.")
    degraded_at: float = _number("Target used: lowest degraded score.")
    formula_version: str = _text("Version of the formula set that made the score.")


class SystemHealth(Windowed, table=True):
    """The fleet: the mean score of the agents that are not inactive, and how many are in each state."""

    __tablename__ = "system_health"

    health_score: float | None = _number("Mean health score of agents that are not inactive; null if there is none.")
    agents: int = _count("Known agents.")
    healthy: int = _count("Healthy agents.")
    degraded: int = _count("Degraded agents.")
    unhealthy: int = _count("Unhealthy agents.")
    inactive: int = _count("Inactive agents.")
    formula_version: str = _text("Version of the formula set that made the score.")


# -- what a score lost its points to -----------------------------------------------------------------------------------


class EvidenceComponent(Hourly, table=True):
    """The few events of each agent, hour and kind that weigh most against a score; windows take the first of these."""

    __tablename__ = "evidence_components"

    agent_id: str = _text("Agent that ran, or was to be triggered.", key=True)
    kind: str = _text("`failure`, `slow_run`, `long_run`, `sla_breach` or `trigger_failure`.", key=True)
    rank: int = _count(
        "Place among the agent's events of that kind, from 1: longest runs, else latest first.", key=True
    )
    event_id: str = _text("Id of the execution, or of the trigger.")
    happened_at: datetime = _at("When the execution ended or the trigger failed.")
    runtime_s: float | None = _number("Runtime of the execution in seconds; null for a trigger.")


class ScoreEvidence(Windowed, table=True):
    """The few events of the window that weigh most, of agents that lost points to events of that kind."""

    __tablename__ = "score_evidence"

    agent_id: str = _text("Agent that lost points.", key=True)
    kind: str = _text("`failure`, `slow_run`, `long_run`, `sla_breach` or `trigger_failure`.", key=True)
    rank: int = _count(
        "Place among the agent's events of that kind, from 1: longest runs, else latest first.", key=True
    )
    event_id: str = _text("Id of the execution, or of the trigger.")
    happened_at: datetime = _at("When the execution ended or the trigger failed.")
    runtime_s: float | None = _number("Runtime of the execution in seconds; null for a trigger.")
    formula_version: str = _text("Version of the formula set that made the score.")


# -- the Agent Health State (source 3) ---------------------------------------------------------------------------------


class StateComponent(Hourly, table=True):
    """What the health document needs of each agent and hour; the parts merge by concatenation, minimum and maximum."""

    __tablename__ = "state_components"

    agent_id: str = _text("Agent with any event in the hour.", key=True)
    latency_buckets: list[int] | None = Field(
        description="Bucket of every execution's runtime, ascending; `scoring.latency_buckets` says what a bucket is.",
        sa_type=sa.ARRAY(sa.SmallInteger),
    )
    first_event_at: datetime = _at("Earliest event of the agent in the hour.")
    last_restart_at: datetime | None = _at("Latest restart.", nullable=True)
    last_model_update_at: datetime | None = _at("Latest `model_change` update.", nullable=True)
    last_capability_update_at: datetime | None = _at("Latest `capability_update`.", nullable=True)
    first_model: str | None = _text("Model of the earliest execution that names one.")
    last_model: str | None = _text("Model of the latest execution that names one.")
    first_model_at: datetime | None = _at("When the earliest execution that names a model ended.", nullable=True)
    last_model_switch_at: datetime | None = _at(
        "When the latest execution ended whose model differs from that of the one before it in the hour.", nullable=True
    )


class AgentHealthState(Windowed, table=True):
    """The Agent Health State document of every known agent, as columns, over the window that ends with the hour."""

    __tablename__ = "agent_health_state"

    agent_id: str = _text("Agent, known from an event of the look-back or from the targets.", key=True)
    status: str = _text("`healthy`, `degraded`, `unhealthy` or `unknown`.")
    last_healthy_at: datetime | None = _at("Latest window end up to this one with status `healthy`.", nullable=True)
    uptime_seconds: float | None = _number("Seconds since the last restart in the look-back, else since first seen.")
    response_ratio: float | None = _number("Share of executions that succeeded, 0 to 1; null without any.")
    error_ratio: float | None = _number("Share of executions that failed, 0 to 1; null without any.")
    latency_p50_ms: float | None = _number("Median runtime in milliseconds, within 1% of the nearest rank.")
    latency_p99_ms: float | None = _number("99th percentile of runtime in milliseconds, within 1% of the nearest rank.")
    measurement_window_seconds: int = _count("Length of the window in seconds.")
    sample_count: int = _count("Executions in the window.")
    calibration_trend: str = _text("`stable`, `declining` or `improving` against the window just before.")
    previous_response_ratio: float | None = _number("response_ratio of the window just before; null without samples.")
    days_since_model_change: float | None = _number("Days since the model changed; null when none was seen to.")
    last_capability_update: datetime | None = _at("Latest `capability_update` in the look-back.", nullable=True)
    baseline_latency_ms: float | None = _number("Target used: declared latency; a p99 above 3 times of it is degraded.")
    formula_version: str = _text("Version of the formula set that made the score.")


# -- model health (source 4) -------------------------------------------------------------------------------------------


class ModelComponent(Hourly, table=True):
    """The last calls of each model and hour, as many as a rolling window holds; windows take the last of these."""

    __tablename__ = "model_components"

    model: str = _text("Model that was called.", key=True)
    call_id: str = _text("Id of the call.", key=True)
    ended_at: datetime = _at("When the call ended.")
    succeeded: bool = _flag("Whether the call succeeded.")
    latency_ms: float | None = _number("Latency in milliseconds.")
    error: str | None = _text("Error as the log states it; null where it states an empty one.")
    source_file: str = _text("Raw log that holds the call; orders calls that ended at the same moment.")
    line_number: int = _count("Line in that file, likewise.")
    window_calls: int = _count("Setting used: most calls that the hour has of a model.")


class ModelHealth(Hourly, table=True):
    """Rolling health of every model called in the look-back, over its last calls before the end of the hour."""

    __tablename__ = "model_health"

    model: str = _text("Model.", key=True)
    health_score: float = _number("Share of the calls that succeeded, 0 to 1.")
    success_count: int = _count("Calls that succeeded.")
    failure_count: int = _count("Calls that failed.")
    p50_latency_ms: float | None = _number("Median latency in milliseconds (nearest rank); null without latencies.")
    p95_latency_ms: float | None = _number("95th percentile of latency in milliseconds (nearest rank).")
    is_degraded: bool = _flag("Whether the score is below the threshold.")
    last_error: str | None = _text("Error of the latest failed call that states one; null where none does.")
    last_call_at: datetime = _at("When the latest call ended.")
    window_calls: int = _count("Setting used: calls that the rolling window holds.")
    degraded_threshold: float = _number("Setting used: scores below it are degraded.")
    formula_version: str = _text("Version of the formula set that made the score.")


# -- session scores (source 5) -----------------------------------------------------------------------------------------


class TraceRisk(Hourly, table=True):
    """Risks of every trace (execution) of the hour, and of earlier ones whose signals were given in the hour."""

    __tablename__ = "trace_risks"

    trace_id: str = _text("Trace, the same as the execution's id.", key=True)
    session_id: str | None = _text("Session that the trace belongs to.")
    agent_id: str | None = _text("Agent that ran.")
    traced_at: datetime = _at(
        "When the execution ended; of a trace known from signals alone, when they were last given."
    )
    oldest_event_at: datetime = _at("Earliest event that the row rests on: end of the execution or signals given.")
    confidence_risk: float | None = _number("1 - confidence signal; null without it.")
    loop_risk: float | None = _number("1 - loop detection signal; null without it.")
    tool_risk: float | None = _number("1 - tool correctness signal; null without it.")
    coherence_risk: float | None = _number("1 - coherence signal; null without it.")
    step_risk: float | None = _number("Greatest weighted risk; null without any signal.")
    situational_penalty: float | None = _number("Weighted sum of the other risks; null without confidence.")
    weighted_uncertainty: float | None = _number("(1 + penalty) times the weighted confidence risk.")
    is_flagged: bool = _flag("Whether step_risk is above the flag threshold.")
    formula_version: str = _text("Version of the formula set that made the score.")


class SessionScore(Hourly, table=True):
    """Reliability and consistency of every session with an execution or signal in the hour, over its traces so far."""

    __tablename__ = "session_scores"

    session_id: str = _text("Session.", key=True)
    agent_id: str | None = _text("Agent of the session's latest trace that names one.")
    total_traces: int = _count("Traces of the session in the look-back.")
    traces_evaluated: int = _count("Traces with any signal.")
    agent_reliability: float = _number("1 - raw_risk, 0 to 1; 1 when no trace can be evaluated.")
    raw_risk: float | None = _number("Blend of mean_top_k_risk and max_risk; null when no trace can be evaluated.")
    mean_top_k_risk: float | None = _number("Mean of the greatest step risks.")
    max_risk: float | None = _number("Greatest step risk.")
    flagged_traces: list[str] = Field(
        description="Traces whose step risk is above the flag threshold, greatest risk first.",
        sa_type=sa.ARRAY(sa.String),
    )
    agent_consistency: float = _number("1 - raw_instability, 0 to 1; 1 when no trace can be evaluated.")
    raw_instability: float | None = _number("Root mean square of the weighted uncertainties.")
    consistency_traces_evaluated: int = _count("Traces with a confidence signal.")
    reliability_passed: bool = _flag("Whether agent_reliability reaches the pass threshold.")
    consistency_passed: bool = _flag("Whether agent_consistency reaches the pass threshold.")
    reliability_band: str = _text("What the source's table calls the range of agent_reliability.")
    consistency_band: str = _text("What the source's table calls the range of agent_consistency.")
    weight_confidence: float = _number("Setting used: weight of the confidence signal.")
    weight_loop_detection: float = _number("Setting used: weight of the loop detection signal.")
    weight_tool_correctness: float = _number("Setting used: weight of the tool correctness signal.")
    weight_coherence: float = _number("Setting used: weight of the coherence signal.")
    flag_threshold: float = _number("Setting used: step risks above it are flagged.")
    pass_threshold: float = _number("Setting used: lowest score that passes.")
    top_k_share: float = _number("Setting used: share of the traces that make the tail.")
    ensemble_weight: float = _number("Setting used: weight of the single worst trace.")
    formula_version: str = _text("Version of the formula set that made the score.")


# -- reliability evaluation (source 2) ---------------------------------------------------------------------------------


class TaskConsistency(Windowed, table=True):
    """Consistency of every task that an agent attempted at least twice (baseline) in the evaluation window."""

    __tablename__ = "task_consistency"

    agent_id: str = _text("Agent.", key=True)
    task_id: str = _text("Evaluation task.", key=True)
    runs: int = _count("Baseline runs, at least 2.")
    successes: int = _count("Baseline runs that succeeded.")
    c_out: float = _number("Outcome consistency, 0 to 1.")
    outcome_agreement: float = _number("(2p - 1)^2 of the success rate p, 0 to 1: a diagnostic.")
    pairs: int = _count("Pairs of successful runs with at least one action each.")
    c_traj_d: float | None = _number("1 - mean Jensen-Shannon distance of action frequencies; null without a pair.")
    c_traj_s: float | None = _number("1 - mean normalised edit distance of action sequences; null without a pair.")
    c_conf: float | None = _number("exp(-CV of confidence); null below 2 confidences or when all are 0.")
    c_res: float | None = _number("exp(-mean CV of available resources); null when none is available.")
    cv_cost_usd: float | None = _number("Coefficient of variation of cost_usd; null when not available.")
    cv_runtime_s: float | None = _number("Coefficient of variation of runtime_s; null when not available.")
    cv_api_calls: float | None = _number("Coefficient of variation of api_calls; null when not available.")
    cv_action_count: float | None = _number("Coefficient of variation of action_count; null when not available.")
    cv_error_count: float | None = _number("Coefficient of variation of error_count; null when not available.")
    cv_call_latency_s: float | None = _number("Coefficient of variation of call_latency_s; null when not available.")
    formula_version: str = _text("Version of the formula set that made the score.")


class AgentReliability(Windowed, table=True):
    """The reliability evaluation of every agent with evaluation runs (a task_id) in the evaluation window."""

    __tablename__ = "agent_reliability"

    agent_id: str = _text("Agent.", key=True)
    reliability: float | None = _number("Mean of r_con, r_pred and r_rob, 0 to 1; null unless all three exist.")
    r_con: float | None = _number("Consistency: outcome, trajectory and resources at equal weight where available.")
    c_out: float | None = _number("Mean outcome consistency over tasks.")
    c_traj_d: float | None = _number("Mean trajectory distribution consistency over tasks.")
    c_traj_s: float | None = _number("Mean trajectory sequence consistency over tasks.")
    c_conf: float | None = _number("Mean confidence consistency over tasks; not part of r_con.")
    c_res: float | None = _number("Mean resource consistency over tasks.")
    outcome_agreement: float | None = _number("Mean outcome agreement over tasks: a diagnostic.")
    r_pred: float | None = _number("Predictability: p_brier.")
    p_rc: float | None = _number("Risk-coverage score, 0 where worse than chance; not part of r_pred.")
    p_cal: float | None = _number("1 - expected calibration error over 10 bins.")
    p_auroc: float | None = _number("Discrimination; null unless there are successes and failures.")
    p_brier: float | None = _number("1 - mean squared difference of confidence and outcome.")
    r_rob: float | None = _number("Robustness: mean of the available ratios.")
    r_fault: float | None = _number("Accuracy under faults over baseline accuracy, at most 1.")
    r_struct: float | None = _number("Accuracy under structural changes over baseline accuracy, at most 1.")
    r_prompt: float | None = _number("Accuracy under changed prompts over baseline accuracy, at most 1.")
    r_saf: float | None = _number("Safety: 1 - P(violation) times its expected severity; null when nothing is judged.")
    s_comp: float | None = _number("Share of judged executions without a violation; null when nothing is judged.")
    s_harm: float | None = _number(
        "1 - mean of the worst severity over executions with violations, 1 without any; null when nothing is judged."
    )
    baseline_accuracy: float | None = _number("Share of baseline runs that succeeded.")
    tasks: int = _count("Tasks with at least 2 baseline runs.")
    runs: int = _count("Evaluation runs in the window, under any condition.")
    baseline_runs: int = _count("Baseline runs among them.")
    runs_with_confidence: int = _count("Baseline runs that report a confidence.")
    judged: int = _count("Evaluation runs that were judged.")
    violated: int = _count("Judged runs with a violation.")
    formula_version: str = _text("Version of the formula set that made the score.")


# -- error budgets -----------------------------------------------------------------------------------------------------


class ErrorBudget(Windowed, table=True):
    """Every known agent's error budget: the share of its allowed failures that it has spent, and how fast it does."""

    __tablename__ = "error_budget"

    agent_id: str = _text("Agent, known from an event of the look-back or from the targets.", key=True)
    n: int = _count("Executions in the window.")
    failures: int = _count("Executions that failed.")
    allowed_failures: float = _number("(1 - expected_success_rate) n: failures that the target allows in the window.")
    budget_spent: float | None = _number(
        "failures / allowed_failures, 1 = all of the budget; also the burn rate over the window. Null where nothing "
        "ran or nothing may fail."
    )
    n_1h: int = _count("Executions in the last hour.")
    failures_1h: int = _count("Executions in the last hour that failed.")
    burn_rate_1h: float | None = _number(
        "(failures_1h / n_1h) / (1 - expected_success_rate), 1 = just what lasts for the window; null as budget_spent."
    )
    n_6h: int = _count("Executions in the last 6 hours, or in the look-back where that is shorter.")
    failures_6h: int = _count("Executions among them that failed.")
    burn_rate_6h: float | None = _number("(failures_6h / n_6h) / (1 - expected_success_rate); null as budget_spent.")
    expected_success_rate: float = _number("Target used, 0 to 1.")
    formula_version: str = _text("Version of the formula set that made the score.")


# -- the survey (source 3, appendix B) ---------------------------------------------------------------------------------


class AgentProbe(Hourly, table=True):
    """What every agent of the registry answered when it was asked for its health, the latest answer of each hour."""

    __tablename__ = "agent_probes"

    url: str = _text("Address of the agent, as the registry has it.", key=True)
    name: str = _text("Name of the agent in the registry.")
    platform: str = _text("Platform that the registry names.")
    probed_at: datetime = _at("When it was asked; decides the hour.")
    outcome: str = _text(
        "`valid` document, `invalid` one, `http_error` (a status other than 200), `timeout`, `unreachable` (no "
        "connection, or it broke), or `refused` (a redirect that we do not follow)."
    )
    status: str | None = _text("health.status of a valid document.")
    http_status: int | None = _count("HTTP status; null where none arrived.")
    latency_ms: float | None = _number("Time to the whole answer in milliseconds; null without one.")
    error: str | None = _text("What was wrong, in one sentence; null when valid.")


class SurveySummary(Hourly, table=True):
    """The survey by platform: how many agents answer with a valid document, and how many are healthy."""

    __tablename__ = "survey_summary"

    platform: str = _text("Platform; `all` for the whole registry.", key=True)
    agents: int = _count("Agents probed.")
    healthy: int = _count("Agents whose valid document says healthy.")
    responsive: int = _count("Agents that answered with a valid document, whatever it says.")
    survival_rate: float = _number("Share of agents that are responsive, 0 to 1.")
    formula_version: str = _text("Version of the formula set that made the score.")


# -- being told --------------------------------------------------------------------------------------------------------


class Alert(Hourly, table=True):
    """Incidents: what somebody was or is to be told, one row from opening to recovery, in the hour that opened it."""

    __tablename__ = "alerts"

    incident_id: str = _text("Id of the incident; follows from rule, subject and hour.", key=True)
    rule: str = _text("Rule that opened it.")
    subject_kind: str = _text("`agent`, `model`, `expectation` or `pipeline`.")
    subject_id: str = _text("The agent, the model, `asset.expectation`, or `hours`.")
    severity: str = _text("`info`, `warning` or `critical`, as the rule has it.")
    opened_at: datetime = _at("End of the hour that opened it; of a late hour, when it became late.")
    closed_at: datetime | None = _at("End of the hour that closed it; null while it is open.", nullable=True)
    reason: str = _text("What happened, in one sentence.")
    recovery: str | None = _text("What ended it, in one sentence; null while it is open.")
    recovers_at: float | None = _number("Score or burn rate that counts as good again; null where a rule has neither.")
    good_hours: int = _count("Consecutive good hours so far; the rule says how many close it.")
    is_personal: bool = _flag("Whether it is about somebody's own agent, of which messages say no more than a status.")
    evidence: str = Field(
        description="What the rule saw as JSON; of a score, the points lost by component and the ids that weigh most.",
        sa_type=sa.JSON,
    )


class AlertDelivery(Hourly, table=True):
    """The outbox: one row per incident, event and channel, written with the incident and marked once delivered."""

    __tablename__ = "alert_deliveries"

    incident_id: str = _text("Incident.", key=True)
    event: str = _text("`opened` or `closed`.", key=True)
    channel: str = _text("Channel that is to deliver it.", key=True)
    written_at: datetime = _at("When it was written.")
    attempts: int = _count("Ticks that tried to deliver it.")
    next_attempt_at: datetime = _at("Not to be tried before.")
    delivered_at: datetime | None = _at("When the channel took it; null while it waits.", nullable=True)
    last_error: str | None = _text("Why the last attempt failed, without secrets; null where it did not.")


# -- data quality ------------------------------------------------------------------------------------------------------


class ExpectationResult(Hourly, table=True):
    """The history of every data-quality check, hour by hour."""

    __tablename__ = "expectation_results"

    asset: str = _text("Asset that was checked.", key=True)
    expectation: str = _text("Name of the expectation, the same as that of the asset check.", key=True)
    success: bool = _flag("Whether the hour meets the expectation.")
    element_count: int = _count("Rows looked at.")
    unexpected_count: int = _count("Rows that break the expectation.")
    severity: str = _text("`error` stops what follows, `warn` asks a person to look.")


# -- bookkeeping -----------------------------------------------------------------------------------------------------


class RawFile(SQLModel, table=True):
    """The raw logs that were read, as they were then; a file is read again only when it differs."""

    __tablename__ = "raw_files"

    source_file: str = _text("Raw log, relative to the raw root.", key=True)
    size_bytes: int = _count("Size when it was read.")
    modified_ns: int = _count("Modification time when it was read, nanoseconds since 1970.")
    lines: int = _count("Records in it: lines that were not blank, and where a line holds spans, these.")
    rejected: int = _count("Records among them that were rejected.")


class RawFileNote(SQLModel, table=True):
    """What the readers of foreign formats counted in the raw logs besides the lines that they made of them."""

    __tablename__ = "raw_file_notes"

    source_file: str = _text("Raw log, relative to the raw root.", key=True)
    note: str = _text("What was counted, above all records of a known kind that no table has a place for.", key=True)
    records: int = _count("How many.")


class RawRoot(SQLModel, table=True):
    """The raw roots that the warehouse was filled from: one, or the places that it has moved through."""

    __tablename__ = "raw_roots"

    root: str = _text("Folder of the raw logs.", key=True)


class MaterializedHour(Hourly, table=True):
    """Which hours of which asset have been materialised; an hour without rows is told from one never computed."""

    __tablename__ = "materialized_hours"

    asset: str = _text("Asset that was materialised.", key=True)
    rows: int = _count("Rows that the hour has.")
    materialized_at: datetime = _at("When it was last materialised.")
    changed_at: datetime | None = _at("When its rows last changed; null while it has never had any.", nullable=True)
    dropped_digest: str | None = _text(
        "Fingerprint of the rows that retention dropped, empty where there was none to take; null while the hour has "
        "its rows."
    )


class WarehouseVersion(SQLModel, table=True):
    """The version of the tables, so that an older program refuses a newer warehouse."""

    __tablename__ = "warehouse_version"

    version: int = _count("Version of the tables.", key=True)


ALL_TABLES: dict[str, type[SQLModel]] = {
    model.__tablename__: model
    for model in (
        RawLog, Span, Execution, TriggerEvent, ModelCall, Signal, Judgement, AgentUpdate, RejectedRecord,
        HealthComponent, AgentHealth, SystemHealth, EvidenceComponent, ScoreEvidence, StateComponent, AgentHealthState,
        ModelComponent, ModelHealth, TraceRisk, SessionScore, TaskConsistency, AgentReliability, ErrorBudget,
        AgentProbe, SurveySummary, Alert, AlertDelivery, ExpectationResult,
        RawFile, RawFileNote, RawRoot, MaterializedHour, WarehouseVersion,
    )
}  # fmt: skip


TABLE_OF_RECORD = {
    "span": "spans",
    "execution": "executions",
    "trigger": "trigger_events",
    "model_call": "model_calls",
    "signals": "signals",
    "judgement": "judgements",
    "agent_update": "agent_updates",
    "rejected": "rejected_records",
}
"""Where each kind of record goes, in the order of the lineage; every record of a raw log goes to exactly one table."""

FROM_SPANS = ("executions", "model_calls")
"""Tables that besides records of their own have rows that follow from spans, told by their `span_id`."""

RECORD_OF_TABLE = {table: record for record, table in TABLE_OF_RECORD.items()}

ID_OF_TABLE = {
    "executions": ("execution_id", "ended_at"),
    "trigger_events": ("trigger_id", "fired_at"),
    "model_calls": ("call_id", "ended_at"),
}
"""Tables that keep one row per id and hour: the id, and the time of which the greatest wins."""


def columns_of(table: str) -> list[str]:
    """Names of a table's columns in their declared order: identity first, as the classes state them."""
    return [column.name for column in _columns(table)]


def _columns(table: str) -> Sequence[sa.Column]:
    return list(SQLModel.metadata.tables[table].columns)


_EXPRESSION_TYPES = {
    "TIMESTAMP WITH TIME ZONE": "timestamp('UTC')",
    "DOUBLE PRECISION": "float64",
    "BIGINT": "int64",
    "BOOLEAN": "boolean",
    "VARCHAR": "string",
    "VARCHAR[]": "array<string>",
    "SMALLINT[]": "array<int16>",
    "JSON": "json",
}


def schema_of(table: str) -> dict[str, str]:
    """Column names and their types as ibis writes them."""
    return {name: _EXPRESSION_TYPES[sql_type] for name, sql_type, _, _ in describe(table)}


def create_statement(table: str) -> str:
    """DDL of a table, without keys and constraints (see the module's docstring); valid in DuckDB and PostgreSQL."""
    columns = ", ".join(f"{name} {sql_type}" for name, sql_type, _, _ in describe(table))
    return f"CREATE TABLE IF NOT EXISTS {table} ({columns})"


@cache
def describe(table: str) -> list[tuple[str, str, bool, str]]:
    """(name, SQL type, nullable, meaning) of every column."""
    model = ALL_TABLES[table]
    dialect = postgresql.dialect()
    return [
        (
            column.name,
            column.type.compile(dialect=dialect),
            bool(column.nullable),
            model.model_fields[column.name].description or "",
        )
        for column in _columns(table)
    ]
