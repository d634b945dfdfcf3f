"""Cost of model calls from prices of tokens (docs/tools-and-usage.md).

What belongs here: the formula, as an expression over calls and rates. What does not: where rates come from
(`pipeline.price_list`), and the cost of executions (`usage`).

    cost_usd = input_usd (input - cache_read - cache_creation) + cache_read_usd cache_read
        + cache_creation_usd cache_creation + output_usd (output - reasoning) + reasoning_usd reasoning + call_usd

All tokens of a call have the rates of its whole input: beyond a threshold they are others, as providers bill. What does
not tell its cached or reasoning tokens has none. A call that lacks its input or output tokens, or states more of a kind
than of the whole, has no cost.
"""

import ibis
import pyarrow as pa
from ibis import ir

STATED, COMPUTED = "stated", "computed"
SOURCES = (STATED, COMPUTED)
KEYS = ("hour", "source_file", "line_number", "call_id")
"""Columns that tell calls apart."""

RATES = pa.schema(
    {
        "model": pa.string(),
        "response_model": pa.string(),  # empty where a call names none
        "starts_at": pa.timestamp("us", "UTC"),
        "ends_at": pa.timestamp("us", "UTC"),
        "above_tokens": pa.int64(),
        "most_tokens": pa.int64(),
        **dict.fromkeys(
            ("call_usd", "input_usd", "cache_read_usd", "cache_creation_usd", "output_usd", "reasoning_usd"),
            pa.float64(),
        ),
    }
)
"""Dollars a token, and a call, of each pair of models: from `starts_at` to before `ends_at`, for calls with more than
`above_tokens` and at most `most_tokens` input tokens."""


def with_costs(model_calls: ir.Table, rates: ir.Table) -> ir.Table:
    """The calls with `cost_usd` and `cost_source`: as stated, else computed where there is a rate, else null.

    Args:
        model_calls: cleaned calls.
        rates: rows of `RATES`, at most one for each call.
    """
    calls = model_calls.mutate(
        answered=model_calls.response_model.fill_null(""),
        cost_usd=(model_calls.cost_source == STATED).ifelse(model_calls.cost_usd, ibis.null("float64")),
    )
    joined = calls.left_join(
        rates,
        [
            calls.model == rates.model,
            calls.answered == rates.response_model,
            calls.ended_at >= rates.starts_at,
            calls.ended_at < rates.ends_at,
            calls.input_tokens > rates.above_tokens,
            calls.input_tokens <= rates.most_tokens,
        ],
        rname="{name}_of_rate",
    )
    computed = _cost(joined)
    source = ibis.cases((joined.cost_usd.notnull(), STATED), (computed.notnull(), COMPUTED), else_=ibis.null("string"))
    priced = joined.mutate(cost_usd=ibis.coalesce(joined.cost_usd, computed), cost_source=source)
    return priced.select(*model_calls.columns)


def _cost(calls: ir.Table) -> ir.FloatingValue:
    names = ("cache_read_tokens", "cache_creation_tokens", "reasoning_tokens")
    read, creation, reasoning = (calls[name].fill_null(0).cast("float64") for name in names)
    plain = calls.input_tokens.cast("float64") - read - creation
    spoken = calls.output_tokens.cast("float64") - reasoning
    cost = (
        calls.call_usd
        + plain * calls.input_usd
        + read * calls.cache_read_usd
        + creation * calls.cache_creation_usd
        + spoken * calls.output_usd
        + reasoning * calls.reasoning_usd
    )
    is_possible = (plain >= 0) & (spoken >= 0)
    return is_possible.ifelse(cost, ibis.null("float64"))
