"""The hourly part of the release comparison: counts and sums by agent, version and model.

Sums are of whole numbers or exact (`exact_sums`), so that an hour is the same in any order. Amounts are cut at a limit,
so that no line can make a square too great to add up.
"""

import ibis
from ibis import ir

from health_assets.scoring.exact_sums import as_number, exact_sum
from health_assets.scoring.identities import with_columns_of_runs
from health_assets.scoring.latency_buckets import bucket_of, bucket_of_us
from health_assets.scoring.relations import lookup
from health_assets.systems.release_comparison.names import BUCKETS

NOT_NAMED = ""
"""The version or model of executions that name none."""
MOST_TOKENS = 10**8
MOST_USD = 10_000.0
SESSION_PAIRS = ("session_pairs", "session_pairs_first_succeeded", "session_pairs_both_succeeded")
"""Ordered pairs of executions of one session in the hour: what tells whether they share an outcome."""
_KEYS = ("hour", "agent_id", "agent_version", "model")
_CALLS = ("tool_calls", "tool_failures", "steps", "repeated_steps")


def release_components(executions: ir.Table, computed: ir.Table | None) -> ir.Table:
    """One row per hour, agent, version and model with an execution: every column of `release_components`.

    Args:
        executions: cleaned executions.
        computed: rows of `computed_signals` of the same hours; None without any.
    """
    pairs = _pairs_of_sessions(executions)
    if computed is None:
        executions = executions.mutate(**dict.fromkeys(_CALLS, ibis.literal(0)))
    else:
        executions = with_columns_of_runs(executions, computed, _CALLS)
    has_runtime = executions.succeeded & executions.runtime_s.notnull()
    tells_tokens = executions.input_tokens.notnull() | executions.output_tokens.notnull()
    tokens = sum(ibis.least(executions[name].fill_null(0), MOST_TOKENS) for name in ("input_tokens", "output_tokens"))
    rows = executions.select(
        "hour",
        "agent_id",
        "succeeded",
        *_CALLS,
        **_names(executions),
        bucket=has_runtime.ifelse(bucket_of(executions.runtime_s), ibis.null("int16")).cast("int64"),
        tokens_used=tells_tokens.ifelse(ibis.least(tokens, MOST_TOKENS), ibis.null("int64")),
        usd=executions.cost_usd.notnull().ifelse(ibis.least(executions.cost_usd, MOST_USD), ibis.null("float64")),
    )
    rows = rows.mutate(
        token_bucket=bucket_of_us(rows.tokens_used.cast("float64")), cost_bucket=bucket_of_us(rows.usd * 1e6)
    )
    kilotokens = rows.tokens_used / 1000.0
    sums = rows.group_by(_KEYS).aggregate(
        executions=rows.count(),
        successes=rows.count(where=rows.succeeded),
        runs_with_tool_calls=rows.count(where=rows.tool_calls > 0),
        runs_with_tool_failures=rows.count(where=rows.tool_failures > 0),
        runs_with_steps=rows.count(where=rows.steps > 0),
        runs_with_loops=rows.count(where=rows.repeated_steps > 0),
        timed_runs=rows.bucket.count(),
        runtime_buckets=rows.bucket.sum().fill_null(0),
        squared_runtime_buckets=(rows.bucket * rows.bucket).sum().fill_null(0),
        latency_buckets=_sorted(rows.bucket.cast("int16")),
        token_buckets=_sorted(rows.token_bucket),
        cost_buckets=_sorted(rows.cost_bucket),
        runs_with_tokens=rows.tokens_used.count(),
        tokens=rows.tokens_used.sum().fill_null(0),
        squared_kilotokens=as_number(exact_sum(kilotokens * kilotokens)).fill_null(0.0),
        runs_with_cost=rows.usd.count(),
        cost_usd=as_number(exact_sum(rows.usd)).fill_null(0.0),
        squared_cost_usd2=as_number(exact_sum(rows.usd * rows.usd)).fill_null(0.0),
        successes_with_cost=rows.count(where=rows.succeeded & rows.usd.notnull()),
        cost_of_successes_usd=as_number(exact_sum(rows.succeeded.ifelse(rows.usd, 0.0))).fill_null(0.0),
    )
    sums = sums.mutate(**{name: _null_if_none(sums[name], sums[runs]) for name, runs in BUCKETS.items()})
    return lookup(sums, pairs, _KEYS).fill_null(dict.fromkeys(SESSION_PAIRS, 0))


def _sorted(buckets: ir.IntegerColumn) -> ir.ArrayScalar:
    return buckets.collect(where=buckets.notnull()).sort()


def _null_if_none(buckets: ir.ArrayValue, runs: ir.IntegerValue) -> ir.ArrayValue:
    return (runs > 0).ifelse(buckets, ibis.null(buckets.type()))


def _names(executions: ir.Table) -> dict[str, ir.StringValue]:
    return {name: executions[name].fill_null(NOT_NAMED) for name in ("agent_version", "model")}


def _pairs_of_sessions(executions: ir.Table) -> ir.Table:
    """`_KEYS` and `SESSION_PAIRS`, of the parts of hours in which a session has several executions."""
    rows = executions.filter(executions.session_id.notnull())
    rows = rows.select("hour", "agent_id", "session_id", "succeeded", **_names(rows))
    of_sessions = rows.group_by([*_KEYS, "session_id"]).aggregate(
        executions=rows.count(), successes=rows.count(where=rows.succeeded)
    )
    several = of_sessions.filter(of_sessions.executions > 1)
    others = several.executions - 1
    return several.group_by(_KEYS).aggregate(
        session_pairs=(several.executions * others).sum(),
        session_pairs_first_succeeded=(several.successes * others).sum(),
        session_pairs_both_succeeded=(several.successes * (several.successes - 1)).sum(),
    )
