"""Why lines and spans of OTLP-JSON are rejected, as SQL of their reasons in the queries of `otlp`."""

from health_assets.logs.formats.foreign_lines import READ_CHARACTERS
from health_assets.logs.limits import IN_THE_FUTURE
from health_assets.logs.otlp_fields import name_rule, reason_of, time_rule
from health_assets.logs.otlp_lines import UNSERVED_REASON
from health_assets.logs.otlp_repeats import repeats_in_span, repeats_in_status, told_ambiguous

_START_OF = r'^\s*\{{\s*("schema_?[uU]rl"\s*:\s*"[^"\\]*"\s*,\s*)?"{}"\s*:'
UNSERVED = {"resourceMetrics": "metrics", "resourceLogs": "logs"}
_PLACES = {
    "$.resourceSpans": "ARRAY",
    "$.resourceSpans[*]": "OBJECT",
    "$.resourceSpans[*].resource": "OBJECT",
    "$.resourceSpans[*].resource.attributes": "ARRAY",
    "$.resourceSpans[*].scopeSpans": "ARRAY",
    "$.resourceSpans[*].scopeSpans[*]": "OBJECT",
    "$.resourceSpans[*].scopeSpans[*].spans": "ARRAY",
}
"""What must stand where above the spans of a line; anything else there could not be read as spans."""
STATUS_CODES = {
    "0": "0", "1": "1", "2": "2", "STATUS_CODE_UNSET": "0", "STATUS_CODE_OK": "1", "STATUS_CODE_ERROR": "2",
}  # fmt: skip
"""Numbers of the codes of a status, which may be spelled as words."""
REPEATS = "a key stands twice in the object"
_NAMES = {
    "name": "name", "agent_id": "the name of the agent", "agent_version": "the version of the agent",
    "model": "the model", "response_model": "the model that answered",
    "tool_name": "the tool", "task_id": "the dataset item", "session_id": "the session", "service_name": "service.name",
    "service_version": "service.version", "operation": "the operation",
}  # fmt: skip
"""Columns that hold ids and names, and what they are called in a reason."""
FUTURE_REASON = f"""
CASE WHEN is_open THEN 'startTimeUnixNano' ELSE 'endTimeUnixNano' END || ' {IN_THE_FUTURE}, not '
    || CASE WHEN is_open THEN span.startTimeUnixNano ELSE span.endTimeUnixNano END || ', in span ' || position
"""


def span_reason() -> str:
    """The reason why a span cannot be used; null if it can."""
    no_id = "'{field} must be {digits} hexadecimal digits that are not all zero, not ' || {shown}"
    rules = [
        (
            "span IS NULL OR json_type(text) <> 'OBJECT'",
            "'a span must be an object, not ' || coalesce(text::VARCHAR, 'null')[1:100]",
        ),
        (f"text IS NOT NULL AND ({repeats_in_span('text')})", f"'{REPEATS}'"),
        (repeats_in_status("span.status"), f"'{REPEATS}'"),
        (
            "span.attributes IS NULL AND json_type(text, '$.attributes') NOT IN ('ARRAY', 'NULL')",
            "'attributes must be a list, not ' || (json_extract(text, '$.attributes')::VARCHAR)[1:100]",
        ),
    ]
    rules.append(("ambiguous_of_resource IS NOT NULL", told_ambiguous("ambiguous_of_resource", " of the resource")))
    rules.append(("ambiguous IS NOT NULL", told_ambiguous("ambiguous")))
    for field, column, digits in (("traceId", "trace_id", 32), ("spanId", "span_id", 16)):
        rules.append((f"span.{field} IS NULL OR span.{field} = ''", f"'{field} is missing'"))
        rules.append((f"{column} IS NULL", no_id.format(field=field, digits=digits, shown=_shown(field))))
    rules.append(
        (
            "parent_span_id IS NULL AND span.parentSpanId <> '' AND ltrim(span.parentSpanId, '0') <> ''",
            no_id.format(field="parentSpanId", digits=16, shown=_shown("parentSpanId")),
        )
    )
    rules.append(("coalesce(span.startTimeUnixNano, '0') = '0'", "'startTimeUnixNano is missing'"))
    for field, column in (("startTimeUnixNano", "start_ns"), ("endTimeUnixNano", "end_ns")):
        rules.append(time_rule(field, f"span.{field}", column))
    rules.append(("end_ns < start_ns", "'endTimeUnixNano is before startTimeUnixNano'"))
    rules.append(
        (
            "span.status IS NOT NULL AND NOT starts_with(span.status::VARCHAR, '{')",
            f"'status must be an object, not ' || (span.status::VARCHAR)[1:{READ_CHARACTERS}]",
        )
    )
    codes = ", ".join(STATUS_CODES)
    no_code = f"'status.code must be one of {codes}, not ' || status.code[1:{READ_CHARACTERS}]"
    rules.append(("status_code IS NULL", no_code))
    return reason_of(rules)


def reason_of_names() -> str:
    """The reason why the names of a span cannot be taken; null if they can."""
    return reason_of(name_rule(column, told) for column, told in _NAMES.items())


def _shown(field: str) -> str:
    return f"span.{field}[1:{READ_CHARACTERS}]"


def line_reason() -> str:
    """The reason why a line, or a part of it that may hold spans, cannot be used; null for a good line.

    This reads the line once more, so it is asked only of one of which something could not be read.
    """
    wrong = ", ".join(
        f"""CASE WHEN len(list_filter({_types(path)}, lambda found: found NOT IN ('{json_type}', 'NULL'))) > 0
        THEN '{path.removeprefix("$.")} must be {"a list" if json_type == "ARRAY" else "an object"}' END"""
        for path, json_type in _PLACES.items()
    )
    unserved = " ".join(
        f"""WHEN regexp_matches(json, '{_START_OF.format(field)}')
        THEN '{UNSERVED_REASON.format(what=what, field=field)}'"""
        for field, what in UNSERVED.items()
    )
    older = "len(json_type(json, '$.resourceSpans[*].instrumentationLibrarySpans')) > 0"
    return f"""
    CASE
        WHEN fault IS NOT NULL THEN fault
        WHEN tokens IS NULL THEN 'not valid JSON'
        {unserved}
        ELSE nullif(concat_ws('; ', {wrong},
            CASE WHEN {older} THEN 'instrumentationLibrarySpans is of OTLP before 0.15 and is not used' END), '')
    END
    """


def _types(path: str) -> str:
    return f"json_type(json, '{path}')" if "*" in path else f"[json_type(json, '{path}')]"
