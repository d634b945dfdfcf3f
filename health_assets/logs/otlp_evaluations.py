"""Results of evaluators in OTLP-JSON: `gen_ai.evaluation.result`, an event of a span or a log record of its own.

What belongs here: such events to one row each. What does not: the spans that hold them (`otlp`), and what a result says
of a score, which the targets file decides (`core.evaluators`).

The explanation of a result is not read.
"""

from health_assets.logs.formats.foreign_lines import READ_CHARACTERS, READ_TEXT_BYTES
from health_assets.logs.limits import IN_THE_FUTURE, Limits
from health_assets.logs.otlp_fields import ATTRIBUTES, hex_id, name_rule, nanoseconds, reason_of, time_rule
from health_assets.logs.otlp_lines import EVALUATION_EVENT, LOGS_START, UNSERVED_REASON, camel_keys
from health_assets.logs.redacting import cut

_EVENT = f'{{"name": "VARCHAR", "timeUnixNano": "VARCHAR", "attributes": {ATTRIBUTES}}}'
_SPAN = f'{{"traceId": "VARCHAR", "spanId": "VARCHAR", "events": [{_EVENT}]}}'
_RECORD = f"""{{
    "eventName": "VARCHAR", "timeUnixNano": "VARCHAR", "observedTimeUnixNano": "VARCHAR", "traceId": "VARCHAR",
    "spanId": "VARCHAR", "attributes": {ATTRIBUTES}
}}"""
_LINE = f"""{{
    "resourceSpans": [{{"scopeSpans": [{{"spans": [{_SPAN}]}}]}}],
    "resourceLogs": [{{"scopeLogs": [{{"logRecords": [{_RECORD}]}}]}}]
}}"""
NOT_USED = UNSERVED_REASON.format(what="logs", field="resourceLogs")
_COLUMNS = "name, evaluated_at, execution_id, agent_id, agent_id_reported, session_id, value, label, place_in_line"
_NAMES = {"name": "gen_ai.evaluation.name", "session_id": "gen_ai.conversation.id"}


def parsed_evaluations(lines: str, limits: Limits) -> str:
    """SQL that reads lines of OTLP-JSON and gives one row for every result of an evaluator, and for what is none.

    Other log records of such lines are passed over. A line of spans that cannot be read gives no row here: it is
    rejected with its spans.

    Args:
        lines: a relation of `files.LINES_SCHEMA`.
        limits: from when on a result is of the future.

    Returns:
        A SELECT with the columns that rows of `otlp.parsed_spans` have in common, and those of `evaluations`.
    """
    return f"""
    WITH camel_lines AS (
        SELECT file_id, line_number, line, fault, {camel_keys("line")} AS json,
            regexp_matches(line, '{LOGS_START}') AS is_log
        FROM {lines}
    ), parsed_lines AS (
        SELECT *, CASE WHEN fault IS NULL THEN TRY(json_transform(json, '{_LINE}')) END AS tokens FROM camel_lines
    ), valid_lines AS (
        SELECT file_id, line_number, tokens FROM parsed_lines WHERE tokens IS NOT NULL
    ), {_log_results()}, {_span_results()}, results AS (
        SELECT * FROM log_results UNION ALL SELECT * FROM span_results
    ), results_with_attributes AS (
        SELECT file_id, line_number, place, place_in_line, part, trace_id AS stated_trace, span_id AS stated_span,
            nullif({_attribute("gen_ai.evaluation.name")}, '') AS name,
            {_attribute("gen_ai.evaluation.score.value")} AS score,
            nullif({_attribute("gen_ai.evaluation.score.label")}, '') AS label,
            coalesce(nullif({_attribute("gen_ai.conversation.id")}, ''), nullif({_attribute("session.id")}, ''))
                AS session_id,
            {hex_id("trace_id", 32)} AS trace, {hex_id("span_id", 16)} AS span, stated_ns,
            {nanoseconds("stated_ns")} AS ns
        FROM results
    ), typed_results AS (
        SELECT *, make_timestamptz(ns // 1000) AS evaluated_at, trace || coalesce(':' || span, '') AS execution_id,
            NULL::VARCHAR AS agent_id, NULL::VARCHAR AS agent_id_reported,
            CASE score WHEN 'true' THEN 1.0 WHEN 'false' THEN 0.0
                ELSE CASE WHEN isfinite(TRY_CAST(score AS DOUBLE)) THEN TRY_CAST(score AS DOUBLE) END END AS value,
            {_reason()} AS first_reason
        FROM results_with_attributes
    ), results_with_reasons AS (
        SELECT *, first_reason IS NULL AND evaluated_at > {limits.until_sql} AS is_early,
            CASE WHEN is_early THEN 'timeUnixNano {IN_THE_FUTURE}, not ' || stated_ns ELSE first_reason END
                || ', in ' || part || ' ' || place AS reason
        FROM typed_results
    ), result_rows AS (
        SELECT file_id, line_number, {_COLUMNS}, place AS position, reason,
            CASE WHEN is_early THEN evaluated_at END AS future_at,
            CASE WHEN reason IS NOT NULL THEN to_json({{
                'name': name, 'traceId': stated_trace, 'spanId': stated_span, 'timeUnixNano': stated_ns
            }})::VARCHAR END AS raw
        FROM results_with_reasons
        UNION ALL BY NAME
        SELECT file_id, line_number, '' AS position, {_line_reason()} AS reason, '' AS raw
        FROM parsed_lines ANTI JOIN log_results USING (file_id, line_number) WHERE is_log
    )
    SELECT * EXCLUDE (raw), CASE WHEN reason IS NULL THEN 'evaluation' ELSE 'rejected' END AS record_type,
        {cut("raw", READ_TEXT_BYTES)} AS raw, hash(line_number, {_COLUMNS}, position, reason, raw) AS fingerprint,
        CASE WHEN evaluated_at <= {limits.until_sql}
            THEN make_timestamptz(epoch_us(evaluated_at) // 3_600_000_000 * 3_600_000_000) END AS hour
    FROM result_rows
    """


def _items(prefix: str, resources: str, scopes: str, items: str) -> str:
    """SQL of each `item` that good lines hold below a resource and a scope, with its `place` as numbers from 0."""
    return f"""
    {prefix}_resources AS (
        SELECT file_id, line_number, unnest(tokens.{resources}) AS resource,
            generate_subscripts(tokens.{resources}, 1) AS resource_number
        FROM valid_lines
    ), {prefix}_scopes AS (
        SELECT file_id, line_number, resource_number, unnest(resource.{scopes}) AS scope,
            generate_subscripts(resource.{scopes}, 1) AS scope_number
        FROM {prefix}_resources
    ), {prefix}_numbered AS (
        SELECT file_id, line_number, resource_number, scope_number, unnest(scope.{items}) AS item,
            generate_subscripts(scope.{items}, 1) AS number
        FROM {prefix}_scopes
    ), {prefix}_items AS (
        SELECT file_id, line_number, item,
            (resource_number - 1) || '.' || (scope_number - 1) || '.' || (number - 1) AS place
        FROM {prefix}_numbered
    )"""


def _log_results() -> str:
    """SQL of the log records of good lines that are results."""
    return f"""
    {_items("log", "resourceLogs", "scopeLogs", "logRecords")}, log_results AS (
        SELECT file_id, line_number, place, place AS place_in_line, 'log record' AS part,
            item.traceId AS trace_id, item.spanId AS span_id,
            CASE WHEN coalesce(item.timeUnixNano, '0') = '0' THEN item.observedTimeUnixNano ELSE item.timeUnixNano END
                AS stated_ns,
            item.attributes AS attributes
        FROM log_items
        WHERE coalesce(nullif(item.eventName, ''), {_attribute("event.name", "item.attributes")})
            = '{EVALUATION_EVENT}'
    )"""


def _span_results() -> str:
    """SQL of the events of spans of good lines that are results."""
    return f"""
    {_items("span", "resourceSpans", "scopeSpans", "spans")}, span_events AS (
        SELECT file_id, line_number, place, item.traceId AS trace_id, item.spanId AS span_id,
            unnest(item.events) AS event, generate_subscripts(item.events, 1) AS event_number
        FROM span_items
    ), span_results AS (
        SELECT file_id, line_number, place, place || '.' || (event_number - 1) AS place_in_line, 'span' AS part,
            trace_id, span_id, event.timeUnixNano AS stated_ns, event.attributes AS attributes
        FROM span_events WHERE event.name = '{EVALUATION_EVENT}'
    )"""


def _line_reason() -> str:
    """The reason why a line of logs that holds no result is rejected."""
    return f"CASE WHEN fault IS NOT NULL THEN fault WHEN tokens IS NULL THEN 'not valid JSON' ELSE '{NOT_USED}' END"


def _attribute(key: str, attributes: str = "attributes") -> str:
    value = f"list_filter({attributes}, lambda one: one.key = '{key}')[1].value"
    return f"coalesce({value}.stringValue, {value}.doubleValue, {value}.intValue, {value}.boolValue)"


def _reason() -> str:
    """The reason why a result cannot be used; null if it can."""
    rules = [("name IS NULL", "'gen_ai.evaluation.name is missing'")]
    for stated, found, field, digits in (
        ("stated_trace", "trace", "traceId", 32),
        ("stated_span", "span", "spanId", 16),
    ):
        rules.append(
            (
                f"{found} IS NULL AND ltrim({stated}, '0') <> ''",
                f"'{field} must be {digits} hexadecimal digits, not ' || {stated}[1:{READ_CHARACTERS}]",
            )
        )
    rules.append(("coalesce(stated_ns, '0') = '0'", "'timeUnixNano is missing'"))
    rules.append(time_rule("timeUnixNano", "stated_ns", "ns"))
    rules += [name_rule(column, told) for column, told in _NAMES.items()]
    return reason_of(rules)
