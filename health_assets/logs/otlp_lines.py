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
    "scope_logs": "scopeLogs", "log_records": "logRecords", "event_name": "eventName",
    "time_unix_nano": "timeUnixNano", "observed_time_unix_nano": "observedTimeUnixNano",
}  # fmt: skip
"""The keys that are read whose names in the protocol's own files are others: a reader must accept both."""

_HAS_SNAKE = r'_(spans|metrics|logs|id|nano|value)"[ \t\r\n]*:'


EVALUATION_EVENT = "gen_ai.evaluation.result"
"""The event with the result of an evaluator, on a span or as a log record of its own."""

LOGS_START = START.replace("Spans|Metrics|Logs|_spans|_metrics|_logs", "Logs|_logs")


UNSERVED_REASON = "OTLP {what} are not used, only traces: {field} instead of resourceSpans"


def is_otlp(line: str) -> bool:
    """Whether a line is one of OTLP-JSON."""
    return re.match(START, line) is not None


def is_evaluation_log(line: str) -> bool:
    """Whether a line is one of OTLP's logs that holds results of evaluators."""
    return EVALUATION_EVENT in line and re.match(LOGS_START, line) is not None


def camel_keys(line: str) -> str:
    """SQL for a line whose keys are spelled as Protobuf's JSON has them, whichever of its two spellings they have.

    A quote within a text is escaped, so what stands between two bare quotes and before a colon is a key.
    """
    spelled = line
    for snake, camel in CAMEL_OF_SNAKE.items():
        spelled = f"""regexp_replace({spelled}, '"{snake}"([ \t\r\n]*:)', '"{camel}"\\1', 'g')"""
    return f"CASE WHEN regexp_matches({line}, '{_HAS_SNAKE}') THEN {spelled} ELSE {line} END"


class SetAside:
    """Lines of OTLP-JSON, kept in files while all others are read.

    Args:
        folder: for the files, of which there is one only once there is a line for it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writers: dict[str, pa.ipc.RecordBatchFileWriter] = {}

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
                self._set_aside(batch)
            else:
                self._set_aside(batch.filter(is_otlp))
                yield batch.filter(pc.invert(is_otlp))

    def _set_aside(self, batch: pa.RecordBatch) -> None:
        """Keep the lines for those who read them: spans may hold results of evaluators, and logs nothing else."""
        # a regular expression finds a plain text much faster than `match_substring`
        has_evaluations = pc.match_substring_regex(batch["line"], re.escape(EVALUATION_EVENT))
        if has_evaluations.true_count:
            self._write("evaluations", batch.filter(has_evaluations))
            is_log = pc.and_(has_evaluations, pc.match_substring_regex(batch["line"], LOGS_START))
            batch = batch.filter(pc.invert(is_log))
        if batch.num_rows:
            self._write("spans", batch)

    def _write(self, name: str, batch: pa.RecordBatch) -> None:
        if name not in self._writers:
            self._writers[name] = pa.ipc.new_file(str(self._folder / f"otlp_{name}"), LINES_SCHEMA)
        self._writers[name].write_batch(batch)

    def spans(self) -> pa.RecordBatchReader | None:
        """The lines that may hold spans, once all were read; None if there are none."""
        return self._lines("spans")

    def evaluations(self) -> pa.RecordBatchReader | None:
        """The lines that hold results of evaluators, likewise."""
        return self._lines("evaluations")

    def _lines(self, name: str) -> pa.RecordBatchReader | None:
        if name not in self._writers:
            return None
        self._writers[name].close()
        file = pa.ipc.open_file(pa.memory_map(str(self._folder / f"otlp_{name}")))
        batches = (file.get_batch(number) for number in range(file.num_record_batches))
        return pa.RecordBatchReader.from_batches(LINES_SCHEMA, batches)
