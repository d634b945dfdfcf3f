"""Usage: each hour's tokens and cost, and what every agent, version, model and user took over the window."""

from collections.abc import Mapping, Sequence

import ibis
from ibis import ir

from health_assets.pipeline.derived import Derived, Inputs, of_newest_hour
from health_assets.systems.agent_usage import FORMULA_VERSION
from health_assets.systems.agent_usage.agent_usage import agent_usage, usage_components
from health_assets.systems.agent_usage.names import BY_AGENT, BY_PART


def _components(inputs: Inputs) -> ir.Table:
    return usage_components(inputs.table("executions"), inputs.table_if_any("cancellations"))


def _usage(inputs: Inputs) -> ir.Table:
    return _windows_by(inputs, BY_AGENT)


def _breakdown(inputs: Inputs) -> ir.Table:
    return _windows_by(inputs, BY_PART)


def _windows_by(inputs: Inputs, keys: Sequence[str]) -> ir.Table:
    window_hours = inputs.settings.window_hours
    components = inputs.table("usage_components", back_hours=window_hours)
    rows = agent_usage(components, inputs.targets, inputs.hours, window_hours, keys)
    return inputs.with_windows(rows, "usage_components", window_hours)


def _costliest_by_hour(rows: ir.Table) -> ir.Table:
    return _costliest_first(rows).select(
        "hour", *_keys(rows), "executions", "input_tokens", "output_tokens", "cost_usd", "executions_with_cost"
    )


def _costliest(rows: ir.Table) -> ir.Table:
    return _costliest_first(of_newest_hour(rows)).select(
        "hour",
        *_keys(rows),
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
    return rows.order_by(*unknown_last, *_keys(rows), "hour")


def _keys(rows: ir.Table) -> Sequence[str]:
    return [name for name in BY_PART if name in rows.columns]


def _spent(rows: ir.Table) -> Mapping[str, ir.Value]:
    return {
        "executions": rows.executions.sum(), "input tokens": rows.input_tokens.sum(),
        "output tokens": rows.output_tokens.sum(), "cost in dollars": rows.cost_usd.sum(),
    }  # fmt: skip


ASSETS = (
    Derived(
        name="usage_components",
        upstream=("executions", "cancellations"),
        rows=_components,
        preview_title="costliest hours of versions, models and users of agents",
        preview_rows=_costliest_by_hour,
        blocked_by=("raw_logs",),
        empty_without="an execution or a cancelled run",
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
        empty_without="an execution or a cancelled run in the window",
        back_hours=lambda settings: settings.window_hours,
        curves=_spent,
        formula_version=FORMULA_VERSION,
    ),
    Derived(
        name="usage_breakdown",
        upstream=("usage_components",),
        rows=_breakdown,
        preview_title="costliest versions, models and users of agents",
        preview_rows=_costliest,
        empty_without="an execution or a cancelled run in the window",
        back_hours=lambda settings: settings.window_hours,
        curves=_spent,
        formula_version=FORMULA_VERSION,
    ),
)
