"""Session scores (source 5): risks of traces, and reliability and consistency of sessions."""

from datetime import datetime

import sqlalchemy as sa
from sqlmodel import Field

from health_assets.schema.columns import AsOf, Hourly, at, count, flag, number, text
from health_assets.schema.records import REPORTED_AGENT


class TraceRisk(Hourly, table=True):
    """Risks of executions with a session or a signal: those of the hour, and earlier ones that got signals in it."""

    __tablename__ = "trace_risks"

    trace_id: str = text(
        "Id of the execution. From OpenTelemetry it is `traceId:spanId`, not the id of the trace alone.", key=True
    )
    session_id: str | None = text("Session that the trace belongs to.")
    agent_id: str | None = text("Agent that ran; each agent with an execution of the id has a row.")
    agent_id_reported: str | None = text(REPORTED_AGENT)
    traced_at: datetime = at(
        "When the execution ended; of a trace known from signals alone, when they were last given."
    )
    oldest_event_at: datetime = at("Earliest event that the row rests on: end of the execution or signals given.")
    confidence_risk: float | None = number("1 - confidence signal; null without it.")
    loop_risk: float | None = number("1 - loop detection signal; null without it.")
    tool_risk: float | None = number("1 - tool correctness signal; null without it.")
    coherence_risk: float | None = number("1 - coherence signal; null without it.")
    step_risk: float | None = number("Greatest weighted risk; null without any signal.")
    situational_penalty: float | None = number("Weighted sum of the other risks; null without confidence.")
    weighted_uncertainty: float | None = number("(1 + penalty) times the weighted confidence risk.")
    is_flagged: bool = flag("Whether step_risk is above the flag threshold.")
    status: str | None = text("`success` or `failure` of the execution; null of a trace known from signals alone.")
    started_at: datetime | None = at("When the execution started, where the log tells.", nullable=True)
    input_tokens: int | None = count("Tokens that went into models; null where the execution has none.")
    output_tokens: int | None = count("Tokens that came out of models; null where the execution has none.")
    cost_usd: float | None = number("Cost in US dollars; null where the execution has none.")
    tool_calls: int | None = count("Tool calls of the execution; null where no call of it is known.")
    tool_failures: int | None = count("Tool calls that failed.")
    steps: int | None = count("Tool calls of known arguments and model calls of known answer.")
    repeated_steps: int | None = count("Steps that repeat earlier ones, alone or in a cycle.")
    cost_source: str | None = text("`stated`, or `computed` from prices; null without a cost.")
    error: str | None = text("First line of a failed execution's error, 300 characters at most.")
    formula_version: str = text("Version of the formulas that made it; says so where it rests on older components.")


class ComputedSignals(Hourly, table=True):
    """Signals computed from the calls of every execution of the hour that has any; no score rests on them."""

    __tablename__ = "computed_signals"

    execution_id: str = text("Execution.", key=True)
    agent_id: str = text("Agent that ran.", key=True)
    agent_id_reported: str | None = text(REPORTED_AGENT)
    tool_calls: int = count("Tool calls of the execution.")
    tool_failures: int = count("Tool calls that failed.")
    repaired_failures: int = count("Failed calls with a later successful call of the same tool.")
    tool_faults: int = count("Failed calls whose error says that the tool timed out, or answered 429 or 5xx.")
    steps: int = count("Tool calls of known arguments and model calls of known answer.")
    repeated_steps: int = count("Steps that repeat earlier ones, alone or in a cycle.")
    signal_tool_correctness: float | None = number(
        "Share of the tool calls that succeeded, a repaired failure as half; null without any."
    )
    signal_loop_detection: float | None = number("1 minus the share of steps that repeat; null without any.")
    formula_version: str = text("Version of the formulas that made it; says so where it rests on older components.")


class EvaluatedSignal(Hourly, table=True):
    """Signals, violations, outcomes and feedback by the targets; one row per result of an evaluator and execution."""

    __tablename__ = "evaluated_signals"

    source_file: str = text("Raw log that holds the result.", key=True)
    line_number: int = count("Line in that file.", key=True)
    place_in_line: str | None = text("Place in that line, where it holds several.")
    evaluator: str = text("Name of the evaluator.", key=True)
    execution_id: str = text("Execution that was evaluated.", key=True)
    agent_id: str | None = text("Agent that ran.")
    agent_id_reported: str | None = text(REPORTED_AGENT)
    session_id: str | None = text("Session, where the result names one.")
    evaluated_at: datetime = at("When the result was given; it counts from when its execution is known, too.", key=True)
    signal: str = text(
        "`confidence`, `loop_detection`, `tool_correctness` or `coherence`; `violation` where it tells of one, "
        "`outcome` where it tells whether the execution succeeded, `feedback` where people said it."
    )
    value: float = number("The result from 0 (risk) to 1; of a signal its value.")
    is_violation: bool | None = flag("Whether it is a violation, worse than the threshold; else null.")
    severity: str | None = text("`low`, `medium` or `high`: the severity of such a violation; else null.")
    is_failure: bool | None = flag("Whether it states a failure, worse than the threshold; null of no outcome.")
    is_negative: bool | None = flag("Whether it is negative feedback, worse than the threshold; null of no feedback.")
    formula_version: str = text("Version of the formulas that made it; says so where it rests on older components.")


class SessionScore(AsOf, table=True):
    """Reliability and consistency of every session that something happened in in the hour, over its traces so far."""

    __tablename__ = "session_scores"

    session_id: str = text("Session.", key=True)
    agent_id: str | None = text("Agent of the session's latest trace that names one.")
    total_traces: int = count("Traces of the session in the look-back.")
    runs: int = count("Executions among these; the other traces are known from signals alone.")
    failures: int = count("Executions that failed.")
    cancelled_runs: int = count("Runs in the look-back that their users cancelled; they are no executions.")
    first_started_at: datetime | None = at("Earliest start of an execution; null where none tells it.", nullable=True)
    last_ended_at: datetime | None = at("When the last execution ended; null without any.", nullable=True)
    input_tokens: int | None = count("Tokens that went into models; null where no execution tells any.")
    output_tokens: int | None = count("Tokens that came out of models; null where no execution tells any.")
    cost_usd: float | None = number("Cost in US dollars; null where no execution tells any.")
    tool_calls: int | None = count("Tool calls of the executions; null where no call of them is known.")
    tool_failures: int | None = count("Tool calls that failed.")
    steps: int | None = count("Tool calls of known arguments and model calls of known answer.")
    repeated_steps: int | None = count("Steps that repeat earlier ones of their execution, alone or in a cycle.")
    cost_source: str | None = text(
        "`stated`, or `computed` where the cost of any execution was computed from prices; null without a cost."
    )
    last_error: str | None = text(
        "First line of the error of the latest failed execution that states one, 300 characters at most."
    )
    last_error_at: datetime | None = at("When that execution ended.", nullable=True)
    traces_evaluated: int = count("Traces with any signal.")
    agent_reliability: float = number("1 - raw_risk, 0 to 1; 1 when no trace can be evaluated.")
    raw_risk: float | None = number("Blend of mean_top_k_risk and max_risk; null when no trace can be evaluated.")
    mean_top_k_risk: float | None = number("Mean of the greatest step risks.")
    max_risk: float | None = number("Greatest step risk.")
    flagged_traces: list[str] = Field(
        description="Traces whose step risk is above the flag threshold, greatest risk first.",
        sa_type=sa.ARRAY(sa.String),
    )
    agent_consistency: float = number("1 - raw_instability, 0 to 1; 1 when no trace can be evaluated.")
    raw_instability: float | None = number("Root mean square of the weighted uncertainties.")
    consistency_traces_evaluated: int = count("Traces with a confidence signal.")
    reliability_passed: bool = flag("Whether agent_reliability reaches the pass threshold.")
    consistency_passed: bool = flag("Whether agent_consistency reaches the pass threshold.")
    reliability_band: str = text("What the source's table calls the range of agent_reliability.")
    consistency_band: str = text("What the source's table calls the range of agent_consistency.")
    weight_confidence: float = number("Setting used: weight of the confidence signal.")
    weight_loop_detection: float = number("Setting used: weight of the loop detection signal.")
    weight_tool_correctness: float = number("Setting used: weight of the tool correctness signal.")
    weight_coherence: float = number("Setting used: weight of the coherence signal.")
    flag_threshold: float = number("Setting used: step risks above it are flagged.")
    pass_threshold: float = number("Setting used: lowest score that passes.")
    top_k_share: float = number("Setting used: share of the traces that make the tail.")
    ensemble_weight: float = number("Setting used: weight of the single worst trace.")
    formula_version: str = text("Version of the formulas that made it; says so where it rests on older components.")


TABLES = (ComputedSignals, EvaluatedSignal, TraceRisk, SessionScore)
