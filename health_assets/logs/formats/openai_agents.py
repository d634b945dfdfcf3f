"""Traces of the OpenAI Agents SDK, as its trace processors export them: each span becomes a span of OTLP-JSON.

What belongs here: traces and spans, a line each, as a list, or as the body that the SDK sends. What does not: what the
instrumentation of OpenInference or Logfire makes of the same runs, which is OTLP-JSON. The mapping: docs/formats.md.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

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
from health_assets.logs.formats.otlp_writing import attributes_of, line_of_spans, span_id_of, status_of, trace_id_of
from health_assets.logs.json_values import as_count, as_list, as_name, as_object

TOOL = "OpenAI Agents SDK"
TRACE, SPAN = "trace", "trace.span"
KINDS = {"agent": "invoke_agent", "generation": "chat", "response": "chat", "function": "execute_tool"}
TRACE_LINE = "trace of the OpenAI Agents SDK: its session is that of its agents, and nothing else of it is read"
WITHOUT_CALLS = "agent of the OpenAI Agents SDK without an error whose calls are not in its file: counted as a success"
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
    yield from spans.lines_of_agents()


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
    yield from spans.lines_of_agents()


class _Ended(NamedTuple):
    """A span that may tell whether its agent failed; they sort by their ends, those within another one before it.

    Args:
        ended_ns: when it ended.
        minus_started_ns: when it started, the later first.
        number: its place in the file.
        kind: its type; `turn` of a span around what an agent does at once.
        key: ids of its trace and its own.
        parent: ids of its trace and of the span that it is within.
        error: its own error.
    """

    ended_ns: int
    minus_started_ns: int
    number: int
    kind: str
    key: tuple[str, str]
    parent: tuple[str, str]
    error: str | None


class _Spans:
    """What is known after some traces and spans.

    Spans may come in any order. So agents are known to have failed at the end of the file.

    Args:
        source: the file.
    """

    def __init__(self, source: Source) -> None:
        self._notes = source.notes
        self._sessions: dict[str, str] = {}
        self._agents: list[tuple[int, str, Record]] = []
        self._ended: list[_Ended] = []

    def lines(self, number: int, record: Any) -> Iterator[Line]:
        """The span, or what of it cannot be used; a trace is counted, and an agent comes at the end of the file."""
        members = as_object(record)
        try:
            trace_id = as_name(members.get("id" if members.get("object") == TRACE else "trace_id"))
            if members.get("object") not in (TRACE, SPAN):
                raise UnusableRecordError(f"object must be {TRACE} or {SPAN}")
            if trace_id is None:
                raise UnusableRecordError("the id of the trace is missing")
            if members["object"] == SPAN:
                yield from self._lines_of_span(number, trace_id, members)
                return
            self._notes[TRACE_LINE] += 1
            if session := as_name(members.get("group_id")):
                self._sessions[trace_id] = session
        except UnusableRecordError as error:
            yield rejected(number, record, str(error))

    def lines_of_agents(self) -> Iterator[Line]:
        """The spans of the agents, once all spans of the file are known."""
        failures = _failures_of_agents(self._ended)
        parents = {ended.parent for ended in self._ended}
        for number, trace_id, record in self._agents:
            key = (trace_id, record["id"])
            if key not in parents and key not in failures and record["ended_at"] is not None:
                self._notes[WITHOUT_CALLS] += 1
            try:
                yield line_of_spans(number, [self._span(trace_id, record, failures.get(key))], TOOL)
            except UnusableRecordError as error:
                yield rejected(number, record, str(error))

    def _lines_of_span(self, number: int, trace_id: str, record: Record) -> Iterator[Line]:
        data, own_id, parent_id = as_object(record.get("span_data")), as_name(record.get("id")), record.get("parent_id")
        kind, told = as_name(data.get("type")), as_object(record.get("error"))
        if own_id is None or kind is None:
            raise UnusableRecordError("the id or the type of the span is missing")
        record = record | {"id": own_id, "span_data": data | {"type": kind}}  # which may be numbers
        error = _error(told) if told else _missing_answer(kind, data)
        is_turn = as_object(data.get("data")).get("sdk_span_type") == "turn"
        is_caught = kind == "function" and (as_name(told.get("message")) or "").endswith(TOLD_TO_THE_MODEL)
        self._ended.append(
            _Ended(
                *self._order(record), number, kind="turn" if is_turn else kind, key=(trace_id, own_id),
                parent=(trace_id, as_name(parent_id) or ""), error=None if is_caught else error,
            )
        )  # fmt: skip
        if kind == "agent":
            read = {name: record.get(name) for name in ("id", "parent_id", "started_at", "ended_at", "error")}
            self._agents.append((number, trace_id, read | {"span_data": {"type": kind, "name": data.get("name")}}))
        else:
            yield line_of_spans(number, [self._span(trace_id, record, error)], TOOL)

    def _order(self, record: Record) -> tuple[int, int]:
        """When a span ended and started; where it does not tell, the times of the one before it in the file."""
        try:
            started_at, ended_at = (as_time(record.get(name), name) for name in ("started_at", "ended_at"))
        except UnusableRecordError:
            return self._ended[-1][:2] if self._ended else (0, 0)
        return int(unix_nano(ended_at)), -int(unix_nano(started_at))

    def _span(self, trace_id: str, record: Record, error: str | None) -> Record:
        """The span of a record that has an id and a type."""
        data, kind = record["span_data"], record["span_data"]["type"]
        scope = f"openai agents {trace_id}"
        span = {
            "traceId": trace_id_of(trace_id.removeprefix("trace_"), "openai agents"),
            "spanId": span_id_of(record["id"], scope),
            "parentSpanId": span_id_of(name, scope) if (name := as_name(record.get("parent_id"))) else None,
            "name": as_name(data.get("name")) or kind,
            "startTimeUnixNano": unix_nano(as_time(record.get("started_at"), "started_at")),
            "endTimeUnixNano": _end(record),
            "attributes": attributes_of(self._attributes(trace_id, kind, data)),
            "status": status_of(error),
        }
        return present(span)

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


def _failures_of_agents(spans: list[_Ended]) -> dict[tuple[str, str], str]:
    """The errors of agents: an agent failed, too, where something within it did and no model went on after that."""
    failures: dict[tuple[str, str], str] = {}
    within: dict[tuple[str, str], str] = {}  # the failure within a span, if nothing succeeded since
    for span in sorted(spans, key=lambda span: span[:3]):
        below = within.pop(span.key, None)
        error = below if span.error is None else span.error
        if span.kind == "agent":
            if error is not None:
                failures[span.key] = error
            continue
        if span.kind == "turn" or KINDS.get(span.kind) == "chat":
            within.pop(span.parent, None)
            ends = error
        else:
            ends = span.error if span.kind == "function" else below
        if ends is not None:
            within[span.parent] = ends
    return failures


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
