"""The graph of all declared assets and suites, for the engine."""

from health_assets.pipeline.plan import Graph
from health_assets.systems.declared_assets import SYSTEMS
from health_assets.systems.suites import SUITES


def declared_graph() -> Graph:
    """The assets and suites as they are declared now."""
    return Graph(systems=SYSTEMS, suites=SUITES)
