"""Names for files that no reader knows, by their first bytes, with what would help.

What belongs here: names for people. What does not: which files are read (`formats`).
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from health_assets.logs.json_values import as_list, as_object

WRITE_LINES = "write one JSON object a line"
GIVE_TYPES = (
    "give each line one of our types (docs/log-format.md), or declare the format: `health-assets inspect FILE "
    "--suggest` writes a first declaration"
)
NO_LOG = "it is no log; move it elsewhere"
NO_RUNS = "it tells lines of a program and no runs of agents"
SEND_TRACES = "export its OpenTelemetry traces as OTLP-JSON"
_BINARY = (
    (b"PK\x03\x04", "a ZIP archive", "unpack it"),
    (b"\x1f\x8b", "gzip data", "add .gz to its name"),
    (b"\x28\xb5\x2f\xfd", "zstd data", "unpack it"),
    (b"BZh", "bzip2 data", "unpack it"),
    (b"\xfd7zXZ", "xz data", "unpack it"),
    (b"SQLite format 3\0", "an SQLite database", WRITE_LINES),
    (b"PAR1", "a Parquet file", WRITE_LINES),
    (b"ARROW1", "an Arrow file", WRITE_LINES),
    (b"Obj\x01", "an Avro file", WRITE_LINES),
    (b"ORC", "an ORC file", WRITE_LINES),
    (b"%PDF", "a PDF document", WRITE_LINES),
    (b"\x80\x04\x95", "a Python pickle", WRITE_LINES),
    (b"\x80\x05\x95", "a Python pickle", WRITE_LINES),
    (b"\x93NUMPY", "a NumPy array", WRITE_LINES),
    (b"\x89PNG\r\n", "an image", NO_LOG),
    (b"\xff\xd8\xff", "an image", NO_LOG),
    (b"GIF8", "an image", NO_LOG),
    (b"\x7fELF", "a program", NO_LOG),
)
_SECTION = re.compile(r"\[+[A-Za-z][\w. -]*\]+[ \t]*\r?\n")
_TEXTS = (
    (
        re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d|[A-Z][a-z]{2} +\d+ [\d:]{8} "),
        "lines of a program's log",
        NO_RUNS,
    ),
    (re.compile(r"[0-9a-f.:]{3,45} \S+ \S+ \["), "a web server's log", NO_RUNS),
    (re.compile(r"#!"), "a script", NO_LOG),
    (re.compile(r"diff --git |--- \S+"), "a patch", NO_LOG),
    (re.compile(r"#{1,3} \S"), "Markdown", WRITE_LINES),
    (_SECTION, "TOML or INI", WRITE_LINES),
)
"""First lines of texts, by what they tell."""
_MOST_SHOWN_FIELDS = 6
LONG_VALUE = 1 << 20
"""Characters of a value from which on the head may hold only its beginning."""
LONGEST_WORD = 8
"""Characters before the end of the text at which a parser stops where a word of JSON is cut."""
_BLANKS = re.compile(r"[\s\ufeff\0]*")
"""Blanks of Unicode, byte order marks and NUL bytes."""


@dataclass(frozen=True)
class FormatHint:
    """A name for what a file looks like, and what would help."""

    name: str
    hint: str

    def __str__(self) -> str:
        return f"looks like {self.name}; {self.hint}"


_TOOLS: tuple[tuple[Callable[[dict[str, Any]], bool], str, str], ...] = (
    (lambda of: "run_type" in of and ("trace_id" in of or "dotted_order" in of), "runs of LangSmith", SEND_TRACES),
    (lambda of: "traceID" in of and "spans" in of, "traces of Jaeger", "export them as OTLP-JSON"),
    (
        lambda of: "traceId" in of and "id" in of and "localEndpoint" in of,
        "spans of Zipkin",
        "export them as OTLP-JSON",
    ),
    (
        lambda of: "trace_id" in as_object(of.get("context")) and "name" in of,
        "spans as OpenTelemetry's console exporter or Phoenix's client prints them",
        "export them as OTLP-JSON",
    ),
    (lambda of: "info" in of and "spans" in as_object(of.get("data")), "a trace of MLflow", "export it as OTLP-JSON"),
    (
        lambda of: "spanId" in of and "traceId" in of and "startTimeUnixNano" in of,
        "single spans of OTLP-JSON",
        'put them into {"resourceSpans": [{"scopeSpans": [{"spans": [...]}]}]}',
    ),
    (lambda of: "nbformat" in of and "cells" in of, "a Jupyter notebook", NO_LOG),
    (lambda of: of.get("type") == "FeatureCollection", "GeoJSON", NO_LOG),
    (lambda of: "lockfileVersion" in of or ("name" in of and "dependencies" in of), "a package's own file", NO_LOG),
    (lambda of: "entries" in as_object(of.get("log")), "recorded web traffic (HAR)", NO_RUNS),
    (lambda of: "apiVersion" in of and "kind" in of, "objects of Kubernetes", NO_RUNS),
    (lambda of: "eventVersion" in of and "eventName" in of, "events of CloudTrail", NO_RUNS),
    (lambda of: "logName" in of and "insertId" in of, "entries of Google Cloud Logging", NO_RUNS),
    (lambda of: "tests" in of and "exitcode" in of, "a report of pytest", WRITE_LINES),
    (lambda of: "choices" in of and "object" in of, "answers of a model's API without their times", SEND_TRACES),
    (lambda of: "custom_id" in of and "response" in of, "results of a batch API of a model", WRITE_LINES),
    (lambda of: bool(as_list(of.get("messages"))), "chat messages without times and outcome", WRITE_LINES),
    (lambda of: "level" in of and not {"msg", "message", "event"}.isdisjoint(of), "lines of a program's log", NO_RUNS),
)


def hint_of(head: bytes) -> FormatHint:
    """Name what a file that begins so looks like.

    Args:
        head: its first bytes, unpacked.
    """
    for magic, name, hint in _BINARY:
        if head.startswith(magic):
            return FormatHint(name, hint)
    if not head:
        return FormatHint("an empty file", "nothing was written there")
    if not head.strip(b"\0 \t\r\n"):
        return FormatHint("NUL bytes and blanks alone", "nothing was written there")
    text = _BLANKS.sub("", head.decode(errors="replace"), count=1)
    if not text:
        return FormatHint("blanks alone", "nothing was written there")
    if text[:100].count("\ufffd") > 3 or "\0" in text:
        return FormatHint("binary data", WRITE_LINES)
    return _hint_of_text(text)


def _hint_of_text(text: str) -> FormatHint:
    """Name a text that begins with a character that is not blank."""
    start = text[:200].lower()
    if start.startswith(("<!doctype html", "<html")):
        return FormatHint("an HTML page", "it may be the answer of a sign-in page in place of the export")
    if start.startswith("<"):
        return FormatHint("XML", WRITE_LINES)
    if text[0] == "{" or (text[0] == "[" and not _SECTION.match(text)):
        return _hint_of_json(text)
    first, *others = [line for line in text.splitlines() if line.strip()]
    for pattern, name, hint in _TEXTS:
        if pattern.match(f"{first}\n"):
            return FormatHint(name, hint)
    if start.startswith("---") or (": " in first and all(map(_is_of_yaml, others[:5]))):
        return FormatHint("YAML", WRITE_LINES)
    for separator, name in ((",", "CSV"), ("\t", "tab-separated values"), (";", "CSV")):
        if separator in first and others and others[0].count(separator) == first.count(separator):
            return FormatHint(name, WRITE_LINES)
    return FormatHint("plain text", WRITE_LINES)


def _is_of_yaml(line: str) -> bool:
    return ": " in line or line[:1] in " -#" or line.endswith(":")


def _hint_of_json(text: str) -> FormatHint:
    value = _first_object(text)
    if value is None:
        if len(text) >= LONG_VALUE and _ends_too_soon(text):
            return FormatHint("the beginning of a JSON value of more than 1 MiB", GIVE_TYPES)
        return FormatHint("JSON that is not valid", WRITE_LINES)
    for is_of_tool, name, hint in _TOOLS:
        if is_of_tool(value):
            return FormatHint(name, hint)
    fields = ", ".join(list(value)[:_MOST_SHOWN_FIELDS]).encode(errors="replace").decode()
    more = ", …" if len(value) > _MOST_SHOWN_FIELDS else ""
    return FormatHint(
        f"JSON objects with the fields {fields}{more}" if value else "JSON without an object",
        GIVE_TYPES,
    )


def _ends_too_soon(text: str) -> bool:
    """Whether the text is valid JSON up to its end, where the value is not complete."""
    try:
        json.JSONDecoder().raw_decode(text)
    except RecursionError:
        return False
    except json.JSONDecodeError as error:
        return error.pos >= len(text) - LONGEST_WORD or error.msg.startswith("Unterminated string")
    return False


def _first_object(text: str) -> dict[str, Any] | None:
    """The first object, of a list its first element; of an answer with a list of records, the first of that."""
    try:
        value, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        value = _first_of_cut_list(text)
    inner = next((own for name in ("data", "Records") if (own := as_list(as_object(value).get(name)))), None)
    value = inner or value
    if isinstance(value, list):
        value = next((one for one in value if isinstance(one, dict)), {})
    return value if isinstance(value, dict) else None


def _first_of_cut_list(text: str) -> Any:
    """The first element of a list of which the head holds only the beginning."""
    if not text.startswith("["):
        return None
    try:
        return json.JSONDecoder().raw_decode(text[1:].lstrip())[0]
    except (ValueError, RecursionError):
        return None
