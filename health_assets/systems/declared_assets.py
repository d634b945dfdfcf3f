"""The assets of all scoring systems, as each system declares them.

What belongs here: finding them. What does not: the names of the systems (`core.systems`), and running assets (`defs`).
"""

from collections.abc import Collection

from health_assets.core.errors import HealthAssetsError
from health_assets.core.systems import parts
from health_assets.pipeline.derived import Derived
from health_assets.schema.catalog import ALL_TABLES
from health_assets.schema.records import RECORD_TABLES
from health_assets.systems.declarations import require_known_sources, require_tables

SYSTEMS: dict[str, tuple[Derived, ...]] = {system: module.ASSETS for system, module in parts("assets").items()}
"""The assets by scoring system, in the order of the lineage."""
require_tables(SYSTEMS, ALL_TABLES)
require_known_sources(SYSTEMS, ["raw_logs", *RECORD_TABLES])
DERIVED: dict[str, Derived] = {asset.name: asset for assets in SYSTEMS.values() for asset in assets}
"""The same by their own name."""


def require_known_systems(systems: Collection[str], known: Collection[str]) -> None:
    """Refuse a name that is no scoring system's.

    Raises:
        HealthAssetsError: there is no such system.
    """
    if unknown := set(systems) - set(known):
        raise HealthAssetsError(f"there is no system {min(unknown)!r}; choose from {', '.join(known)}")
