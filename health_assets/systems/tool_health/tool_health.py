"""Tool health: which tools fail or are slow, for which agent (docs/tools-and-usage.md).

The part of an hour is, for each agent and tool, the number of calls and of failures, the calls' latencies as buckets
(`scoring.latency_buckets`), and the error of the latest failed call that states one. Parts merge by addition, by
concatenation and by taking the later error, so a window looks at no call.

A call counts for the agent that its line names, or in whose execution its span lies. A call of which neither is known
counts for nobody, the agent `''`. That an execution has the id that the call names is not looked for: an execution
ends after its calls, often in a later hour, and an hour's part would change with hours that come after it.

Tools are ordered by what their failure share is at least, the lower end of its Wilson interval at 95 % (E. B. Wilson,
"Probable inference, the law of succession, and statistical inference", 1927), so that one failure of one call does not
stand before 50 of 100. With f failures of n calls and z = 1.96:

    (2 f + z^2 - z sqrt(z^2 + 4 f (1 - f / n))) / (2 (n + z^2))

A failed tool is not a failed run, so no other score looks at these calls.
"""

from collections.abc import Mapping

import ibis
from ibis import ir

from health_assets.core.hours import HourRange
from health_assets.core.targets import Targets
from health_assets.scoring.latency_buckets import bucket_of_us, latency_ms
from health_assets.scoring.relations import lookup
from health_assets.scoring.target_columns import with_targets
from health_assets.scoring.wilson import lower_end
from health_assets.scoring.window_merges import merged_windows

KEYS = ("agent_id", "tool")
NOBODY = ""
"""The agent of calls of which no agent is known."""

PERCENTS: Mapping[str, int] = {"p50_bucket": 50, "p95_bucket": 95}
IN_ORDER = ("ended_at", "source_file", "line_number", "call_id")
LONGEST_MS = 1e15
"""30,000 years: what is longer counts as that, since no bucket is for it."""


def tool_components(tool_calls: ir.Table) -> ir.Table:
    """One row per (hour, agent_id, tool) with a call: every column of `tool_components`."""
    calls = tool_calls.mutate(
        agent_id=tool_calls.agent_id.fill_null(NOBODY),
        failed=tool_calls.status == "failure",
        error=tool_calls.error.nullif(""),
        bucket=bucket_of_us(ibis.least(tool_calls.latency_ms, LONGEST_MS) * 1e3),
    )
    keys = ("hour", *KEYS)
    counted = calls.group_by(keys).aggregate(
        calls=calls.count(),
        failures=calls.count(where=calls.failed),
        latency_buckets=calls.bucket.collect(where=calls.latency_ms.notnull()).sort(),
    )
    # without a latency the list is null on one engine and empty on another
    buckets = counted.latency_buckets
    counted = counted.mutate(latency_buckets=(buckets.length() > 0).ifelse(buckets, ibis.null(buckets.type())))
    return lookup(counted, _last_errors(calls), keys)


def _last_errors(calls: ir.Table) -> ir.Table:
    """The error of the latest failed call that states one, by hour, agent and tool, and the end of that call."""
    stating = calls.filter(calls.failed, calls.error.notnull())
    latest_first = [ibis.desc(name) for name in IN_ORDER]
    ranked = stating.mutate(place=ibis.row_number().over(group_by=["hour", *KEYS], order_by=latest_first))
    last = ranked.filter(ranked.place == 0)
    return last.select("hour", *KEYS, last_error="error", last_error_at="ended_at")


def tool_health(
    components: ir.Table, latencies: ir.Table, targets: Targets, hours: HourRange, window_hours: int
) -> ir.Table:
    """One row per hour, agent and tool with a call in the window: all columns but those of the window.

    Args:
        components: `tool_components` of `hours` and the window before them.
        latencies: `hour`, `KEYS` and `PERCENTS` of the windows with a latency.
        targets: for which agents are retired; these get no row.
        hours: the hours to give rows for.
        window_hours: length of the evaluation window.
    """
    rows = merged_windows(components, KEYS, hours, window_hours, ("calls", "failures"), ("last_error",))
    rows = _without_retired(rows, targets)
    errors = components.select(*KEYS, "last_error", "last_error_at", last_error_in=components.hour)
    rows = lookup(rows, errors.filter(errors.last_error.notnull()), [*KEYS, "last_error_in"])
    rows = lookup(rows, latencies, ["hour", *KEYS])
    return rows.mutate(
        failure_share=rows.failures / rows.calls,
        failure_share_at_least=_at_least(rows.failures, rows.calls),
        p50_latency_ms=latency_ms(rows.p50_bucket),
        p95_latency_ms=latency_ms(rows.p95_bucket),
    )


def _at_least(failures: ir.IntegerValue, calls: ir.IntegerValue) -> ir.FloatingValue:
    """Lower end of the interval of a share, 0 where nothing failed; see the module's docstring."""
    return (failures == 0).ifelse(0.0, lower_end(failures, calls, lambda value: value.sqrt()))


def _without_retired(rows: ir.Table, targets: Targets) -> ir.Table:
    """Leave out the tools of retired agents; calls of nobody stay, also where agents are retired by default."""
    found = with_targets(rows, targets, ["retired"])
    return found.filter((found.agent_id == NOBODY) | ~found.target_retired).drop("target_retired")
