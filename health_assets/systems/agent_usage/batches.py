"""Batches of usage."""

import pandas as pd
from ibis import ir

from health_assets.quality.batches import Source, hours, hours_with_windows, rows, with_facts

PARTS = ("successes", "executions_with_tokens", "executions_with_cost")
"""Counts of some of the executions."""

COUNTED = {
    "executions": "count(*)",
    "successes": "count(CASE WHEN succeeded THEN 1 END)",
    "executions_with_tokens": "count(coalesce(input_tokens, output_tokens))",
    "executions_with_cost": "count(cost_usd)",
}
"""Columns of the parts, and how the executions themselves are counted."""


def amounts(source: Source) -> ir.Table:
    """Rows with whether they have tokens and cost, and whether an execution tells any."""
    own = rows(source)
    return own.mutate(
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
    """`hours`, with what the parts count, and the same counted among the executions."""
    sums = ", ".join(f"sum({name})::BIGINT" for name in COUNTED)
    frame = with_facts(hours(source), list(COUNTED), source.by_hour(f"SELECT hour, {sums} FROM usage_components"))
    counts = ", ".join(COUNTED.values())
    recorded = [f"{name}_recorded" for name in COUNTED]
    return with_facts(frame, recorded, source.by_hour(f"SELECT hour, {counts} FROM executions"))


def hours_of_usage(source: Source) -> pd.DataFrame:
    """`hours`, with the executions of all agents' windows, and those of the hours that the windows are made of."""
    return hours_with_windows(source, "executions", "usage_components")
