"""Expectations of the tables of usage."""

from health_assets.quality.every_table import OF_EVERY_TABLE
from health_assets.quality.expectations import Check, Suite, at_least, between, equal, one_of, unique
from health_assets.scoring.prices import SOURCES
from health_assets.scoring.usage import AMOUNTS
from health_assets.systems.agent_usage import batches

OF_BOTH = (
    *OF_EVERY_TABLE,
    Check(name="agent_has_one_row_per_hour", expectations=unique("hour", "agent_id")),
    Check(name="amounts_are_not_negative", expectations=between(0, None, *AMOUNTS)),
    Check(
        name="parts_are_within_the_whole",
        expectations=[
            *between(1, None, "executions"),
            *between(0, None, *batches.PARTS),
            *(one for part in batches.PARTS for one in at_least("executions", part)),
        ],
    ),
    Check(
        name="amounts_are_there_where_executions_tell_them",
        expectations=[*equal("has_tokens", "tells_tokens"), *equal("has_cost", "tells_cost")],
    ),
)

USAGE_COMPONENTS = Suite(
    asset="usage_components",
    checks=[
        *OF_BOTH,
        Check(
            name="sums_agree_with_the_executions",
            expectations=[one for name in batches.COUNTED for one in equal(name, f"{name}_recorded")],
            batch="hours",
        ),
    ],
    rows={"rows": batches.amounts},
    hours=batches.hours_of_parts_of_usage,
)

AGENT_USAGE = Suite(
    asset="agent_usage",
    checks=[
        *OF_BOTH,
        Check(name="sources_are_known", expectations=one_of("cost_source", *SOURCES)),
        Check(name="costs_per_success_are_not_negative", expectations=between(0, None, "cost_per_success_usd")),
        Check(
            name="costs_per_success_are_there_where_cost_and_successes_are",
            expectations=equal("has_price", "price_due"),
        ),
        Check(
            name="windows_agree_with_the_components",
            expectations=equal("executions_in_windows", "executions_of_hours"),
            batch="hours",
        ),
    ],
    rows={"rows": batches.usage},
    hours=batches.hours_of_usage,
)

SUITES = (USAGE_COMPONENTS, AGENT_USAGE)
