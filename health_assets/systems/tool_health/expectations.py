"""Expectations of the tables of tool health."""

from health_assets.quality.every_table import OF_EVERY_TABLE
from health_assets.quality.expectations import Check, Suite, at_least, between, equal, greater, unique
from health_assets.scoring.latency_buckets import LAST_BUCKET
from health_assets.systems.tool_health import batches

ROUNDING = 1e-9

TOOL_COMPONENTS = Suite(
    asset="tool_components",
    checks=[
        *OF_EVERY_TABLE,
        Check(name="tool_has_one_row_per_hour_and_agent", expectations=unique("hour", "agent_id", "tool")),
        Check(name="parts_hold_calls", expectations=[*between(1, None, "calls"), *between(0, None, "failures")]),
        Check(
            name="parts_are_within_the_whole",
            expectations=[*at_least("calls", "failures"), *at_least("calls", "latencies")],
        ),
        Check(
            name="times_are_within_their_hour",
            expectations=[
                *at_least("last_error_at", "hour"),
                *greater("next_hour", "last_error_at"),
            ],
        ),
        Check(name="buckets_are_possible", expectations=between(0, LAST_BUCKET, "least_bucket", "greatest_bucket")),
        Check(name="buckets_are_in_order", expectations=equal("has_ascending_buckets", "has_buckets")),
        Check(
            name="errors_come_with_their_time_and_a_failure",
            expectations=[
                *equal("has_error", "has_error_at"),
                *at_least("failures", "has_error"),
            ],
        ),
        Check(
            name="calls_agree_with_the_records",
            expectations=[
                *equal("calls_in_parts", "calls_recorded"),
                *equal("failures_in_parts", "failures_recorded"),
            ],
            batch="hours",
        ),
    ],
    rows={"rows": batches.parts_of_tools},
    hours=batches.hours_of_parts_of_tools,
)

TOOL_HEALTH = Suite(
    asset="tool_health",
    checks=[
        *OF_EVERY_TABLE,
        Check(name="tool_has_one_row_per_hour_and_agent", expectations=unique("hour", "agent_id", "tool")),
        Check(name="windows_hold_calls", expectations=[*between(1, None, "calls"), *between(0, None, "failures")]),
        Check(name="parts_are_within_the_whole", expectations=at_least("calls", "failures")),
        Check(name="shares_are_between_0_and_1", expectations=between(0, 1, "failure_share", "failure_share_at_least")),
        Check(
            name="shares_are_at_least_their_lower_ends",
            expectations=at_least("failure_share", "failure_share_at_least"),
        ),
        Check(name="failure_shares_agree_with_the_counts", expectations=between(-ROUNDING, ROUNDING, "share_off")),
        Check(
            name="latencies_are_in_order",
            expectations=[*between(0, None, "p50_latency_ms"), *at_least("p95_latency_ms", "p50_latency_ms")],
        ),
        Check(name="latencies_come_together", expectations=equal("has_p50", "has_p95")),
        Check(
            name="errors_come_with_their_time_and_a_failure",
            expectations=[
                *equal("has_error", "has_error_at"),
                *at_least("failures", "has_error"),
            ],
        ),
        Check(
            name="times_are_within_the_window",
            expectations=[
                *at_least("last_error_at", "window_start"),
                *greater("window_end", "last_error_at"),
            ],
        ),
        Check(
            name="windows_agree_with_the_components",
            expectations=equal("calls_in_windows", "calls_of_hours"),
            batch="hours",
        ),
    ],
    rows={"rows": batches.tools},
    hours=batches.hours_of_tools,
)

SUITES = (TOOL_COMPONENTS, TOOL_HEALTH)
