"""OpenTelemetry logs (OTLP-JSON) that coding agents write: lines of `resourceLogs`, to events.

What belongs here: telling such lines from others, and what a log record says in whichever spelling. What does not: what
the events of a session come to (`agent_log_turns`). The mapping: docs/opentelemetry.md.

Events hold prompts, commands and paths. None of them leaves this module: a content becomes its fingerprint, and a line
that cannot be used its reason alone. Lines of a file that are of no coding agent are read as they are elsewhere.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from health_assets.logs.formats import native_document, otlp_document
from health_assets.logs.formats.codex import exit_code_of
from health_assets.logs.formats.coding_turns import fingerprint
from health_assets.logs.formats.foreign_lines import (
    EPOCH,
    Line,
    Record,
    Source,
    UnusableRecordError,
    as_time,
    line_of,
    present,
    rejected,
)
from health_assets.logs.formats.lines import texts
from health_assets.logs.formats.opening import Opening
from health_assets.logs.json_values import as_count, as_list, as_object
from health_assets.logs.otlp_lines import LOGS_START, SNAKE_OF_CAMEL, UNSERVED_REASON, is_otlp

PREFIXES = ("claude_code", "codex", "gemini_cli")
SCOPE = re.compile(r"com\.anthropic\.claude_code\..*|codex_.*|gemini-cli")
"""Scopes of these agents' records: also those without an event may hold what somebody asked."""
EVENT = re.compile(rf"({'|'.join(PREFIXES)})\.([a-z_.]+)")
TEXT = re.compile(
    rb'^\s*\{\s*"resource_?[lL]ogs"\s*:[^\n]*(claude|codex|gemini)|"(%s)\.[a-z_.]+"' % "|".join(PREFIXES).encode()
)
"""A part of such a file, also of one whose first line has no end yet."""
_LINE_OF_LOGS = re.compile(LOGS_START.encode())
_EVENT_IN_LINE = re.compile(rb'"(%s)\.[a-z_.]+"' % "|".join(PREFIXES).encode())
_LOGS, _METRICS = re.compile(LOGS_START), re.compile(LOGS_START.replace("Logs|_logs", "Metrics|_metrics"))
_KINDS = {spelled for kind in ("stringValue", "intValue", "doubleValue", "boolValue")
          for spelled in (kind, SNAKE_OF_CAMEL[kind])}  # fmt: skip
REDACTED = ("<REDACTED>", "[REDACTED]")
"""What stands in place of a prompt that its user does not want to be logged."""
ASKS_FOR_TOOL = re.compile(r'(?<!\\)"functionCall"\s*:')
"""A call of a tool in an answer of Gemini, and not in a text within it."""
STORED_ATTRIBUTES = (
    "session.id", "conversation.id", "prompt.id", "prompt_id", "event.kind", "event.sequence", "app.version", "user.id",
    "model", "role", "query_source", "request_id", "duration_ms", "status_code", "http.response.status_code",
    "endpoint", "error_type", "cost_usd", "tool_name", "function_name", "tool_use_id", "call_id", "success",
    "decision", "input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens", "input_token_count",
    "output_token_count", "cached_token_count", "cache_write_token_count", "reasoning_token_count",
    "cached_content_token_count", "thoughts_token_count", "tool_token_count",
)  # fmt: skip
"""Attributes that hold names, numbers and ids; of all others only what `_content_values` makes of them is stored."""

NOT_JSON = "not valid JSON"
UNKNOWN_LINE = "neither OTLP-JSON nor a record of the native format, in a file of OTLP logs of coding agents"
METRICS = UNSERVED_REASON.format(what="metrics", field="resourceMetrics")
TRACED = "Claude Code event of a trace, whose spans tell of it"
REPEATED = "event of a coding agent that came twice"
NO_RECORDS = "logs of a coding agent without a log record"
NO_EVENT = "log record of a coding agent that tells of no turn or call"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What a coding agent logged.

    Args:
        prefix: of its name, which tells the agent.
        name: the rest of its name.
        at: when it happened.
        nanoseconds: the same as the record states it, which tells events of a millisecond apart.
        line: number of its line.
        version: version of the agent's service.
        values: attributes without contents, and what was made of contents.
    """

    prefix: str
    name: str
    at: datetime
    nanoseconds: str
    line: int
    version: str | None
    values: Record

    @property
    def order(self) -> tuple[datetime, int, int]:
        """Its place among the events of a session, which those of one moment may share."""
        return self.at, as_count(self.values.get("event.sequence")) or 0, as_count(self.nanoseconds) or 0


@dataclass
class Events:
    """The events of a file, and the counts of its other records.

    Args:
        source: the file.
        events: the events.
    """

    source: Source
    events: list[Event] = field(default_factory=list)
    _digests: set[int] = field(default_factory=set, init=False)

    def add_line(self, number: int, text: str) -> Iterator[Line]:
        """Add the events of a line; gives what else is in the line, and what of it cannot be used."""
        if not is_otlp(text):
            yield _native_or_rejected(number, text)
        elif _METRICS.match(text):
            yield rejected(number, "", METRICS)
        elif _LOGS.match(text) is None:
            yield Line(number, text)
        elif (resources := _resources(text)) is None:
            yield rejected(number, "", NOT_JSON)
        else:
            of_agents, others = list[Record](), list[Record]()
            for resource in resources:
                (of_agents if _is_of_agent(resource) else others).append(resource)
            if not of_agents:
                yield Line(number, text)
            elif others:
                yield _line_of_logs(number, others)
            reasons = dict.fromkeys(reason for resource in of_agents for reason in self._add_resource(number, resource))
            yield from (rejected(number, "", reason) for reason in reasons)

    def _add_resource(self, number: int, resource: Record) -> Iterator[str]:
        """Add the events of a resource; gives the reasons why records cannot be used."""
        version = _attributes(as_object(resource.get("resource"))).get("service.version")
        records = list(_records(resource))
        if not records:
            self.source.notes[NO_RECORDS] += 1
        for record in records:
            values = _attributes(record)
            names = _name_of(record, values.get("event.name"))
            if names is None:
                self.source.notes[NO_EVENT] += 1
            elif names[0] == "claude_code" and _is_in_trace(record):
                self.source.notes[TRACED] += 1
            elif (digest := _digest(names, record, values)) in self._digests:
                self.source.notes[REPEATED] += 1
            else:
                self._digests.add(digest)
                try:
                    self.events.append(_event(number, names, version, record, values))
                except UnusableRecordError as error:
                    yield str(error)


def recognizes(opening: Opening) -> bool:
    """Whether a file that begins so has lines of OTLP-JSON, and one with logs of a coding agent among the first.

    Its first line may be damaged.
    """
    is_lines = opening.is_otlp_line or (opening.is_named_lines and not opening.record)
    if not is_lines or not opening.holds_otlp_logs:
        return False
    lines = opening.head.split(b"\n")
    return any(_LINE_OF_LOGS.match(line) and _EVENT_IN_LINE.search(line) for line in lines)


def recognizes_document(opening: Opening) -> bool:
    """Whether a file that begins so is a document of OTLP-JSON with logs of a coding agent."""
    if not opening.is_foreign_object or not otlp_document.is_document(opening.members):
        return False
    return opening.holds_otlp_logs and _EVENT_IN_LINE.search(opening.head) is not None


def events_of_lines(source: Source, events: Events) -> Iterator[Line]:
    """Add the events of a file; yields all other lines: those without an event unchanged, unusable ones rejected."""
    yield from _all(texts(source.blocks), events)


def events_of_document(source: Source, events: Events) -> Iterator[Line]:
    """The same of a document."""
    read = otlp_document.read(source)
    yield from _all((line if line.fault is not None else (line.number, line.text) for line in read), events)


def _all(items: Iterable[tuple[int, str] | Line], events: Events) -> Iterator[Line]:
    for item in items:
        if isinstance(item, Line):
            yield Line(item.number, "", item.fault)
        else:
            yield from events.add_line(*item)


def _line_of_logs(number: int, resources: list[Record]) -> Line:
    try:
        return line_of(number, {"resourceLogs": resources})
    except UnusableRecordError as error:
        return rejected(number, "", str(error))


def _native_or_rejected(number: int, text: str) -> Line:
    """A line that is not of OTLP; a part of one could hold anything."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return rejected(number, "", NOT_JSON)
    is_native = isinstance(record, dict) and native_document.is_record(record)
    return Line(number, text) if is_native else rejected(number, "", UNKNOWN_LINE)


# -- log records -------------------------------------------------------------------------------------------------------


def _of(record: Record, name: str) -> Any:
    """A member in whichever of its two spellings."""
    return record.get(name, record.get(SNAKE_OF_CAMEL.get(name, name)))


def _resources(text: str) -> list[Record] | None:
    """The resources of a line of logs; None where it is none that can be read."""
    try:
        line = json.loads(text)
    except (ValueError, RecursionError):
        return None
    resources = _of(as_object(line), "resourceLogs")
    return list(map(as_object, resources)) if isinstance(resources, list) else None


def _records(resource: Record) -> Iterator[Record]:
    for scope in as_list(_of(resource, "scopeLogs")):
        yield from map(as_object, as_list(_of(as_object(scope), "logRecords")))


def _attributes(owner: Record) -> Record:
    """Attributes with one value, by name."""
    items = [as_object(item) for item in as_list(owner.get("attributes"))]
    return {item["key"]: _value(item.get("value")) for item in items if isinstance(item.get("key"), str)}


def _value(value: Any) -> Any:
    """The value of an attribute; None where it is a list or an object."""
    for kind, scalar in value.items() if isinstance(value, dict) else ():
        if kind in _KINDS and isinstance(scalar, str | int | float):
            return scalar
    return None


def _name_of(record: Record, stated: Any) -> tuple[str, str] | None:
    """The agent and the name of an event.

    Claude Code states the whole name in the body alone, the others as an attribute.
    """
    for name in (stated, _value(record.get("body")), _of(record, "eventName")):
        if isinstance(name, str) and (match := EVENT.fullmatch(name)):
            return match[1], match[2]
    return None


def _attribute(owner: Record, name: str) -> Any:
    items = (as_object(item) for item in as_list(owner.get("attributes")))
    return next((_value(item.get("value")) for item in items if item.get("key") == name), None)


def _is_of_agent(resource: Record) -> bool:
    scopes = (as_object(as_object(scope).get("scope")).get("name") for scope in as_list(_of(resource, "scopeLogs")))
    is_scope = any(isinstance(name, str) and SCOPE.fullmatch(name) for name in scopes)
    return is_scope or any(_name_of(record, _attribute(record, "event.name")) for record in _records(resource))


def _is_in_trace(record: Record) -> bool:
    trace = _of(record, "traceId")
    return isinstance(trace, str) and trace.strip("0") != ""


def _digest(names: tuple[str, str], record: Record, values: Record) -> int:
    """Equal for records that were delivered twice."""
    stamps = [str(_of(record, name)) for name in ("timeUnixNano", "observedTimeUnixNano", "spanId")]
    return hash((names, *stamps, frozenset(values.items())))


def _event(number: int, names: tuple[str, str], version: Any, record: Record, values: Record) -> Event:
    at, nanoseconds = _time(record, values.get("event.timestamp"))
    return Event(
        prefix=names[0], name=names[1], at=at, nanoseconds=nanoseconds, line=number,
        version=version if isinstance(version, str) else None, values=_without_contents(values),
    )  # fmt: skip


def _time(record: Record, stated: Any) -> tuple[datetime, str]:
    """When an event happened. The time of Codex's records is 0, and that of their observation is not."""
    written = [str(_of(record, name) or "") for name in ("timeUnixNano", "observedTimeUnixNano")]
    nanoseconds = next((text for text in written if re.fullmatch("[0-9]{1,19}", text) and int(text)), "")
    if stated is not None:
        try:
            return as_time(stated, "event.timestamp"), nanoseconds
        except UnusableRecordError:
            raise UnusableRecordError("event.timestamp must be ISO 8601") from None
    if not nanoseconds:
        raise UnusableRecordError("the time of an event is missing")
    return EPOCH + timedelta(microseconds=int(nanoseconds) // 1000), nanoseconds


def _without_contents(values: Record) -> Record:
    """Attributes that hold no content, and what is stored of contents."""
    stored = {name: values[name] for name in STORED_ATTRIBUTES if values.get(name) is not None}
    return stored | present(dict(_content_values(values)))


def _content_values(values: Record) -> Iterator[tuple[str, Any]]:
    """What is stored of contents, by name."""
    prompt, output = values.get("prompt"), values.get("output")
    yield "prompt_fingerprint", None if prompt in REDACTED else fingerprint(prompt)
    yield "arguments_fingerprint", _arguments_fingerprint(values)
    yield "has_error", True if any(values.get(name) is not None for name in ("error", "error.message")) else None
    if isinstance(output, str):
        yield "exit_code", exit_code_of(output)
    answer = values.get("response_text")
    yield "asks_for_tool", ASKS_FOR_TOOL.search(answer) is not None if isinstance(answer, str) else None


def _arguments_fingerprint(values: Record) -> str | None:
    """The fingerprint of a tool's arguments, equal to that of the session's own file; None where they were cut."""
    names = ("tool_input", "arguments", "function_args")
    text = next((values[name] for name in names if values.get(name)), None)
    if not isinstance(text, str):
        return None
    size = as_count(values.get("tool_input_size_bytes"))
    if size is not None and size != len(text.encode(errors="replace")):
        return None
    try:
        return fingerprint(json.loads(text))
    except (ValueError, RecursionError, UnusableRecordError):
        return fingerprint(text)
