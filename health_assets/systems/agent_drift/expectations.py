"""Expectations of the table of agent drift."""

from health_assets.quality.every_table import OF_EVERY_TABLE
from health_assets.quality.expectations import Check, Suite, at_least, between, equal, one_of, unique
from health_assets.systems.agent_drift import batches
from health_assets.systems.agent_drift.names import DIMENSIONS, MEASURES, TOOL

AGENT_DRIFT = Suite(
    asset="drift",
    checks=[
        *OF_EVERY_TABLE,
        Check(name="measure_has_one_row_per_hour_and_agent", expectations=unique("hour", "agent_id", "measure")),
        Check(
            name="words_are_known",
            expectations=[*one_of("measure", *MEASURES), *one_of("cause_dimension", *DIMENSIONS, TOOL)],
        ),
        Check(
            name="values_are_not_negative",
            expectations=between(0, None, "runs", "baseline_runs", "value", "baseline", "limit_value", "evidence"),
        ),
        Check(name="shares_are_at_most_1", expectations=between(None, 1, "share", "baseline_share", "cause_share")),
        Check(name="detectors_are_counted", expectations=between(1, None, "detectors")),
        Check(name="what_drifts_is_beyond_its_limit", expectations=between(0, None, "beyond_limit")),
        Check(
            name="causes_are_told_in_full",
            expectations=[
                *equal("has_dimension", "has_cause"),
                *equal("has_cause", "has_cause_share"),
                *equal("has_cause", "has_hint"),
            ],
        ),
        Check(name="amounts_have_a_threshold", expectations=equal("has_threshold", "is_of_amount")),
        Check(name="drifts_began_in_the_past", expectations=at_least("hour", "since")),
    ],
    rows={"rows": batches.drifts},
)

SUITES = (AGENT_DRIFT,)
