"""Expectations of the tables of usage."""

from health_assets.quality.every_table import OF_EVERY_TABLE
from health_assets.quality.expectations import Check, Suite, at_least, between, equal, unique
from health_assets.systems.agent_usage import batches

OF_BOTH = (
    *OF_EVERY_TABLE,
    Check("agent_has_one_row_per_hour", unique("hour", "agent_id")),
    Check("amounts_are_not_negative", between(0, None, "input_tokens", "output_tokens", "cost_usd")),
    Check(
        "parts_are_within_the_whole",
        [
            *between(1, None, "executions"),
            *between(0, None, *batches.PARTS),
            *(one for part in batches.PARTS for one in at_least("executions", part)),
        ],
    ),
    Check(
        "amounts_are_there_where_executions_tell_them",
        [*equal("has_tokens", "tells_tokens"), *equal("has_cost", "tells_cost")],
    ),
)

USAGE_COMPONENTS = Suite(
    "usage_components",
    [
        *OF_BOTH,
        Check(
            "sums_agree_with_the_executions",
            [one for name in batches.COUNTED for one in equal(name, f"{name}_recorded")],
            batch="hours",
        ),
    ],
    {"rows": batches.amounts},
    batches.hours_of_parts_of_usage,
)

AGENT_USAGE = Suite(
    "agent_usage",
    [
        *OF_BOTH,
        Check("costs_per_success_are_not_negative", between(0, None, "cost_per_success_usd")),
        Check("costs_per_success_are_there_where_cost_and_successes_are", equal("has_price", "price_due")),
        Check(
            "windows_agree_with_the_components", equal("executions_in_windows", "executions_of_hours"), batch="hours"
        ),
    ],
    {"rows": batches.usage},
    batches.hours_of_usage,
)

SUITES = (USAGE_COMPONENTS, AGENT_USAGE)
