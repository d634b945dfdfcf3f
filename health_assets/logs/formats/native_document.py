"""Records of the native format in JSON documents, lists or single ones: each becomes a line by itself."""

from collections.abc import Iterator

from health_assets.logs.formats.foreign_lines import Line, Record, Source, rejected
from health_assets.logs.formats.json_pieces import Document, DocumentError
from health_assets.schema.records import LINE_TYPES


def is_record(members: Record) -> bool:
    """Whether an object that has these members is a record."""
    kind = members.get("type")
    return isinstance(kind, str) and kind in LINE_TYPES


def read(source: Source) -> Iterator[Line]:
    """A line for each record, as it is written, so that it is judged like any line."""
    document, number = Document(source.blocks), 0
    try:
        while True:
            for text in document.texts() if document.peek() == "[" else [document.text()]:
                number += 1
                yield Line(number, text)
            if document.peek() not in ("{", "["):
                break
        document.finish()
    except DocumentError as error:
        yield rejected(number + 1, error.piece, error.reason)
