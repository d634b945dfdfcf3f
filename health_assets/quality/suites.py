"""What must be true of every table.

One suite per asset, in the order of the lineage. A check's name says what is true when it passes; its severity says
whether a failure stops what follows (`error`) or asks a person to look (`warn`).
"""

from collections.abc import Sequence

from health_assets.quality import batches
from health_assets.quality.expectations import Check, Suite, at_least, between, equal, greater, not_null, one_of, unique
from health_assets.scoring.health_components import SUMS
from health_assets.scoring.system_health import STATES
from health_assets.warehouse.tables import describe

MOST_REJECTED_SHARE = 0.05


def _of_every_table(asset: str) -> list[Check]:
    required = [name for name, _, is_nullable, _ in describe(asset) if not is_nullable]
    return [
        Check("columns_have_declared_types", equal("actual_type", "declared_type"), batch="column_types"),
        Check("required_values_are_present", not_null(*required)),
    ]


def _of_every_record_table(asset: str) -> list[Check]:
    return [
        *_of_every_table(asset),
        Check("every_line_is_a_row", equal("rows_kept", "lines_kept"), batch="lines_and_rows"),
    ]


def _record_suite(asset: str, event_time: str, checks: Sequence[Check], *, key: str | None = None) -> Suite:
    own = [
        Check("times_are_within_their_hour", [*at_least(event_time, "hour"), *greater("next_hour", event_time)]),
        *checks,
    ]
    made = {"rows": batches.rows, "column_types": batches.column_types, "lines_and_rows": batches.lines_and_rows}
    if key:
        own += [
            Check(f"{key}_is_unique_within_the_hour", unique("hour", key)),
            Check(f"{key}_is_in_one_hour_only", between(0, 1, "hours_with_id"), "warn", batch="ids_in_several_hours"),
        ]
        made["ids_in_several_hours"] = batches.ids_in_several_hours
    return Suite(asset, [*_of_every_record_table(asset), *own], made)


SIGNAL_COLUMNS = ("signal_confidence", "signal_loop_detection", "signal_tool_correctness", "signal_coherence")

RAW_LOGS = Suite(
    "raw_logs",
    [
        *_of_every_table("raw_logs"),
        Check("every_line_is_accounted_for", equal("lines_counted", "lines_read"), batch="lines_of_files"),
        Check("counts_are_possible", [*between(0, None, "lines", "superseded"), *at_least("lines", "superseded")]),
    ],
    {"rows": batches.rows, "column_types": batches.column_types, "lines_of_files": batches.lines_of_files},
)

EXECUTIONS = _record_suite(
    "executions",
    "ended_at",
    [
        Check("executions_end_after_they_start", [*at_least("ended_at", "started_at"), *between(0, None, "runtime_s")]),
        Check("statuses_are_known", [*one_of("status", "success", "failure"), *one_of("condition", "baseline", "fault", "structural", "prompt")]),
        Check("shares_are_between_0_and_1", between(0, 1, "confidence", *SIGNAL_COLUMNS)),
        Check("resources_are_not_negative", between(0, None, "sla_s", "cost_usd", "api_calls", "error_count", "call_latency_s", "action_count")),
    ],
    key="execution_id",
)

TRIGGER_EVENTS = _record_suite(
    "trigger_events", "fired_at", [Check("statuses_are_known", one_of("status", "fired", "failed"))], key="trigger_id"
)

MODEL_CALLS = _record_suite(
    "model_calls",
    "ended_at",
    [
        Check("statuses_are_known", one_of("status", "success", "failure")),
        Check("latencies_are_not_negative", between(0, None, "latency_ms")),
    ],
    key="call_id",
)

SIGNALS = _record_suite("signals", "given_at", [Check("shares_are_between_0_and_1", between(0, 1, *SIGNAL_COLUMNS))])

JUDGEMENTS = _record_suite("judgements", "judged_at", [])

AGENT_UPDATES = _record_suite(
    "agent_updates", "updated_at", [Check("kinds_are_known", one_of("kind", "restart", "model_change", "capability_update"))]
)

REJECTED_RECORDS = Suite(
    "rejected_records",
    [
        *_of_every_record_table("rejected_records"),
        Check("few_lines_are_rejected", between(0, MOST_REJECTED_SHARE, "rejected_share"), "warn", batch="rejected_share"),
    ],
    {
        "rows": batches.rows,
        "column_types": batches.column_types,
        "lines_and_rows": batches.lines_and_rows,
        "rejected_share": batches.rejected_share,
    },
)

HEALTH_COMPONENTS = Suite(
    "health_components",
    [
        *_of_every_table("health_components"),
        Check("agent_has_one_row_per_hour", unique("hour", "agent_id")),
        Check("sums_are_not_negative", between(0, None, *SUMS, "runtime_s_sum")),
        Check("parts_are_within_the_whole", [
            *at_least("executions", "successes"), *at_least("executions", "failures"), *at_least("executions", "long_running"),
            *at_least("executions", "sla_breaches"), *at_least("triggers", "trigger_failures"),
        ]),
        Check("sums_agree_with_the_events", [
            *equal("summed_executions", "counted_executions"), *equal("summed_triggers", "counted_triggers"),
        ], batch="components_and_events"),
    ],
    {"rows": batches.rows, "column_types": batches.column_types, "components_and_events": batches.components_and_events},
)  # fmt: skip

SHARES_OF_HEALTH = (
    "asr", "success_score", "failure_score", "reliability_raw", "confidence_factor", "reliability_score",
    "performance_score", "stability_score", "sla_score", "trigger_score", "operational_score",
)  # fmt: skip

AGENT_HEALTH = Suite(
    "agent_health",
    [
        *_of_every_table("agent_health"),
        Check("agent_has_one_row_per_hour", unique("hour", "agent_id")),
        Check("states_are_known", one_of("state", *STATES)),
        Check("scores_are_between_0_and_1", between(0, 1, *SHARES_OF_HEALTH)),
        Check("health_score_is_between_0_and_100", between(0, 100, "health_score")),
        Check("only_inactive_agents_have_no_score", equal("has_score", "is_active"), batch="activity"),
        Check("windows_agree_with_the_components", equal("executions_in_windows", "executions_of_hours"), batch="windows_and_components"),
        Check("windows_are_covered", at_least("hours_covered", "window_hours"), "warn", batch="activity"),
    ],
    {
        "rows": batches.rows,
        "column_types": batches.column_types,
        "activity": batches.activity,
        "windows_and_components": batches.windows_and_components,
    },
)

SYSTEM_HEALTH = Suite(
    "system_health",
    [
        *_of_every_table("system_health"),
        Check("there_is_one_row_per_hour", unique("hour")),
        Check("health_score_is_between_0_and_100", between(0, 100, "health_score")),
        Check("every_agent_is_counted_once", [*equal("agents", "agent_rows"), *equal("agents", "agents_in_states")], batch="agents_counted"),
    ],
    {"rows": batches.rows, "column_types": batches.column_types, "agents_counted": batches.agents_counted},
)

SUITES = {
    suite.asset: suite
    for suite in (
        RAW_LOGS, EXECUTIONS, TRIGGER_EVENTS, MODEL_CALLS, SIGNALS, JUDGEMENTS, AGENT_UPDATES, REJECTED_RECORDS,
        HEALTH_COMPONENTS, AGENT_HEALTH, SYSTEM_HEALTH,
    )
}  # fmt: skip
