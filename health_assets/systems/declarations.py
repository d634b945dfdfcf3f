"""Declarations of assets and suites, looked at when they are loaded.

What belongs here: that each name stands for something. What does not: finding the declarations (`declared_assets`,
`suites`).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from health_assets.core.errors import HealthAssetsError
from health_assets.core.formatting import nearest
from health_assets.pipeline.derived import Derived
from health_assets.schema.catalog import columns_of

if TYPE_CHECKING:  # imports pandas, which a command with nothing to do has no need of
    from health_assets.quality.expectations import Check, Suite


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
            for field, names in (
                ("upstream", asset.upstream),
                ("same_hour_upstream", asset.same_hour_upstream),
                ("blocked_by", asset.blocked_by),
            ):
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


def require_sound_suites(suites: Mapping[str, Iterable["Suite"]]) -> None:
    """Make sure that every check can be evaluated, as far as its declaration tells.

    Args:
        suites: the suites by the module that declares them.

    Raises:
        HealthAssetsError: two checks have one name, or a check names no batch of its suite, a column that is not there,
            or a kind of expectation that has no translation.
    """
    for module, own in suites.items():
        for suite in own:
            names = [check.name for check in suite.checks]
            for check in suite.checks:
                if fault := _fault_of(suite, check, names):
                    raise HealthAssetsError(f"{module}: the check {check.name} of {suite.asset} {fault}")


def _fault_of(suite: "Suite", check: "Check", names: Sequence[str]) -> str | None:
    if names.count(check.name) > 1:
        return "is declared twice"
    if not check.expectations:
        return "has no expectation"
    if check.batch != "hours" and check.batch not in suite.rows:
        return f"looks at batch {check.batch!r}, which the suite does not have{nearest(check.batch, suite.rows)}"
    if unknown := [expectation.type for expectation in check.expectations if not expectation.is_known]:
        return f"has an expectation of the kind {unknown[0]!r}, which quality/expectations.py does not translate"
    if check.is_uniqueness and len(check.expectations) > 1:
        return "has another expectation beside that of repeated rows; make it a check of its own"
    known = _known_columns(suite, check.batch)
    for expectation in check.expectations if known else ():
        for column in expectation.columns:
            if column not in known:
                return f"looks at the column {column!r}, which is not there{nearest(column, known)}"
    return None


def _known_columns(suite: "Suite", batch: str) -> Collection[str]:
    """The columns of a batch that is made as for every table; none of any other, whose columns show when it is made."""
    from health_assets.quality import batches

    if batch == "hours":
        return batches.OF_HOURS if suite.hours is batches.hours else ()
    return (*columns_of(suite.asset), *batches.OF_ROWS) if suite.rows[batch] is batches.rows else ()
