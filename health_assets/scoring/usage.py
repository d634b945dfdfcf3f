"""Tokens and cost of executions, from those of their model calls (contract, section 8).

Sums are exact (`exact_sums`), so that the order of the calls never shows.
"""

import ibis
from ibis import ir

from health_assets.scoring.exact_sums import as_number, exact_sum
from health_assets.scoring.identities import claimant_of, names_of_runs

MOST_TOKENS = 10**12
MOST_USD = 1e9
TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens", "reasoning_tokens")
MOST = {**dict.fromkeys(TOKENS, MOST_TOKENS), "cost_usd": MOST_USD}
"""What an execution and a model call may both state, and the most of it that counts in a sum: a line that states more
must not make the sum too great to hold, which would stop the run."""

AMOUNTS = tuple(MOST)
RUN = ("hour", "source_file", "line_number", "execution_id")
"""Columns that tell executions of lines apart, whichever agents have them."""


def summed(rows: ir.Table, amount: str) -> ir.NumericScalar:
    """The sum of an amount where any row states it, else null."""
    stated = rows[amount]
    counted = stated.isnull().ifelse(ibis.null(stated.type()), ibis.least(stated, MOST[amount]))
    return as_number(exact_sum(counted))


def amounts_of_calls(executions: ir.Table, model_calls: ir.Table, lookback_hours: int) -> ir.Table:
    """One row per execution with calls that state an amount: `RUN` and the sums, named `calls_…`.

    Args:
        executions: cleaned executions.
        model_calls: cleaned calls of the same hours and the look-back before them.
        lookback_hours: how many hours, ending with the execution's own, its calls may have ended in.
    """
    tells = ibis.or_(*(model_calls[name].notnull() for name in AMOUNTS))
    calls = model_calls.filter(tells, model_calls.execution_id.notnull())
    calls = calls.select("execution_id", *AMOUNTS, called_in=calls.hour, named=claimant_of(calls))
    own = names_of_runs(executions.mutate(claimant=claimant_of(executions)), *RUN)
    joined = own.inner_join(
        calls,
        [
            own.execution_id == calls.execution_id,
            own.named == calls.named,
            calls.called_in <= own.hour,
            calls.called_in > own.hour - ibis.interval(hours=lookback_hours),
        ],
    )
    rows = joined.select(*(own[name] for name in RUN), *(calls[name] for name in AMOUNTS))
    return rows.group_by(RUN).aggregate(**{f"calls_{name}": summed(rows, name) for name in AMOUNTS})


def with_amounts(executions: ir.Table, sums: ir.Table) -> ir.Table:
    """The executions whose amounts are others than they should be: `RUN` and `AMOUNTS`.

    An execution's own statement counts, else the sum over its calls, else none.

    Args:
        executions: cleaned executions of lines.
        sums: result of `amounts_of_calls`.
    """
    rows = executions.select(*RUN, *AMOUNTS, *(f"{name}_reported" for name in AMOUNTS))
    joined = rows.left_join(sums, RUN)
    wanted = {name: ibis.coalesce(joined[f"{name}_reported"], joined[f"calls_{name}"]) for name in AMOUNTS}
    differs = ibis.or_(*(~joined[name].identical_to(value) for name, value in wanted.items()))
    return joined.filter(differs).select(*RUN, **wanted)
