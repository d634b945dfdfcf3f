"""Near misses of a line: records behind a log prefix, several on a line, bare OTLP resources, NUL bytes before a line.

What belongs here: making the lines of such a file those that its writer meant, and counting what was done. What does
not: whether they are good (`native`, `otlp`), and files that are documents (`formats`).

Signs are looked for in whole blocks of bytes, so a file that shows none costs next to nothing.
"""

import json
import re
from collections import Counter
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
_BARE = re.compile(r'\s*\{\s*"(resource|schemaUrl|schema_url|scopeSpans|scope_spans|scopeLogs|scopeMetrics)"\s*:')
_BARE_FIELDS = {
    "scopeSpans": "resourceSpans",
    "scope_spans": "resource_spans",
    "scopeLogs": "resourceLogs",
    "scopeMetrics": "resourceMetrics",
}
_WRAPPERS = {"log": "stream", "MESSAGE": "__REALTIME_TIMESTAMP"}
"""Fields of a wrapper that hold a line, each with one that only this wrapper has."""
_SIGNS = (b"\0", b"}{", b"} {", b'"scope', b'{"log":', b'"MESSAGE"')
_SUSPECT = r'^[^{\s]|\}\s*\{|^\s*\{\s*"(resource|schemaUrl|schema_url|scope[A-Za-z_]+|log|MESSAGE)"\s*:|"MESSAGE"\s*:'
_NEWLINE = 10
_decode = json.JSONDecoder().raw_decode


def shows_signs(block: bytes, *, is_start: bool = True) -> bool:
    """Whether a line of a block may need mending.

    Args:
        block: bytes of a file.
        is_start: whether the block begins with a line.
    """
    if any(sign in block for sign in _SIGNS):
        return True
    read = np.frombuffer(block, dtype=np.uint8)
    firsts = read[1:][read[:-1] == _NEWLINE]
    return bool(_are_odd(firsts).any()) or (is_start and bool(_are_odd(read[:1]).any()))


def mended(block: bytes, lines: pa.Array, notes: Counter[str]) -> tuple[pa.Array, np.ndarray] | None:
    """The lines of a block as their writer meant them, and the place of each among the lines of the block.

    Args:
        block: whole lines.
        lines: the same as text.
        notes: counts what was done.

    Returns:
        None where nothing is to be done.
    """
    if not shows_signs(block):
        return None
    pieces: dict[int, list[str | None]] = {}
    for place in np.flatnonzero(_suspects(lines)).tolist():
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


def _mended_line(line: str, notes: Counter[str]) -> list[str] | None:
    """The lines that a line stands for; None where it stands for itself."""
    text = line.lstrip("\0")
    if text != line:
        if not text.strip() or "\0" in text:
            return None
        notes[NULS] += 1
        return _mended_line(text, notes) or [text]
    if _JUL_HEADER.fullmatch(text.strip()):
        notes[HEADER] += 1
        return []
    start = text.find("{")
    if start < 0 or start > MOST_PREFIX or (text[:start].strip() and not _TIME_OR_LEVEL.search(text[:start])):
        return None
    own: Counter[str] = Counter()
    if text[:start].strip():
        own[PREFIXED] += 1
    found = _records(text[start:], own)
    if found is None or not own:
        return None
    notes.update(own)
    return found


def _records(text: str, notes: Counter[str]) -> list[str] | None:
    """The records that a text holds and nothing besides; None where it is something else."""
    if _BARE.match(text) and (field := next((name for name in _BARE_FIELDS if f'"{name}"' in text), None)):
        notes[BARE] += 1
        return [f'{{"{_BARE_FIELDS[field]}":[{text}]}}']
    found = _documents(text)
    if not found:
        return None
    records: list[str] = []
    for value, written in found:
        own = _unwrapped(value, notes)
        if own is None and not (native_document.is_record(value) or otlp_document.is_document(value)):
            return None
        records += own or [written]
    if len(found) > 1:
        notes[SEVERAL] += 1
    return records


def _documents(text: str) -> list[tuple[dict[str, Any], str]]:
    """The objects of a text that holds nothing else; none otherwise."""
    found, place = [], 0
    while place < len(text):
        try:
            value, end = _decode(text, place)
        except (ValueError, RecursionError):
            return []
        if not isinstance(value, dict):
            return []
        found.append((value, text[place:end]))
        place = end + len(text[end:]) - len(text[end:].lstrip())
    return found


def _unwrapped(value: dict[str, Any], notes: Counter[str]) -> list[str] | None:
    for name, mark in _WRAPPERS.items():
        inner = value.get(name)
        if mark in value and isinstance(inner, str):
            text = inner.strip()
            found = _mended_line(text, notes) or (_records(text, notes) if text.startswith("{") else None)
            if found is not None:
                notes[WRAPPED] += 1
                return found
    return None
