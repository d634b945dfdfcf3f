"""Expectations of the Agent Health Model's tables."""

from health_assets.quality.every_table import OF_EVERY_TABLE
from health_assets.quality.expectations import Check, Suite, at_least, between, equal, one_of, unique
from health_assets.scoring.health_components import COMPONENTS
from health_assets.systems.agent_health_model import batches
from health_assets.systems.agent_health_model.names import CLAIMS, INACTIVE, STATES

HEALTH_COMPONENTS = Suite(
    asset="health_components",
    checks=[
        *OF_EVERY_TABLE,
        Check(name="agent_has_one_row_per_hour", expectations=unique("hour", "agent_id")),
        Check(name="sums_are_not_negative", expectations=between(0, None, *COMPONENTS, "runtime_s_sum")),
        Check(name="parts_are_within_the_whole", expectations=[
            *at_least("executions", "successes"), *at_least("executions", "failures"),
            *at_least("executions", "untimed"), *at_least("executions", "long_running"),
            *at_least("executions", "sla_checked"), *at_least("sla_checked", "sla_breaches"),
            *at_least("triggers", "trigger_failures"), *at_least("executions", "executions_30m"),
            *at_least("executions_30m", "executions_5m"), *at_least("executions_30m", "failures_30m"),
            *at_least("executions_5m", "failures_5m"), *at_least("failures", "failures_30m"),
            *at_least("failures_30m", "failures_5m"),
        ]),
        Check(name="sums_agree_with_the_events", expectations=[
            *equal("summed_executions", "counted_executions"), *equal("summed_triggers", "counted_triggers"),
        ], batch="hours"),
    ],
    hours=batches.hours_of_components,
)  # fmt: skip

SHARES_OF_HEALTH = (
    "asr", "success_score", "failure_score", "reliability_raw", "confidence_factor", "reliability_score",
    "performance_score", "stability_score", "sla_score", "trigger_score", "operational_score",
)  # fmt: skip

AGENT_HEALTH = Suite(
    asset="agent_health",
    checks=[
        *OF_EVERY_TABLE,
        Check(name="agent_has_one_row_per_hour", expectations=unique("hour", "agent_id")),
        Check(name="states_are_known", expectations=one_of("state", *STATES)),
        Check(name="scores_are_between_0_and_1", expectations=between(0, 1, *SHARES_OF_HEALTH)),
        Check(name="health_score_is_between_0_and_100", expectations=between(0, 100, "health_score")),
        Check(name="points_at_stake_are_between_0_and_100", expectations=between(0, 100, "points_at_stake")),
        Check(name="points_not_at_stake_are_in_the_score", expectations=at_least("health_score", "points_kept")),
        Check(name="only_inactive_agents_have_no_score", expectations=equal("has_score", "is_active")),
        Check(
            name="scores_of_few_executions_are_provisional", expectations=equal("is_called_provisional", "rests_on_few")
        ),
        Check(
            name="windows_agree_with_the_components",
            expectations=equal("executions_in_windows", "executions_of_hours"),
            batch="hours",
        ),
        Check(name="windows_are_covered", expectations=at_least("hours_covered", "window_hours"), severity="warn"),
        Check(
            name="claims_agree_with_evidence",
            expectations=between(None, 0, *CLAIMS),
            severity="warn",
            batch="claims",
        ),
    ],
    rows={"rows": batches.scored_agents, "claims": batches.claims},
    hours=batches.hours_of_windows,
    prefiltered=frozenset({"claims"}),
)

AGENT_HEALTH_SHORT = Suite(
    asset="agent_health_short",
    checks=[
        *OF_EVERY_TABLE,
        Check(name="agent_has_one_row_per_hour_and_window", expectations=unique("hour", "agent_id", "window_hours")),
        Check(name="states_are_known", expectations=one_of("state", *(state for state in STATES if state != INACTIVE))),
        Check(name="rows_tell_of_executions", expectations=between(1, None, "n")),
        Check(name="scores_are_between_0_and_1", expectations=between(0, 1, *SHARES_OF_HEALTH)),
        Check(name="health_score_is_between_0_and_100", expectations=between(0, 100, "health_score")),
        Check(name="points_at_stake_are_between_0_and_100", expectations=between(0, 100, "points_at_stake")),
        Check(name="points_not_at_stake_are_in_the_score", expectations=at_least("health_score", "points_kept")),
        Check(
            name="scores_of_few_executions_are_provisional", expectations=equal("is_called_provisional", "rests_on_few")
        ),
        Check(
            name="windows_agree_with_the_components",
            expectations=equal("executions_in_windows", "executions_of_hours"),
            batch="hours",
        ),
        Check(name="windows_are_covered", expectations=at_least("hours_covered", "window_hours"), severity="warn"),
    ],
    rows={"rows": batches.scores_in_short_windows},
    hours=batches.hours_of_short_windows,
)

SYSTEM_HEALTH = Suite(
    asset="system_health",
    checks=[
        *OF_EVERY_TABLE,
        Check(name="there_is_one_row_per_hour", expectations=between(1, 1, "fleet_rows"), batch="hours"),
        Check(name="health_score_is_between_0_and_100", expectations=between(0, 100, "health_score")),
        Check(
            name="every_agent_is_counted_once",
            expectations=[
                *equal("agents", "agent_rows"),
                *equal("agents", "agents_in_states"),
                *equal("provisional", "provisional_rows"),
            ],
            batch="hours",
        ),
    ],
    hours=batches.hours_of_fleet,
)

SUITES = (HEALTH_COMPONENTS, AGENT_HEALTH, AGENT_HEALTH_SHORT, SYSTEM_HEALTH)
