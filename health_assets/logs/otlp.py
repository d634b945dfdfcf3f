"""OTLP-JSON: lines as the OpenTelemetry Collector's file exporter writes them, to one row a span.

What belongs here: taking such a line apart. What does not: telling it from others (`otlp_lines`), what makes a span one
that cannot be used (`otlp_rejections`), what its attributes mean (`conventions`, `span_kinds`, `span_outcomes`) and
what spans add up to (`traces`).

A line holds the spans of one or more resources. A span that breaks a rule is rejected by itself, with its place in the
line as the reason names it; the other spans of the line are kept.
"""

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
from health_assets.logs.formats.foreign_lines import READ_TEXT_BYTES
from health_assets.logs.limits import Limits
from health_assets.logs.native import HAS_TRAILING_COMMA
from health_assets.logs.otlp_fields import ATTRIBUTES, hex_id, nanoseconds
from health_assets.logs.otlp_lines import UNSERVED_START, camel_keys
from health_assets.logs.otlp_rejections import (
    FUTURE_REASON,
    REPEATS,
    STATUS_CODES,
    line_reason,
    reason_of_names,
    span_reason,
)
from health_assets.logs.otlp_repeats import (
    ambiguous_attribute,
    any_repeats,
    may_repeat_in_attributes,
    repeats_above_spans,
    repeats_in_spans,
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

_SPAN = f"""{{
    "traceId": "VARCHAR", "spanId": "VARCHAR", "parentSpanId": "VARCHAR", "name": "VARCHAR",
    "startTimeUnixNano": "VARCHAR", "endTimeUnixNano": "VARCHAR", "attributes": {ATTRIBUTES}, "status": "JSON",
    "events": "JSON"
}}"""
_LINE = f"""{{
    "resourceSpans": [{{"resource": {{"attributes": {ATTRIBUTES}}}, "scopeSpans": [{{"spans": [{_SPAN}]}}]}}]
}}"""

_TEXTS = '{"resourceSpans": [{"scopeSpans": [{"spans": ["JSON"]}]}]}'
"""The spans of a line as they are written, for those that need a closer look."""

_RESOURCE_KEYS = ("service.name", "service.version")
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
    ctes = {
        "camel_lines": _camel_lines(lines),
        "parsed_lines": _parsed_lines(),
        "inspected_lines": _inspected_lines(),
        "lines_with_repeats": _lines_with_repeats(),
        "checked_lines": _checked_lines(),
        "lines_with_resources": _lines_with_resources(),
        "resources": _resources(),
        "scopes": _scopes(),
        "scopes_with_keys": _scopes_with_keys(),
        "raw_spans": _raw_spans(),
        "spans_with_texts": _spans_with_texts(),
        "spans_with_attributes": _spans_with_attributes(),
        "typed_spans": _typed_spans(),
        "spans_with_failures": _spans_with_failures(),
        "spans_with_kinds": _spans_with_kinds(),
        "spans_with_contents": _spans_with_contents(),
        "spans_with_outcomes": _spans_with_outcomes(),
        "span_rows": _span_rows(),
        "rows_with_digests": _rows_with_digests(),
        "rows_with_reasons": _rows_with_reasons(limits),
    }
    return f"WITH {', '.join(f'{name} AS ({sql})' for name, sql in ctes.items())} {_selected(limits)}"


def _camel_lines(lines: str) -> str:
    """Lines with keys spelled as in Protobuf's JSON, and whether rare attributes may be among them."""
    return f"""
    SELECT file_id, line_number, line, fault, {camel_keys("line")} AS json,
        contains(line, '{IN_CACHE_ATTRIBUTES}') AS may_have_cached,
        contains(line, '{IN_REASONING_ATTRIBUTES}') AS may_have_reasoning,
        regexp_matches(line, '{IN_USER_ATTRIBUTES}') AS may_have_user
    FROM {lines}
    """


def _parsed_lines() -> str:
    """Lines with their spans as values; `tokens` is null where a line is not valid JSON."""
    return f"""
    SELECT *, CASE WHEN fault IS NULL AND NOT {_HAS_TRAILING_COMMA}
        THEN TRY(json_transform(json, '{_LINE}')) END AS tokens
    FROM camel_lines
    """


def _inspected_lines() -> str:
    """Lines with `is_whole`, whether every part was read, and `shows_sign`, whether a key of attributes may repeat."""
    return f"""
    SELECT *, tokens IS NOT NULL AND {may_repeat_in_attributes("json")} AS shows_sign,
        coalesce({_is_read_whole()}, false) AS is_whole
    FROM parsed_lines
    """


def _lines_with_repeats() -> str:
    """Lines with `repeats`, whether a key above the spans stands twice in its object."""
    return f"""
    SELECT *,
        CASE WHEN tokens IS NOT NULL THEN {repeats_above_spans("json", "tokens", "shows_sign")} ELSE false
            END AS repeats
    FROM inspected_lines
    """


def _checked_lines() -> str:
    """Lines with the reason of their rejection, and the text of each span where a span needs a closer look."""
    return f"""
    SELECT *, CASE WHEN repeats THEN '{REPEATS}' WHEN NOT is_whole THEN {line_reason()} END AS line_reason,
        CASE WHEN NOT repeats AND tokens IS NOT NULL AND (NOT is_whole OR shows_sign OR {repeats_in_spans("json")})
            THEN json_transform(json, '{_TEXTS}').resourceSpans END AS texts
    FROM lines_with_repeats
    """


def _lines_with_resources() -> str:
    """Lines with a list of their resources, to which a rejected line adds one for its reason."""
    return f"""
    SELECT file_id, line_number, CASE WHEN line_reason IS NOT NULL THEN line END AS line, line_reason, texts,
        may_have_cached, may_have_reasoning, may_have_user,
        CASE WHEN repeats THEN 0 ELSE coalesce(len(tokens.resourceSpans), 0) END AS resource_count,
        CASE WHEN line_reason IS NULL THEN tokens.resourceSpans
            WHEN repeats THEN list_concat(tokens.resourceSpans[:0], [{_ROOM_FOR_THE_LINE}])
            ELSE list_concat(tokens.resourceSpans, [{_ROOM_FOR_THE_LINE}]) END AS resources
    FROM checked_lines
    """


def _resources() -> str:
    """One row a resource."""
    return """
    SELECT file_id, line_number, line, line_reason, resource_count, may_have_cached, may_have_reasoning,
        may_have_user,
        unnest(resources) AS resource, generate_subscripts(resources, 1) AS resource_number, unnest(texts) AS text
    FROM lines_with_resources
    """


def _scopes() -> str:
    """One row a scope, with name and version of the service."""
    return f"""
    SELECT file_id, line_number, line, line_reason, may_have_cached, may_have_reasoning, may_have_user,
        resource_number,
        resource_number > resource_count AS is_line,
        {_resource_value("service.name")} AS service_name, {_resource_value("service.version")} AS service_version,
        {ambiguous_attribute("resource.resource.attributes", _RESOURCE_KEYS)} AS ambiguous_of_resource,
        unnest(resource.scopeSpans) AS scope, generate_subscripts(resource.scopeSpans, 1) AS scope_number,
        unnest(text.scopeSpans) AS text
    FROM resources
    """


def _scopes_with_keys() -> str:
    """Scopes with the attribute keys of their spans, and whether any of them stands twice."""
    return f"""
    SELECT *,
        list_transform(scope.spans, lambda span: list_transform(span.attributes, lambda one: one.key)) AS keys,
        {any_repeats("keys")} AS has_twins
    FROM scopes
    """


def _raw_spans() -> str:
    """One row a span, as it was read."""
    return """
    SELECT file_id, line_number, line, line_reason, may_have_cached, may_have_reasoning, may_have_user, is_line,
        service_name, service_version, ambiguous_of_resource, resource_number, scope_number, has_twins,
        unnest(scope.spans) AS span, generate_subscripts(scope.spans, 1) AS span_number, unnest(text.spans) AS text,
        unnest(keys) AS keys
    FROM scopes_with_keys
    """


def _spans_with_texts() -> str:
    """Spans with the values of their attributes as texts."""
    return f"""
    SELECT *, list_transform(span.attributes, lambda one: {_TEXT}) AS attribute_texts,
        {is_of_claude_code()} AS is_of_claude_code
    FROM raw_spans
    """


def _spans_with_attributes() -> str:
    """Spans with their ids, times and status, and a column for each attribute that is used."""
    return f"""
    SELECT file_id, line_number, line, line_reason, is_line, span, text, service_name, service_version,
        ambiguous_of_resource, is_of_claude_code, keys, attribute_texts,
        CASE WHEN has_twins
            THEN {ambiguous_attribute("span.attributes", ATTRIBUTE_NAMES)} END AS ambiguous,
        (resource_number - 1) || '.' || (scope_number - 1) || '.' || (span_number - 1) AS position,
        {hex_id("span.traceId", 32)} AS trace_id, {hex_id("span.spanId", 16)} AS span_id,
        {_parent_id()} AS parent_span_id,
        coalesce(span.endTimeUnixNano, '0') = '0' AS is_open, {nanoseconds("span.startTimeUnixNano")} AS start_ns,
        CASE WHEN is_open THEN start_ns ELSE {nanoseconds("span.endTimeUnixNano")} END AS end_ns,
        CASE WHEN span.status::VARCHAR <> '{{}}'
            THEN json_transform(span.status, '{{"code": "VARCHAR", "message": "VARCHAR"}}') END AS status,
        {attribute_values("keys", "attribute_texts", "may_have_cached", "may_have_reasoning", "may_have_user")}
    FROM spans_with_texts
    """


def _typed_spans() -> str:
    """Spans with counts as numbers, a status code, and the kinds and operations that they state."""
    return f"""
    SELECT * REPLACE ({", ".join(f"{_count(column)} AS {column}" for column in _COUNTS)}),
        {operation_of_name()} AS name_operation, {stated_kinds()}, {_status_code()} AS status_code,
        coalesce(nullif(status.message, ''), own_error) AS message, {model()} AS model
    FROM spans_with_attributes
    """


def _spans_with_failures() -> str:
    """Spans with what their status says of a failure, and the kind that their name tells."""
    return f"""
    SELECT *, {name_kind()} AS name_kind, coalesce(status_code = '2', false) AS has_failed_status,
        CASE WHEN status_code = '2' THEN {exception_type()} END AS exception_type,
        coalesce(cache_read_tokens::HUGEINT + cache_creation_tokens, cache_read_tokens, cache_creation_tokens)
            AS cached
    FROM typed_spans
    """


def _spans_with_kinds() -> str:
    """Spans with their kind, and the reason why one cannot be used."""
    return f"""
    SELECT *, CASE WHEN is_line THEN line_reason ELSE {span_reason()} || ', in span ' || position END AS reason,
        {kind()} AS kind, {token_remark()} AS token_remark,
        has_failed_status OR error_type IS NOT NULL OR {says_failure()} AS says_error
    FROM spans_with_failures
    """


def _spans_with_contents() -> str:
    """Spans with the texts of their inputs and outputs, and whether an error is only control flow."""
    return f"""
    SELECT *, {contents("keys", "attribute_texts")}, {overruled()} AS overruled,
        {reasoning_remark()} AS reasoning_remark, says_error AND ({is_control_flow()}) AS is_control_flow
    FROM spans_with_kinds
    """


def _spans_with_outcomes() -> str:
    """Spans with whether they failed, and with what error."""
    return f"""
    SELECT * REPLACE ({unanswered_inputs()}), says_error AND NOT is_control_flow AS failed,
        CASE WHEN kind = 'tool' AND NOT failed THEN {tool_error()} END AS tool_error,
        CASE WHEN failed THEN {_ERROR} END AS error
    FROM spans_with_contents
    """


def _span_rows() -> str:
    """Spans with the columns of the table `spans`."""
    return f"""
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
    FROM spans_with_outcomes
    """


def _rows_with_digests() -> str:
    """Rows with digests of their contents and user, and the reason why a name is too long."""
    return f"""
    SELECT *,
        CASE WHEN kind = 'tool' THEN {digest("input_text", masks_ids=False)} ELSE {task_digest("input_text")}
            END AS input_digest,
        {digest("output_text", masks_ids=True)} AS output_digest, {user("stated_user")} AS user_id,
        coalesce(first_reason, {reason_of_names()} || ', in span ' || position) AS valid_reason
    FROM span_rows
    """


def _rows_with_reasons(limits: Limits) -> str:
    """Rows with the reason of their rejection, one of the future too."""
    return f"""
    SELECT * EXCLUDE (valid_reason), valid_reason IS NULL AND ended_at > {limits.until_sql} AS is_early,
        CASE WHEN is_early THEN {FUTURE_REASON} ELSE valid_reason END AS reason
    FROM rows_with_digests
    """


def _selected(limits: Limits) -> str:
    """The columns of the result."""
    return f"""
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
    FROM rows_with_reasons
    """


_TEXT = "coalesce(nullif(one.value.stringValue, ''), one.value.intValue, one.value.doubleValue, one.value.boolValue)"
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
_STRIPPED = r"rtrim(line, E'\r\n')"
_SPAN_TEXT = "coalesce(text::VARCHAR, to_json(span)::VARCHAR, 'null')"
_HAS_TRAILING_COMMA = (
    r"CASE WHEN ends_with(line, E']}\n') OR ends_with(line, ']}') OR ends_with(line, E']}\r\n') THEN false "
    f"ELSE {HAS_TRAILING_COMMA} END"
)
"""The rule of native lines; to search a megabyte costs as much as to parse it, so the end is looked at first."""


def _resource_value(key: str) -> str:
    return f"list_filter(resource.resource.attributes, lambda one: one.key = '{key}')[1].value.stringValue"


def _parent_id() -> str:
    return f"CASE WHEN span.parentSpanId <> '' THEN {hex_id('span.parentSpanId', 16)} END"


def _status_code() -> str:
    branches = " ".join(f"WHEN '{code}' THEN '{number}'" for code, number in STATUS_CODES.items())
    return f"CASE coalesce(status.code, '0') {branches} END"


def _count(column: str) -> str:
    return f"CASE WHEN regexp_full_match({column}, '[0-9]+') THEN TRY_CAST({column} AS BIGINT) END"


def _is_read_whole() -> str:
    """Whether nothing that may hold spans or attributes came out as null."""
    has_nothing_null = """
    len(list_filter(tokens.resourceSpans, lambda resource:
        resource.resource.attributes IS NULL OR resource.scopeSpans IS NULL
        OR len(list_filter(resource.scopeSpans, lambda scope:
            scope.spans IS NULL OR len(list_filter(scope.spans, lambda span: span.attributes IS NULL)) > 0)) > 0)) = 0
    """
    return f"tokens.resourceSpans IS NOT NULL AND {has_nothing_null}"
