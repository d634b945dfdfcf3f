"""Error budgets: how much of its allowed failures each agent has spent, and how fast."""

from collections.abc import Mapping

import ibis
from ibis import ir

from health_assets.pipeline.derived import Derived, Inputs, of_newest_hour
from health_assets.systems.error_budget import FORMULA_VERSION
from health_assets.systems.error_budget.error_budget import SHORT_WINDOWS, error_budget


def _budgets(inputs: Inputs) -> ir.Table:
    window_hours, lookback_hours = inputs.settings.window_hours, inputs.settings.lookback_hours
    components = inputs.table("health_components", back_hours=lookback_hours)
    budgets = error_budget(components, inputs.targets, inputs.hours, window_hours, lookback_hours, inputs.trailing)
    return inputs.with_windows(budgets, "health_components", window_hours)


def _most_spent(rows: ir.Table) -> ir.Table:
    latest = of_newest_hour(rows)
    return latest.order_by(ibis.desc("budget_spent", nulls_first=False), "agent_id").select(
        "hour", "agent_id", "budget_spent", *(f"burn_rate_{length}" for length in SHORT_WINDOWS), "n", "failures",
        "allowed_failures", "expected_success_rate",
    )  # fmt: skip


def _budgets_spent(rows: ir.Table) -> Mapping[str, ir.Value]:
    return {"budgets spent": (rows.budget_spent >= 1).sum(), "failures": rows.failures.sum()}


ASSETS = (
    Derived(
        name="error_budget", upstream=("health_components",), rows=_budgets, preview_title="most spent budgets",
        preview_rows=_most_spent, empty_without="a known agent", back_hours=lambda settings: settings.lookback_hours,
        curves=_budgets_spent,
        formula_version=FORMULA_VERSION,
    ),
)  # fmt: skip
