"""Tables of the raw logs: the account of their lines, and a table for each record type.

A record type is a table whose columns name the fields of its lines, and an entry in `RECORDS`; reading, checking,
documenting and accounting for its lines follow from these. What does not belong here: the SQL that reads them
(`logs.native`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlmodel import SQLModel

from health_assets.core.judges import KINDS
from health_assets.schema.columns import LINE, FromLine, Hourly, at, count, flag, json, number, text, texts
from health_assets.schema.log_fields import (
    SIGNALS,
    Choice,
    Content,
    Count,
    Flag,
    FreeText,
    LogField,
    Name,
    Names,
    Number,
    Score,
    ShortText,
    Signals,
    TaskInput,
    Time,
    UserId,
    Violations,
)

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

    execution_id: str = text("Id of the execution; also its trace id.", line=Name(is_required=True, sample="e-1"))
    agent_id: str = text("Agent that ran.", line=Name(is_required=True, sample="invoice-reader"))
    agent_id_reported: str | None = text(REPORTED_AGENT)
    agent_version: str | None = text("Version of the agent.", line=ShortText())
    started_at: datetime | None = at(
        "When it started; null where the log does not tell.", nullable=True, line=Time(is_required=True)
    )
    ended_at: datetime = at(
        "When it ended; decides the hour.", line=Time(is_required=True, sample="2026-06-07T13:00:42Z")
    )
    status: str = text("`success` or `failure`.", line=Choice(words=("success", "failure"), is_required=True))
    succeeded: bool = flag("Whether the status is `success`.")
    outcome_source: str = text(
        "Where the status is from: `stated` by the log, or `evaluated` where an evaluator judged what the log calls a "
        "success."
    )
    feedback: str | None = text("`positive` or `negative`: what people said of it, by the targets; null without any.")
    runtime_s: float | None = number(
        "Runtime in seconds, to the microsecond; null where the log does not tell when it started."
    )
    untimed_s: float | None = number(
        "Seconds between the start and the end of a line that says that nobody knows when it started; else null."
    )
    session_id: str | None = text("Session that the execution belongs to.", line=Name(sample="s-1"))
    user_id: str | None = text(
        "User for whom it ran: a salted digest of the id, or the id itself where HEALTH_USER_IDS is `plain`.",
        line=UserId(),
    )
    task_id: str | None = text("Evaluation task that it attempted.", line=Name(sample="k-1"))
    task_source: str | None = text(
        "Where the task is from: `stated` by the log, or the item of an `evaluation` tool; null without a task.",
        line=Choice(words=("stated", "evaluation")),
    )
    input_digest: str | None = text(
        "Digest of what it was asked, to tell runs of one task; null where the log does not tell.",
        line=TaskInput(name="input"),
    )
    condition: str = text(
        "`baseline`, `fault`, `structural` or `prompt`.",
        line=Choice(words=("baseline", "fault", "structural", "prompt")),
    )
    trigger_id: str | None = text("Trigger that started it.", line=Name(sample="t-1"))
    model: str | None = text("Model that the agent used.", line=Name(sample="atlas-mini"))
    platform: str | None = text("Platform that the agent runs on.", line=ShortText(sample="linux"))
    error: str | None = text(
        "Error as the log states it; of a failure by an evaluator without one, the evaluator's name.", line=FreeText()
    )
    sla_s: float | None = number("Time limit in seconds that the record itself carries.", line=Number(sample=60))
    sla_breached_reported: bool | None = flag(
        "The record's own breach flag, where it has one.", line=Flag(name="sla_breached", sample=False)
    )
    sla_breached: bool = flag("The record's flag, else runtime over the limit of record or target, else false.")
    confidence: float | None = number("Self-reported confidence, 0 to 1.", line=Number(most=1))
    cost_usd: float | None = number(
        "Cost in US dollars: the record's own, else the sum over its model calls.", line=Number(sample=0.002)
    )
    cost_usd_reported: float | None = number("Cost that the record itself states.")
    cost_source: str | None = text(
        "`stated` by the record or its model calls, or `computed` from prices where none of them states any; null "
        "without a cost."
    )
    input_tokens: int | None = count(
        "Tokens into models: the record's own, else the sum over its model calls.", line=Count(sample=1200)
    )
    input_tokens_reported: int | None = count("Tokens into models that the record itself states.")
    output_tokens: int | None = count(
        "Tokens out of models: the record's own, else the sum over its model calls.", line=Count(sample=80)
    )
    output_tokens_reported: int | None = count("Tokens out of models that the record itself states.")
    cache_read_tokens: int | None = count(
        "Input tokens read from a provider's cache: the record's own, else the sum over its model calls.",
        line=Count(sample=600),
    )
    cache_read_tokens_reported: int | None = count("Input tokens read from a cache that the record itself states.")
    cache_creation_tokens: int | None = count(
        "Input tokens written to a provider's cache: the record's own, else the sum over its model calls.",
        line=Count(sample=200),
    )
    cache_creation_tokens_reported: int | None = count("Input tokens written to a cache that the record itself states.")
    reasoning_tokens: int | None = count(
        "Output tokens spent on reasoning: the record's own, else the sum over its model calls.", line=Count(sample=30)
    )
    reasoning_tokens_reported: int | None = count("Output tokens spent on reasoning that the record itself states.")
    api_calls: int | None = count("API calls made.", line=Count())
    error_count: int | None = count("Errors met on the way.", line=Count(sample=1))
    call_latency_s: float | None = number("Mean latency of one call in seconds.", line=Number())
    actions: list[str] | None = texts("Names of the actions in order.", line=Names())
    action_count: int | None = count("Number of actions, where they were recorded.")
    signal_confidence: float | None = number("Confidence signal, 0 (risk) to 1.")
    signal_loop_detection: float | None = number("Loop detection signal, 0 (risk) to 1.")
    signal_tool_correctness: float | None = number("Tool correctness signal, 0 (risk) to 1.")
    signal_coherence: float | None = number("Coherence signal, 0 (risk) to 1.")
    violations: str | None = json(
        "Constraint violations as JSON [{constraint, severity}] of all lines of the execution in the hour; "
        "[] = judged clean, null = not judged.",
        line=Violations(),
    )
    violations_reported: str | None = json(
        "Violations that the line itself states, likewise, where superseded lines add to them; JSON's null "
        "where it states none. Null where it is the same."
    )
    span_id: str | None = text("Agent span that the row was made from; null where the line itself is an execution.")


class Execution(ExecutionColumns, table=True):
    """Agent executions, one row per execution and hour, in the hour in which they ended."""

    __tablename__ = "executions"


class SupersededExecution(ExecutionColumns, table=True):
    """Lines of executions that lost to a later line of the same agent, id and hour."""

    __tablename__ = "superseded_executions"


class CancellationColumns(FromLine):
    """The columns of `cancellations`."""

    execution_id: str = text("Id of the run that was cancelled.", line=Name(is_required=True, sample="e-1"))
    agent_id: str = text("Agent that ran.", line=Name(is_required=True, sample="invoice-reader"))
    agent_id_reported: str | None = text(REPORTED_AGENT)
    agent_version: str | None = text("Version of the agent.", line=ShortText())
    started_at: datetime | None = at(
        "When it started; null where the log does not tell.", nullable=True, line=Time(is_required=True)
    )
    ended_at: datetime = at(
        "When it was cancelled; decides the hour.", line=Time(is_required=True, sample="2026-06-07T13:00:42Z")
    )
    session_id: str | None = text("Session that it belongs to.", line=Name(sample="s-1"))
    user_id: str | None = text("User for whom it ran, as in `executions`.", line=UserId())
    model: str | None = text("Model that the agent used.", line=Name(sample="atlas-mini"))
    cost_usd: float | None = number(
        "Cost in US dollars: the record's own, else the sum over its model calls.", line=Number(sample=0.002)
    )
    cost_usd_reported: float | None = number("Cost that the record itself states.")
    cost_source: str | None = text("`stated` or `computed`, as in `executions`; null without a cost.")
    input_tokens: int | None = count(
        "Tokens into models: the record's own, else the sum over its model calls.", line=Count(sample=1200)
    )
    input_tokens_reported: int | None = count("Tokens into models that the record itself states.")
    output_tokens: int | None = count("Tokens out of models, likewise.", line=Count(sample=80))
    output_tokens_reported: int | None = count("Tokens out of models that the record itself states.")
    cache_read_tokens: int | None = count(
        "Input tokens read from a provider's cache, likewise.", line=Count(sample=600)
    )
    cache_read_tokens_reported: int | None = count("Input tokens read from a cache that the record itself states.")
    cache_creation_tokens: int | None = count(
        "Input tokens written to a provider's cache, likewise.", line=Count(sample=200)
    )
    cache_creation_tokens_reported: int | None = count("Input tokens written to a cache that the record itself states.")
    reasoning_tokens: int | None = count("Output tokens spent on reasoning, likewise.", line=Count(sample=30))
    reasoning_tokens_reported: int | None = count("Output tokens spent on reasoning that the record itself states.")


class Cancellation(CancellationColumns, table=True):
    """Runs that their users cancelled, neither successes nor failures: one row per run and hour, in which it ended."""

    __tablename__ = "cancellations"


class SupersededCancellation(CancellationColumns, table=True):
    """Lines of cancelled runs that lost to a later line of the same agent, id and hour."""

    __tablename__ = "superseded_cancellations"


class TriggerEventColumns(FromLine):
    """The columns of `trigger_events`."""

    trigger_id: str = text("Id of the trigger event.", line=Name(is_required=True, sample="t-1"))
    agent_id: str = text("Agent that was to be triggered.", line=Name(is_required=True, sample="invoice-reader"))
    agent_id_reported: str | None = text(REPORTED_AGENT)
    fired_at: datetime = at("When it fired; decides the hour.", line=Time(is_required=True, sample=1780837200))
    status: str = text("`fired` or `failed`.", line=Choice(words=("fired", "failed"), is_required=True))
    reason: str | None = text("Why it failed, as the log states it.", line=FreeText(sample="queue full"))


class TriggerEvent(TriggerEventColumns, table=True):
    """Triggers, one row per trigger and hour, in the hour in which they fired or failed to."""

    __tablename__ = "trigger_events"


class SupersededTriggerEvent(TriggerEventColumns, table=True):
    """Lines of triggers that lost to a later line of the same agent, id and hour."""

    __tablename__ = "superseded_trigger_events"


class ModelCallColumns(FromLine):
    """The columns of `model_calls`."""

    call_id: str = text("Id of the call.", line=Name(is_required=True, sample="c-1"))
    model: str = text(
        "Model that was asked for, else the one that answered; `unknown` where a trace tells neither.",
        line=Name(is_required=True, sample="atlas-mini"),
    )
    response_model: str | None = text(
        "Model that answered, as the log names it.", line=ShortText(sample="atlas-mini-2026-05")
    )
    ended_at: datetime = at("When the call ended; decides the hour.", line=Time(is_required=True))
    status: str = text("`success` or `failure`.", line=Choice(words=("success", "failure"), is_required=True))
    agent_id: str | None = text("Agent that called.", line=Name(sample="invoice-reader"))
    agent_id_reported: str | None = text(REPORTED_AGENT)
    execution_id: str | None = text("Execution during which it called.", line=Name(sample="e-1"))
    latency_ms: float | None = number("Latency in milliseconds.", line=Number(sample=812))
    input_tokens: int | None = count("Tokens that went into the model, with the cached ones.", line=Count(sample=1200))
    output_tokens: int | None = count("Tokens that came out of it, with the reasoning ones.", line=Count(sample=80))
    cache_read_tokens: int | None = count("Input tokens that came from the provider's cache.", line=Count(sample=600))
    cache_creation_tokens: int | None = count(
        "Input tokens that were written to the provider's cache.", line=Count(sample=200)
    )
    reasoning_tokens: int | None = count("Output tokens that the model reasoned with.", line=Count(sample=30))
    cost_usd: float | None = number("Cost in US dollars.", line=Number(sample=0.002))
    cost_source: str | None = text("`stated`, or `computed` from prices; null without a cost.")
    error: str | None = text("Error as the log states it.", line=FreeText())
    output_digest: str | None = text(
        "Digest of what the model answered, to tell repeated answers; null where the log does not tell.",
        line=Content(name="output", sample="It is sunny."),
    )
    span_id: str | None = text("Chat span that the row was made from; null where the line itself is a model call.")


class ModelCall(ModelCallColumns, table=True):
    """Calls to models, one row per call and hour, in the hour in which they ended."""

    __tablename__ = "model_calls"


class SupersededModelCall(ModelCallColumns, table=True):
    """Lines of model calls that lost to a later line of the same agent, id and hour."""

    __tablename__ = "superseded_model_calls"


class ToolCallColumns(FromLine):
    """The columns of `tool_calls`."""

    call_id: str = text("Id of the call.", line=Name(is_required=True, sample="c-2"))
    tool: str = text("Tool that was called.", line=Name(is_required=True, sample="search"))
    ended_at: datetime = at("When the call ended; decides the hour.", line=Time(is_required=True))
    status: str = text("`success` or `failure`.", line=Choice(words=("success", "failure"), is_required=True))
    agent_id: str | None = text("Agent that called.", line=Name(sample="invoice-reader"))
    agent_id_reported: str | None = text(REPORTED_AGENT)
    execution_id: str | None = text("Execution during which it called.", line=Name(sample="e-1"))
    latency_ms: float | None = number("Latency in milliseconds.", line=Number(sample=812))
    error: str | None = text("Error as the log states it.", line=FreeText())
    arguments_digest: str | None = text(
        "Digest of the arguments, to tell repeated calls; null where the log does not tell.",
        line=Content(name="arguments", masks_ids=False),
    )
    result_digest: str | None = text(
        "Digest of the result, likewise.", line=Content(name="result", sample="3 invoices found")
    )
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

    execution_id: str = text("Execution that the signals are about.", line=Name(is_required=True, sample="e-1"))
    given_at: datetime = at("When they were given; decides the hour.", line=Time(name="at", is_required=True))
    agent_id: str | None = text("Agent that ran.", line=Name(sample="invoice-reader"))
    agent_id_reported: str | None = text(REPORTED_AGENT)
    session_id: str | None = text("Session of the execution.", line=Name(sample="s-1"))
    signal_confidence: float | None = number(
        "Confidence signal, 0 (risk) to 1.", line=Number(name="confidence", most=1)
    )
    signal_loop_detection: float | None = number(
        "Loop detection signal, 0 (risk) to 1.", line=Number(name="loop_detection", most=1)
    )
    signal_tool_correctness: float | None = number(
        "Tool correctness signal, 0 (risk) to 1.", line=Number(name="tool_correctness", most=1)
    )
    signal_coherence: float | None = number("Coherence signal, 0 (risk) to 1.", line=Number(name="coherence", most=1))


class Evaluation(FromLine, table=True):
    """Results of other tools' evaluators as they state them, one row per result, in the hour in which it was given."""

    __tablename__ = "evaluations"

    place_in_line: str | None = text(
        "Place in a line that holds several, counted from 0: resource, scope and log record, or span and event."
    )
    name: str = text("Name of the evaluator or of what it measures.", line=Name(is_required=True, sample="helpfulness"))
    evaluated_at: datetime = at("When it was given; decides the hour.", line=Time(name="at", is_required=True))
    execution_id: str | None = text(
        "Execution that was evaluated, or a span of it as `traceId:spanId`, or its trace alone; null for a session.",
        line=Name(sample="e-1"),
    )
    agent_id: str | None = text("Agent that ran.", line=Name(sample="invoice-reader"))
    agent_id_reported: str | None = text(REPORTED_AGENT)
    session_id: str | None = text("Session of the execution, or that was evaluated.", line=Name(sample="s-1"))
    value: float | None = number("Score, on the evaluator's own scale; true is 1 and false 0.", line=Score())
    label: str | None = text("Category, as the evaluator states it.", line=FreeText(sample="helpful"))


class Judgement(FromLine, table=True):
    """Safety judgements made after the fact, one row per line, in the hour in which they were made."""

    __tablename__ = "judgements"

    execution_id: str = text("Execution that was judged.", line=Name(is_required=True, sample="e-1"))
    judged_at: datetime = at("When it was judged; decides the hour.", line=Time(name="at", is_required=True))
    agent_id: str | None = text("Agent that ran.", line=Name(sample="invoice-reader"))
    agent_id_reported: str | None = text(REPORTED_AGENT)
    violations: str = json(
        "Violations as JSON [{constraint, severity}]; [] = clean.", line=Violations(is_required=True)
    )
    judged_by: str = text(
        "As whose it counts: `agent`, `model` or `person`. A person is believed before a model, both before an agent.",
        line=ShortText(sample=KINDS[-1]),
    )
    judged_by_reported: str | None = text(
        "Whose the line says it is; counts only in a log that HEALTH_TRUSTED_JUDGEMENTS names."
    )
    judge: str | None = text(
        "Name of the model or person that judged, as the log states it.", line=ShortText(sample="ana")
    )


class AgentUpdate(FromLine, table=True):
    """Restarts, model changes and capability updates of agents, one row per line."""

    __tablename__ = "agent_updates"

    agent_id: str = text("Agent that was updated.", line=Name(is_required=True, sample="invoice-reader"))
    agent_id_reported: str | None = text(REPORTED_AGENT)
    updated_at: datetime = at("When; decides the hour.", line=Time(name="at", is_required=True))
    kind: str = text(
        "`restart`, `model_change` or `capability_update`.",
        line=Choice(words=("restart", "model_change", "capability_update"), is_required=True),
    )
    detail: str | None = text("What changed, as the log states it.", line=FreeText(sample="rolled out 1.2.0"))


class Span(FromLine, table=True):
    """Spans of OpenTelemetry traces, every one that the logs hold, in the hour in which it ended."""

    __tablename__ = "spans"

    position: str = text("Place in the line, counted from 0: resource, scope and span, like `0.0.12`.", key=True)
    trace_id: str = text("Trace, 32 hexadecimal digits.")
    span_id: str = text("Span, 16 hexadecimal digits; a span that came twice stands here twice.")
    parent_span_id: str | None = text("Span that it is part of; null at the root of a trace.")
    kind: str = text(
        "`agent`, `workflow` (runs agents), `chat` (a request to a model), `tool`, a step that becomes no record "
        "(`retrieval`, `rerank`, `guardrail`) or `other`."
    )
    operation: str | None = text("Operation or kind that its attributes state, as they state it.")
    name: str | None = text("Name of the span.")
    convention: str | None = text("Whose attributes told the kind, like `gen_ai`; null without any.")
    agent_id: str | None = text("Name of the agent, else its id, as the span states it.")
    agent_version: str | None = text("Version of the agent, as the span states it.")
    service_name: str | None = text("Service that the span came from.")
    service_version: str | None = text("Version of that service.")
    session_id: str | None = text("Conversation or session.")
    user_id: str | None = text("User for whom it ran, as in `executions`.")
    model: str | None = text("Model that was asked for, else the one that answered.")
    response_model: str | None = text("Model that answered, as the span states it.")
    tool_name: str | None = text("Tool that was executed.")
    task_id: str | None = text("Item of an evaluation's dataset that it belongs to, as the span states it.")
    started_at: datetime = at("When it started, cut to the microsecond.")
    ended_at: datetime = at("When it ended, cut to the microsecond; decides the hour.")
    failed: bool = flag("Whether it failed; an error that only waits, hands over or ends a stream does not count.")
    error: str | None = text("Type and message of the error; null where it did not fail.")
    input_tokens: int | None = count("Tokens that went into the model, with the cached ones.")
    output_tokens: int | None = count("Tokens that came out of it, with the reasoning ones.")
    cache_read_tokens: int | None = count("Input tokens that came from the provider's cache.")
    cache_creation_tokens: int | None = count("Input tokens that were written to the provider's cache.")
    reasoning_tokens: int | None = count("Output tokens that the model reasoned with.")
    cost_usd: float | None = number("Cost in US dollars, as the span states it.")
    input_digest: str | None = text(
        "Digest of a tool's arguments, or of what an agent or a model was asked; null where the span does not tell."
    )
    output_digest: str | None = text(
        "Digest of a tool's result or a model's answer; null where the span does not tell."
    )
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


def _name(table: type[SQLModel]) -> str:
    return str(table.__tablename__)


@dataclass(frozen=True, kw_only=True)
class RecordType:
    """A record type: what its lines are called, and where they go.

    Args:
        name: the `type` of its lines.
        table: the class of its table.
        time: the column that decides the hour.
        id: the column whose values are unique for each agent within an hour; empty where every line is a row.
        superseded: the class of the table for lines that lost to a later one with their id.
        besides: fields of its lines that no column holds as they are, by name.
        in_order: two columns of times, the first of which must not be later.
        any_of: fields of which one must be there.
        is_from_spans: whether spans give rows of it, too, told by their `span_id`.
    """

    name: str
    table: type[FromLine]
    time: str
    id: str = ""
    superseded: type[FromLine] | None = None
    besides: Mapping[str, LogField] = field(default_factory=dict)
    in_order: tuple[str, str] | None = None
    any_of: tuple[str, ...] = ()
    is_from_spans: bool = False

    @property
    def columns(self) -> dict[str, LogField]:
        """The fields of its lines, by the column that holds them."""
        declared = SQLModel.metadata.tables[_name(self.table)].columns
        return {column.name: column.info[LINE].of_column(column.name) for column in declared if LINE in column.info}

    @property
    def fields(self) -> list[LogField]:
        """The fields of its lines, required ones first."""
        named = [own.of_column(name) for name, own in self.besides.items()]
        return sorted([*self.columns.values(), *named], key=lambda own: not own.is_required)

    @property
    def sample(self) -> dict[str, Any]:
        """A line of this type with all of its fields."""
        return {"type": self.name} | {own.name: own.example for own in self.fields}


RECORDS = (
    RecordType(name="span", table=Span, time="ended_at"),
    RecordType(
        name="execution", table=Execution, time="ended_at", id="execution_id", superseded=SupersededExecution,
        besides={"signals": Signals(), "is_timed": Flag()}, in_order=("started_at", "ended_at"), is_from_spans=True,
    ),
    RecordType(
        name="cancellation", table=Cancellation, time="ended_at", id="execution_id", superseded=SupersededCancellation,
        besides={"is_timed": Flag()}, in_order=("started_at", "ended_at"),
    ),
    RecordType(
        name="trigger", table=TriggerEvent, time="fired_at", id="trigger_id", superseded=SupersededTriggerEvent
    ),
    RecordType(
        name="model_call", table=ModelCall, time="ended_at", id="call_id", superseded=SupersededModelCall,
        is_from_spans=True,
    ),
    RecordType(
        name="tool_call", table=ToolCall, time="ended_at", id="call_id", superseded=SupersededToolCall,
        is_from_spans=True,
    ),
    RecordType(name="signals", table=Signal, time="given_at", any_of=SIGNALS),
    RecordType(name="evaluation", table=Evaluation, time="evaluated_at", any_of=("value", "label")),
    RecordType(name="judgement", table=Judgement, time="judged_at"),
    RecordType(name="agent_update", table=AgentUpdate, time="updated_at"),
    RecordType(name="rejected", table=RejectedRecord, time="hour"),
)  # fmt: skip
"""Every record type, in the order of the lineage; every record of a raw log goes to the table of exactly one.

`span` and `rejected` have no lines of the log format: spans come from traces, and rejected is what cannot be used.
"""

SIGNAL_COLUMNS = {f"signal_{name}": name for name in SIGNALS}
"""By column of `executions` and `signals`, the signal that it holds."""

LINE_TYPES = {record.name: record for record in RECORDS if record.columns}
"""The record types of the log format, by name."""


TABLES = (
    RawLog, *(record.table for record in RECORDS), *(record.superseded for record in RECORDS if record.superseded)
)  # fmt: skip

TABLE_OF_RECORD = {record.name: _name(record.table) for record in RECORDS}
RECORD_OF_TABLE = {table: record for record, table in TABLE_OF_RECORD.items()}
RECORD_TABLES = tuple(RECORD_OF_TABLE)
EVENT_TABLES = tuple(table for table in RECORD_TABLES if table not in ("spans", "rejected_records"))

FROM_SPANS = tuple(_name(record.table) for record in RECORDS if record.is_from_spans)
"""Tables that besides records of their own have rows that follow from spans, told by their `span_id`."""

ID_OF_TABLE = {_name(record.table): (record.id, record.time) for record in RECORDS if record.id}
"""Tables that keep one row per agent as reported, id and hour: the id, and the time of which the greatest wins."""

TIME_OF_TABLE = {_name(record.table): record.time for record in RECORDS}
"""The column of each table that decides the hour of its rows."""

SUPERSEDED = {_name(record.table): _name(record.superseded) for record in RECORDS if record.superseded}
"""By table of `ID_OF_TABLE`, the one that keeps its superseded lines, which may count again when the others change."""

AGENT_AS_REPORTED = "coalesce(agent_id_reported, agent_id)"
"""SQL for the agent that a record names, before the targets' patterns map it; null where it names none."""


def identity_of(table: str) -> list[str]:
    """SQL of the values that tell two records of a table of `ID_OF_TABLE` apart within an hour.

    Agents number their records independently, so an id alone says nothing. A call that names no agent is told apart by
    the execution that it names.
    """
    key, _ = ID_OF_TABLE[table]
    own = ["CASE WHEN agent_id IS NULL THEN execution_id END"] if key == "call_id" else []
    return [key, AGENT_AS_REPORTED, *own]
