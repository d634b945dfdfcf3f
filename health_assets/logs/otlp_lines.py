"""Lines of OTLP-JSON: telling them from others, and the two spellings of their keys.

What belongs here: what is known of a line before it is parsed. What does not: keeping such lines (`otlp_buffer`) and
parsing them (`otlp`).
"""

import re

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
SNAKE_OF_CAMEL = {camel: snake for snake, camel in CAMEL_OF_SNAKE.items()}

_HAS_SNAKE = r'_(spans|metrics|logs|id|nano|value)"[ \t\r\n]*:'


EVALUATION_EVENT = "gen_ai.evaluation.result"
"""The event with the result of an evaluator, on a span or as a log record of its own."""

LOGS_START = START.replace("Spans|Metrics|Logs|_spans|_metrics|_logs", "Logs|_logs")
UNSERVED_START = START.replace("Spans|Metrics|Logs|_spans|_metrics|_logs", "Metrics|Logs|_metrics|_logs")
"""The beginning of a line of which no text is stored: agents log prompts, and metrics hold command lines."""


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
