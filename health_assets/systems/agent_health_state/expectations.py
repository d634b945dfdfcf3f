"""Expectations of the Agent Health State's tables."""

from health_assets.quality.every_table import OF_EVERY_TABLE
from health_assets.quality.expectations import Check, Suite, at_least, between, equal, greater, one_of, unique
from health_assets.scoring.latency_buckets import LAST_BUCKET
from health_assets.systems.agent_health_state import batches
from health_assets.systems.agent_health_state.agent_health_state import STATUSES, TRENDS

ROUNDING = 1e-9
SHORTEST_WINDOW_S = 300  # source 3, section 4.4
TIMES_OF_CHANGES = (
    "last_restart_at", "last_model_update_at", "last_capability_update_at", "first_model_at", "last_model_switch_at",
)  # fmt: skip
TIMES_OF_PARTS = ("first_event_at", *TIMES_OF_CHANGES)

STATE_COMPONENTS = Suite(
    asset="state_components",
    checks=[
        *OF_EVERY_TABLE,
        Check(name="agent_has_one_row_per_hour", expectations=unique("hour", "agent_id")),
        Check(
            name="times_are_within_their_hour",
            expectations=[one for at in TIMES_OF_PARTS for one in (*at_least(at, "hour"), *greater("next_hour", at))],
        ),
        Check(name="buckets_are_possible", expectations=between(0, LAST_BUCKET, "least_bucket", "greatest_bucket")),
        Check(name="buckets_are_in_order", expectations=equal("has_ascending_buckets", "has_buckets")),
        Check(
            name="models_come_with_their_time",
            expectations=[
                *equal("has_first_model", "has_last_model"),
                *equal("has_first_model", "has_first_model_at"),
                *at_least("has_first_model", "has_model_switch"),
            ],
        ),
        Check(
            name="latencies_agree_with_the_executions",
            expectations=equal("latencies", "timed_executions"),
            batch="hours",
        ),
    ],
    rows={"rows": batches.parts_of_states},
    hours=batches.hours_of_parts_of_states,
)

AGENT_CHANGES = Suite(
    asset="agent_changes",
    checks=[
        *OF_EVERY_TABLE,
        Check(name="agent_has_one_row_per_hour", expectations=unique("hour", "agent_id")),
        Check(
            name="times_are_within_their_hour",
            expectations=[one for at in TIMES_OF_CHANGES for one in (*at_least(at, "hour"), *greater("next_hour", at))],
        ),
        Check(name="rows_tell_a_change", expectations=between(1, None, "facts")),
    ],
    rows={"rows": batches.changes},
)

AGENT_HEALTH_STATE = Suite(
    asset="agent_health_state",
    checks=[
        *OF_EVERY_TABLE,
        Check(name="agent_has_one_row_per_hour", expectations=unique("hour", "agent_id")),
        Check(name="statuses_are_known", expectations=one_of("status", *STATUSES)),
        Check(name="trends_are_known", expectations=one_of("calibration_trend", *TRENDS)),
        Check(
            name="ratios_are_between_0_and_1",
            expectations=between(0, 1, "response_ratio", "error_ratio", "previous_response_ratio"),
        ),
        Check(name="ratios_add_up_to_1", expectations=between(1 - ROUNDING, 1 + ROUNDING, "sum_of_ratios")),
        Check(
            name="latencies_are_in_order",
            expectations=[*between(0, None, "latency_p50_ms"), *at_least("latency_p99_ms", "latency_p50_ms")],
        ),
        Check(name="latencies_are_of_samples", expectations=at_least("sample_count", "latency_sample_count")),
        Check(name="measures_are_there_where_samples_are", expectations=equal("measures", "measures_due")),
        Check(name="few_samples_are_unknown", expectations=equal("is_unknown", "has_few_samples")),
        Check(name="statuses_agree_with_the_ratios", expectations=between(1, 1, "has_ratio_of_status")),
        Check(name="who_is_healthy_was_so_last_now", expectations=equal("is_healthy", "was_healthy_last_now")),
        Check(
            name="times_are_within_the_window",
            expectations=[*at_least("window_end", "last_healthy_at"), *greater("window_end", "last_capability_update")],
        ),
        Check(
            name="durations_are_possible",
            expectations=[
                *between(0, None, "uptime_seconds", "days_since_model_change"),
                *between(SHORTEST_WINDOW_S, None, "measurement_window_seconds"),
            ],
        ),
        Check(
            name="windows_agree_with_the_components",
            expectations=equal("executions_in_windows", "executions_of_hours"),
            batch="hours",
        ),
        Check(
            name="parts_know_the_same_agents",
            expectations=equal("agents_with_parts", "agents_with_components"),
            batch="hours",
        ),
        Check(name="windows_are_covered", expectations=at_least("hours_covered", "window_hours"), severity="warn"),
    ],
    rows={"rows": batches.states},
    hours=batches.hours_of_states,
)

SUITES = (STATE_COMPONENTS, AGENT_CHANGES, AGENT_HEALTH_STATE)
