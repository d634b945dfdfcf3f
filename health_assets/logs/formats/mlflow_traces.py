"""MLflow's traces, as its client and its server write them: their spans as OTLP-JSON, their feedback as evaluations.

What belongs here: a trace as JSON, lists of them, rows of `search_traces`, and the artifact `traces.json`. What does
not: runs of MLflow. The mapping: docs/formats.md.
"""

import base64
import binascii
import json
import re
from collections.abc import Iterator
from typing import Any

from health_assets.logs.formats.foreign_lines import (
    Line,
    Record,
    Source,
    UnusableRecordError,
    as_content,
    line_of,
    present,
    rejected,
)
from health_assets.logs.formats.json_pieces import Document, DocumentError
from health_assets.logs.formats.lines import objects
from health_assets.logs.formats.opening import Opening
from health_assets.logs.formats.otlp_writing import attributes_of, line_of_spans, status_of
from health_assets.logs.json_values import as_list, as_name, as_object

TOOL = "MLflow"
OPERATIONS = {"AGENT": "invoke_agent", "LLM": "chat", "CHAT_MODEL": "chat", "TOOL": "execute_tool"}
FAILED = ("ERROR", "STATUS_CODE_ERROR")
ROW = {"trace", "spans", "tags"}
"""Fields of a row of `search_traces`."""
NO_FEEDBACK = "MLflow assessment that is no feedback: an expectation, an error, or one that another one replaced"
NUMBERED = re.compile(r"(.+)_\d+")
"""How versions before 3 name spans of one name in a trace."""


def is_trace(members: Record) -> bool:
    """Whether an object that has these members is a trace, or a row of a table of traces."""
    info = as_object(members.get("info"))
    if members.keys() >= {"info", "data"}:
        return members.keys() <= {"info", "data"} and not info.keys().isdisjoint(("trace_metadata", "request_metadata"))
    return members.keys() >= ROW and not members.keys().isdisjoint(("trace_metadata", "request_metadata"))


def is_artifact(members: Record, listed: Record) -> bool:
    """Whether an object is the artifact of a trace, which holds its spans alone."""
    attributes = as_object(listed.get("attributes"))
    is_of_mlflow = any(name.startswith("mlflow.span") for name in attributes)
    return "spans" in members and members.keys() <= {"spans", "request", "response"} and is_of_mlflow


def recognizes_lines(opening: Opening) -> bool:
    """Whether a file that begins so has a trace a line."""
    return opening.has_lines and is_trace(opening.record)


def recognizes_document(opening: Opening) -> bool:
    """Whether a file that begins so is a trace or a list of traces."""
    if opening.has_lines or not (opening.is_foreign_object or opening.is_foreign_list):
        return False
    if is_trace(opening.members):
        return True
    return opening.is_foreign_object and is_artifact(opening.members, opening.listed_in("spans"))


def read_lines(source: Source) -> Iterator[Line]:
    """The spans and the feedback of the trace of each line."""
    for item in objects(source.blocks):
        if isinstance(item, Line):
            yield item
        else:
            yield from _lines(source, *item)


def read_document(source: Source) -> Iterator[Line]:
    """The same of a list of traces, or of one."""
    document, number = Document(source.blocks), 0
    try:
        if document.peek() == "[":
            for number, record in enumerate(document.elements(), 1):
                yield from _lines(source, number, record)
        else:
            yield from _lines(source, 1, document.value())
            number = 1
        document.finish()
    except DocumentError as error:
        yield rejected(number + 1, error.piece, error.reason)


def _lines(source: Source, number: int, record: Any) -> Iterator[Line]:
    try:
        trace = as_object(record)
        info = as_object(trace.get("info")) or trace
        spans = [as_object(span) for span in as_list(as_object(trace.get("data")).get("spans") or trace.get("spans"))]
        if not spans:
            raise UnusableRecordError("the trace has no spans, so what it did is not known")
        made = _spans(info, spans)
        yield line_of_spans(number, made, TOOL)
        for assessment in map(as_object, as_list(info.get("assessments"))):
            yield from _evaluation(source, number, assessment, made)
    except UnusableRecordError as error:
        yield rejected(number, record, str(error))


def _spans(info: Record, spans: list[Record]) -> list[Record]:
    """The spans of a trace; the root is the run where no span is that of an agent."""
    attributes = [
        {name: _decoded(value) for name, value in as_object(span.get("attributes")).items()} for span in spans
    ]
    kinds = [as_name(of.get("mlflow.spanType")) or "UNKNOWN" for of in attributes]
    has_agent = "AGENT" in kinds
    return [
        _span(info, span, of, "AGENT" if not has_agent and _parent(span) is None and kind not in OPERATIONS else kind)
        for span, of, kind in zip(spans, attributes, kinds, strict=True)
    ]


def _span(info: Record, span: Record, attributes: Record, kind: str) -> Record:
    context, status = as_object(span.get("context")), span.get("status")
    own_status = as_object(status) or {"code": span.get("status_code"), "message": span.get("status_message")}
    code = own_status.get("code", own_status.get("status_code"))
    message = as_name(own_status.get("message", own_status.get("description")))
    parent = _parent(span)
    if code not in FAILED and parent is None and info.get("state", info.get("status")) == "ERROR":
        code = FAILED[0]  # the trace knows that it failed, and its root does not
    start, end = (as_name(_time(span, of)) for of in ("start", "end"))
    own_id = as_name(context.get("trace_id", span.get("trace_id")))
    made = {
        "traceId": _hex(own_id if own_id is not None else as_name(span.get("request_id")), 32, "trace_id"),
        "spanId": _hex(as_name(context.get("span_id", span.get("span_id"))), 16, "span_id"),
        "parentSpanId": None if parent is None else _hex(parent, 16, "parent_id"),
        "name": as_name(span.get("name")) or "",
        "startTimeUnixNano": start,
        "endTimeUnixNano": end,
        "attributes": attributes_of(_attributes(info, span, attributes, kind)),
        "status": status_of((message or "") if code in FAILED else None),
    }
    return present(made)


def _attributes(info: Record, span: Record, attributes: Record, kind: str) -> Record:
    name, metadata = _name(span, attributes), _metadata(info)
    inputs, outputs = (as_content(attributes.get(f"mlflow.span{of}")) for of in ("Inputs", "Outputs"))
    own: Record = {"gen_ai.operation.name": OPERATIONS.get(kind)}
    if kind == "AGENT":
        own |= {
            "gen_ai.agent.name": name,
            "gen_ai.agent.version": as_name(metadata.get("mlflow.source.git.commit")),
            "gen_ai.conversation.id": as_name(metadata.get("mlflow.trace.session")),
            "input.value": inputs,
        }
    elif kind == "TOOL":
        own |= {
            "gen_ai.tool.name": name,
            "gen_ai.tool.call.arguments": inputs,
            "gen_ai.tool.call.result": outputs,
        }
    elif kind in OPERATIONS:
        usage, cost = (as_object(attributes.get(of)) for of in ("mlflow.chat.tokenUsage", "mlflow.llm.cost"))
        model = attributes.get("mlflow.llm.model") or attributes.get("model")
        own |= {
            "gen_ai.request.model": as_name(model or as_object(attributes.get("mlflow.spanInputs")).get("model")),
            "gen_ai.usage.input_tokens": _number(usage.get("input_tokens")),
            "gen_ai.usage.output_tokens": _number(usage.get("output_tokens")),
            "gen_ai.usage.cache_read.input_tokens": _number(usage.get("cache_read_input_tokens")),
            "gen_ai.usage.cache_creation.input_tokens": _number(usage.get("cache_creation_input_tokens")),
            "gen_ai.usage.cost": _number(cost.get("total_cost")),
        }
    return own


def _evaluation(source: Source, number: int, assessment: Record, spans: list[Record]) -> Iterator[Line]:
    """The feedback of a person, a model or a check; its rationale is not read."""
    feedback, name = as_object(assessment.get("feedback")), as_name(assessment.get("assessment_name"))
    value, at = feedback.get("value"), assessment.get("last_update_time") or assessment.get("create_time")
    if value is None or assessment.get("valid") is False:
        source.notes[NO_FEEDBACK] += 1
        return
    span_id = as_name(assessment.get("span_id"))
    told = {"label": as_name(value)} if isinstance(value, str) else {"value": _number(value)}
    about = _hex(span_id, 16, "span_id") if span_id is not None else spans[0]["traceId"]
    evaluation = {"type": "evaluation", "name": name, "at": at, "execution_id": about, **told}
    if name is None or at is None or not present(told):
        yield rejected(number, {key: assessment.get(key) for key in ("assessment_id", "assessment_name")},
                       "the name, the time or the value of an assessment is missing")  # fmt: skip
        return
    yield line_of(number, present(evaluation))


def _name(span: Record, attributes: Record) -> str | None:
    """The name of a span without the number that versions before 3 put behind a name that occurs twice."""
    name, function = as_name(span.get("name")), as_name(attributes.get("mlflow.spanFunctionName"))
    found = NUMBERED.fullmatch(name) if name is not None else None
    return function if found and found[1] == function else name


def _metadata(info: Record) -> Record:
    return as_object(info.get("trace_metadata")) or as_object(info.get("request_metadata"))


def _time(span: Record, of: str) -> Any:
    """Nanoseconds since 1970, which each form of a trace calls otherwise."""
    names = (f"{of}_time_unix_nano", f"{of}_time_ns", f"{of}_time")
    return next((span[name] for name in names if span.get(name) is not None), None)


def _parent(span: Record) -> str | None:
    return as_name(span.get("parent_span_id", span.get("parent_id")))


def _decoded(value: Any) -> Any:
    """An attribute, which most versions write as a text of JSON."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _number(value: Any) -> int | float | None:
    return value if isinstance(value, int | float) else None


def _hex(value: str | None, digits: int, name: str) -> str:
    """An id in hexadecimal digits, which version 3 writes in base64 and those before with `0x`.

    Raises:
        UnusableRecordError: it is none.
    """
    plain = (value or "").removeprefix("0x").removeprefix("tr-").lower()
    if re.fullmatch(f"[0-9a-f]{{{digits}}}", plain):
        return plain
    try:
        found = base64.b64decode(value or "", validate=True).hex()
    except (binascii.Error, ValueError):
        found = ""
    if len(found) != digits:
        raise UnusableRecordError(f"{name} must be an id of {digits} hexadecimal digits, or the same in base64")
    return found
