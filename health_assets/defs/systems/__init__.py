"""The scoring systems: one module each, which declares the system's assets in the order of the lineage.

What belongs in such a module: which tables an asset is made from, the call of its `scoring` function, and the small
table that its metadata shows. What does not: formulas (`scoring`) and anything that runs (`derived`).
"""

from health_assets.defs.derived import Derived
from health_assets.defs.systems import (
    agent_health_model,
    agent_health_state,
    agent_usage,
    error_budget,
    explanations,
    model_health,
    reliability,
    session_scores,
    tool_health,
)

SYSTEMS: dict[str, tuple[Derived, ...]] = {
    "agent_health_model": agent_health_model.ASSETS,
    "explanations": explanations.ASSETS,
    "agent_health_state": agent_health_state.ASSETS,
    "model_health": model_health.ASSETS,
    "session_scores": session_scores.ASSETS,
    "reliability": reliability.ASSETS,
    "error_budget": error_budget.ASSETS,
    "tool_health": tool_health.ASSETS,
    "agent_usage": agent_usage.ASSETS,
}
DERIVED: dict[str, Derived] = {asset.name: asset for assets in SYSTEMS.values() for asset in assets}
