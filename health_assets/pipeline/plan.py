"""The plan of a run (its hours, assets and checks) and the graph of all assets.

Running a plan is `engine`'s; which hours need work is `systems.due_hours`'.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HourGroups
from health_assets.pipeline.derived import Derived
from health_assets.pipeline.fingerprints import RECORDS
from health_assets.quality.expectations import Suite
from health_assets.warehouse.fingerprints import INGEST_CHECKS

INGEST = "ingest"
"""The step that makes `raw_logs` and the record tables, since each file is read only once."""


@dataclass(frozen=True, kw_only=True)
class Graph:
    """The assets that there are, and their checks.

    Args:
        systems: the computed assets by scoring system.
        suites: the suites by asset.
    """

    systems: Mapping[str, Sequence[Derived]]
    suites: Mapping[str, Suite]

    @cached_property
    def derived(self) -> dict[str, Derived]:
        """The computed assets by name."""
        return {asset.name: asset for assets in self.systems.values() for asset in assets}

    @cached_property
    def system_of(self) -> dict[str, str]:
        """The scoring system of each computed asset."""
        return {asset.name: system for system, assets in self.systems.items() for asset in assets}

    @cached_property
    def system_steps(self) -> dict[str, tuple[Derived, ...]]:
        """The computed assets by step, in order: a step for each system.

        A system whose assets have priority has no step of its own: they are made in that of the system that they need,
        before the assets whose metadata tell of them.

        Raises:
            HealthAssetsError: assets or systems are made from each other.
        """
        steps = {system: list(assets) for system, assets in self.systems.items()}
        for system, assets in self.systems.items():
            if any(asset.has_priority for asset in assets):
                needed = self._systems_before(assets) - {system}
                if len(needed) == 1:
                    steps[needed.pop()] += steps.pop(system)
        step_of = {asset.name: step for step, assets in steps.items() for asset in assets}
        before = {
            step: {step_of[source] for asset in assets for source in self.sources(asset.name) if source in step_of}
            for step, assets in steps.items()
        }
        return {step: self._in_order(steps[step]) for step in _sorted(steps, before)}

    def _systems_before(self, assets: Sequence[Derived]) -> set[str]:
        sources = {source for asset in assets for source in self.sources(asset.name)}
        return {self.system_of[source] for source in sources if source in self.system_of}

    def _in_order(self, assets: Sequence[Derived]) -> tuple[Derived, ...]:
        """Assets behind those of them that they are made from; the ones with priority as early as they can."""
        named = {asset.name: asset for asset in sorted(assets, key=lambda asset: not asset.has_priority)}
        return tuple(named[name] for name in _sorted(named, {name: self.sources(name) for name in named}))

    @cached_property
    def steps(self) -> dict[str, tuple[str, ...]]:
        """The names of the assets of each step, in order: the records first."""
        computed = {step: tuple(asset.name for asset in assets) for step, assets in self.system_steps.items()}
        return {INGEST: RECORDS} | computed

    def sources(self, asset: str) -> tuple[str, ...]:
        """`Derived.sources`; none of a record table."""
        own = self.derived.get(asset)
        return () if own is None else own.sources

    def depends_on_any(self, step: str, assets: Collection[str]) -> bool:
        """Whether a step follows from any of these assets of other steps."""
        own = self.steps.get(step, ())
        sources = {source for asset in own for source in self.sources(asset)}
        return bool(sources.difference(own).intersection(assets))

    def check_names(self, asset: str) -> tuple[str, ...]:
        """The checks of an asset."""
        own = self.suites.get(asset)
        in_suite = tuple(check.name for check in own.checks) if own else ()
        return (*in_suite, *INGEST_CHECKS) if asset == "raw_logs" else in_suite


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a run is asked for.

    Args:
        hours: the hours.
        assets: the assets to make.
        checks: the checks to evaluate, by asset.
        only_stale: whether components that are up to date are left alone and new targets not applied; scores
            are made in any case.
        full_refresh: whether every raw log is compared with what was read of it, whatever its size and times say.
        metadata_hours: hours of which the metadata have numbers of their own.
        has_summaries: whether the metadata of assets have small tables of their rows.
        records_in: where Dagster keeps its records of the run; empty where nobody will see them again.
    """

    hours: HourGroups
    assets: Collection[str]
    checks: Mapping[str, Collection[str]] = field(default_factory=dict)
    only_stale: bool = False
    full_refresh: bool = False
    metadata_hours: Sequence[datetime] = ()
    has_summaries: bool = True
    records_in: str = ""

    def selects_any(self, assets: Collection[str]) -> bool:
        """Whether it asks for any of these assets to be made."""
        return not set(assets).isdisjoint(self.assets)


def _sorted(names: Iterable[str], before: Mapping[str, Collection[str]]) -> list[str]:
    """Sort names topologically, and otherwise leave them in their order.

    Raises:
        HealthAssetsError: some come before each other.
    """
    left, found = list(names), list[str]()
    while left:
        ready = next((name for name in left if not set(left).difference([name]).intersection(before[name])), None)
        if ready is None:
            raise HealthAssetsError(f"{', '.join(left)} are made from each other")
        left.remove(ready)
        found.append(ready)
    return found
