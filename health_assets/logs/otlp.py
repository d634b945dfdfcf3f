"""OTLP-JSON: lines as the OpenTelemetry Collector's file exporter writes them, to one row a span.

What belongs here: taking such a line apart, and what makes a span one that cannot be used. What does not: telling it
from others (`otlp_lines`), what its attributes mean (`conventions`, `span_kinds`, `span_outcomes`) and what spans add
up to (`traces`).

A line holds the spans of one or more resources. A span that breaks a rule is rejected by itself, with its place in the
line as the reason names it; the other spans of the line are kept.
"""

from health_assets.core.hours import END_S, FIRST_S
from health_assets.core.text_limits import MOST_NAME_BYTES
from health_assets.logs.conventions import (
    ATTRIBUTE_NAMES,
    IN_CACHE_ATTRIBUTES,
    IN_REASONING_ATTRIBUTES,
    IN_USER_ATTRIBUTES,
    agent_id,
    attribute_values,
    contents,
    input_text,
    is_of_claude_code,
    model,
    output_text,
    response_model,
    task_id,
    unanswered_inputs,
)
from health_assets.logs.digests import digest, task_digest, user
from health_assets.logs.formats.foreign_lines import READ_CHARACTERS, READ_TEXT_BYTES
from health_assets.logs.limits import IN_THE_FUTURE, Limits
from health_assets.logs.native import HAS_TRAILING_COMMA
from health_assets.logs.otlp_lines import UNSERVED_REASON, UNSERVED_START, camel_keys
from health_assets.logs.otlp_repeats import (
    ambiguous_attribute,
    any_repeats,
    may_repeat_in_attributes,
    repeats_above_spans,
    repeats_in_span,
    repeats_in_spans,
    repeats_in_status,
    told_ambiguous,
)
from health_assets.logs.redacting import cut
from health_assets.logs.span_kinds import (
    OPEN,
    convention,
    kind,
    name_kind,
    operation,
    operation_of_name,
    overruled,
    stated_kinds,
)
from health_assets.logs.span_outcomes import (
    CONTROL_FLOW_TOLD,
    exception_type,
    input_tokens,
    is_control_flow,
    output_tokens,
    reasoning_remark,
    says_failure,
    token_remark,
    tool_error,
)
from health_assets.scoring.usage import TOKENS

_START_OF = r'^\s*\{{\s*("schema_?[uU]rl"\s*:\s*"[^"\\]*"\s*,\s*)?"{}"\s*:'
UNSERVED = {"resourceMetrics": "metrics", "resourceLogs": "logs"}

_ANY_VALUE = '{"stringValue": "VARCHAR", "intValue": "VARCHAR", "doubleValue": "VARCHAR", "boolValue": "VARCHAR"}'
_ATTRIBUTES = f'[{{"key": "VARCHAR", "value": {_ANY_VALUE}}}]'
_SPAN = f"""{{
    "traceId": "VARCHAR", "spanId": "VARCHAR", "parentSpanId": "VARCHAR", "name": "VARCHAR",
    "startTimeUnixNano": "VARCHAR", "endTimeUnixNano": "VARCHAR", "attributes": {_ATTRIBUTES}, "status": "JSON",
    "events": "JSON"
}}"""
_LINE = f"""{{
    "resourceSpans": [{{"resource": {{"attributes": {_ATTRIBUTES}}}, "scopeSpans": [{{"spans": [{_SPAN}]}}]}}]
}}"""

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

_TEXTS = '{"resourceSpans": [{"scopeSpans": [{"spans": ["JSON"]}]}]}'
"""The spans of a line as they are written, for those that need a closer look."""

_STATUS_CODES = {
    "0": "0", "1": "1", "2": "2", "STATUS_CODE_UNSET": "0", "STATUS_CODE_OK": "1", "STATUS_CODE_ERROR": "2",
}  # fmt: skip
_RESOURCE_KEYS = ("service.name", "service.version")
_FIRST_NS, _LAST_NS = FIRST_S * 10**9, END_S * 10**9
_OWN_TIME = "coalesce(ended_at, started_at)"
_FIRST_TIME, _LAST_TIME = "TIMESTAMPTZ '2000-01-01 00:00:00+00'", "TIMESTAMPTZ '2100-01-01 00:00:00+00'"


def parsed_spans(lines: str, limits: Limits) -> str:
    """SQL that reads numbered lines of OTLP-JSON and gives one row for every span, and for what is none.

    Args:
        lines: a relation of `files.LINES_SCHEMA`.
        limits: from when on a span is of the future.

    Returns:
        A SELECT with `file_id`, `record_type` (`span` or `rejected`), `fingerprint`, `hour` (of a rejected span that
        of its end, null where none can be read), `line_number`, `reason` and `raw` of what was rejected, `future_at`
        (the time of a span that is later than now), and the columns of the table `spans`.
    """
    return f"""
    WITH spelled AS (
        SELECT file_id, line_number, line, fault, {camel_keys("line")} AS json,
            contains(line, '{IN_CACHE_ATTRIBUTES}') AS may_have_cached,
            contains(line, '{IN_REASONING_ATTRIBUTES}') AS may_have_reasoning,
            regexp_matches(line, '{IN_USER_ATTRIBUTES}') AS may_have_user
        FROM {lines}
    ), read AS (
        SELECT *, CASE WHEN fault IS NULL AND NOT {_HAS_TRAILING_COMMA}
            THEN TRY(json_transform(json, '{_LINE}')) END AS tokens
        FROM spelled
    ), looked_at AS (
        SELECT *, tokens IS NOT NULL AND {may_repeat_in_attributes("json")} AS shows_sign,
            coalesce({_is_read_whole()}, false) AS is_whole
        FROM read
    ), sifted AS (
        SELECT *,
            CASE WHEN tokens IS NOT NULL THEN {repeats_above_spans("json", "tokens", "shows_sign")} ELSE false
                END AS repeats
        FROM looked_at
    ), checked AS (
        SELECT *, CASE WHEN repeats THEN '{_REPEATS}' WHEN NOT is_whole THEN {_line_reason()} END AS line_reason,
            CASE WHEN NOT repeats AND tokens IS NOT NULL AND (NOT is_whole OR shows_sign OR {repeats_in_spans("json")})
                THEN json_transform(json, '{_TEXTS}').resourceSpans END AS texts
        FROM sifted
    ), listed AS (
        SELECT file_id, line_number, CASE WHEN line_reason IS NOT NULL THEN line END AS line, line_reason, texts,
            may_have_cached, may_have_reasoning, may_have_user,
            CASE WHEN repeats THEN 0 ELSE coalesce(len(tokens.resourceSpans), 0) END AS resource_count,
            CASE WHEN line_reason IS NULL THEN tokens.resourceSpans
                WHEN repeats THEN list_concat(tokens.resourceSpans[:0], [{_ROOM_FOR_THE_LINE}])
                ELSE list_concat(tokens.resourceSpans, [{_ROOM_FOR_THE_LINE}]) END AS resources
        FROM checked
    ), resources AS (
        SELECT file_id, line_number, line, line_reason, resource_count, may_have_cached, may_have_reasoning,
            may_have_user,
            unnest(resources) AS resource, generate_subscripts(resources, 1) AS resource_number, unnest(texts) AS text
        FROM listed
    ), scopes AS (
        SELECT file_id, line_number, line, line_reason, may_have_cached, may_have_reasoning, may_have_user,
            resource_number,
            resource_number > resource_count AS is_line,
            {_resource_value("service.name")} AS service_name, {_resource_value("service.version")} AS service_version,
            {ambiguous_attribute("resource.resource.attributes", _RESOURCE_KEYS)} AS ambiguous_of_resource,
            unnest(resource.scopeSpans) AS scope, generate_subscripts(resource.scopeSpans, 1) AS scope_number,
            unnest(text.scopeSpans) AS text
        FROM resources
    ), keyed AS (
        SELECT *,
            list_transform(scope.spans, lambda span: list_transform(span.attributes, lambda one: one.key)) AS keys,
            {any_repeats("keys")} AS has_twins
        FROM scopes
    ), spans AS (
        SELECT file_id, line_number, line, line_reason, may_have_cached, may_have_reasoning, may_have_user, is_line,
            service_name, service_version, ambiguous_of_resource, resource_number, scope_number, has_twins,
            unnest(scope.spans) AS span, generate_subscripts(scope.spans, 1) AS span_number, unnest(text.spans) AS text,
            unnest(keys) AS keys
        FROM keyed
    ), taken_apart AS (
        SELECT *, list_transform(span.attributes, lambda one: {_TEXT}) AS attribute_texts,
            {is_of_claude_code()} AS is_of_claude_code
        FROM spans
    ), looked_up AS (
        SELECT file_id, line_number, line, line_reason, is_line, span, text, service_name, service_version,
            ambiguous_of_resource, is_of_claude_code, keys, attribute_texts,
            CASE WHEN has_twins
                THEN {ambiguous_attribute("span.attributes", ATTRIBUTE_NAMES)} END AS ambiguous,
            (resource_number - 1) || '.' || (scope_number - 1) || '.' || (span_number - 1) AS position,
            {_id("traceId", 32)} AS trace_id, {_id("spanId", 16)} AS span_id,
            {_parent_id()} AS parent_span_id,
            coalesce(span.endTimeUnixNano, '0') = '0' AS is_open, {_time("startTimeUnixNano")} AS start_ns,
            CASE WHEN is_open THEN start_ns ELSE {_time("endTimeUnixNano")} END AS end_ns,
            CASE WHEN span.status::VARCHAR <> '{{}}'
                THEN json_transform(span.status, '{{"code": "VARCHAR", "message": "VARCHAR"}}') END AS status,
            {attribute_values("keys", "attribute_texts", "may_have_cached", "may_have_reasoning", "may_have_user")}
        FROM taken_apart
    ), named AS (
        SELECT * REPLACE ({", ".join(f"{_count(column)} AS {column}" for column in _COUNTS)}),
            {operation_of_name()} AS name_operation, {stated_kinds()}, {_status_code()} AS status_code,
            coalesce(nullif(status.message, ''), own_error) AS message, {model()} AS model
        FROM looked_up
    ), told AS (
        SELECT *, {name_kind()} AS name_kind, coalesce(status_code = '2', false) AS has_failed_status,
            CASE WHEN status_code = '2' THEN {exception_type()} END AS exception_type,
            coalesce(cache_read_tokens::HUGEINT + cache_creation_tokens, cache_read_tokens, cache_creation_tokens)
                AS cached
        FROM named
    ), judged AS (
        SELECT *, CASE WHEN is_line THEN line_reason ELSE {_reason()} || ', in span ' || position END AS reason,
            {kind()} AS kind, {token_remark()} AS token_remark,
            has_failed_status OR error_type IS NOT NULL OR {says_failure()} AS says_error
        FROM told
    ), weighed AS (
        SELECT *, {contents("keys", "attribute_texts")}, {overruled()} AS overruled,
            {reasoning_remark()} AS reasoning_remark, says_error AND ({is_control_flow()}) AS is_control_flow
        FROM judged
    ), results AS (
        SELECT * REPLACE ({unanswered_inputs()}), says_error AND NOT is_control_flow AS failed,
            CASE WHEN kind = 'tool' AND NOT failed THEN {tool_error()} END AS tool_error,
            CASE WHEN failed THEN {_ERROR} END AS error
        FROM weighed
    ), shaped AS (
        SELECT file_id, line_number, line, is_line, position, reason AS first_reason, span, text, is_open,
            trace_id, span_id, parent_span_id, kind, {operation()} AS operation,
            nullif(span.name, '') AS name, {convention()} AS convention,
            {agent_id()} AS agent_id, agent_version,
            nullif(service_name, '') AS service_name, nullif(service_version, '') AS service_version,
            session_id, stated_user, model, {response_model()} AS response_model, tool_name, {task_id()} AS task_id,
            make_timestamptz(start_ns // 1000) AS started_at, make_timestamptz(end_ns // 1000) AS ended_at,
            failed OR tool_error IS NOT NULL AS failed,
            CASE WHEN failed THEN error ELSE nullif(tool_error, '') END AS error,
            {input_tokens()} AS input_tokens, {output_tokens()} AS output_tokens,
            cache_read_tokens, cache_creation_tokens, reasoning_tokens,
            CASE WHEN TRY_CAST(cost_usd AS DOUBLE) >= 0 AND isfinite(TRY_CAST(cost_usd AS DOUBLE))
                THEN TRY_CAST(cost_usd AS DOUBLE) END AS cost_usd,
            {input_text("keys", "attribute_texts")} AS input_text, {output_text()} AS output_text,
            CASE WHEN is_open THEN '{OPEN}' ELSE nullif(concat_ws('; ',
                overruled, CASE WHEN is_control_flow THEN '{CONTROL_FLOW_TOLD}' END, token_remark,
                reasoning_remark), '') END AS remark
        FROM results
    ), bounded AS (
        SELECT *,
            CASE WHEN kind = 'tool' THEN {digest("input_text", masks_ids=False)} ELSE {task_digest("input_text")}
                END AS input_digest,
            {digest("output_text", masks_ids=True)} AS output_digest, {user("stated_user")} AS user_id,
            coalesce(first_reason, {_reason_of_names()} || ', in span ' || position) AS valid_reason
        FROM shaped
    ), timed AS (
        SELECT * EXCLUDE (valid_reason), valid_reason IS NULL AND ended_at > {limits.until_sql} AS is_early,
            CASE WHEN is_early THEN {_FUTURE} ELSE valid_reason END AS reason
        FROM bounded
    )
    SELECT file_id, line_number, position, {_COLUMNS}, input_digest, output_digest, user_id, reason,
        CASE WHEN reason IS NULL THEN 'span' ELSE 'rejected' END AS record_type,
        CASE WHEN reason IS NULL THEN hash(line_number, position, {_COLUMNS}, input_text, output_text, stated_user)
            ELSE hash(line_number, position, reason, line, to_json(span)::VARCHAR) END AS fingerprint,
        CASE WHEN {_OWN_TIME} BETWEEN {_FIRST_TIME} AND {limits.until_sql}
            THEN make_timestamptz(epoch_us({_OWN_TIME}) // 3_600_000_000 * 3_600_000_000) END AS hour,
        CASE WHEN {_OWN_TIME} > {limits.until_sql} AND {_OWN_TIME} < {_LAST_TIME} THEN {_OWN_TIME} END AS future_at,
        CASE WHEN is_line AND regexp_matches(line, '{UNSERVED_START}') THEN ''
            WHEN is_line THEN {cut(_STRIPPED, READ_TEXT_BYTES)}
            WHEN reason IS NOT NULL THEN {cut(_SPAN_TEXT, READ_TEXT_BYTES)} END AS raw
    FROM timed
    """


_TEXT = "coalesce(nullif(one.value.stringValue, ''), one.value.intValue, one.value.doubleValue, one.value.boolValue)"
_REPEATS = "a key stands twice in the object"
_ROOM_FOR_THE_LINE = "{'resource': NULL, 'scopeSpans': [{'spans': [NULL]}]}"
"""Makes one more row, for the reason of a line of which something cannot be read."""

_ERROR = """
CASE WHEN message IS NULL THEN error_type
    WHEN error_type IS NULL OR starts_with(message, error_type) THEN message
    ELSE error_type || ': ' || message END
"""
"""The message of the status; the type of the error stands before it, unless the message has it too."""

_COLUMNS = (
    "trace_id, span_id, parent_span_id, kind, operation, name, convention, agent_id, agent_version, service_name, "
    "service_version, session_id, model, response_model, tool_name, task_id, started_at, ended_at, failed, error, "
    "input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens, reasoning_tokens, cost_usd, remark"
)
_COUNTS = (*TOKENS, "total_tokens")
"""Columns of attributes that hold whole numbers."""
_NAMES = {
    "name": "name", "agent_id": "the name of the agent", "agent_version": "the version of the agent",
    "model": "the model", "response_model": "the model that answered",
    "tool_name": "the tool", "task_id": "the dataset item", "session_id": "the session", "service_name": "service.name",
    "service_version": "service.version", "operation": "the operation",
}  # fmt: skip
"""Columns that hold ids and names, and what they are called in a reason."""
_FUTURE = f"""
CASE WHEN is_open THEN 'startTimeUnixNano' ELSE 'endTimeUnixNano' END || ' {IN_THE_FUTURE}, not '
    || CASE WHEN is_open THEN span.startTimeUnixNano ELSE span.endTimeUnixNano END || ', in span ' || position
"""
_STRIPPED = r"rtrim(line, E'\r\n')"
_SPAN_TEXT = "coalesce(text::VARCHAR, to_json(span)::VARCHAR, 'null')"
_HAS_TRAILING_COMMA = (
    r"CASE WHEN ends_with(line, E']}\n') OR ends_with(line, ']}') OR ends_with(line, E']}\r\n') THEN false "
    f"ELSE {HAS_TRAILING_COMMA} END"
)
"""The rule of native lines; to search a megabyte costs as much as to parse it, so the end is looked at first."""


def _resource_value(key: str) -> str:
    return f"list_filter(resource.resource.attributes, lambda one: one.key = '{key}')[1].value.stringValue"


def _id(field: str, digits: int) -> str:
    """The id in lower case; null where it is none, or is all zeros."""
    value = f"span.{field}"
    return f"""CASE WHEN regexp_full_match({value}, '[0-9a-fA-F]{{{digits}}}') AND {value} <> '{"0" * digits}'
        THEN lower({value}) END"""


def _parent_id() -> str:
    return f"CASE WHEN span.parentSpanId <> '' THEN {_id('parentSpanId', 16)} END"


def _time(field: str) -> str:
    return f"CASE WHEN regexp_full_match(span.{field}, '[0-9]{{1,19}}') THEN TRY_CAST(span.{field} AS BIGINT) END"


def _count(column: str) -> str:
    return f"CASE WHEN regexp_full_match({column}, '[0-9]+') THEN TRY_CAST({column} AS BIGINT) END"


def _status_code() -> str:
    branches = " ".join(f"WHEN '{code}' THEN '{number}'" for code, number in _STATUS_CODES.items())
    return f"CASE coalesce(status.code, '0') {branches} END"


def _reason() -> str:
    """The reason why a span cannot be used; null if it can."""
    no_id = "'{field} must be {digits} hexadecimal digits that are not all zero, not ' || {shown}"
    no_time = "'{field} must be whole nanoseconds since 1970 in the years 2000 to 2099, not ' || {shown}"
    branches = [
        (
            "span IS NULL OR json_type(text) <> 'OBJECT'",
            "'a span must be an object, not ' || coalesce(text::VARCHAR, 'null')[1:100]",
        ),
        (f"text IS NOT NULL AND ({repeats_in_span('text')})", f"'{_REPEATS}'"),
        (repeats_in_status("span.status"), f"'{_REPEATS}'"),
        (
            "span.attributes IS NULL AND json_type(text, '$.attributes') NOT IN ('ARRAY', 'NULL')",
            "'attributes must be a list, not ' || (json_extract(text, '$.attributes')::VARCHAR)[1:100]",
        ),
    ]
    branches.append(("ambiguous_of_resource IS NOT NULL", told_ambiguous("ambiguous_of_resource", " of the resource")))
    branches.append(("ambiguous IS NOT NULL", told_ambiguous("ambiguous")))
    for field, column, digits in (("traceId", "trace_id", 32), ("spanId", "span_id", 16)):
        branches.append((f"span.{field} IS NULL OR span.{field} = ''", f"'{field} is missing'"))
        branches.append((f"{column} IS NULL", no_id.format(field=field, digits=digits, shown=_shown(field))))
    branches.append(
        (
            "parent_span_id IS NULL AND span.parentSpanId <> '' AND ltrim(span.parentSpanId, '0') <> ''",
            no_id.format(field="parentSpanId", digits=16, shown=_shown("parentSpanId")),
        )
    )
    branches.append(("coalesce(span.startTimeUnixNano, '0') = '0'", "'startTimeUnixNano is missing'"))
    for field, column in (("startTimeUnixNano", "start_ns"), ("endTimeUnixNano", "end_ns")):
        is_possible = f"{column} >= {_FIRST_NS} AND {column} < {_LAST_NS}"
        branches.append((f"({is_possible}) IS NOT TRUE", no_time.format(field=field, shown=_shown(field))))
    branches.append(("end_ns < start_ns", "'endTimeUnixNano is before startTimeUnixNano'"))
    branches.append(
        (
            "span.status IS NOT NULL AND NOT starts_with(span.status::VARCHAR, '{')",
            f"'status must be an object, not ' || (span.status::VARCHAR)[1:{READ_CHARACTERS}]",
        )
    )
    codes = ", ".join(_STATUS_CODES)
    no_code = f"'status.code must be one of {codes}, not ' || status.code[1:{READ_CHARACTERS}]"
    branches.append(("status_code IS NULL", no_code))
    return f"CASE {' '.join(f'WHEN {condition} THEN {reason}' for condition, reason in branches)} END"


def _reason_of_names() -> str:
    """The reason why the names of a span cannot be taken; null if they can."""
    branches = " ".join(
        f"WHEN strlen({column}) > {MOST_NAME_BYTES} THEN "
        f"'{told} must be at most 1 KiB long, not ' || printf('%,d', strlen({column})) || ' bytes'"
        for column, told in _NAMES.items()
    )
    return f"CASE {branches} END"


def _shown(field: str) -> str:
    return f"span.{field}[1:{READ_CHARACTERS}]"


def _line_reason() -> str:
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


def _is_read_whole() -> str:
    """Whether nothing that may hold spans or attributes came out as null."""
    has_nothing_null = """
    len(list_filter(tokens.resourceSpans, lambda resource:
        resource.resource.attributes IS NULL OR resource.scopeSpans IS NULL
        OR len(list_filter(resource.scopeSpans, lambda scope:
            scope.spans IS NULL OR len(list_filter(scope.spans, lambda span: span.attributes IS NULL)) > 0)) > 0)) = 0
    """
    return f"tokens.resourceSpans IS NOT NULL AND {has_nothing_null}"
