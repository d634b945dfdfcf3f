"""The JSON of an agent, declared once and compiled to one SQL expression.

180,000 documents are made by the engine in a second; as Python objects they would take ten. Every leaf is a SQL
expression for a piece of JSON text; a leaf that is null leaves its member out, as the draft wants unknown values.

The SQL is valid on DuckDB and PostgreSQL alike.
"""

from typing import Any

from health_assets.schema.catalog import columns_of
from health_assets.scoring.verdict import urgency_sql
from health_assets.scoring.weights import OPERATIONAL_POINTS, PERFORMANCE_POINTS, RELIABILITY_POINTS, STABILITY_POINTS

SCHEMA_VERSION = "0.1.0"
EXTENSION = "org.health-assets.agent-health-model"
STATES = ("healthy", "degraded", "unhealthy", "inactive")

Declaration = dict[str, Any]
"""Member names to leaves (SQL) or to further declarations, in the order in which they are written."""


def text(expression: str) -> str:
    """A string, escaped as JSON wants it."""
    return f"CAST(to_json({expression}) AS VARCHAR)"


def number(expression: str) -> str:
    """A number; one that JSON cannot write counts as unknown."""
    infinite = "CAST('Infinity' AS DOUBLE PRECISION)"  # which is less than NaN to either engine
    is_finite = (
        f"CAST({expression} AS DOUBLE PRECISION) < {infinite} AND CAST({expression} AS DOUBLE PRECISION) > -{infinite}"
    )
    return f"CASE WHEN {is_finite} THEN CAST({expression} AS VARCHAR) END"


def moment(expression: str) -> str:
    """A point in time in ISO 8601, UTC; six digits of a second, or none."""
    text = f"replace(replace(CAST({expression} AS VARCHAR), ' ', 'T'), '+00', '')"
    return f"""'"' || rpad({text}, CASE WHEN {text} LIKE '%.%' THEN 26 ELSE 19 END, '0') || 'Z"'"""


def or_null(leaf: str) -> str:
    """A member that is written as null where its value is unknown."""
    return f"coalesce({leaf}, 'null')"


def json_sql(declaration: Declaration) -> str:
    """The SQL expression that writes a declared object as JSON text."""
    members = ", ".join(f"""',"{name}":' || {_leaf(value)}""" for name, value in declaration.items())
    return f"concat('{{', ltrim(concat({members}), ','), '}}')"


def if_known(expression: str, declaration: Declaration) -> str:
    """An object that is left out where an expression is null."""
    return f"CASE WHEN {expression} IS NOT NULL THEN {json_sql(declaration)} END"


def _leaf(value: str | Declaration) -> str:
    return json_sql(value) if isinstance(value, dict) else f"({value})"


COARSE_STATUS = "CASE WHEN status = 'unhealthy' THEN 'unhealthy' ELSE 'healthy' END"
"""What a personal agent shows (source 3, section 8): unhealthy on evidence of failure, else healthy. An agent that is
too little used to be judged is not set apart, since how much it is used is just what must not show."""

HEAD: Declaration = {
    "schema_version": f"""'"{SCHEMA_VERSION}"'""",
    "agent_id": text("agent_id"),
    "timestamp": moment("window_end"),
}

IS_PROVISIONAL = "CASE WHEN coalesce(is_provisional, false) THEN 'true' ELSE 'false' END"

BASIS: Declaration = {"is_provisional": IS_PROVISIONAL, "n": number("n"), "n_full": number("n_full")}
"""How many executions a score rests on, of those that it needs not to be provisional."""

MODEL_SCORE: Declaration = {
    "state": text("state"),
    **BASIS,
    "score": number("health_score"),
    "components": if_known(
        "health_score",
        {
            "reliability": number("reliability_score"),
            "performance": number("performance_score"),
            "stability": number("stability_score"),
            "operation": number("operational_score"),
        },
    ),
    "formula_version": text("formula_version"),
}
"""The extension: the Agent Health Model's score of the same window, and its dimensions from 0 to 1 (source 1). A caller
who reads a provisional score must not take it for knowledge, so the extension says that it is one."""

DOCUMENT: Declaration = {
    **HEAD,
    "health": {
        "status": text("status"),
        "last_healthy_at": moment("last_healthy_at"),
        "uptime_seconds": number("uptime_seconds"),
    },
    "calibration": {
        "response_ratio": number("response_ratio"),
        "error_ratio": number("error_ratio"),
        "latency_p50_ms": number("latency_p50_ms"),
        "latency_p99_ms": number("latency_p99_ms"),
        "measurement_window_seconds": number("measurement_window_seconds"),
        "sample_count": number("sample_count"),
    },
    "decay": {
        "calibration_trend": text("calibration_trend"),
        "days_since_model_change": or_null(number("days_since_model_change")),
        "last_capability_update": moment("last_capability_update"),
    },
    "extensions": {EXTENSION: if_known("state", MODEL_SCORE)},
}
"""Source 3, section 4.2."""

COARSE_DOCUMENT: Declaration = {**HEAD, "health": {"status": text(COARSE_STATUS)}}
"""The same of a personal agent, for those without the token (section 8)."""

ITEM: Declaration = {
    "agent_id": text("agent_id"),
    "state": or_null(text("state")),
    "status": text("status"),
    "health_score": or_null(number("health_score")),
    **{name: f"CASE WHEN state IS NULL THEN 'null' ELSE {leaf} END" for name, leaf in BASIS.items()},
    "is_personal": text("is_personal"),
}
"""An agent in a list; one that has no row of `agent_health` has neither state nor score."""

COARSE_ITEM: Declaration = {
    "agent_id": text("agent_id"),
    "state": text(COARSE_STATUS),
    "status": text(COARSE_STATUS),
    "health_score": "'null'",
    **dict.fromkeys(BASIS, "'null'"),
    "is_personal": text("is_personal"),
}
"""A personal agent in a list, for those without the token: how much it is used is nobody's business."""

DIMENSIONS = {
    "reliability": ("reliability_score", RELIABILITY_POINTS),
    "performance": ("performance_score", PERFORMANCE_POINTS),
    "stability": ("stability_score", STABILITY_POINTS),
    "operation": ("operational_score", OPERATIONAL_POINTS),
}
"""The dimensions of the Agent Health Model: their column and how many points they are worth (source 1)."""

FACTORS = (
    "success_score", "failure_score", "reliability_raw", "confidence_factor", "deviation", "sla_score", "trigger_score",
)  # fmt: skip
INPUTS = (
    "n", "untimed", "successes", "failures", "asr", "afh", "ar_s", "long_running", "sla_breaches", "trigger_failures",
    "hours_covered",
)  # fmt: skip
TARGETS_USED = (
    "expected_success_rate", "expected_failures_per_hour", "expected_runtime_s", "deviation_allowed", "n_full",
    "long_running_factor", "stability_threshold", "sla_breach_threshold", "trigger_failure_threshold", "sla_s",
    "healthy_at", "degraded_at",
)  # fmt: skip
SCORE_COLUMNS = (
    "health_score", "is_provisional", *(column for column, _ in DIMENSIONS.values()), *FACTORS, *INPUTS, *TARGETS_USED,
    "formula_version",
)  # fmt: skip
"""Columns of `agent_health` that explain a score."""


NO_EVIDENCE = """
SELECT CAST(NULL AS VARCHAR) AS agent_id, CAST(NULL AS VARCHAR) AS kind, CAST(NULL AS BIGINT) AS rank,
    CAST(NULL AS VARCHAR) AS event_id, CAST(NULL AS TIMESTAMP WITH TIME ZONE) AS hour
WHERE false
"""


def agents_sql(*, has_evidence: bool = True) -> str:
    """One row per agent of the hour $hour, ascending by the bytes of its id: its texts, and the numbers behind them.

    A personal agent's `document` and `item` are coarse, and the full ones stand beside them; of the others these are
    null. `evidence` holds, of agents that lost points, ids of events by kind as JSON. Parameters: $hour,
    $personal_by_default, $exceptions (ids of which the opposite of the default is true).

    Args:
        has_evidence: whether the warehouse has `score_evidence`; one of an older program does not.
    """
    scores = ", ".join(f"score.{column}" for column in SCORE_COLUMNS)
    of_both = ("formula_version", "hours_covered")
    states = ", ".join(f"state.{column}" for column in columns_of("agent_health_state") if column not in of_both)
    source = "score_evidence" if has_evidence else f"({NO_EVIDENCE}) AS nothing"
    ids = f"string_agg({text('event_id')}, ',' ORDER BY rank)"
    return f"""
        WITH by_kind AS (
            SELECT agent_id, kind, {ids} AS ids FROM {source} WHERE hour = $hour GROUP BY agent_id, kind
        ),
        evidence AS (
            SELECT agent_id,
                '{{' || string_agg('"' || kind || '":[' || ids || ']', ',' ORDER BY kind) || '}}' AS evidence
            FROM by_kind GROUP BY agent_id
        ),
        agents AS (
            SELECT {states}, score.state, {scores}, evidence.evidence,
                (state.agent_id IN (SELECT unnest($exceptions))) <> $personal_by_default AS is_personal
            FROM (SELECT * FROM agent_health_state WHERE hour = $hour) AS state
            LEFT JOIN (SELECT * FROM agent_health WHERE hour = $hour) AS score ON score.agent_id = state.agent_id
            LEFT JOIN evidence ON evidence.agent_id = state.agent_id
        )
        SELECT agent_id, is_personal, status, state, window_start, window_end, {", ".join(SCORE_COLUMNS)}, evidence,
            CASE WHEN is_personal THEN {json_sql(COARSE_DOCUMENT)} ELSE {json_sql(DOCUMENT)} END AS document,
            CASE WHEN is_personal THEN {json_sql(DOCUMENT)} END AS full_document,
            CASE WHEN is_personal THEN {json_sql(COARSE_ITEM)} ELSE {json_sql(ITEM)} END AS item,
            CASE WHEN is_personal THEN {json_sql(ITEM)} END AS full_item,
            CASE WHEN is_personal THEN {COARSE_STATUS} ELSE state END AS shown_state,
            {urgency_sql()} AS urgency
        FROM agents ORDER BY agent_id
    """
