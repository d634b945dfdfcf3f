"""The scoring systems: one module each, which declares the system's assets in the order of the lineage.

The survey is no function of the logs, so its assets are not among these but in `survey`, with a job of their own.

What belongs in such a module: which tables an asset is made from, the call of its `scoring` function, and the small
table that its metadata shows. What does not: formulas (`scoring`) and anything that runs (`derived`).
"""

from health_assets.defs.derived import Derived
from health_assets.defs.systems import agent_health_model

SYSTEMS: dict[str, tuple[Derived, ...]] = {
    "agent_health_model": agent_health_model.ASSETS,
}
DERIVED: dict[str, Derived] = {asset.name: asset for assets in SYSTEMS.values() for asset in assets}
