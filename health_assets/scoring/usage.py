"""Tokens and cost of executions, from those of their model calls (docs/tools-and-usage.md).

Sums are exact (`exact_sums`), so that the order of the calls never shows.
"""

import ibis
from ibis import ir

from health_assets.scoring.exact_sums import as_number, exact_sum
from health_assets.scoring.identities import claimant_of, names_of_runs
from health_assets.scoring.prices import COMPUTED, STATED

MOST_TOKENS = 10**12
MOST_USD = 1e9
TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens", "reasoning_tokens")
MOST = {**dict.fromkeys(TOKENS, MOST_TOKENS), "cost_usd": MOST_USD}
"""What an execution and a model call may both state, and the most of it that counts in a sum: a line that states more
must not make the sum too great to hold, which would stop the run."""

AMOUNTS = tuple(MOST)
COMPUTED_COST = "computed_usd"
"""What calls cost by a price list, which counts where neither an execution nor any call of it states a cost."""
COST_OF_SOURCE = {"cost_usd": STATED, COMPUTED_COST: COMPUTED}
MOST_SUMMED = {**MOST, COMPUTED_COST: MOST_USD}
RUN = ("hour", "source_file", "line_number", "execution_id")
"""Columns that tell executions of lines apart, whichever agents have them."""


def summed(rows: ir.Table, amount: str) -> ir.NumericScalar:
    """The sum of an amount where any row states it, else null."""
    stated = rows[amount]
    counted = stated.isnull().ifelse(ibis.null(stated.type()), ibis.least(stated, MOST_SUMMED[amount]))
    return as_number(exact_sum(counted))


def source_of_sum(rows: ir.Table) -> ir.StringScalar:
    """`computed` where the cost of any row was computed, else `stated`; null where no row has a cost."""
    counts = {source: rows.count(where=rows.cost_source == source) for source in (COMPUTED, STATED)}
    return ibis.cases(*((count > 0, source) for source, count in counts.items()), else_=ibis.null("string"))


def amounts_of_calls(executions: ir.Table, model_calls: ir.Table, lookback_hours: int) -> ir.Table:
    """One row per execution with calls that state an amount: `RUN` and the sums, named `calls_…`.

    Args:
        executions: cleaned executions.
        model_calls: cleaned calls of the same hours and the look-back before them.
        lookback_hours: how many hours, ending with the execution's own, its calls may have ended in.
    """
    tells = ibis.or_(*(model_calls[name].notnull() for name in AMOUNTS))
    calls = model_calls.filter(tells, model_calls.execution_id.notnull())
    costs = {name: _cost_of_source(calls, source) for name, source in COST_OF_SOURCE.items()}
    calls = calls.mutate(**costs).select("execution_id", *MOST_SUMMED, called_in=calls.hour, named=claimant_of(calls))
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
    rows = joined.select(*(own[name] for name in RUN), *(calls[name] for name in MOST_SUMMED))
    return rows.group_by(RUN).aggregate(**{f"calls_{name}": summed(rows, name) for name in MOST_SUMMED})


def _cost_of_source(calls: ir.Table, source: str) -> ir.FloatingValue:
    return (calls.cost_source == source).ifelse(calls.cost_usd, ibis.null("float64"))


def with_amounts(executions: ir.Table, sums: ir.Table) -> ir.Table:
    """The executions whose amounts are others than they should be: `RUN`, `AMOUNTS` and `cost_source`.

    An execution's own statement counts, else the sum over its calls, else none. What an execution that was put together
    from spans states stands in its row.

    Args:
        executions: cleaned executions.
        sums: result of `amounts_of_calls`.
    """
    rows = executions.select(*RUN, *AMOUNTS, *(f"{name}_reported" for name in AMOUNTS), "cost_source", "span_id")
    joined = rows.left_join(sums, RUN)
    is_of_span = joined.span_id.notnull()
    stated = {**{name: joined[name] for name in AMOUNTS}, "cost_usd": _cost_of_source(joined, STATED)}
    wanted = {
        name: is_of_span.ifelse(value, ibis.coalesce(joined[f"{name}_reported"], joined[f"calls_{name}"]))
        for name, value in stated.items()
    }
    is_stated, computed = wanted["cost_usd"].notnull(), joined[f"calls_{COMPUTED_COST}"]
    wanted["cost_source"] = ibis.cases((is_stated, STATED), (computed.notnull(), COMPUTED), else_=ibis.null("string"))
    wanted["cost_usd"] = ibis.coalesce(wanted["cost_usd"], computed)
    differs = ibis.or_(*(~joined[name].identical_to(value) for name, value in wanted.items()))
    return joined.filter(differs).select(*RUN, **wanted)
