"""Expectations of agents now."""

from health_assets.quality.every_table import OF_EVERY_TABLE
from health_assets.quality.expectations import Check, Suite, at_least, between, equal, one_of, unique
from health_assets.systems.agent_now import batches
from health_assets.systems.agent_now.names import RECOVERY_HOURS, VERDICTS

NOW_COMPONENTS = Suite(
    asset="now_components",
    checks=[
        *OF_EVERY_TABLE,
        Check(name="agent_has_one_row_per_hour", expectations=unique("hour", "agent_id")),
        Check(name="streaks_are_positive", expectations=between(1, None, "failed_at_end")),
        Check(
            name="every_hour_that_ends_badly_has_a_streak",
            expectations=at_least("agents_with_a_streak", "agents_that_ended_badly"),
            batch="hours",
        ),
    ],
    rows={"rows": batches.streaks},
    hours=batches.hours_of_streaks,
)

SHARES = (
    "success_share_1h", "success_low_1h", "success_high_1h", "success_share_6h", "success_low_6h", "success_high_6h",
    "p_chance", "p_chance_6h",
)  # fmt: skip

AGENT_NOW = Suite(
    asset="agent_now",
    checks=[
        *OF_EVERY_TABLE,
        Check(name="agent_has_one_row_per_hour", expectations=unique("hour", "agent_id")),
        Check(name="verdicts_are_known", expectations=one_of("verdict", *VERDICTS)),
        Check(name="shares_are_between_0_and_1", expectations=between(0, 1, *SHARES)),
        Check(
            name="intervals_hold_the_share",
            expectations=[
                *at_least("success_share_1h", "success_low_1h"),
                *at_least("success_high_1h", "success_share_1h"),
                *at_least("success_share_6h", "success_low_6h"),
                *at_least("success_high_6h", "success_share_6h"),
            ],
        ),
        Check(
            name="parts_are_within_the_whole",
            expectations=[
                *between(0, None, "failures_1h", "failures_6h", "failed_in_a_row"),
                *at_least("executions_1h", "failures_1h"),
                *at_least("executions_6h", "failures_6h"),
                *at_least("executions_6h", "executions_1h"),
                *at_least("failures_6h", "failures_1h"),
                *at_least("failures_6h", "failed_in_a_row"),
            ],
        ),
        Check(name="values_are_known_where_something_ran", expectations=equal("values_known", "values_due")),
        Check(name="since_is_not_later_than_the_hour", expectations=at_least("hour", "since")),
        Check(
            name="only_recovering_agents_have_good_hours",
            expectations=[
                *equal("says_good_hours", "is_recovering"),
                *between(0, RECOVERY_HOURS, "good_hours"),
            ],
        ),
        Check(
            name="windows_agree_with_the_components",
            expectations=equal("executions_in_windows", "executions_of_hours"),
            batch="hours",
        ),
    ],
    rows={"rows": batches.verdicts},
    hours=batches.hours_of_verdicts,
)

SUITES = (NOW_COMPONENTS, AGENT_NOW)
