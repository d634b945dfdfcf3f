"""Drops the rows of records and components of old hours; scores stay."""

from health_assets.pipeline.resource import Pipeline
from health_assets.pipeline.retention import Pruned, cutoff, prune
from health_assets.systems.declared_assets import DERIVED

PRUNED_COMPONENTS = tuple(
    asset.name for asset in DERIVED.values() if asset.is_component and not asset.is_exempt_from_retention
)
"""Assets that only others are made from."""


def prune_old_hours(pipeline: Pipeline, days: int | None) -> Pruned:
    """Drop what is older than so many days by the clock of the pipeline; None for the days of the setting.

    Raises:
        NoWarehouseError: there is no warehouse.
    """
    before = cutoff(pipeline.settings, days, pipeline.clock())
    warehouse = pipeline.open()
    with warehouse.read():  # which does not make a warehouse, as a write would
        pass
    return prune(warehouse, PRUNED_COMPONENTS, before, pipeline.settings.lookback_hours)
