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

SUITES = (MODEL_COMPONENTS, MODEL_HEALTH)
