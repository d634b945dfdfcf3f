"""Batches of tool health."""

import pandas as pd
from ibis import _, ir

from health_assets.quality.batches import Source, hours, hours_with_windows, rows, with_facts
from health_assets.systems.tool_health.tool_health import NOBODY


def parts_of_tools(source: Source) -> ir.Table:
    """Rows of `tool_components`, with number, extremes and order of their buckets, and whether they have an error."""
    own = rows(source)
    buckets = own.latency_buckets
    return _with_errors(own).mutate(
        latencies=buckets.length().fill_null(0),
        least_bucket=buckets.mins(),
        greatest_bucket=buckets.maxs(),
        has_buckets=buckets.notnull().cast("int64"),
        has_ascending_buckets=(buckets == buckets.sort()).fill_null(False).cast("int64"),
    )


def tools(source: Source) -> ir.Table:
    """Rows of `tool_health`, with how far the share is off the counts, and which latencies and errors are there."""
    own = _with_errors(rows(source))
    return own.mutate(
        share_off=own.failure_share - own.failures / own.calls.nullif(0),
        has_p50=own.p50_latency_ms.notnull().cast("int64"),
        has_p95=own.p95_latency_ms.notnull().cast("int64"),
    )


def hours_of_parts_of_tools(source: Source) -> pd.DataFrame:
    """`hours`, with the calls and failures that the parts count, and those that are recorded."""
    sums = source.facts("tool_components", _.calls.sum(), _.failures.sum())
    frame = with_facts(hours(source), ["calls_in_parts", "failures_in_parts"], sums)
    counts = source.facts("tool_calls", _.count(), _.count(where=_.status == "failure"))
    return with_facts(frame, ["calls_recorded", "failures_recorded"], counts)


def hours_of_tools(source: Source) -> pd.DataFrame:
    """`hours`, with the calls of all windows, and those of the hours that the windows are made of."""
    return hours_with_windows(source, "calls", "tool_components", "calls", always=NOBODY)


def _with_errors(own: ir.Table) -> ir.Table:
    return own.mutate(
        has_error=own.last_error.notnull().cast("int64"), has_error_at=own.last_error_at.notnull().cast("int64")
    )
