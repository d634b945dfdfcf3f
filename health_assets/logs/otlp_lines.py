"""Lines of OTLP-JSON: telling them from others, and the two spellings of their keys.

What belongs here: what is known of a line before it is parsed. What does not: parsing it (`otlp`).
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from health_assets.logs.files import LINES_SCHEMA

START = r'^\s*\{\s*("schema_?[uU]rl"\s*:\s*"[^"\\]*"\s*,\s*)?"resource(Spans|Metrics|Logs|_spans|_metrics|_logs)"\s*:'
"""How a line of OTLP-JSON begins."""

USUAL_START = '{"type"'
"""How most native lines begin; to look for this costs a third."""

CAMEL_OF_SNAKE = {
    "resource_spans": "resourceSpans", "resource_metrics": "resourceMetrics", "resource_logs": "resourceLogs",
    "scope_spans": "scopeSpans", "instrumentation_library_spans": "instrumentationLibrarySpans",
    "trace_id": "traceId", "span_id": "spanId", "parent_span_id": "parentSpanId",
    "start_time_unix_nano": "startTimeUnixNano", "end_time_unix_nano": "endTimeUnixNano",
    "string_value": "stringValue", "int_value": "intValue", "double_value": "doubleValue", "bool_value": "boolValue",
}  # fmt: skip
"""The keys that are read whose names in the protocol's own files are others: a reader must accept both."""

_HAS_SNAKE = r'_(spans|metrics|logs|id|nano|value)"[ \t\r\n]*:'


def is_otlp(line: str) -> bool:
    """Whether a line is one of OTLP-JSON."""
    return re.match(START, line) is not None


def camel_keys(line: str) -> str:
    """SQL for a line whose keys are spelled as Protobuf's JSON has them, whichever of its two spellings they have.

    A quote within a text is escaped, so what stands between two bare quotes and before a colon is a key.
    """
    spelled = line
    for snake, camel in CAMEL_OF_SNAKE.items():
        spelled = f"""regexp_replace({spelled}, '"{snake}"([ \t\r\n]*:)', '"{camel}"\\1', 'g')"""
    return f"CASE WHEN regexp_matches({line}, '{_HAS_SNAKE}') THEN {spelled} ELSE {line} END"


class SetAside:
    """Lines of OTLP-JSON, kept in a file while all others are read.

    Args:
        path: the file; it is there only once there is such a line.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: pa.ipc.RecordBatchFileWriter | None = None

    def others(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Set the lines of OTLP-JSON among these aside, and give all others."""
        for batch in batches:
            if pc.all(pc.starts_with(batch["line"], USUAL_START)).as_py():
                yield batch
                continue
            is_otlp = pc.match_substring_regex(batch["line"], START)
            count = is_otlp.true_count
            if not count:
                yield batch
            elif count == batch.num_rows:
                self._write(batch)
            else:
                self._write(batch.filter(is_otlp))
                yield batch.filter(pc.invert(is_otlp))

    def _write(self, batch: pa.RecordBatch) -> None:
        if self._writer is None:
            self._writer = pa.ipc.new_file(str(self._path), LINES_SCHEMA)
        self._writer.write_batch(batch)

    def lines(self) -> pa.RecordBatchReader | None:
        """The lines that were set aside, once all were read; None if there are none."""
        if self._writer is None:
            return None
        self._writer.close()
        file = pa.ipc.open_file(pa.memory_map(str(self._path)))
        batches = (file.get_batch(number) for number in range(file.num_record_batches))
        return pa.RecordBatchReader.from_batches(LINES_SCHEMA, batches)
