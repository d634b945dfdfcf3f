"""Logs that people already have: one module a format, each turns a file into lines that `native` parses.

What belongs here: telling a file's format by its content, and one reader a format. What does not: typing, rejection and
accounting, which follow from the lines as for any log.

A file named `.jsonl` or `.ndjson` (also rotated or gzipped) is read line by line unless its first line is that of a
foreign format. A file named `.json` or `.eval` is one document, unless its first line is a record by itself, or is
damaged and the second is one. A document may hold native records, too.
"""

import json
from collections.abc import Callable, Iterator

from health_assets.logs.formats import inspect_eval, langfuse, native_document, otlp_document, tau2_bench, tau_bench
from health_assets.logs.formats.foreign_lines import UTF_16, Line, Record, Source, is_utf_16, rejected
from health_assets.logs.formats.json_pieces import opening
from health_assets.logs.stores import LINES_NAME, RawFile

Reader = Callable[[Source], Iterator[Line]]

OTLP_FIELDS = ("resourceSpans", "resourceLogs", "resourceMetrics")
BEFORE_AN_OBJECT = (b"[", b",", b":")
"""How a document's line ends if an object may stand in its next one."""
KNOWN = "the native format, OTLP-JSON, Langfuse, Inspect AI, tau-bench and tau2-bench"


def reader_of(file: RawFile, head: bytes) -> Reader | None:
    """The reader of this file; None for a file that is read as it is, line by line.

    Args:
        file: the file.
        head: its first bytes, at least the whole first line that is not blank where that is not very long.
    """
    line, _, rest = head.lstrip().partition(b"\n")
    record = _record(line)
    if LINES_NAME.search(file.source_file):
        return langfuse.read_lines if langfuse.is_record(record) else None
    if not line:
        return None
    if head.startswith(inspect_eval.ZIP_MAGIC):
        return inspect_eval.read
    if not record and not line.rstrip().endswith(BEFORE_AN_OBJECT):  # damaged, not the first line of a document
        record = _record(rest.lstrip().partition(b"\n")[0])
    if _is_line(record, has_more=bool(rest.strip())):
        return langfuse.read_lines if langfuse.is_record(record) else None
    return _document_reader(head)


def _record(line: bytes) -> Record:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _is_line(record: Record, *, has_more: bool) -> bool:
    """Whether the first line of a file named like a document is a record of a log by itself."""
    if native_document.is_record(record) or langfuse.is_record(record):
        return True
    return any(name in record for name in OTLP_FIELDS) and (has_more or len(record) == 1)


def _document_reader(head: bytes) -> Reader:
    first, members = opening(head)
    if native_document.is_record(members):
        return native_document.read
    if first == "[":
        if tau_bench.is_result(members):
            return tau_bench.read
        if langfuse.is_record(members):
            return langfuse.read_document
    elif first == "{":
        if any(name in members for name in OTLP_FIELDS):
            return otlp_document.read
        for format_module in (tau2_bench, inspect_eval):
            if format_module.is_document(members):
                return format_module.read
        if langfuse.is_page(members) or langfuse.is_record(members):
            return langfuse.read_document
    return _unknown


def _unknown(source: Source) -> Iterator[Line]:
    """The whole file is one rejected record, however many lines it has."""
    first = next(source.blocks, b"")
    if isinstance(first, bytes):
        reason = UTF_16 if is_utf_16(first[: 1 << 10]) else f"no reader knows what this file holds (known are {KNOWN})"
        yield rejected(1, first[: 1 << 10].decode(errors="replace"), reason)
    else:
        yield rejected(1, "", first.reason)
