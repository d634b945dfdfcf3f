"""Expectations of error budgets."""

from itertools import pairwise

from health_assets.quality.every_table import OF_EVERY_TABLE
from health_assets.quality.expectations import Check, Suite, at_least, between, equal, unique
from health_assets.systems.error_budget import batches
from health_assets.systems.error_budget.error_budget import SHORT_WINDOWS

ERROR_BUDGET = Suite(
    asset="error_budget",
    checks=[
        *OF_EVERY_TABLE,
        Check(name="agent_has_one_row_per_hour", expectations=unique("hour", "agent_id")),
        Check(name="rates_are_not_negative", expectations=between(0, None, *batches.RATES, "allowed_failures")),
        Check(
            name="parts_are_within_the_whole",
            expectations=[
                *between(0, None, "failures", *(f"failures_{length}" for length in SHORT_WINDOWS)),
                *at_least("n", "failures"),
                *(one for length in SHORT_WINDOWS for one in at_least(f"n_{length}", f"failures_{length}")),
                *(
                    one
                    for shorter, longer in pairwise(SHORT_WINDOWS)
                    for name in ("n", "failures")
                    for one in at_least(f"{name}_{longer}", f"{name}_{shorter}")
                ),
            ],
        ),
        Check(name="rates_are_there_where_failures_may_be", expectations=equal("rates", "rates_due")),
        Check(
            name="windows_agree_with_the_components",
            expectations=equal("executions_in_windows", "executions_of_hours"),
            batch="hours",
        ),
    ],
    rows={"rows": batches.budgets},
    hours=batches.hours_of_budgets,
)

SUITES = (ERROR_BUDGET,)
