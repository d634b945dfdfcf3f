"""Expectations of the Agent Health Model's tables."""

from health_assets.quality import batches as common
from health_assets.quality.every_table import OF_EVERY_TABLE
from health_assets.quality.expectations import Check, Suite, at_least, between, equal, one_of, unique
from health_assets.scoring.health_components import SUMS
from health_assets.systems.agent_health_model import batches
from health_assets.systems.agent_health_model.system_health import STATES

HEALTH_COMPONENTS = Suite(
    "health_components",
    [
        *OF_EVERY_TABLE,
        Check("agent_has_one_row_per_hour", unique("hour", "agent_id")),
        Check("sums_are_not_negative", between(0, None, *SUMS, "runtime_s_sum")),
        Check("parts_are_within_the_whole", [
            *at_least("executions", "successes"), *at_least("executions", "failures"),
            *at_least("executions", "untimed"), *at_least("executions", "long_running"),
            *at_least("executions", "sla_breaches"),
            *at_least("triggers", "trigger_failures"),
        ]),
        Check("sums_agree_with_the_events", [
            *equal("summed_executions", "counted_executions"), *equal("summed_triggers", "counted_triggers"),
        ], batch="hours"),
    ],
    {"rows": common.rows},
    batches.hours_of_components,
)  # fmt: skip

SHARES_OF_HEALTH = (
    "asr", "success_score", "failure_score", "reliability_raw", "confidence_factor", "reliability_score",
    "performance_score", "stability_score", "sla_score", "trigger_score", "operational_score",
)  # fmt: skip

AGENT_HEALTH = Suite(
    "agent_health",
    [
        *OF_EVERY_TABLE,
        Check("agent_has_one_row_per_hour", unique("hour", "agent_id")),
        Check("states_are_known", one_of("state", *STATES)),
        Check("scores_are_between_0_and_1", between(0, 1, *SHARES_OF_HEALTH)),
        Check("health_score_is_between_0_and_100", between(0, 100, "health_score")),
        Check("only_inactive_agents_have_no_score", equal("has_score", "is_active")),
        Check("scores_of_few_executions_are_provisional", equal("is_called_provisional", "rests_on_few")),
        Check(
            "windows_agree_with_the_components", equal("executions_in_windows", "executions_of_hours"), batch="hours"
        ),
        Check("windows_are_covered", at_least("hours_covered", "window_hours"), "warn"),
    ],
    {"rows": batches.scored_agents},
    batches.hours_of_windows,
)

SYSTEM_HEALTH = Suite(
    "system_health",
    [
        *OF_EVERY_TABLE,
        Check("there_is_one_row_per_hour", between(1, 1, "fleet_rows"), batch="hours"),
        Check("health_score_is_between_0_and_100", between(0, 100, "health_score")),
        Check(
            "every_agent_is_counted_once",
            [
                *equal("agents", "agent_rows"),
                *equal("agents", "agents_in_states"),
                *equal("provisional", "provisional_rows"),
            ],
            batch="hours",
        ),
    ],
    {"rows": common.rows},
    batches.hours_of_fleet,
)

SUITES = (HEALTH_COMPONENTS, AGENT_HEALTH, SYSTEM_HEALTH)
