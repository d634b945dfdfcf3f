"""Batches of usage."""

import pandas as pd
from ibis import _, ir

from health_assets.quality.batches import Source, hours, hours_with_windows, rows, with_fact, with_facts
from health_assets.scoring.outcomes import NEGATIVE, POSITIVE
from health_assets.scoring.prices import COMPUTED
from health_assets.systems.agent_usage.names import CANCELLED, COUNTS

PARTS = COUNTS[1:]
"""Counts of some of the executions."""

COUNTED = {
    "executions": _.count(),
    "successes": _.count(where=_.succeeded),
    "executions_with_tokens": _.count(where=_.input_tokens.notnull() | _.output_tokens.notnull()),
    "executions_with_cost": _.cost_usd.count(),
    "executions_with_computed_cost": _.count(where=_.cost_source == COMPUTED),
    "positive_feedback": _.count(where=_.feedback == POSITIVE),
    "negative_feedback": _.count(where=_.feedback == NEGATIVE),
}
"""Columns of the parts, and how the executions themselves are counted."""


def amounts(source: Source) -> ir.Table:
    """Rows with whether they have tokens and cost, and whether an execution tells any."""
    own = rows(source)
    return own.mutate(
        runs=own.executions + own.cancelled_runs,
        has_tokens=(own.input_tokens.notnull() | own.output_tokens.notnull()).cast("int64"),
        tells_tokens=(own.executions_with_tokens > 0).cast("int64"),
        has_cost=own.cost_usd.notnull().cast("int64"),
        tells_cost=(own.executions_with_cost > 0).cast("int64"),
    )


def usage(source: Source) -> ir.Table:
    """Rows as those of `amounts`, with whether there is a cost per success, and whether there should be."""
    own = amounts(source)
    return own.mutate(
        has_price=own.cost_per_success_usd.notnull().cast("int64"),
        price_due=(own.cost_usd.notnull() & (own.successes > 0)).cast("int64"),
    )


def hours_of_parts_of_usage(source: Source) -> pd.DataFrame:
    """`hours`, with what the parts count, and the same counted among the executions and the cancelled runs."""
    counts = [*COUNTED, CANCELLED[0]]
    sums = source.facts(source.asset, *(_[name].sum() for name in counts))
    frame = with_facts(hours(source), counts, sums)
    frame = with_fact(frame, f"{CANCELLED[0]}_recorded", source.counts("cancellations"))
    recorded = [f"{name}_recorded" for name in COUNTED]
    return with_facts(frame, recorded, source.facts("executions", *COUNTED.values()))


def hours_of_windows(source: Source) -> pd.DataFrame:
    """`hours`, with the executions of all windows, and those of the hours that the windows are made of."""
    return hours_with_windows(source, "executions", "usage_components")
