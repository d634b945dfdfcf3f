"""Near misses of a line: records behind a log prefix, several on a line, bare OTLP resources, NUL bytes before a line.

What belongs here: making the lines of such a file those that its writer meant, and counting what was done. What does
not: whether they are good (`native`, `otlp`), and files that are documents (`formats`).

Signs are looked for in whole blocks of bytes, so a file that shows none costs next to nothing.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from health_assets.logs.formats import native_document, otlp_document

NULS = "NUL bytes before a line, left out: the file was cut while its writer held it open (copytruncate)"
PREFIXED = "line behind a log prefix, which is left out"
WRAPPED = "line in the log record of a container or of journald"
SEVERAL = "line with several JSON documents, each read as a line"
BARE = "bare OTLP resource, as a logging exporter writes it"
HEADER = "first line of a java.util.logging record, which holds no data"
MENDED = (NULS, PREFIXED, WRAPPED, SEVERAL, BARE, HEADER)
"""Notes of files whose lines were mended."""

MOST_PREFIX = 300
"""Characters before the JSON object that may be a log prefix."""
_TIME_OR_LEVEL = re.compile(
    r"\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d|\b(TRACE|FINE|DEBUG|INFO|NOTICE|WARN(ING)?|ERROR|SEVERE|FATAL|CRITICAL)\b"
)
_JUL_HEADER = re.compile(r"[A-Z][a-z]{2} \d{1,2}, \d{4},? \d{1,2}:\d\d:\d\d\s[AP]M \S+ \S+")
MOST_DOCUMENTS = 100_000
"""Documents of a line, which is left as it is where it has more: a line without an end holds millions of small ones."""
MOST_WRAPPERS = 4
"""Wrappers around a record, such as that of a container within that of journald."""
_BARE_FIELDS = {
    "scopeSpans": "resourceSpans",
    "scope_spans": "resource_spans",
    "scopeLogs": "resourceLogs",
    "scopeMetrics": "resourceMetrics",
}
_FIRST_OF_BARE = ("resource", "schemaUrl", "schema_url", *_BARE_FIELDS)
_BLANKS = re.compile(r"\s*")
_WRAPPERS = {"log": "stream", "MESSAGE": "__REALTIME_TIMESTAMP"}
"""Fields of a wrapper that hold a line, each with one that only this wrapper has."""
_SIGNS = (b"\0", b"}{", b"} {", b"}  {", b"}\t{", b'"scope', b'{"log":', b'{ "log"', b'"MESSAGE"')
_SUSPECT = r'^[^{\s]|\}\s*\{|^\s*\{\s*"(resource|schemaUrl|schema_url|scope[A-Za-z_]+|log|MESSAGE)"\s*:|"MESSAGE"\s*:'
_ANYWHERE = (b"\0", b'"MESSAGE"')
_NEWLINE, _QUOTE, _OBJECT, _OBJECT_END = b'\n"{}'
_THIRD_OF_ODD = np.frombuffer(b"rslM", dtype=np.uint8)
"""Third bytes of lines that begin with a field of a bare resource or of a wrapper."""
_AFTER_OBJECT = np.frombuffer(b"{ \t", dtype=np.uint8)
_decode = json.JSONDecoder().raw_decode


def shows_signs(block: bytes) -> bool:
    """Whether a line of a block of whole lines may need mending."""
    if not block:
        return False
    read = np.frombuffer(block, dtype=np.uint8)
    starts = np.concatenate(([0], np.flatnonzero(read[:-1] == _NEWLINE) + 1))
    if _begins_usually(read, starts) and not _has_object_after_object(read) and not any(s in block for s in _ANYWHERE):
        return False
    return any(sign in block for sign in _SIGNS) or bool(_are_odd(read[starts]).any())


def _begins_usually(read: np.ndarray, starts: np.ndarray) -> bool:
    """Whether each line begins as no line does that needs mending; one look at three bytes a line tells."""
    first, second, third = (read.take(starts + place, mode="clip") for place in range(3))
    return not bool(((first != _OBJECT) | (second != _QUOTE) | np.isin(third, _THIRD_OF_ODD)).any())


def _has_object_after_object(read: np.ndarray) -> bool:
    """Whether an object's end is followed by a blank or by another object."""
    after = read.take(np.flatnonzero(read[:-1] == _OBJECT_END) + 1)
    return bool(np.isin(after, _AFTER_OBJECT).any())


def mended(block: bytes, lines: pa.Array, faults: pa.Array, notes: Counter[str]) -> tuple[pa.Array, np.ndarray] | None:
    """The lines of a block as their writer meant them, and the place of each among the lines of the block.

    Args:
        block: whole lines.
        lines: the same as text.
        faults: the reason for which each cannot be used, or null; a line with one is left as it is.
        notes: counts what was done.

    Returns:
        None where nothing is to be done.
    """
    if not shows_signs(block):
        return None
    pieces: dict[int, list[str | None]] = {}
    for place in np.flatnonzero(_suspects(lines) & np.asarray(pc.is_null(faults))).tolist():
        found = _mended_line(lines[place].as_py().rstrip("\r\n"), notes)
        if found is not None:
            pieces[place] = [*found]
    if not pieces:
        return None
    texts: list[str | None] = []
    places: list[int] = []
    for place, line in enumerate(lines.to_pylist()):
        own = pieces.get(place, [line])
        texts += own
        places += [place] * len(own)
    return pa.array(texts, pa.string()), np.array(places, np.int64)


def _suspects(lines: pa.Array) -> np.ndarray:
    """Tell of each line whether it is worth a closer look."""
    return np.asarray(pc.match_substring_regex(lines, _SUSPECT))


def _are_odd(firsts: np.ndarray) -> np.ndarray:
    return ~np.isin(firsts, np.frombuffer(b"{ \t\r\n", dtype=np.uint8))


def _mended_line(line: str, notes: Counter[str], wrappers: int = 0) -> list[str] | None:
    """The lines that a line stands for; None where it stands for itself."""
    text = line.lstrip("\0")
    if text != line:
        if not text.strip() or "\0" in text:
            return None
        notes[NULS] += 1
        lines = _mended_line(text, notes, wrappers)
        return [text] if lines is None else lines
    if _JUL_HEADER.fullmatch(text.strip()):
        notes[HEADER] += 1
        return []
    start = text.find("{")
    if start < 0 or start > MOST_PREFIX or (text[:start].strip() and not _TIME_OR_LEVEL.search(text[:start])):
        return None
    own: Counter[str] = Counter()
    if text[:start].strip():
        own[PREFIXED] += 1
    found = _records(text[start:], own, wrappers)
    if found is None or not (own or wrappers):
        return None
    notes.update(own)
    return found


def _records(text: str, notes: Counter[str], wrappers: int) -> list[str] | None:
    """The records that a text holds and nothing besides; None where it is something else.

    Args:
        text: begins with an object.
        notes: counts what was done, also where the text turns out to be something else.
        wrappers: number of wrappers that the text was taken out of.
    """
    records: list[str] = []
    for count, document in enumerate(_documents(text), 1):
        own = _lines_of(*document, notes, wrappers) if document and count <= MOST_DOCUMENTS else None
        if own is None:
            return None
        records += own
        if count == 2:
            notes[SEVERAL] += 1
    return records


def _documents(text: str) -> Iterator[tuple[dict[str, Any], str] | None]:
    """The objects of a text, each with how it is written; None where something else follows, and nothing after it."""
    place = 0
    while place < len(text):
        try:
            value, end = _decode(text, place)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            yield None
            return
        yield value, text[place:end]
        blanks = _BLANKS.match(text, end)
        place = blanks.end() if blanks else end


def _lines_of(value: dict[str, Any], text: str, notes: Counter[str], wrappers: int) -> list[str] | None:
    """The lines that a document stands for; None where it is no record, and holds none."""
    unwrapped = _unwrapped(value, notes, wrappers)
    if unwrapped is not None:
        return unwrapped
    if native_document.is_record(value) or otlp_document.is_document(value):
        return [text]
    field = next((name for name in _BARE_FIELDS if name in value), None)
    if field is None or next(iter(value)) not in _FIRST_OF_BARE:
        return None
    notes[BARE] += 1
    return [f'{{"{_BARE_FIELDS[field]}":[{text}]}}']


def _unwrapped(value: dict[str, Any], notes: Counter[str], wrappers: int) -> list[str] | None:
    """The lines within the log record of a container or of journald; None where it is no such record."""
    if wrappers == MOST_WRAPPERS:
        return None
    for name, mark in _WRAPPERS.items():
        inner = value.get(name)
        if mark in value and isinstance(inner, str) and _is_utf_8(inner):
            own: Counter[str] = Counter()
            lines = _mended_line(inner.strip(), own, wrappers + 1)
            if lines is not None:
                notes.update(own)
                notes[WRAPPED] += 1
                return lines
    return None


def _is_utf_8(text: str) -> bool:
    """Whether a text is UTF-8, which half a surrogate pair that JSON spells is not."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
