"""Every asset that follows from the logs, in the order of the lineage; the survey's are in `systems.survey`."""

from collections.abc import Collection

import dagster as dg

from health_assets.defs.derived_assets import derived_asset
from health_assets.defs.placement import ALONE, Placement
from health_assets.defs.record_assets import record_assets
from health_assets.systems.declared_assets import SYSTEMS


def all_assets(
    partitions: dg.PartitionsDefinition | None,
    placement: Placement = ALONE,
    tables: Collection[str] | None = None,
) -> list[dg.AssetsDefinition]:
    """The record assets, then the systems' assets: all of them, or those that make these tables."""
    derived = [
        derived_asset(asset, system, partitions, placement)
        for system, assets in SYSTEMS.items()
        for asset in assets
        if tables is None or asset.name in tables
    ]
    return [record_assets(partitions, placement), *derived]
