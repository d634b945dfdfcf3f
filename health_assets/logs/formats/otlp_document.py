"""OTLP-JSON as one document that somebody made readable: every resource becomes a line as the Collector writes it."""

from collections.abc import Iterator

from health_assets.logs.formats.documents import Document, DocumentError
from health_assets.logs.formats.records import Line, Source, UnusableRecordError, line_of, rejected


def read(source: Source) -> Iterator[Line]:
    """A line for each resource of `resourceSpans`, `resourceLogs` or `resourceMetrics`."""
    document, number = Document(source.blocks), 0
    try:
        for name in document.members():
            if document.peek() != "[":
                value = document.value()
                if name.startswith("resource") and value is not None:
                    number += 1
                    yield rejected(number, {name: value}, f"{name} must be a list")
                continue
            for resource in document.elements():
                number += 1
                try:
                    yield line_of(number, {name: [resource]})
                except UnusableRecordError as error:
                    yield rejected(number, resource, str(error))
        document.finish()
    except DocumentError as error:
        yield rejected(number + 1, error.piece, error.reason)
