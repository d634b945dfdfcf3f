"""Tables of the raw logs: the account of their lines, and a table for each kind of record.

What belongs here besides the tables: which kind of record goes to which of them, and by what the latest of several
lines about one thing is known.
"""

from datetime import datetime

import sqlalchemy as sa
from sqlmodel import Field

from health_assets.schema.columns import FromLine, Hourly, at, count, flag, number, text

REPORTED_AGENT = "Agent as the log names it, where the targets' `names` make another of it; else null."


class RawLog(Hourly, table=True):
    """Number of records of each kind in every raw log and hour, and whether the hour's tables have them."""

    __tablename__ = "raw_logs"

    source_file: str = text(
        "Raw log, relative to the raw root; `(traces)` for what was put together from spans of any logs; with `(gone)` "
        "behind it a log whose name is another's now, with `(cut)` what a log held before it was cut or replaced.",
        key=True,
    )
    record_type: str = text("Kind of record, or `rejected`.", key=True)
    lines: int = count(
        "Records of that kind for that hour: a line each, but for spans, of which a line may hold many; 0 once a "
        "changed file no longer has any."
    )
    digest: str = text("Fingerprint of these records and their places, to notice what changed in a changed file.")
    is_loaded: bool = flag("Whether the hour's table was built with exactly these records.")
    is_dropped: bool | None = flag(
        "Whether these records are not loaded because retention dropped their hour, or left it out."
    )
    lost: int | None = count(
        "Records that the hour's table lacks for good, because the log was gone before, or was cut or replaced."
    )


class ExecutionColumns(FromLine):
    """The columns of `executions`."""

    execution_id: str = text("Id of the execution; also its trace id.")
    agent_id: str = text("Agent that ran.")
    agent_id_reported: str | None = text(REPORTED_AGENT)
    agent_version: str | None = text("Version of the agent.")
    started_at: datetime | None = at("When it started; null where the log does not tell.", nullable=True)
    ended_at: datetime = at("When it ended; decides the hour.")
    status: str = text("`success` or `failure`.")
    succeeded: bool = flag("Whether the status is `success`.")
    runtime_s: float | None = number(
        "Runtime in seconds, to the microsecond; null where the log does not tell when it started."
    )
    untimed_s: float | None = number(
        "Seconds between the start and the end of a line that says that nobody knows when it started; else null."
    )
    session_id: str | None = text("Session that the execution belongs to.")
    task_id: str | None = text("Evaluation task that it attempted.")
    condition: str = text("`baseline`, `fault`, `structural` or `prompt`.")
    trigger_id: str | None = text("Trigger that started it.")
    model: str | None = text("Model that the agent used.")
    platform: str | None = text("Platform that the agent runs on.")
    error: str | None = text("Error as the log states it.")
    sla_s: float | None = number("Time limit in seconds that the record itself carries.")
    sla_breached_reported: bool | None = flag("The record's own breach flag, where it has one.")
    sla_breached: bool = flag("The record's flag, else runtime over the limit of record or target, else false.")
    confidence: float | None = number("Self-reported confidence, 0 to 1.")
    cost_usd: float | None = number("Cost in US dollars: the record's own, else the sum over its model calls.")
    cost_usd_reported: float | None = number("Cost that the record itself states.")
    input_tokens: int | None = count("Tokens into models: the record's own, else the sum over its model calls.")
    input_tokens_reported: int | None = count("Tokens into models that the record itself states.")
    output_tokens: int | None = count("Tokens out of models: the record's own, else the sum over its model calls.")
    output_tokens_reported: int | None = count("Tokens out of models that the record itself states.")
    api_calls: int | None = count("API calls made.")
    error_count: int | None = count("Errors met on the way.")
    call_latency_s: float | None = number("Mean latency of one call in seconds.")
    actions: list[str] | None = Field(description="Names of the actions in order.", sa_type=sa.ARRAY(sa.String))
    action_count: int | None = count("Number of actions, where they were recorded.")
    signal_confidence: float | None = number("Confidence signal, 0 (risk) to 1.")
    signal_loop_detection: float | None = number("Loop detection signal, 0 (risk) to 1.")
    signal_tool_correctness: float | None = number("Tool correctness signal, 0 (risk) to 1.")
    signal_coherence: float | None = number("Coherence signal, 0 (risk) to 1.")
    violations: str | None = Field(
        description="Constraint violations as JSON [{constraint, severity}] of all lines of the execution in the hour; "
        "[] = judged clean, null = not judged.",
        sa_type=sa.JSON,
    )
    violations_reported: str | None = Field(
        description="Violations that the line itself states, likewise, where superseded lines add to them; JSON's null "
        "where it states none. Null where it is the same.",
        sa_type=sa.JSON,
    )
    span_id: str | None = text("Agent span that the row was made from; null where the line itself is an execution.")


class Execution(ExecutionColumns, table=True):
    """Agent executions, one row per execution and hour, in the hour in which they ended."""

    __tablename__ = "executions"


class SupersededExecution(ExecutionColumns, table=True):
    """Lines of executions that lost to a later line of the same agent, id and hour."""

    __tablename__ = "superseded_executions"


class TriggerEventColumns(FromLine):
    """The columns of `trigger_events`."""

    trigger_id: str = text("Id of the trigger event.")
    agent_id: str = text("Agent that was to be triggered.")
    agent_id_reported: str | None = text(REPORTED_AGENT)
    fired_at: datetime = at("When it fired; decides the hour.")
    status: str = text("`fired` or `failed`.")
    reason: str | None = text("Why it failed, as the log states it.")


class TriggerEvent(TriggerEventColumns, table=True):
    """Triggers, one row per trigger and hour, in the hour in which they fired or failed to."""

    __tablename__ = "trigger_events"


class SupersededTriggerEvent(TriggerEventColumns, table=True):
    """Lines of triggers that lost to a later line of the same agent, id and hour."""

    __tablename__ = "superseded_trigger_events"


class ModelCallColumns(FromLine):
    """The columns of `model_calls`."""

    call_id: str = text("Id of the call.")
    model: str = text("Model that was asked for, else the one that answered; `unknown` where a trace tells neither.")
    response_model: str | None = text("Model that answered, as the log names it.")
    ended_at: datetime = at("When the call ended; decides the hour.")
    status: str = text("`success` or `failure`.")
    agent_id: str | None = text("Agent that called.")
    agent_id_reported: str | None = text(REPORTED_AGENT)
    execution_id: str | None = text("Execution during which it called.")
    latency_ms: float | None = number("Latency in milliseconds.")
    input_tokens: int | None = count("Tokens that went into the model.")
    output_tokens: int | None = count("Tokens that came out of it.")
    cost_usd: float | None = number("Cost in US dollars.")
    error: str | None = text("Error as the log states it.")
    span_id: str | None = text("Chat span that the row was made from; null where the line itself is a model call.")


class ModelCall(ModelCallColumns, table=True):
    """Calls to models, one row per call and hour, in the hour in which they ended."""

    __tablename__ = "model_calls"


class SupersededModelCall(ModelCallColumns, table=True):
    """Lines of model calls that lost to a later line of the same agent, id and hour."""

    __tablename__ = "superseded_model_calls"


class ToolCallColumns(FromLine):
    """The columns of `tool_calls`."""

    call_id: str = text("Id of the call.")
    tool: str = text("Tool that was called.")
    ended_at: datetime = at("When the call ended; decides the hour.")
    status: str = text("`success` or `failure`.")
    agent_id: str | None = text("Agent that called.")
    agent_id_reported: str | None = text(REPORTED_AGENT)
    execution_id: str | None = text("Execution during which it called.")
    latency_ms: float | None = number("Latency in milliseconds.")
    error: str | None = text("Error as the log states it.")
    span_id: str | None = text("Tool span that the row was made from; null where the line itself is a tool call.")


class ToolCall(ToolCallColumns, table=True):
    """Calls of tools, one row per call and hour, in the hour in which they ended; a failed one fails no execution."""

    __tablename__ = "tool_calls"


class SupersededToolCall(ToolCallColumns, table=True):
    """Lines of tool calls that lost to a later line of the same agent, id and hour."""

    __tablename__ = "superseded_tool_calls"


class Signal(FromLine, table=True):
    """Signals judged after the fact, one row per line, in the hour in which they were given."""

    __tablename__ = "signals"

    execution_id: str = text("Execution that the signals are about.")
    given_at: datetime = at("When they were given; decides the hour.")
    agent_id: str | None = text("Agent that ran.")
    agent_id_reported: str | None = text(REPORTED_AGENT)
    session_id: str | None = text("Session of the execution.")
    signal_confidence: float | None = number("Confidence signal, 0 (risk) to 1.")
    signal_loop_detection: float | None = number("Loop detection signal, 0 (risk) to 1.")
    signal_tool_correctness: float | None = number("Tool correctness signal, 0 (risk) to 1.")
    signal_coherence: float | None = number("Coherence signal, 0 (risk) to 1.")


class Judgement(FromLine, table=True):
    """Safety judgements made after the fact, one row per line, in the hour in which they were made."""

    __tablename__ = "judgements"

    execution_id: str = text("Execution that was judged.")
    judged_at: datetime = at("When it was judged; decides the hour.")
    agent_id: str | None = text("Agent that ran.")
    agent_id_reported: str | None = text(REPORTED_AGENT)
    violations: str = Field(description="Violations as JSON [{constraint, severity}]; [] = clean.", sa_type=sa.JSON)
    judged_by: str = text(
        "As whose it counts: `agent`, `model` or `person`. A person is believed before a model, both before an agent."
    )
    judged_by_reported: str | None = text(
        "Whose the line says it is; counts only in a log that HEALTH_TRUSTED_JUDGEMENTS names."
    )
    judge: str | None = text("Name of the model or person that judged, as the log states it.")


class AgentUpdate(FromLine, table=True):
    """Restarts, model changes and capability updates of agents, one row per line."""

    __tablename__ = "agent_updates"

    agent_id: str = text("Agent that was updated.")
    agent_id_reported: str | None = text(REPORTED_AGENT)
    updated_at: datetime = at("When; decides the hour.")
    kind: str = text("`restart`, `model_change` or `capability_update`.")
    detail: str | None = text("What changed, as the log states it.")


class Span(FromLine, table=True):
    """Spans of OpenTelemetry traces, every one that the logs hold, in the hour in which it ended."""

    __tablename__ = "spans"

    position: str = text("Place in the line, counted from 0: resource, scope and span, like `0.0.12`.", key=True)
    trace_id: str = text("Trace, 32 hexadecimal digits.")
    span_id: str = text("Span, 16 hexadecimal digits; a span that came twice stands here twice.")
    parent_span_id: str | None = text("Span that it is part of; null at the root of a trace.")
    kind: str = text("`agent`, `workflow` (runs agents), `chat` (a request to a model), `tool` or `other`.")
    operation: str | None = text("Operation or kind that its attributes state, as they state it.")
    name: str | None = text("Name of the span.")
    convention: str | None = text("Whose attributes told the kind, like `gen_ai`; null without any.")
    agent_id: str | None = text("Name of the agent, else its id, as the span states it.")
    agent_version: str | None = text("Version of the agent, as the span states it.")
    service_name: str | None = text("Service that the span came from.")
    service_version: str | None = text("Version of that service.")
    session_id: str | None = text("Conversation or session.")
    model: str | None = text("Model that was asked for, else the one that answered.")
    response_model: str | None = text("Model that answered, as the span states it.")
    tool_name: str | None = text("Tool that was executed.")
    started_at: datetime = at("When it started, cut to the microsecond.")
    ended_at: datetime = at("When it ended, cut to the microsecond; decides the hour.")
    failed: bool = flag("Whether it failed; an error that only waits, hands over or ends a stream does not count.")
    error: str | None = text("Type and message of the error; null where it did not fail.")
    input_tokens: int | None = count("Tokens that went into the model, with the cached ones.")
    output_tokens: int | None = count("Tokens that came out of it.")
    cache_read_tokens: int | None = count("Input tokens that came from the provider's cache.")
    cache_creation_tokens: int | None = count("Input tokens that were written to the provider's cache.")
    cost_usd: float | None = number("Cost in US dollars, as the span states it.")
    remark: str | None = text("What of its attributes does not agree, and how it was taken; null where all do.")


class RejectedRecord(FromLine, table=True):
    """Lines and spans that could not be used, with the reason; nothing is dropped silently."""

    __tablename__ = "rejected_records"

    reason: str = text("Why the line or span was rejected, naming the field; a span by its place in the line.")
    raw: str = text("The line, or what was read of the span, cut at 64 KiB; bytes that are not UTF-8 are replaced.")
    lines: int = count(
        "Lines and spans that it stands for: 1; more for the last of a file that has more than "
        "HEALTH_MAX_REJECTED_LINES."
    )


TABLES = (
    RawLog, Span, Execution, TriggerEvent, ModelCall, ToolCall, Signal, Judgement, AgentUpdate, RejectedRecord,
    SupersededExecution, SupersededTriggerEvent, SupersededModelCall, SupersededToolCall,
)  # fmt: skip

TABLE_OF_RECORD = {
    "span": "spans",
    "execution": "executions",
    "trigger": "trigger_events",
    "model_call": "model_calls",
    "tool_call": "tool_calls",
    "signals": "signals",
    "judgement": "judgements",
    "agent_update": "agent_updates",
    "rejected": "rejected_records",
}
"""Where each kind of record goes, in the order of the lineage; every record of a raw log goes to exactly one table."""

FROM_SPANS = ("executions", "model_calls", "tool_calls")
"""Tables that besides records of their own have rows that follow from spans, told by their `span_id`."""

RECORD_TABLES = tuple(TABLE_OF_RECORD.values())
EVENT_TABLES = tuple(table for table in RECORD_TABLES if table not in ("spans", "rejected_records"))

RECORD_OF_TABLE = {table: record for record, table in TABLE_OF_RECORD.items()}

ID_OF_TABLE = {
    "executions": ("execution_id", "ended_at"),
    "trigger_events": ("trigger_id", "fired_at"),
    "model_calls": ("call_id", "ended_at"),
    "tool_calls": ("call_id", "ended_at"),
}
"""Tables that keep one row per agent as reported, id and hour: the id, and the time of which the greatest wins."""

SUPERSEDED = {table: f"superseded_{table}" for table in ID_OF_TABLE}
"""By table of `ID_OF_TABLE`, the one that keeps its superseded lines, which may count again when the others change."""

AGENT_AS_REPORTED = "coalesce(agent_id_reported, agent_id)"
"""SQL for the agent that a record names, before the targets' patterns map it; null where it names none."""


def identity_of(table: str) -> list[str]:
    """SQL of the values that tell two records of a table of `ID_OF_TABLE` apart within an hour.

    Agents number their records independently, so an id alone says nothing. A call that names no agent is told apart by
    the execution that it names.
    """
    key, _ = ID_OF_TABLE[table]
    names_execution = table in ("model_calls", "tool_calls")
    own = ["CASE WHEN agent_id IS NULL THEN execution_id END"] if names_execution else []
    return [key, AGENT_AS_REPORTED, *own]
