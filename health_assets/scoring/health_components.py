"""Hourly components of agent health: additive sums per agent and hour, and counts of the hour's last minutes.

A component is a sufficient statistic that merges by addition, with 0 as its zero; ratios are formed only after a window
has been merged (`systems.agent_health_model.agent_health`). Runtimes are summed in whole microseconds, so that the sum
is exact and the order in which rows or hours are added can never show.
"""

from collections.abc import Sequence

import ibis
from ibis import ir

from health_assets.core.targets import Targets
from health_assets.scoring.decimal_limits import is_longer, whole_us
from health_assets.scoring.target_columns import has_sla, with_targets

SUMS = (
    "executions", "successes", "failures", "untimed", "runtime_us_sum", "long_running", "sla_checked", "sla_breaches",
    "triggers", "trigger_failures",
)  # fmt: skip
LAST_MINUTES = (5, 30)
LAST_COUNTS = tuple(f"{name}_{minutes}m" for minutes in LAST_MINUTES for name in ("executions", "failures"))
"""Executions and failures of the last minutes of the hour. They add up over parts of an hour, and over no hours."""
COMPONENTS = (*SUMS, *LAST_COUNTS)


def health_components(executions: ir.Table, trigger_events: ir.Table, presence: ir.Table, targets: Targets) -> ir.Table:
    """One row per (hour, agent_id) with any event: `COMPONENTS` and `runtime_s_sum`.

    Args:
        executions: cleaned executions.
        trigger_events: cleaned triggers.
        presence: (hour, agent_id) of other events, which make an agent known without adding to a sum.
        targets: for the expected runtime that long-running executions exceed (source 1, "Stability Score").
    """
    parts = ibis.union(_of_executions(executions, targets), _of_triggers(trigger_events), _of_presence(presence))
    merged = merge(parts, ["hour", "agent_id"], COMPONENTS)
    return merged.mutate(runtime_s_sum=merged.runtime_us_sum / 1e6)


def merge(components: ir.Table, keys: list[str], names: Sequence[str] = SUMS) -> ir.Table:
    """Add components up per key: the merge of hours into windows, and of kinds of events into hours."""
    return components.group_by(keys).aggregate(**{name: components[name].sum().cast("int64") for name in names})


def with_long_running(executions: ir.Table, targets: Targets) -> ir.Table:
    """Add `is_long_running`: longer than long_running_factor times the expected runtime; never without expectation."""
    rows = with_targets(executions, targets, ["expected_runtime_s", "long_running_factor"])
    is_long = is_longer(rows.runtime_s, rows.target_long_running_factor * rows.target_expected_runtime_s)
    return rows.select(*executions.columns, is_long_running=is_long.fill_null(False))


def _of_executions(executions: ir.Table, targets: Targets) -> ir.Table:
    rows = with_targets(with_long_running(executions, targets), targets, ["sla_s"])
    return rows.group_by(["hour", "agent_id"]).aggregate(
        executions=rows.count(),
        successes=rows.succeeded.cast("int64").sum().cast("int64"),
        failures=(~rows.succeeded).cast("int64").sum().cast("int64"),
        untimed=rows.runtime_s.isnull().cast("int64").sum().cast("int64"),
        runtime_us_sum=whole_us(rows.runtime_s.fill_null(0.0)).cast("int64").sum().cast("int64"),
        long_running=rows.is_long_running.cast("int64").sum().cast("int64"),
        sla_checked=(rows.sla_breached | has_sla(rows)).cast("int64").sum().cast("int64"),
        sla_breaches=rows.sla_breached.cast("int64").sum().cast("int64"),
        triggers=ibis.literal(0, "int64"),
        trigger_failures=ibis.literal(0, "int64"),
        **_of_last_minutes(rows),
    )


def _of_last_minutes(executions: ir.Table) -> dict[str, ir.IntegerScalar]:
    counts: dict[str, ir.IntegerScalar] = {}
    for minutes in LAST_MINUTES:
        is_last = executions.ended_at >= executions.hour + ibis.interval(minutes=60 - minutes)
        counts[f"executions_{minutes}m"] = executions.count(where=is_last)
        counts[f"failures_{minutes}m"] = executions.count(where=is_last & ~executions.succeeded)
    return counts


def _of_triggers(trigger_events: ir.Table) -> ir.Table:
    rows = trigger_events
    zero = ibis.literal(0, "int64")
    sums = dict.fromkeys(COMPONENTS, zero) | {
        "triggers": rows.count(),
        "trigger_failures": (rows.status == "failed").cast("int64").sum().cast("int64"),
    }
    return rows.group_by(["hour", "agent_id"]).aggregate(**sums)


def _of_presence(presence: ir.Table) -> ir.Table:
    seen = presence.filter(presence.agent_id.notnull()).distinct()
    return seen.select("hour", "agent_id", **dict.fromkeys(COMPONENTS, ibis.literal(0, "int64")))
