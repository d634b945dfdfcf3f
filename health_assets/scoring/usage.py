"""Tokens and cost of executions, from those of their model calls (contract, section 8).

Sums of cost are formed in decimal numbers, so that the order of the calls never shows.
"""

import ibis
from ibis import ir

AMOUNTS = ("input_tokens", "output_tokens", "cost_usd")
"""What an execution and a model call may both state."""

EXACT = "decimal(38, 18)"
"""A type in which dollars add up exactly, to 10^-18."""


def summed(amount: ir.Column) -> ir.Scalar:
    """The sum of an amount where any row states it, else null."""
    if amount.type().is_integer():
        return amount.sum().cast("int64")
    return amount.cast(EXACT).sum().cast("float64")


def amounts_of_calls(executions: ir.Table, model_calls: ir.Table, lookback_hours: int) -> ir.Table:
    """One row per execution with calls that state an amount: `hour`, `execution_id` and the sums, named `calls_…`.

    Args:
        executions: cleaned executions.
        model_calls: cleaned calls of the same hours and the look-back before them.
        lookback_hours: how many hours, ending with the execution's own, its calls may have ended in.
    """
    tells = ibis.or_(*(model_calls[name].notnull() for name in AMOUNTS))
    calls = model_calls.filter(tells, model_calls.execution_id.notnull()).select(
        "execution_id", *AMOUNTS, called_in=model_calls.hour
    )
    own = executions.select("hour", "execution_id")
    joined = own.inner_join(
        calls,
        [
            own.execution_id == calls.execution_id,
            calls.called_in <= own.hour,
            calls.called_in > own.hour - ibis.interval(hours=lookback_hours),
        ],
    )
    return joined.group_by(["hour", "execution_id"]).aggregate(
        **{f"calls_{name}": summed(joined[name]) for name in AMOUNTS}
    )


def with_amounts(executions: ir.Table, sums: ir.Table) -> ir.Table:
    """The executions whose amounts are others than they should be: `hour`, `execution_id` and `AMOUNTS`.

    An execution's own statement counts, else the sum over its calls, else none.

    Args:
        executions: cleaned executions, one row per hour and id.
        sums: what `amounts_of_calls` gives.
    """
    rows = executions.select("hour", "execution_id", *AMOUNTS, *(f"{name}_reported" for name in AMOUNTS))
    joined = rows.left_join(sums, ["hour", "execution_id"])
    wanted = {name: ibis.coalesce(joined[f"{name}_reported"], joined[f"calls_{name}"]) for name in AMOUNTS}
    differs = ibis.or_(*(~joined[name].identical_to(value) for name, value in wanted.items()))
    return joined.filter(differs).select("hour", "execution_id", **wanted)
