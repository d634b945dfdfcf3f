"""Phoenix's spans, as its API and its client give them: each becomes a span of OTLP-JSON with the attributes it has.

What belongs here: answers of Phoenix's API, lists of its client, and its table of spans with a row a line. What does
not: annotations (`phoenix`), and spans that a Collector wrote, which are OTLP-JSON. The mapping: docs/formats.md.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from health_assets.logs.formats.foreign_lines import (
    EPOCH,
    Line,
    Record,
    Source,
    UnusableRecordError,
    as_time,
    dumped,
    present,
    rejected,
    unix_nano,
)
from health_assets.logs.formats.json_pieces import Document, DocumentError
from health_assets.logs.formats.lines import objects
from health_assets.logs.formats.opening import Opening
from health_assets.logs.formats.otlp_writing import attributes_of, line_of_spans, status_of
from health_assets.logs.formats.phoenix import PAGE
from health_assets.logs.json_values import as_name, as_object

TOOL = "Phoenix"
SPAN = {"name", "span_kind", "start_time", "status_code"}
KIND = "openinference.span.kind"
STATUSES = ("OK", "UNSET", "ERROR")
WITHOUT_INDEX = "span_id is missing: a table of spans has it as its index, so write it with its index reset"


def is_span(members: Record) -> bool:
    """Whether an object that has these members is a span."""
    return members.keys() >= SPAN and not members.keys().isdisjoint(("context", "context.trace_id"))


def recognizes_lines(opening: Opening) -> bool:
    """Whether a file that begins so has a span a line."""
    return opening.has_lines and is_span(opening.record)


def recognizes_document(opening: Opening) -> bool:
    """Whether a file that begins so is a list of spans, an answer of the API, or one span over many lines."""
    if opening.has_lines or not (opening.is_foreign_object or opening.is_foreign_list):
        return False
    is_page = opening.is_foreign_object and opening.members.keys() <= PAGE and is_span(opening.listed)
    return is_page or is_span(opening.members)


def read_lines(source: Source) -> Iterator[Line]:
    """The span of each line."""
    for item in objects(source.blocks):
        if isinstance(item, Line):
            yield item
        else:
            yield _line(*item)


def read_document(source: Source) -> Iterator[Line]:
    """The spans of a list, of an answer of the API, or the document, which is one."""
    document, number = Document(source.blocks), 0
    members: Record = {}
    try:
        if document.peek() == "[":
            for number, record in enumerate(document.elements(), 1):
                yield _line(number, record)
        else:
            for name in document.members():
                if name == "data" and document.peek() == "[":
                    for number, record in enumerate(document.elements(), 1):
                        yield _line(number, record)
                else:
                    members[name] = document.value()
            if not members.keys() <= PAGE:
                number += 1
                yield _line(number, members)
        document.finish()
    except DocumentError as error:
        yield rejected(number + 1, error.piece, error.reason)


def _line(number: int, record: Any) -> Line:
    """The span, or what of it cannot be used."""
    try:
        return line_of_spans(number, [_span(as_object(record))], TOOL)
    except UnusableRecordError as error:
        return rejected(number, record, str(error))


def _span(record: Record) -> Record:
    context, status = as_object(record.get("context")), record.get("status_code")
    trace_id, span_id = (as_name(context.get(name, record.get(f"context.{name}"))) for name in ("trace_id", "span_id"))
    if trace_id is None:
        raise UnusableRecordError("trace_id is missing")
    if span_id is None:
        raise UnusableRecordError(WITHOUT_INDEX)
    if status not in STATUSES:
        raise UnusableRecordError(f"status_code must be one of {', '.join(STATUSES)}")
    ended_at = record.get("end_time")
    error = as_name(record.get("status_message")) or ""
    span = {
        "traceId": trace_id,
        "spanId": span_id,
        "parentSpanId": as_name(record.get("parent_id")),
        "name": as_name(record.get("name")) or "",
        "startTimeUnixNano": unix_nano(_time(record.get("start_time"), "start_time")),
        "endTimeUnixNano": None if ended_at is None else unix_nano(_time(ended_at, "end_time")),
        "attributes": attributes_of({KIND: as_name(record.get("span_kind")), **_attributes(record)}),
        "status": status_of(error if status == "ERROR" else None),
    }
    return present(span)


def _attributes(record: Record) -> Record:
    """Attributes by their whole names: the API has them in an object, the table in a column each."""
    named = {name.removeprefix("attributes."): record[name] for name in record if name.startswith("attributes.")}
    found: Record = {}
    _flatten(as_object(record.get("attributes")) | named, "", found)
    return found


def _flatten(value: Any, name: str, found: Record) -> None:
    """Add what a value holds, with names as OpenInference has them; `metadata` stays one value."""
    if isinstance(value, dict) and name != "metadata":
        for key, inner in value.items():
            _flatten(inner, f"{name}.{key}" if name else key, found)
    elif isinstance(value, list) and any(isinstance(inner, dict) for inner in value):
        for place, inner in enumerate(value):
            _flatten(inner, f"{name}.{place}", found)
    elif isinstance(value, float) and value.is_integer():
        found[name] = int(value)  # a column of counts with gaps holds decimals
    elif value is not None:
        found[name] = value if isinstance(value, str | int | float) else dumped(value)


def _time(value: Any, name: str) -> datetime:
    """ISO 8601, or milliseconds since 1970, as tables write times."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return EPOCH + timedelta(milliseconds=value)
        except (OverflowError, ValueError):
            raise UnusableRecordError(f"{name} is beyond the calendar") from None
    return as_time(value, name)
