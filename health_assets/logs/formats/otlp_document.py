"""OTLP-JSON as one document that somebody made readable: every resource becomes a line as the Collector writes it."""

import json
from collections.abc import Iterator

from health_assets.logs.formats.foreign_lines import Line, Record, Source, rejected
from health_assets.logs.formats.json_pieces import Document, DocumentError

FIELDS = ("resourceSpans", "resourceLogs", "resourceMetrics", "resource_spans", "resource_logs", "resource_metrics")
"""Both spellings of Protobuf's JSON."""


def is_document(members: Record) -> bool:
    """Whether an object that has these members is one that a collector writes."""
    return any(name in members for name in FIELDS)


def read(source: Source) -> Iterator[Line]:
    """A line for each resource of `resourceSpans`, `resourceLogs` or `resourceMetrics`, as it is written."""
    document, number = Document(source.blocks), 0
    try:
        for name in document.members():
            if document.peek() != "[":
                value = document.value()
                if name.startswith("resource") and value is not None:
                    number += 1
                    yield rejected(number, {name: value}, f"{name} must be a list")
                continue
            for resource in document.texts():
                number += 1
                yield Line(number, f"{{{json.dumps(name)}:[{resource}]}}")
        document.finish()
    except DocumentError as error:
        yield rejected(number + 1, error.piece, error.reason)
