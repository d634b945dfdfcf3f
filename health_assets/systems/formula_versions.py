"""Hours of the results that are of an older version of their system's formula, and what can be done about them.

What belongs here: comparing the versions that the warehouse notes with those that the systems declare. What does not:
hours whose inputs have changed (`stale_partitions`), and asking for runs (`defs.sensors`).
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from health_assets.core.formatting import counted
from health_assets.core.hours import HOUR, HourRange, contiguous
from health_assets.core.settings import Settings
from health_assets.systems.declared_assets import SYSTEMS
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.session import Session

HOURS_AT_ONCE = 168
"""Most hours of a system that are brought up to date in one go, so that nothing else waits long."""
RUNS_AT_ONCE = 8
"""Most runs for it: hours may lie apart, and every run takes a while for itself."""


@dataclass(frozen=True, kw_only=True)
class OlderResults:
    """Hours of the results of one scoring system that an older version of its formula made.

    Args:
        system: the system.
        version: the version of today.
        versions: the others, in order.
        due: hours that can be brought up to date.
        kept: hours that cannot, since they look back on hours that retention dropped.
    """

    system: str
    version: str
    versions: tuple[str, ...]
    due: frozenset[datetime]
    kept: frozenset[datetime]

    def newest(self, asked: Collection[datetime] = ()) -> list[HourRange]:
        """The hours to bring up to date next, newest first, no more than one go may take.

        Args:
            asked: hours that are brought up to date in any case.
        """
        return newest_first(self.due - set(asked))

    def __str__(self) -> str:
        """Their number, and their versions."""
        count = counted(len(self.due | self.kept), f"hour of {self.system} is", f"hours of {self.system} are")
        told = f"{count} of formula version {' and '.join(self.versions)}, now {self.version}"
        if self.kept:
            told += f"; {len(self.kept):,} of them keep it, since they look back on hours that retention dropped"
        return told


def newest_first(hours: Collection[datetime]) -> list[HourRange]:
    """Ranges of the newest of these hours, newest first, no more than one go may take."""
    return contiguous(sorted(hours)[-HOURS_AT_ONCE:])[::-1][:RUNS_AT_ONCE]


def older_results(session: Session, hours: HourRange, settings: Settings) -> list[OlderResults]:
    """The results of these hours that an older version of a formula made, by system; nothing of systems without any.

    Components are brought up to date with the results that look back on them, and are not told of.

    Args:
        session: a session.
        hours: hours to look at.
        settings: how far each asset looks back.
    """
    dropped_until = PartitionStates(session).dropped_until()
    # results look back on hours that do so themselves, and runs for what follows from them make all assets
    first = hours.start if dropped_until is None else dropped_until + 2 * (settings.reach_hours - 1) * HOUR
    versions = {
        asset.name: asset.formula_version for assets in SYSTEMS.values() for asset in assets if not asset.is_component
    }
    of_asset = PartitionStates(session).of_other_versions(versions, hours)
    found = []
    for system, assets in SYSTEMS.items():
        older = {hour: version for asset in assets for hour, version in of_asset.get(asset.name, {}).items()}
        if not older:
            continue
        due = frozenset(hour for hour in older if hour >= first)
        found.append(
            OlderResults(
                system=system,
                version=assets[0].formula_version,
                versions=tuple(sorted(set(older.values()))),
                due=due,
                kept=frozenset(older) - due,
            )
        )
    return found
