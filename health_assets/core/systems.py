"""The scoring systems, named once, in the order in which people read of them.

What belongs here: the names, the version of hours that note none, and how the parts of the systems are found. What
does not: what is in the parts (`systems`, a folder for each name). A system that is added to this list has its tables,
assets, checks and block of the report from then on, without another line anywhere.

The parts are imported by name, since those who ask for them lie below the systems: the catalog of tables must know each
table, though no table is declared for the catalog's sake.
"""

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

SYSTEM_NAMES = (
    "agent_health_model", "agent_now", "explanations", "agent_health_state", "model_health", "tool_health",
    "session_scores", "reliability", "error_budget", "agent_usage", "release_comparison", "agent_drift",
    "survey",
)  # fmt: skip
FIRST_FORMULA_VERSION = "1.0"
"""The version that made every hour of which none is noted: before versions were kept there was no other."""


@cache
def parts(name: str) -> dict[str, ModuleType]:
    """The module of this name (`tables`, `assets`, `expectations`, `report`) of each system that has one, by system."""
    found = {system: f"health_assets.systems.{system}.{name}" for system in SYSTEM_NAMES}
    return {system: import_module(module) for system, module in found.items() if find_spec(module)}
