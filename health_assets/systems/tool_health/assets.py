"""Tool health: each hour's calls of tools, and how they went over the window."""

from collections.abc import Mapping

import ibis
from ibis import ir

from health_assets.pipeline.derived import Derived, Inputs, of_newest_hour
from health_assets.pipeline.latencies import latencies
from health_assets.systems.tool_health import FORMULA_VERSION
from health_assets.systems.tool_health.tool_health import KEYS, PERCENTS, tool_components, tool_health


def _components(inputs: Inputs) -> ir.Table:
    return tool_components(inputs.table("tool_calls"))


def _tools(inputs: Inputs) -> ir.Table:
    window_hours = inputs.settings.window_hours
    components = inputs.table("tool_components", back_hours=window_hours)
    found = latencies(inputs, components, KEYS, PERCENTS)
    rows = tool_health(components, found, inputs.targets, inputs.hours, window_hours)
    return inputs.with_windows(rows, "tool_components", window_hours)


def _most_called(rows: ir.Table) -> ir.Table:
    summed = rows.group_by("tool").aggregate(
        agents=rows.agent_id.nunique(), calls=rows.calls.sum(), failures=rows.failures.sum()
    )
    return summed.order_by(ibis.desc("calls"), "tool")


def _worst_tools(rows: ir.Table) -> ir.Table:
    latest = of_newest_hour(rows)
    return latest.order_by(ibis.desc("failure_share_at_least"), ibis.desc("calls"), *KEYS).select(
        "hour", *KEYS, "calls", "failures", "failure_share", "p50_latency_ms", "p95_latency_ms", "last_error"
    )


def _calls_and_failures(rows: ir.Table) -> Mapping[str, ir.Value]:
    return {"calls": rows.calls.sum(), "failures": rows.failures.sum()}


ASSETS = (
    Derived(
        name="tool_components", upstream=("tool_calls",), rows=_components, preview_title="tools called most",
        preview_rows=_most_called, blocked_by=("raw_logs",), empty_without="a call of a tool", is_component=True,
        curves=_calls_and_failures, formula_version=FORMULA_VERSION,
    ),
    Derived(
        name="tool_health", upstream=("tool_components",), rows=_tools, preview_title="worst tools",
        preview_rows=_worst_tools, empty_without="a call of a tool in the window",
        back_hours=lambda settings: settings.window_hours,
        curves=_calls_and_failures,
        formula_version=FORMULA_VERSION,
    ),
)  # fmt: skip
