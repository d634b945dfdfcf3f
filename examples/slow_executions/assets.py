"""The assets of slow executions: how often each runtime occurred, and the share of slow ones over the window."""

import ibis
from ibis import ir

from health_assets.pipeline.derived import Derived, Inputs, of_newest_hour
from health_assets.systems.slow_executions import FORMULA_VERSION
from health_assets.systems.slow_executions.slow_executions import runtime_components, slow_executions


def _components(inputs: Inputs) -> ir.Table:
    return runtime_components(inputs.table("executions"))


def _slow(inputs: Inputs) -> ir.Table:
    window_hours = inputs.settings.window_hours
    components = inputs.table("runtime_components", back_hours=window_hours)
    rows = slow_executions(components, inputs.targets, inputs.hours, window_hours)
    return inputs.with_windows(rows, "runtime_components", window_hours)


def _longest(rows: ir.Table) -> ir.Table:
    return rows.order_by(ibis.desc("runtime_us"), "hour", "agent_id").select("hour", "agent_id", "runtime_us")


def _slowest(rows: ir.Table) -> ir.Table:
    latest = of_newest_hour(rows)
    return latest.order_by(ibis.desc("slow_share"), "agent_id").select("agent_id", "slow", "executions", "slow_share")


ASSETS = (
    Derived(
        name="runtime_components", upstream=["executions"], rows=_components, preview_title="longest executions",
        preview_rows=_longest, empty_without="an execution that tells its runtime", blocked_by=["raw_logs"],
        is_component=True, formula_version=FORMULA_VERSION,
    ),
    Derived(
        name="slow_executions", upstream=["runtime_components"], rows=_slow, preview_title="most slow executions",
        preview_rows=_slowest, empty_without="an execution that tells its runtime in the window",
        back_hours=lambda settings: settings.window_hours, formula_version=FORMULA_VERSION,
    ),
)  # fmt: skip
