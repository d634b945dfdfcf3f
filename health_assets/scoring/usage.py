"""Tokens and cost of executions, from those of their model calls (contract, section 8).

Sums are exact (`exact_sums`), so that the order of the calls never shows.
"""

import ibis
from ibis import ir

from health_assets.scoring.exact_sums import as_number, exact_sum

MOST_TOKENS = 10**12
MOST_USD = 1e9
MOST = {"input_tokens": MOST_TOKENS, "output_tokens": MOST_TOKENS, "cost_usd": MOST_USD}
"""What an execution and a model call may both state, and the most of it that counts in a sum: a line that states more
must not make the sum too great to hold, which would stop the run."""

AMOUNTS = tuple(MOST)


def summed(rows: ir.Table, amount: str) -> ir.NumericScalar:
    """The sum of an amount where any row states it, else null."""
    stated = rows[amount]
    counted = stated.isnull().ifelse(ibis.null(stated.type()), ibis.least(stated, MOST[amount]))
    return as_number(exact_sum(counted))


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
        **{f"calls_{name}": summed(joined, name) for name in AMOUNTS}
    )


def with_amounts(executions: ir.Table, sums: ir.Table) -> ir.Table:
    """The executions whose amounts are others than they should be: `hour`, `execution_id` and `AMOUNTS`.

    An execution's own statement counts, else the sum over its calls, else none.

    Args:
        executions: cleaned executions, one row per hour and id.
        sums: result of `amounts_of_calls`.
    """
    rows = executions.select("hour", "execution_id", *AMOUNTS, *(f"{name}_reported" for name in AMOUNTS))
    joined = rows.left_join(sums, ["hour", "execution_id"])
    wanted = {name: ibis.coalesce(joined[f"{name}_reported"], joined[f"calls_{name}"]) for name in AMOUNTS}
    differs = ibis.or_(*(~joined[name].identical_to(value) for name, value in wanted.items()))
    return joined.filter(differs).select("hour", "execution_id", **wanted)
