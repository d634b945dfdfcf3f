"""Expectations of the tables of the release comparison."""

from health_assets.quality.every_table import OF_EVERY_TABLE
from health_assets.quality.expectations import Check, Suite, at_least, between, equal, one_of, unique
from health_assets.systems.release_comparison import batches
from health_assets.systems.release_comparison.names import BUCKETS, DIMENSIONS, MEASURES, VERDICTS

ROUNDING = 1e-9

RELEASE_COMPONENTS = Suite(
    asset="release_components",
    checks=[
        *OF_EVERY_TABLE,
        Check(
            name="version_and_model_have_one_row_per_hour_and_agent",
            expectations=unique("hour", "agent_id", "agent_version", "model"),
        ),
        Check(name="parts_hold_executions", expectations=between(1, None, "executions")),
        Check(
            name="parts_are_within_the_whole",
            expectations=[
                *at_least("executions", "successes"),
                *at_least("session_pairs", "session_pairs_first_succeeded"),
                *at_least("session_pairs_first_succeeded", "session_pairs_both_succeeded"),
                *at_least("executions", "runs_with_tool_calls"),
                *at_least("runs_with_tool_calls", "runs_with_tool_failures"),
                *at_least("executions", "runs_with_steps"),
                *at_least("runs_with_steps", "runs_with_loops"),
                *at_least("successes", "timed_runs"),
                *at_least("executions", "runs_with_tokens"),
                *at_least("executions", "runs_with_cost"),
                *at_least("runs_with_cost", "successes_with_cost"),
                *at_least("successes", "successes_with_cost"),
                *at_least("cost_usd", "cost_of_successes_usd"),
            ],
        ),
        Check(
            name="sums_are_not_negative",
            expectations=between(
                0, None, "successes", "runtime_buckets", "squared_runtime_buckets", "tokens", "squared_kilotokens",
                "cost_usd", "squared_cost_usd2", "cost_of_successes_usd",
            ),
        ),
        Check(
            name="buckets_are_those_of_runs",
            expectations=[one for name, runs in BUCKETS.items() for one in equal(runs, f"{name}_count")],
        ),
        Check(
            name="buckets_are_in_order",
            expectations=[one for name in BUCKETS for one in equal(f"has_ascending_{name}", f"has_{name}")],
        ),
        Check(
            name="executions_agree_with_the_records",
            expectations=[
                *equal("executions_in_parts", "executions_recorded"),
                *equal("successes_in_parts", "successes_recorded"),
            ],
            batch="hours",
        ),
    ],
    rows={"rows": batches.parts},
    hours=batches.hours_of_parts,
)  # fmt: skip

RELEASE_COMPARISON = Suite(
    asset="release_comparison",
    checks=[
        *OF_EVERY_TABLE,
        Check(
            name="measure_has_one_row_per_hour_and_release",
            expectations=unique("hour", "agent_id", "dimension", "to_version", "measure"),
        ),
        Check(
            name="words_are_known",
            expectations=[
                *one_of("dimension", *DIMENSIONS), *one_of("measure", *MEASURES), *one_of("verdict", *VERDICTS),
            ],
        ),
        Check(name="both_sides_ran", expectations=between(1, None, "n_from", "n_to")),
        Check(name="values_are_not_negative", expectations=between(0, None, "estimate_from", "estimate_to")),
        Check(name="differences_agree_with_the_values", expectations=between(-ROUNDING, ROUNDING, "difference_off")),
        Check(
            name="intervals_have_two_ends",
            expectations=[*equal("has_low", "has_high"), *at_least("has_low", "is_share")],
        ),
        Check(name="intervals_are_in_order", expectations=at_least("high", "low")),
        Check(name="more_runs_come_without_a_verdict", expectations=at_least("is_open", "has_more_runs")),
        Check(
            name="mixes_are_told_with_their_difference",
            expectations=[*between(0, 1, "mix_shift"), *equal("has_mix_shift", "has_mix_verdict")],
        ),
        Check(
            name="releases_are_in_the_past",
            expectations=[*at_least("hour", "released_at"), *at_least("released_at", "baseline_starts_at")],
        ),
    ],
    rows={"rows": batches.comparisons},
)  # fmt: skip

SUITES = (RELEASE_COMPONENTS, RELEASE_COMPARISON)
