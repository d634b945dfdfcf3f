"""Expectations of the tables of usage."""

from health_assets.quality.every_table import OF_EVERY_TABLE
from health_assets.quality.expectations import Check, Suite, at_least, between, equal, one_of, unique
from health_assets.scoring.prices import SOURCES
from health_assets.scoring.usage import AMOUNTS
from health_assets.systems.agent_usage import batches
from health_assets.systems.agent_usage.names import BY_AGENT, BY_PART, CANCELLED

OF_ALL = (
    *OF_EVERY_TABLE,
    Check(name="amounts_are_not_negative", expectations=between(0, None, *AMOUNTS, *CANCELLED[1:])),
    Check(
        name="parts_are_within_the_whole",
        expectations=[
            *between(0, None, "executions", "cancelled_runs"),
            *between(0, None, *batches.PARTS),
            *(one for part in batches.PARTS for one in at_least("executions", part)),
        ],
    ),
    Check(name="every_row_has_a_run", expectations=between(1, None, "runs")),
    Check(
        name="amounts_are_there_where_executions_tell_them",
        expectations=[*equal("has_tokens", "tells_tokens"), *equal("has_cost", "tells_cost")],
    ),
)

ONE_ROW_OF_AGENT = Check(name="agent_has_one_row_per_hour", expectations=unique("hour", *BY_AGENT))
ONE_ROW_OF_PART = Check(name="version_model_and_user_have_one_row_per_hour", expectations=unique("hour", *BY_PART))


COMPONENTS = Suite(
    asset="usage_components",
    checks=[
        *OF_ALL,
        ONE_ROW_OF_PART,
        Check(
            name="sums_agree_with_the_executions",
            expectations=[one for name in (*batches.COUNTED, CANCELLED[0]) for one in equal(name, f"{name}_recorded")],
            batch="hours",
        ),
    ],
    rows={"rows": batches.amounts},
    hours=batches.hours_of_parts_of_usage,
)


def _of_windows(asset: str, one_row: Check) -> Suite:
    checks = [
        *OF_ALL,
        one_row,
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
    ]
    return Suite(asset=asset, checks=checks, rows={"rows": batches.usage}, hours=batches.hours_of_windows)


SUITES = (COMPONENTS, _of_windows("agent_usage", ONE_ROW_OF_AGENT), _of_windows("usage_breakdown", ONE_ROW_OF_PART))
