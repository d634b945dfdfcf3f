"""Every asset that follows from the logs, in the order of the lineage; the survey's are in `systems.survey`."""

import dagster as dg

from health_assets.defs.derived_assets import derived_asset
from health_assets.defs.record_assets import record_assets
from health_assets.systems.declared_assets import SYSTEMS


def all_assets(partitions: dg.PartitionsDefinition | None) -> list[dg.AssetsDefinition]:
    """The record assets, then the systems' assets."""
    derived = [derived_asset(asset, system, partitions) for system, assets in SYSTEMS.items() for asset in assets]
    return [record_assets(partitions), *derived]
