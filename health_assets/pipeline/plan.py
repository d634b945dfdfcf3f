"""The plan of a run: which hours, which assets, which checks.

What belongs here: what is asked for, and the graph of what there is. What does not: doing it (`engine`), and which
hours need work (`planning`).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from health_assets.core.hours import HourGroups
from health_assets.pipeline.derived import Derived
from health_assets.pipeline.grounds import RECORDS
from health_assets.quality.expectations import Suite
from health_assets.warehouse.account_digests import OF_NO_SUITE
from health_assets.warehouse.holds import EVERY_HOUR_WAS_BUILT

INGEST = "ingest"
"""The step that makes `raw_logs` and the record tables, since each file is read only once."""


HELD_HOURS = "held_hours"
"""The step that checks whether every hour was built."""


@dataclass(frozen=True, kw_only=True)
class Graph:
    """The assets that there are, and their checks.

    Args:
        systems: the computed assets by scoring system, in the order of the lineage.
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

        A system whose assets go first has no step of its own: they are made in that of the system that they need,
        before the assets whose metadata tell of them.
        """
        steps: dict[str, tuple[Derived, ...]] = {}
        for system, assets in self.systems.items():
            needed = {self.system_of.get(source) for asset in assets for source in self.sources(asset.name)}
            joined = [step for step in steps if step in needed] if any(asset.goes_first for asset in assets) else []
            step = joined[0] if joined else system
            steps[step] = self._in_order([*steps.get(step, ()), *assets])
        return steps

    def _in_order(self, assets: Sequence[Derived]) -> tuple[Derived, ...]:
        """Assets behind those of them that they are made from; the ones that go first as early as they can."""
        left, found = sorted(assets, key=lambda asset: not asset.goes_first), list[Derived]()
        while left:
            names = {asset.name for asset in left}
            ready = next(asset for asset in left if not names.intersection(self.sources(asset.name)))
            left.remove(ready)
            found.append(ready)
        return tuple(found)

    @property
    def steps(self) -> dict[str, tuple[str, ...]]:
        """The names of the assets of each step, in order: the records first."""
        computed = {step: tuple(asset.name for asset in assets) for step, assets in self.system_steps.items()}
        return {INGEST: RECORDS} | computed

    def sources(self, asset: str) -> tuple[str, ...]:
        """The assets that one is made from, and those whose failing checks stop it."""
        own = self.derived.get(asset)
        return () if own is None else (*own.deps, *own.beside, *own.gates)

    def sources_of_step(self, step: str) -> set[str]:
        """The assets of other steps that a step's are made from, and those whose failing checks stop it."""
        own = self.steps.get(step, ())
        return {source for asset in own for source in self.sources(asset)}.difference(own)

    def check_names(self, asset: str) -> tuple[str, ...]:
        """The checks of an asset."""
        own = self.suites.get(asset)
        in_suite = tuple(check.name for check in own.checks) if own else ()
        return (*in_suite, *OF_NO_SUITE, EVERY_HOUR_WAS_BUILT) if asset == "raw_logs" else in_suite


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a run is asked for.

    Args:
        hours: the hours.
        assets: the assets to make.
        checks: the checks to evaluate, by asset.
        only_stale: whether hours are left alone whose inputs have not changed since they were built.
        read_anew: whether every raw log is compared with what was read of it, whatever its size and times say.
        drawn: hours of which numbers are taken, hour by hour.
        has_summaries: whether the metadata of assets have small tables of their rows.
        records_in: where Dagster keeps its records of the run; empty where nobody will see them again.
    """

    hours: HourGroups
    assets: Collection[str]
    checks: Mapping[str, Collection[str]] = field(default_factory=dict)
    only_stale: bool = False
    read_anew: bool = False
    drawn: Sequence[datetime] = ()
    has_summaries: bool = True
    records_in: str = ""
