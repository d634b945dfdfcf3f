"""Targets as columns: the targets of each row's agent, and the one cleaning rule that needs them.

What belongs here: joining targets to rows. What does not: reading targets (`health_assets.core.targets`).
"""

from collections.abc import Sequence
from typing import Any

import ibis
from ibis import ir

from health_assets.core.targets import AgentTargets, Targets
from health_assets.scoring.decimal_limits import is_longer
from health_assets.scoring.relations import lookup

_TYPES: dict[Any, str] = {int: "int64", bool: "boolean", str | None: "string"}
TARGET_TYPES = {name: _TYPES.get(field.annotation, "float64") for name, field in AgentTargets.model_fields.items()}


def overrides(targets: Targets) -> ir.Table:
    """One row per agent with targets of its own: `agent_id` and every target."""
    return ibis.memtable(targets.table())


def with_targets(rows: ir.Table, targets: Targets, names: Sequence[str]) -> ir.Table:
    """Add the named targets of each row's `agent_id` as columns `target_<name>`; null where a target is not set."""
    default = targets.defaults.model_dump()
    defaults = {name: ibis.literal(default[name], type=TARGET_TYPES[name]) for name in names}
    if not targets.agents:
        return rows.mutate(**{f"target_{name}": value for name, value in defaults.items()})
    own = overrides(targets).select("agent_id", **{f"own_{name}": name for name in names}, has_own=ibis.literal(True))
    joined = lookup(rows, own, "agent_id")
    chosen = {
        f"target_{name}": joined.has_own.fill_null(False).ifelse(joined[f"own_{name}"], defaults[name])
        for name in names
    }
    return joined.select(*rows.columns, **chosen)


def listed_agents(targets: Targets) -> ir.Table:
    """The agents (`agent_id`) that are known before their first event, because they have targets of their own."""
    return overrides(targets).select("agent_id")


def with_targets_used(rows: ir.Table, targets: Targets, names: Sequence[str]) -> ir.Table:
    """Add the named targets of each row's agent under their own names, and leave out rows of retired agents."""
    found = with_targets(rows, targets, [*names, "retired"])
    return found.filter(~found.target_retired).drop("target_retired").rename({name: f"target_{name}" for name in names})


def resolve_sla(executions: ir.Table, targets: Targets) -> ir.Table:
    """Add `sla_breached`: the record's flag, else runtime over the limit of record or target, else false.

    Contract, section 4. Needs `agent_id`, `runtime_s`, `sla_s` and `sla_breached_reported`.
    """
    rows = with_targets(executions, targets, ["sla_s"])
    breached = ibis.coalesce(rows.sla_breached_reported, is_longer(rows.runtime_s, _limit_s(rows)), ibis.literal(False))
    return rows.mutate(sla_breached=breached).drop("target_sla_s")


def has_sla(executions: ir.Table) -> ir.BooleanValue:
    """Whether an execution can breach an SLA: it has the record's flag, or both a runtime and a limit.

    Args:
        executions: rows as `resolve_sla` needs them, with `target_sla_s`.
    """
    is_compared = executions.runtime_s.notnull() & _limit_s(executions).notnull()
    return executions.sla_breached_reported.notnull() | is_compared


def _limit_s(rows: ir.Table) -> ir.FloatingValue:
    return ibis.coalesce(rows.sla_s, rows.target_sla_s)
