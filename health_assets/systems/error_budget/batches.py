"""Batches of error budgets."""

import ibis
import pandas as pd
from ibis import ir

from health_assets.quality.batches import Source, hours_with_windows, rows
from health_assets.systems.error_budget.error_budget import BILLION, SHORT_WINDOWS

RATES = {"budget_spent": "n", **{f"burn_rate_{length}": f"n_{length}" for length in SHORT_WINDOWS}}
"""Each rate, and the executions without which there is none."""
MOST_EXPECTED = 1 - 0.5 / BILLION
"""From here on nothing may fail, since what may is taken in whole billionths."""


def budgets(source: Source) -> ir.Table:
    """Rows of `error_budget`, with how many rates there are, and how many there should be."""
    own = rows(source)
    there = [own[rate].notnull() for rate in RATES]
    # no execution in the window allows no failure, and says nothing of a short window that reaches further back
    may_fail = ibis.ifelse(own.n > 0, own.allowed_failures > 0, own.expected_success_rate < MOST_EXPECTED)
    due = [(own[count] > 0) & may_fail for count in RATES.values()]
    return own.mutate(
        rates=sum((one.cast("int64") for one in there), ibis.literal(0)),
        rates_due=sum((one.cast("int64") for one in due), ibis.literal(0)),
    )


def hours_of_budgets(source: Source) -> pd.DataFrame:
    """`hours`, with the executions of all agents' windows, and those of the hours that the windows are made of."""
    return hours_with_windows(source, "n")
