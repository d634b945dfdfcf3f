"""Traces of the OpenAI Agents SDK, as its trace processors export them: each span becomes a span of OTLP-JSON.

What belongs here: traces and spans, a line each, as a list, or as the body that the SDK sends. What does not: what the
instrumentation of OpenInference or Logfire makes of the same runs, which is OTLP-JSON. The mapping: docs/formats.md.
"""

from collections.abc import Iterator
from typing import Any

from health_assets.logs.formats.foreign_lines import (
    Line,
    Record,
    Source,
    UnusableRecordError,
    as_content,
    as_time,
    dumped,
    present,
    rejected,
    unix_nano,
)
from health_assets.logs.formats.json_pieces import Document, DocumentError
from health_assets.logs.formats.lines import objects
from health_assets.logs.formats.opening import Opening
from health_assets.logs.formats.otlp_spans import attributes_of, line_of_spans, span_id_of, status_of, trace_id_of
from health_assets.logs.json_values import as_count, as_list, as_name, as_object

TOOL = "OpenAI Agents SDK"
TRACE, SPAN = "trace", "trace.span"
KINDS = {"agent": "invoke_agent", "generation": "chat", "response": "chat", "function": "execute_tool"}
TRACE_LINE = "trace of the OpenAI Agents SDK: its session is that of its agents, and nothing else of it is read"
TOLD_TO_THE_MODEL = "(non-fatal)"
"""How the message of a tool's error ends where the agent went on with it."""
NO_ANSWER = "the model gave no answer"


def is_record(members: Record) -> bool:
    """Whether an object that has these members is a trace or one of its spans."""
    if members.get("object") == SPAN:
        return members.keys() >= {"id", "trace_id", "span_data"}
    return members.get("object") == TRACE and members.keys() >= {"id", "workflow_name", "group_id"}


def recognizes_lines(opening: Opening) -> bool:
    """Whether a file that begins so has a trace or a span a line."""
    return opening.has_lines and is_record(opening.record)


def recognizes_document(opening: Opening) -> bool:
    """Whether a file that begins so is a list of traces and spans, the body of a request, or one over many lines."""
    if opening.has_lines or not (opening.is_foreign_object or opening.is_foreign_list):
        return False
    is_body = opening.is_foreign_object and opening.members.keys() <= {"data"} and is_record(opening.listed)
    return is_body or is_record(opening.members)


def read_lines(source: Source) -> Iterator[Line]:
    """The span of each line."""
    spans = _Spans(source)
    for item in objects(source.blocks):
        if isinstance(item, Line):
            yield item
        else:
            yield from spans.lines(*item)


def read_document(source: Source) -> Iterator[Line]:
    """The spans of a list, of the body of a request, or the document, which is one."""
    document, spans, number = Document(source.blocks), _Spans(source), 0
    members: Record = {}
    try:
        if document.peek() == "[":
            for number, record in enumerate(document.elements(), 1):
                yield from spans.lines(number, record)
        else:
            for name in document.members():
                if name == "data" and document.peek() == "[":
                    for number, record in enumerate(document.elements(), 1):
                        yield from spans.lines(number, record)
                else:
                    members[name] = document.value()
            if members:
                number += 1
                yield from spans.lines(number, members)
        document.finish()
    except DocumentError as error:
        yield rejected(number + 1, error.piece, error.reason)


class _Spans:
    """What is known after some traces and spans, which are written when a trace starts and when a span ends.

    Args:
        source: the file.
    """

    def __init__(self, source: Source) -> None:
        self._notes = source.notes
        self._sessions: dict[str, str] = {}
        self._failures: dict[tuple[str, str], str] = {}  # of what is below a span, if nothing succeeded since

    def lines(self, number: int, record: Any) -> Iterator[Line]:
        """The span, or what of it cannot be used; a trace is counted."""
        told = as_object(record)
        try:
            trace_id = as_name(told.get("id" if told.get("object") == TRACE else "trace_id"))
            if told.get("object") not in (TRACE, SPAN):
                raise UnusableRecordError(f"object must be {TRACE} or {SPAN}")
            if trace_id is None:
                raise UnusableRecordError("the id of the trace is missing")
            if told["object"] == SPAN:
                yield line_of_spans(number, [self._span(trace_id, told)], TOOL)
                return
            self._notes[TRACE_LINE] += 1
            if session := as_name(told.get("group_id")):
                self._sessions[trace_id] = session
        except UnusableRecordError as error:
            yield rejected(number, record, str(error))

    def _span(self, trace_id: str, record: Record) -> Record:
        data, own_id, parent = as_object(record.get("span_data")), as_name(record.get("id")), record.get("parent_id")
        kind = as_name(data.get("type"))
        if own_id is None or kind is None:
            raise UnusableRecordError("the id or the type of the span is missing")
        error = self._failure(kind, trace_id, own_id, as_name(parent), record)
        scope = f"openai agents {trace_id}"
        span = {
            "traceId": trace_id_of(trace_id.removeprefix("trace_"), "openai agents"),
            "spanId": span_id_of(own_id, scope),
            "parentSpanId": span_id_of(name, scope) if (name := as_name(parent)) else None,
            "name": as_name(data.get("name")) or kind,
            "startTimeUnixNano": unix_nano(as_time(record.get("started_at"), "started_at")),
            "endTimeUnixNano": _end(record),
            "attributes": attributes_of(self._attributes(trace_id, kind, data)),
            "status": status_of(error),
        }
        return present(span)

    def _failure(self, kind: str, trace_id: str, own_id: str, parent_id: str | None, record: Record) -> str | None:
        """The error of a span; an agent failed, too, where something below it did and no model went on after that."""
        data, error = as_object(record.get("span_data")), as_object(record.get("error"))
        own = _error(error) if error else _missing_answer(kind, data)
        below = self._failures.pop((trace_id, own_id), None)
        if kind == "agent":
            return below if own is None else own
        parent = (trace_id, parent_id or "")
        is_turn = as_object(data.get("data")).get("sdk_span_type") == "turn"
        if is_turn or KINDS.get(kind) == "chat":
            self._failures.pop(parent, None)
            ends = below if own is None else own
        elif kind == "function":
            ends = None if (as_name(error.get("message")) or "").endswith(TOLD_TO_THE_MODEL) else own
        else:
            ends = below
        if ends is not None:
            self._failures[parent] = ends
        return own

    def _attributes(self, trace_id: str, kind: str, data: Record) -> Record:
        own: Record = {"gen_ai.operation.name": KINDS.get(kind)}
        if kind == "agent":
            own |= {
                "gen_ai.agent.name": as_name(data.get("name")),
                "gen_ai.conversation.id": self._sessions.get(trace_id),
            }
        elif kind == "function":
            own |= {
                "gen_ai.tool.name": as_name(data.get("name")),
                "gen_ai.tool.call.arguments": as_content(data.get("input")),
                "gen_ai.tool.call.result": as_content(data.get("output")),
            }
        elif kind in KINDS:
            own |= _usage(as_object(data.get("usage"))) | {
                "gen_ai.request.model": as_name(data.get("model")),
                "gen_ai.input.messages": dumped(data["input"]) if as_list(data.get("input")) else None,
            }
        return own


def _usage(usage: Record) -> Record:
    """Tokens of a call; 0 and 0 is how the SDK writes that a streamed answer told none."""
    read, answered = as_count(usage.get("input_tokens")), as_count(usage.get("output_tokens"))
    if not read and not answered:
        return {}
    of_input, of_output = (as_object(usage.get(f"{of}_tokens_details")) for of in ("input", "output"))
    return {
        "gen_ai.usage.input_tokens": read,
        "gen_ai.usage.output_tokens": answered,
        "gen_ai.usage.cache_read.input_tokens": as_count(of_input.get("cached_tokens")),
        "gen_ai.usage.cache_creation.input_tokens": as_count(of_input.get("cache_write_tokens")),
        "gen_ai.usage.reasoning.output_tokens": as_count(of_output.get("reasoning_tokens")),
    }


def _error(error: Record) -> str:
    """What an error says: the exception's text where the SDK keeps it, else its own message."""
    return as_name(as_object(error.get("data")).get("error")) or as_name(error.get("message")) or ""


def _missing_answer(kind: str, data: Record) -> str | None:
    """The error of a model call without one that has no answer, as older versions write it; None of any other span.

    Raises:
        UnusableRecordError: contents were left out, so that nobody knows whether there was an answer.
    """
    if kind != "generation" or data.get("output") is not None or data.get("usage") is not None:
        return None
    if data.get("input") is None:
        raise UnusableRecordError("a generation without input, output and usage does not tell whether it failed")
    return NO_ANSWER


def _end(record: Record) -> str | None:
    """When a span ended; None of one that runs still."""
    return None if record.get("ended_at") is None else unix_nano(as_time(record["ended_at"], "ended_at"))
