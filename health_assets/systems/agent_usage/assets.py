"""Usage: each hour's tokens and cost, and what every agent took over the window."""

from collections.abc import Mapping

import ibis
from ibis import ir

from health_assets.pipeline.derived import Derived, Inputs, of_newest_hour
from health_assets.systems.agent_usage import FORMULA_VERSION
from health_assets.systems.agent_usage.agent_usage import agent_usage, usage_components


def _components(inputs: Inputs) -> ir.Table:
    return usage_components(inputs.table("executions"))


def _usage(inputs: Inputs) -> ir.Table:
    window_hours = inputs.settings.window_hours
    components = inputs.table("usage_components", back_hours=window_hours)
    rows = agent_usage(components, inputs.targets, inputs.hours, window_hours)
    return inputs.with_windows(rows, "usage_components", window_hours)


def _costliest_by_hour(rows: ir.Table) -> ir.Table:
    return _costliest_first(rows).select(
        "hour", "agent_id", "executions", "input_tokens", "output_tokens", "cost_usd", "executions_with_cost"
    )


def _costliest(rows: ir.Table) -> ir.Table:
    return _costliest_first(of_newest_hour(rows)).select(
        "hour",
        "agent_id",
        "executions",
        "successes",
        "input_tokens",
        "output_tokens",
        "cost_usd",
        "executions_with_cost",
        "cost_per_success_usd",
    )


def _costliest_first(rows: ir.Table) -> ir.Table:
    unknown_last = [ibis.desc(name, nulls_first=False) for name in ("cost_usd", "input_tokens", "executions")]
    return rows.order_by(*unknown_last, "agent_id", "hour")


def _spent(rows: ir.Table) -> Mapping[str, ir.Value]:
    return {
        "executions": rows.executions.sum(), "input tokens": rows.input_tokens.sum(),
        "output tokens": rows.output_tokens.sum(), "cost in dollars": rows.cost_usd.sum(),
    }  # fmt: skip


ASSETS = (
    Derived(
        name="usage_components",
        upstream=("executions",),
        rows=_components,
        preview_title="costliest hours of agents",
        preview_rows=_costliest_by_hour,
        blocked_by=("raw_logs",),
        empty_without="an execution",
        is_component=True,
        curves=_spent,
        formula_version=FORMULA_VERSION,
    ),
    Derived(
        name="agent_usage",
        upstream=("usage_components",),
        rows=_usage,
        preview_title="costliest agents",
        preview_rows=_costliest,
        empty_without="an execution in the window",
        back_hours=lambda settings: settings.window_hours,
        curves=_spent,
        formula_version=FORMULA_VERSION,
    ),
)
