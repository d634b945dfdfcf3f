"""Expectations of the tables of tool health."""

from health_assets.quality.every_table import OF_EVERY_TABLE
from health_assets.quality.expectations import Check, Suite, at_least, between, equal, greater, unique
from health_assets.scoring.latency_buckets import LAST_BUCKET
from health_assets.systems.tool_health import batches

ROUNDING = 1e-9

TOOL_COMPONENTS = Suite(
    "tool_components",
    [
        *OF_EVERY_TABLE,
        Check("tool_has_one_row_per_hour_and_agent", unique("hour", "agent_id", "tool")),
        Check("parts_hold_calls", [*between(1, None, "calls"), *between(0, None, "failures")]),
        Check("parts_are_within_the_whole", [*at_least("calls", "failures"), *at_least("calls", "latencies")]),
        Check("times_are_within_their_hour", [
            *at_least("last_error_at", "hour"), *greater("next_hour", "last_error_at"),
        ]),
        Check("buckets_are_possible", between(0, LAST_BUCKET, "least_bucket", "greatest_bucket")),
        Check("buckets_are_in_order", equal("has_ascending_buckets", "has_buckets")),
        Check("errors_come_with_their_time_and_a_failure", [
            *equal("has_error", "has_error_at"), *at_least("failures", "has_error"),
        ]),
        Check("calls_agree_with_the_records", [
            *equal("calls_in_parts", "calls_recorded"), *equal("failures_in_parts", "failures_recorded"),
        ], batch="hours"),
    ],
    {"rows": batches.parts_of_tools},
    batches.hours_of_parts_of_tools,
)  # fmt: skip

TOOL_HEALTH = Suite(
    "tool_health",
    [
        *OF_EVERY_TABLE,
        Check("tool_has_one_row_per_hour_and_agent", unique("hour", "agent_id", "tool")),
        Check("windows_hold_calls", [*between(1, None, "calls"), *between(0, None, "failures")]),
        Check("parts_are_within_the_whole", at_least("calls", "failures")),
        Check("shares_are_between_0_and_1", between(0, 1, "failure_share", "failure_share_at_least")),
        Check("shares_are_at_least_their_lower_ends", at_least("failure_share", "failure_share_at_least")),
        Check("failure_shares_agree_with_the_counts", between(-ROUNDING, ROUNDING, "share_off")),
        Check(
            "latencies_are_in_order",
            [*between(0, None, "p50_latency_ms"), *at_least("p95_latency_ms", "p50_latency_ms")],
        ),
        Check("latencies_come_together", equal("has_p50", "has_p95")),
        Check("errors_come_with_their_time_and_a_failure", [
            *equal("has_error", "has_error_at"), *at_least("failures", "has_error"),
        ]),
        Check("times_are_within_the_window", [
            *at_least("last_error_at", "window_start"), *greater("window_end", "last_error_at"),
        ]),
        Check("windows_agree_with_the_components", equal("calls_in_windows", "calls_of_hours"), batch="hours"),
    ],
    {"rows": batches.tools},
    batches.hours_of_tools,
)  # fmt: skip

SUITES = (TOOL_COMPONENTS, TOOL_HEALTH)
