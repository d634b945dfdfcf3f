"""Langfuse's exports: traces, observations and scores, as OTLP-JSON and `signals` lines. The mapping: docs/formats.md.

The API writes its fields in camel case, the blob storage export in snake case; a trace from the API may hold its
observations and scores. Each kind is told by its fields, record by record, so all may lie in one file or in three.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from health_assets.logs.formats.documents import Document, DocumentError
from health_assets.logs.formats.lines import objects
from health_assets.logs.formats.records import (
    Line,
    Record,
    Source,
    UnusableRecordError,
    as_list,
    as_name,
    as_number,
    as_object,
    as_time,
    hex_id,
    line_of,
    present,
    rejected,
    unix_nano,
)

OPERATIONS = {"GENERATION": "chat", "TOOL": "execute_tool", "AGENT": "invoke_agent"}
OTHER_TYPES = ("SPAN", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL")
"""Observations that say nothing to us but who is below whom."""
EVENT = "EVENT"
TYPES = (*OPERATIONS, *OTHER_TYPES, EVENT)
SIGNALS = ("confidence", "loop_detection", "tool_correctness", "coherence")
ERROR_LEVEL = "ERROR"
STATUS_ERROR = 2
INPUT_TOKENS = ("input", "promptTokens", "prompt_tokens")
OUTPUT_TOKENS = ("output", "completionTokens", "completion_tokens")
TRACE_FIELDS = ("sessionId", "userId", "htmlPath", "latency", "observations", "bookmarked", "tags")
NO_END = "Langfuse trace of the table export, which has no end: its root observation stands for it"
FORMATS_OF_IDS = (re.compile(r"[0-9a-f]{32}"), re.compile(r"[0-9a-f]{16}"))


def is_record(members: Record) -> bool:
    """Whether an object that has these members is a trace, an observation or a score."""
    record = _camel(members)
    return _is_observation(record) or _is_score(record) or _is_trace(record)


def is_page(members: Record) -> bool:
    """Whether an object that has these members is an answer of the API that lists records."""
    return "data" in members and set(members) <= {"data", "meta"}


def read_lines(source: Source) -> Iterator[Line]:
    """One record a line."""
    for item in objects(source.blocks):
        if isinstance(item, Line):
            yield item
        else:
            yield from _lines(source, *item)


def read_document(source: Source) -> Iterator[Line]:
    """A list of records, an answer of the API with such a list as its `data`, or one record over many lines."""
    document, number = Document(source.blocks), 0
    members: Record = {}
    try:
        if document.peek() == "[":
            for record in document.elements():
                number += 1
                yield from _lines(source, number, record)
        else:
            for name in document.members():
                if name != "data" or document.peek() != "[":
                    members[name] = document.value()
                    continue
                for record in document.elements():
                    number += 1
                    yield from _lines(source, number, record)
            if set(members) - {"meta"}:
                number += 1
                yield from _lines(source, number, members)
        document.finish()
    except DocumentError as error:
        yield rejected(number + 1, error.piece, error.reason)


def _lines(source: Source, number: int, raw: Any) -> Iterator[Line]:
    record = _camel(as_object(raw))
    try:
        if _is_observation(record):
            yield from _observation_lines(source, number, record)
        elif _is_score(record):
            yield from _score_lines(source, number, [record])
        elif _is_trace(record):
            yield from _trace_lines(source, number, record)
        else:
            raise UnusableRecordError("neither a trace nor an observation nor a score of Langfuse")
    except UnusableRecordError as error:
        yield rejected(number, raw, str(error))


def _camel(record: Record) -> Record:
    """The record with the field names of the API."""
    return {_camel_name(name): value for name, value in record.items()}


@lru_cache(maxsize=1000)
def _camel_name(name: str) -> str:
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)


def _is_observation(record: Record) -> bool:
    return "startTime" in record and record.get("type") in TYPES


def _is_score(record: Record) -> bool:
    has_value = "value" in record or "stringValue" in record
    return has_value and "name" in record and ("dataType" in record or "traceId" in record) and "type" not in record


def _is_trace(record: Record) -> bool:
    return "id" in record and "timestamp" in record and "type" not in record and any(
        name in record for name in TRACE_FIELDS
    )  # fmt: skip


# -- ids -------------------------------------------------------------------------------------------------------------


def trace_id(langfuse_id: str) -> str:
    """32 hexadecimal digits: the id itself, a UUID without its dashes, else a digest of the id."""
    plain = langfuse_id.lower().replace("-", "")
    return plain if FORMATS_OF_IDS[0].fullmatch(plain) else hex_id(32, "langfuse trace", langfuse_id)


def observation_span_id(langfuse_id: str) -> str:
    """16 hexadecimal digits: the id itself, else a digest of it."""
    return langfuse_id if FORMATS_OF_IDS[1].fullmatch(langfuse_id) else hex_id(16, "langfuse observation", langfuse_id)


def trace_span_id(langfuse_id: str) -> str:
    """The id of the span that stands for the whole trace."""
    return hex_id(16, "langfuse trace span", langfuse_id)


# -- spans -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Trace:
    """What is known of the trace that an observation belongs to."""

    langfuse_id: str
    agent: str | None
    session: str | None
    user: str | None


def _otlp(number: int, spans: list[Record]) -> Line:
    scope = {"scope": {"name": "langfuse"}, "spans": spans}
    resource = {"attributes": [_attribute("telemetry.source", "langfuse export")]}
    return line_of(number, {"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]})


def _attribute(key: str, value: str | int | float) -> Record:
    if isinstance(value, str):
        return {"key": key, "value": {"stringValue": value}}
    if isinstance(value, int):
        return {"key": key, "value": {"intValue": str(value)}}
    return {"key": key, "value": {"doubleValue": value}}


def _span(
    trace: _Trace,
    span_id: str,
    parent: str | None,
    name: str | None,
    times: tuple[datetime, datetime],
    error: str | None,
    attributes: Record,
) -> Record:
    shared = {"gen_ai.conversation.id": trace.session, "user.id": trace.user}
    return present(
        {
            "traceId": trace_id(trace.langfuse_id),
            "spanId": span_id,
            "parentSpanId": parent,
            "name": name or "",
            "startTimeUnixNano": unix_nano(times[0]),
            "endTimeUnixNano": unix_nano(times[1]),
            "attributes": [_attribute(key, value) for key, value in present({**attributes, **shared}).items()],
            "status": None if error is None else present({"code": STATUS_ERROR, "message": error or None}),
        }
    )


def _agent_span(trace: _Trace, times: tuple[datetime, datetime], error: str | None, cost: float | None) -> Record:
    """The span that stands for the whole trace, which is an execution."""
    if trace.agent is None:
        raise UnusableRecordError("the trace has no name, so the agent is not known")
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": trace.agent, "gen_ai.usage.cost": cost}
    return _span(trace, trace_span_id(trace.langfuse_id), None, trace.agent, times, error, attributes)


def _trace_lines(source: Source, number: int, record: Record) -> Iterator[Line]:
    trace_key = _required_name(record, "id")
    held = [_camel(item) for item in as_list(record.get("observations")) if isinstance(item, dict)]
    roots = [item for item in held if _is_root(item, trace_key)]
    scores = [_camel(item) for item in as_list(record.get("scores")) if isinstance(item, dict)]
    if "latency" not in record and "observations" not in record:
        source.notes[NO_END] += 1
        yield from _score_lines(source, number, scores, trace_key)
        return
    agent = as_name(record.get("name")) or next(filter(None, (as_name(root.get("name")) for root in roots)), None)
    trace = _Trace(trace_key, agent, as_name(record.get("sessionId")), as_name(record.get("userId")))
    started_at = as_time(record.get("timestamp"), "timestamp")
    spans, faults = [], []
    times = [started_at]
    for item in held:
        try:
            span = _observation_span(source, item, trace)
            times += _times(item) if span else []
            spans += [span] if span else []
        except UnusableRecordError as fault:
            faults.append(rejected(number, item, str(fault)))
    latency = as_number(record.get("latency"))
    if latency is not None and latency >= 0 and (latency > 0 or not spans):
        times.append(_end(started_at, latency))
    elif not spans:
        raise UnusableRecordError("the trace has neither a latency nor observations, so its end is not known")
    errors = [found for found in map(_error, roots) if found is not None]
    whole = _agent_span(
        trace, (min(times), max(times)), errors[0] if errors else None, as_number(record.get("totalCost"))
    )
    yield _otlp(number, [whole, *spans])
    yield from faults
    yield from _score_lines(source, number, scores, trace_key)


def _end(started_at: datetime, latency_s: float) -> datetime:
    try:
        return started_at + timedelta(seconds=latency_s)
    except OverflowError:
        raise UnusableRecordError("latency reaches beyond the last year of the calendar") from None


def _observation_lines(source: Source, number: int, record: Record) -> Iterator[Line]:
    """An observation by itself; where it comes with its trace's fields or from tables, a root stands for its trace."""
    trace_key = _required_name(record, "traceId")
    agent = as_name(record.get("traceName")) or as_name(record.get("name"))
    trace = _Trace(trace_key, agent, as_name(record.get("sessionId")), as_name(record.get("userId")))
    span = _observation_span(source, record, trace)
    if span is None:
        return
    spans = [span]
    if _is_root(record, trace_key) and ("traceName" in record or "projectId" in record):
        spans.insert(0, _agent_span(trace, _times(record), _error(record), None))
    yield _otlp(number, spans)


def _is_root(record: Record, trace_key: str) -> bool:
    """Whether nothing is above it; newer servers put a row of their own, named after the trace, above the roots."""
    return as_name(record.get("parentObservationId")) in (None, f"t-{trace_key}")


def _observation_span(source: Source, record: Record, trace: _Trace) -> Record | None:
    """The observation's span; None for what has no duration."""
    kind = record.get("type")
    if kind == EVENT:
        source.notes["Langfuse EVENT, which has no duration"] += 1
        return None
    if kind not in TYPES:
        raise UnusableRecordError(f"type must be one of {', '.join(TYPES)}, not {kind}")
    name = as_name(record.get("name"))
    model = as_name(record.get("model")) or as_name(record.get("providedModelName"))
    attributes: Record = {"gen_ai.operation.name": OPERATIONS.get(kind), "langfuse.observation.type": kind}
    if kind == "GENERATION":
        if model is None:
            source.notes["Langfuse GENERATION without a model"] += 1
            attributes["gen_ai.operation.name"] = None
        attributes |= {
            "gen_ai.request.model": model,
            "gen_ai.response.model": model,
            "gen_ai.usage.input_tokens": _tokens(record, INPUT_TOKENS),
            "gen_ai.usage.output_tokens": _tokens(record, OUTPUT_TOKENS),
            "gen_ai.usage.cost": _cost(record),
        }
    elif kind == "TOOL":
        attributes["gen_ai.tool.name"] = name
    elif kind == "AGENT":
        attributes["gen_ai.agent.name"] = name or trace.agent
    else:
        source.notes[f"Langfuse {kind}, which is no agent, model call or tool"] += 1
    root = _is_root(record, trace.langfuse_id)
    parent = trace_span_id(trace.langfuse_id) if root else observation_span_id(str(record["parentObservationId"]))
    span_id = observation_span_id(_required_name(record, "id"))
    return _span(trace, span_id, parent, name, _times(record), _error(record), attributes)


def _times(record: Record) -> tuple[datetime, datetime]:
    started_at = as_time(record.get("startTime"), "startTime")
    if record.get("endTime") is None and record.get("type") in OTHER_TYPES:
        return started_at, started_at  # only its place in the tree matters
    ended_at = as_time(record.get("endTime"), "endTime")
    if ended_at < started_at:
        raise UnusableRecordError("endTime is before startTime")
    return started_at, ended_at


def _error(record: Record) -> str | None:
    """The message of an observation that failed, empty where it has none; None for one that did not."""
    return as_name(record.get("statusMessage")) or "" if record.get("level") == ERROR_LEVEL else None


def _required_name(record: Record, name: str) -> str:
    value = as_name(record.get(name))
    if value is None:
        raise UnusableRecordError(f"{name} is missing")
    return value


def _tokens(record: Record, names: tuple[str, ...]) -> int | None:
    details = [as_object(record.get("usageDetails")), as_object(record.get("usage"))]
    found = [place.get(name) for place in details for name in names]
    found += [record.get(name) for name in names[1:]]  # `input` of the observation itself is what the model was told
    return next((int(value) for value in map(as_number, found) if value is not None), None)


def _cost(record: Record) -> float | None:
    values = (as_object(record.get("costDetails")).get("total"), record.get("totalCost"),
              record.get("calculatedTotalCost"))  # fmt: skip
    return next((cost for cost in map(as_number, values) if cost is not None), None)


# -- scores ----------------------------------------------------------------------------------------------------------


def _score_lines(source: Source, number: int, scores: list[Record], of_trace: str | None = None) -> Iterator[Line]:
    """A `signals` record for each score that is one of our signals; any other is counted."""
    for score in scores:
        name = (as_name(score.get("name")) or "").lower().replace(" ", "_").replace("-", "_")
        value, trace_key = score.get("value"), as_name(score.get("traceId")) or of_trace
        if name not in SIGNALS:
            source.notes["Langfuse score that is none of our signals"] += 1
        elif score.get("dataType") not in (None, "NUMERIC") or isinstance(value, bool):
            source.notes["Langfuse score named like a signal that is no number"] += 1
        elif trace_key is None:
            source.notes["Langfuse score of a session or a dataset run, not of a trace"] += 1
        else:
            observation = as_name(score.get("observationId"))
            span = observation_span_id(observation) if observation else trace_span_id(trace_key)
            try:
                at = as_time(score.get("timestamp"), "timestamp").isoformat()
            except UnusableRecordError as error:
                yield rejected(number, score, str(error))
                continue
            yield line_of(
                number,
                {"type": "signals", "execution_id": f"{trace_id(trace_key)}:{span}", "at": at, name: value},
            )
