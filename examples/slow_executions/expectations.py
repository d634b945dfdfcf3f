"""What must be true of the tables of slow executions."""

from health_assets.quality.batches import rows
from health_assets.quality.every_table import OF_EVERY_TABLE
from health_assets.quality.expectations import Check, Suite, at_least, between, equal, unique
from health_assets.systems.slow_executions import batches

ROUNDING = 1e-9

SUITES = (
    Suite(
        asset="runtime_components",
        checks=[
            *OF_EVERY_TABLE,
            Check(name="runtime_has_one_row_per_hour_and_agent", expectations=unique("hour", "agent_id", "runtime_us")),
            Check(name="parts_hold_executions", expectations=between(1, None, "executions")),
            Check(name="runtimes_are_not_negative", expectations=between(0, None, "runtime_us")),
            Check(name="executions_agree_with_the_records", expectations=equal("in_parts", "recorded"), batch="hours"),
        ],
        rows={"rows": rows},
        hours=batches.hours_of_parts,
    ),
    Suite(
        asset="slow_executions",
        checks=[
            *OF_EVERY_TABLE,
            Check(name="agent_has_one_row_per_hour", expectations=unique("hour", "agent_id")),
            Check(
                name="at_most_half_are_slow", expectations=[*between(0, None, "slow"), *between(0, 0.5, "slow_share")]
            ),
            Check(name="parts_are_within_the_whole", expectations=at_least("executions", "slow")),
            Check(name="shares_agree_with_the_counts", expectations=between(-ROUNDING, ROUNDING, "share_off")),
            Check(
                name="windows_agree_with_the_components",
                expectations=equal("executions_in_windows", "executions_of_hours"),
                batch="hours",
            ),
        ],
        rows={"rows": batches.shares},
        hours=batches.hours_of_windows,
    ),
)
