"""Formats that are declared: telling their files, and reading them.

What belongs here: files with a record a line, and documents of records. What does not: what a record becomes
(`declared_records`).
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from health_assets.logs.formats.declaration import EVERY_RECORD, Declaration, load_declaration
from health_assets.logs.formats.declared_records import DeclaredRecords, Place
from health_assets.logs.formats.foreign_lines import Line, Record, Source, rejected
from health_assets.logs.formats.json_pieces import Document, DocumentError
from health_assets.logs.formats.lines import objects, private_objects
from health_assets.logs.formats.opening import Opening

FOLDER = Path(__file__).parent / "declarations"
"""The declarations that come with the program, a file each."""


@cache
def packaged(file_name: str) -> Declaration:
    """A declaration that comes with the program."""
    return load_declaration(FOLDER / f"{file_name}.yaml")


def is_lines(declaration: Declaration, opening: Opening) -> bool:
    """Whether a file that begins so has a record of the format a line."""
    if declaration.records is not None or not opening.has_lines:
        return False
    records = opening.first_records or [opening.record]
    if declaration.private and not any(records):  # a first line that is cut off, whose text must not be stored
        records = [opening.members]
    return any(declaration.fits(record, _no_list) for record in records)


def is_document(declaration: Declaration, opening: Opening) -> bool:
    """Whether a file that begins so is a document of records of the format."""
    if opening.has_lines or not (opening.is_foreign_object or opening.is_foreign_list):
        return False
    return declaration.fits(opening.members, opening.listed_in)


def _no_list(_: str) -> Record:
    return {}


def read_lines(declaration: Declaration, source: Source) -> Iterator[Line]:
    """What becomes of the record of each line."""
    records = DeclaredRecords(declaration, source.notes)
    for item in (private_objects if declaration.private else objects)(source.blocks):
        if isinstance(item, Line):
            yield item
        else:
            number, record = item
            yield from records.lines(record, Place(number=number, key=None, file=source.file, document={}))


def read_document(declaration: Declaration, source: Source) -> Iterator[Line]:
    """What becomes of each record of a list, of a document's list, or of the document, which is a record itself."""
    records, number = DeclaredRecords(declaration, source.notes), 0
    about: Record = {}
    waits = declaration.is_about_the_document
    waiting: list[tuple[str | None, object]] = []  # records whose document may say more behind them
    fault: Line | None = None
    document = Document(source.blocks)

    def made(key: str | None, record: object) -> Iterator[Line]:
        nonlocal number
        number += 1
        yield from records.lines(record, Place(number=number, key=key, file=source.file, document=about))

    try:
        for key, record in _records(document, declaration, about):
            if waits:
                waiting.append((key, record))
            else:
                yield from made(key, record)
        document.finish()
    except DocumentError as error:
        fault = rejected(number + len(waiting) + 1, "" if declaration.private else error.piece, error.reason)
    for key, record in waiting:
        yield from made(key, record)
    if fault is not None:
        yield fault


def _records(document: Document, declaration: Declaration, about: Record) -> Iterator[tuple[str | None, object]]:
    """(key, record) of each record; what else the document has is kept in `about`."""
    if document.peek() == "[":
        yield from ((None, record) for record in document.elements())
    elif declaration.records is None:
        yield None, document.value()
    else:
        yield from _held_records(document, declaration.records, about)


def _held_records(document: Document, records: str, about: Record) -> Iterator[tuple[str | None, object]]:
    """The records that a document holds; one that holds none is a record itself."""
    holds_records = False
    for name in document.members():
        if records == EVERY_RECORD:
            holds_records = True
            yield name, document.value()
        elif name == records and document.peek() in ("[", "{"):
            holds_records = True
            if document.peek() == "[":
                yield from ((None, record) for record in document.elements())
            else:
                yield from ((key, document.value()) for key in document.members())
        else:
            about[name] = document.value()
    if not holds_records:
        yield None, about
