"""Expectations of the tables of model health."""

from health_assets.quality.every_table import OF_EVERY_TABLE
from health_assets.quality.expectations import Check, Suite, at_least, between, equal, greater, unique
from health_assets.systems.model_health import batches

MODEL_COMPONENTS = Suite(
    asset="model_components",
    checks=[
        *OF_EVERY_TABLE,
        Check(
            name="call_has_one_row_per_hour",
            expectations=unique("hour", "model", "source_file", "line_number", "call_id"),
        ),
        Check(
            name="times_are_within_their_hour",
            expectations=[*at_least("ended_at", "hour"), *greater("next_hour", "ended_at")],
        ),
        Check(name="latencies_are_not_negative", expectations=between(0, None, "latency_ms")),
        Check(name="the_last_calls_are_there", expectations=equal("kept_calls", "last_calls"), batch="hours"),
    ],
    hours=batches.hours_of_last_calls,
)

MODEL_HEALTH = Suite(
    asset="model_health",
    checks=[
        *OF_EVERY_TABLE,
        Check(name="model_has_one_row_per_hour", expectations=unique("hour", "model")),
        Check(name="health_score_is_between_0_and_1", expectations=between(0, 1, "health_score")),
        Check(
            name="windows_hold_calls",
            expectations=[
                *between(0, None, "success_count", "failure_count"),
                *between(1, None, "calls"),
                *at_least("window_calls", "calls"),
            ],
        ),
        Check(
            name="latencies_are_in_order",
            expectations=[
                *between(0, None, "p50_latency_ms"),
                *at_least("p95_latency_ms", "p50_latency_ms"),
            ],
        ),
        Check(name="degraded_models_are_below_the_threshold", expectations=equal("called_degraded", "below_threshold")),
        Check(name="every_called_model_has_a_row", expectations=equal("scored_models", "called_models"), batch="hours"),
    ],
    rows={"rows": batches.scored_models},
    hours=batches.hours_of_models,
)

FALLBACK_COMPONENTS = Suite(
    asset="fallback_components",
    checks=[
        *OF_EVERY_TABLE,
        Check(name="model_and_alternative_have_one_row_per_hour", expectations=unique("hour", "model", "alternative")),
        Check(
            name="parts_are_within_the_whole",
            expectations=[
                *between(1, None, "calls"),
                *between(0, None, "failures", "alternative_failures"),
                *at_least("calls", "failures"),
                *at_least("alternative_calls", "alternative_failures"),
            ],
        ),
        Check(name="models_were_degraded_before", expectations=greater("degraded_threshold", "health_score")),
        Check(
            name="alternatives_were_healthy_before",
            expectations=at_least("alternative_health_score", "degraded_threshold"),
        ),
        Check(name="alternatives_have_a_score", expectations=equal("has_alternative", "has_alternative_score")),
        Check(
            name="calls_agree_with_the_records",
            expectations=[
                *equal("calls_in_parts", "calls_recorded"), *equal("failures_in_parts", "failures_recorded")
            ],
            batch="hours",
        ),
    ],
    rows={"rows": batches.replayed_calls},
    hours=batches.hours_of_replayed_calls,
)  # fmt: skip

MODEL_FALLBACK = Suite(
    asset="model_fallback",
    checks=[
        *OF_EVERY_TABLE,
        Check(name="model_and_alternative_have_one_row_per_hour", expectations=unique("hour", "model", "alternative")),
        Check(
            name="parts_are_within_the_whole",
            expectations=[
                *between(0, None, "compared_failures", "compared_alternative_failures"),
                *at_least("calls", "failures"),
                *at_least("calls", "compared_calls"),
                *at_least("failures", "compared_failures"),
                *at_least("compared_calls", "compared_failures"),
                *at_least("compared_alternative_calls", "compared_alternative_failures"),
            ],
        ),
        Check(name="estimates_are_there_where_calls_are_compared", expectations=equal("estimates", "estimates_due")),
        Check(
            name="estimates_are_within_their_intervals",
            expectations=[
                *between(0, None, "avoided_failures_low", "added_failures_low"),
                *at_least("avoided_failures", "avoided_failures_low"),
                *at_least("avoided_failures_high", "avoided_failures"),
                *at_least("compared_failures", "avoided_failures_high"),
                *at_least("added_failures", "added_failures_low"),
                *at_least("added_failures_high", "added_failures"),
                *at_least("compared_successes", "added_failures_high"),
            ],
        ),
        Check(
            name="windows_agree_with_the_components",
            expectations=equal("failures_in_windows", "failures_of_hours"),
            batch="hours",
        ),
    ],
    rows={"rows": batches.fallbacks},
    hours=batches.hours_of_fallbacks,
)

SUITES = (MODEL_COMPONENTS, MODEL_HEALTH, FALLBACK_COMPONENTS, MODEL_FALLBACK)
