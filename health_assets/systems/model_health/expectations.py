"""Expectations of the tables of model health."""

from health_assets.quality import batches as common
from health_assets.quality.every_table import OF_EVERY_TABLE
from health_assets.quality.expectations import Check, Suite, at_least, between, equal, greater, unique
from health_assets.systems.model_health import batches

MODEL_COMPONENTS = Suite(
    "model_components",
    [
        *OF_EVERY_TABLE,
        Check("call_has_one_row_per_hour", unique("hour", "model", "call_id")),
        Check("times_are_within_their_hour", [*at_least("ended_at", "hour"), *greater("next_hour", "ended_at")]),
        Check("latencies_are_not_negative", between(0, None, "latency_ms")),
        Check("the_last_calls_are_there", equal("kept_calls", "last_calls"), batch="hours"),
    ],
    {"rows": common.rows},
    batches.hours_of_last_calls,
)

MODEL_HEALTH = Suite(
    "model_health",
    [
        *OF_EVERY_TABLE,
        Check("model_has_one_row_per_hour", unique("hour", "model")),
        Check("health_score_is_between_0_and_1", between(0, 1, "health_score")),
        Check(
            "windows_hold_calls",
            [
                *between(0, None, "success_count", "failure_count"),
                *between(1, None, "calls"),
                *at_least("window_calls", "calls"),
            ],
        ),
        Check(
            "latencies_are_in_order",
            [
                *between(0, None, "p50_latency_ms"),
                *at_least("p95_latency_ms", "p50_latency_ms"),
            ],
        ),
        Check("degraded_models_are_below_the_threshold", equal("called_degraded", "below_threshold")),
        Check("every_called_model_has_a_row", equal("scored_models", "called_models"), batch="hours"),
    ],
    {"rows": batches.scored_models},
    batches.hours_of_models,
)

SUITES = (MODEL_COMPONENTS, MODEL_HEALTH)
