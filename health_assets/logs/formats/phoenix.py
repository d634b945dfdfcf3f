"""Phoenix's annotations of spans, traces and sessions, as `evaluation` lines. The mapping: docs/formats.md.

What belongs here: answers of Phoenix's API, what its client gives as JSON, and its table of annotations with a row a
line. What does not: the spans that were annotated, which are OTLP-JSON, and what an annotation says of a score, which
the targets file decides (`core.evaluators`).

The explanation of an annotation is not read, and neither is a note, which is nothing else.
"""

import re
from collections.abc import Iterator
from typing import Any

from health_assets.logs.formats.foreign_lines import (
    READ_CHARACTERS,
    Line,
    Record,
    Source,
    UnusableRecordError,
    as_time,
    dumped,
    line_of,
    present,
    rejected,
)
from health_assets.logs.formats.json_pieces import Document, DocumentError
from health_assets.logs.formats.lines import private_objects
from health_assets.logs.json_values import as_name, as_number, as_object

PAGE = {"data", "next_cursor"}
"""Members of an answer of the API."""
NAMES = ("name", "annotation_name")
"""What the annotation's name is called, in the API and in the client's table."""
ABOUT = {"span_id": 16, "trace_id": 32}
"""Ids of what was annotated, and how many hexadecimal digits they have."""
SAYS_NOTHING = "Phoenix annotation with neither a score nor a label"
UNKNOWN = "no annotation of Phoenix"
FREE_TEXTS = ("explanation", "metadata", "result", "result.explanation")
"""What a rejected annotation is shown without, since people and models write there what they like."""


def is_annotation(members: Record) -> bool:
    """Whether an object that has these members is an annotation of a span, a trace or a session."""
    is_about = not members.keys().isdisjoint((*ABOUT, "session_id"))
    return "annotator_kind" in members and is_about and not members.keys().isdisjoint(NAMES)


def read_lines(source: Source) -> Iterator[Line]:
    """One annotation a line."""
    for item in private_objects(source.blocks):
        if isinstance(item, Line):
            yield item
        else:
            yield from _lines(source, *item)


def read_document(source: Source) -> Iterator[Line]:
    """A list of annotations, an answer of the API, which has such a list, or one annotation over many lines."""
    document, number = Document(source.blocks), 0
    members: Record = {}
    try:
        if document.peek() == "[":
            for record in document.elements():
                number += 1
                yield from _lines(source, number, record)
        else:
            for name in document.members():
                if name == "data" and document.peek() == "[":
                    for record in document.elements():
                        number += 1
                        yield from _lines(source, number, record)
                else:
                    members[name] = document.value()
            if not members.keys() <= PAGE:
                yield from _lines(source, number + 1, members)
        document.finish()
    except DocumentError as error:
        yield rejected(number + 1, "", error.reason)  # the piece may hold an explanation


def _lines(source: Source, number: int, raw: Any) -> Iterator[Line]:
    annotation = as_object(raw)
    try:
        if not is_annotation(annotation):
            raise UnusableRecordError(UNKNOWN)
        told = _result(annotation)
        if not told:
            source.notes[SAYS_NOTHING] += 1
            return
        name = next((found for key in NAMES if (found := as_name(annotation.get(key)))), None)
        if name is None:
            raise UnusableRecordError("name is missing")
        at = as_time(annotation.get("updated_at") or annotation.get("created_at"), "updated_at").isoformat()
        yield line_of(number, {"type": "evaluation", "name": name, "at": at, **_about(annotation), **told})
    except UnusableRecordError as error:
        shown = {key: value for key, value in annotation.items() if key not in FREE_TEXTS}
        yield rejected(number, shown if isinstance(raw, dict) else raw, str(error))


def _result(annotation: Record) -> Record:
    """The score and the label, which the client's table has in columns of their own."""
    result = as_object(annotation.get("result"))
    score, label = (result.get(key, annotation.get(f"result.{key}")) for key in ("score", "label"))
    return present({"value": as_number(score), "label": as_name(label)})


def _about(annotation: Record) -> Record:
    """The span, the trace or the session that was annotated.

    Raises:
        UnusableRecordError: its id is none.
    """
    session_id = as_name(annotation.get("session_id"))
    for name, digits in ABOUT.items():
        stated = annotation.get(name)
        if stated is None:
            continue
        if not isinstance(stated, str) or re.fullmatch(f"[0-9a-f]{{{digits}}}", stated.lower()) is None:
            raise UnusableRecordError(
                f"{name} must be {digits} hexadecimal digits, not {dumped(stated)[:READ_CHARACTERS]}"
            )
        return present({"execution_id": stated.lower(), "session_id": session_id})
    if session_id is None:
        raise UnusableRecordError("it names neither a span nor a trace nor a session")
    return {"session_id": session_id}
