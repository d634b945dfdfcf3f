"""Declarations of assets and suites, looked at when they are loaded.

What belongs here: that each name stands for something. What does not: finding the declarations (`declared_assets`,
`suites`).
"""

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from health_assets.core.errors import HealthAssetsError
from health_assets.core.wording import nearest
from health_assets.pipeline.derived import Derived

if TYPE_CHECKING:  # imports pandas, which a command with nothing to do has no need of
    from health_assets.quality.expectations import Suite


def require_known_sources(systems: Mapping[str, Iterable[Derived]], others: Collection[str]) -> None:
    """Make sure that assets are made from assets that there are.

    Args:
        systems: the assets by scoring system.
        others: assets that no system declares.

    Raises:
        HealthAssetsError: one names an asset that nobody declares.
    """
    known = {*others, *(asset.name for assets in systems.values() for asset in assets)}
    for system, assets in systems.items():
        for asset in assets:
            for field, names in (("deps", asset.deps), ("beside", asset.beside), ("gates", asset.gates)):
                for name in names:
                    if name not in known:
                        raise HealthAssetsError(
                            f"{system}/assets.py: {field} of {asset.name} names {name!r}, and there is no such asset"
                            f"{nearest(name, known)}"
                        )


def require_tables(systems: Mapping[str, Iterable[Derived]], tables: Collection[str]) -> None:
    """Make sure that every asset has a table of its own.

    Args:
        systems: the assets by scoring system.
        tables: the tables.

    Raises:
        HealthAssetsError: one has none, or has that of another asset.
    """
    taken: dict[str, str] = {}
    for system, assets in systems.items():
        for asset in assets:
            if asset.name not in tables:
                raise HealthAssetsError(
                    f"{system}/assets.py: {asset.name} has no table, which a tables.py declares"
                    f"{nearest(asset.name, tables)}"
                )
            if asset.name in taken:
                raise HealthAssetsError(
                    f"{system}/assets.py: {asset.name} is an asset already, in {taken[asset.name]}/assets.py"
                )
            taken[asset.name] = system


def require_known_assets(suites: Mapping[str, Iterable["Suite"]], known: Collection[str]) -> None:
    """Make sure that suites are about assets that there are, each about one of its own.

    Args:
        suites: the suites by the module that declares them.
        known: the assets.

    Raises:
        HealthAssetsError: one names another asset, or the asset of another suite.
    """
    taken: dict[str, str] = {}
    for module, own in suites.items():
        for suite in own:
            if suite.asset not in known:
                raise HealthAssetsError(
                    f"{module}: a suite is about {suite.asset!r}, and there is no such asset"
                    f"{nearest(suite.asset, known)}"
                )
            if suite.asset in taken:
                raise HealthAssetsError(f"{module}: {suite.asset} has a suite already, in {taken[suite.asset]}")
            taken[suite.asset] = module
