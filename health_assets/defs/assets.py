"""Every asset that follows from the logs, in the order of the lineage; the survey's are in `survey`."""

from collections.abc import Collection

import dagster as dg

from health_assets.defs.multi_assets import record_assets, system_assets
from health_assets.defs.naming import STANDALONE, Naming
from health_assets.systems.graph import declared_graph


def all_assets(
    partitions: dg.PartitionsDefinition,
    naming: Naming = STANDALONE,
    tables: Collection[str] | None = None,
) -> list[dg.AssetsDefinition]:
    """The record assets, then the systems' assets: all of them, or those that make these tables."""
    graph = declared_graph()
    defined = {
        step: [one for one in assets if tables is None or one.name in tables]
        for step, assets in graph.system_steps.items()
    }
    systems = [system_assets(graph, step, derived, partitions, naming) for step, derived in defined.items() if derived]
    return [record_assets(graph, partitions, naming), *systems]
