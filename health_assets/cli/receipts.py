"""Receipts: what the last run of a warehouse rested on, so that the same command with nothing new need not run again.

A receipt holds while all is as it was that the results of a run follow from: the hours and systems asked for, the
settings, the targets, names, sizes and times of all raw logs, this program and its libraries, the warehouse's file as
the run left it, and Dagster's record of the run. Then each step would make the rows that are there, and each check
would judge the same rows once more. Whatever has changed, also by another run or by hand, the command runs.

Only a run that succeeded leaves a receipt, of hours that were over, with every log read, no line lost and every check
passed: what is wrong is told again each time. There is none for PostgreSQL and Spark, whose state
shows in no file's stamp.

What belongs here: leaving a receipt and looking for one. What does not: who asks (`materializing`) and whether a run is
fit for one (`running`).
"""

import hashlib
import json
import logging
import os
import sys
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import health_assets
from health_assets.cli.dagster_home import CONFIGURATION, home_here
from health_assets.core.errors import HealthAssetsError
from health_assets.core.file_stamps import stamp
from health_assets.core.hours import HourGroups, HourRange
from health_assets.core.settings import Settings, load_settings
from health_assets.core.user_cache import cache_folder, own_content, put
from health_assets.logs.stores import Faults, list_files
from health_assets.warehouse.location import is_file, path_of

FILE = "receipts.json"
MOST_RECEIPTS = 100
"""Receipts that are kept, one of each warehouse; those of the last runs."""
MOST_BYTES = 1_000_000
LIBRARIES = (
    "dagster", "duckdb", "great-expectations", "ibis-framework", "numpy", "pandas", "pyarrow", "rapidfuzz", "scipy",
    "sqlglot",
)  # fmt: skip
"""Distributions that have a part in the results."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """A receipt of a run.

    Args:
        basis: digest of all that it rested on, but for the warehouse itself, as `basis_of` gives it.
        warehouse: stamps of the warehouse's file and of its log, as JSON has them, when the run was over.
        events: the file in which Dagster keeps the run's events; None where the run was no part of lasting records.
        left_at: the time at which the run was over, UTC.
    """

    basis: str
    warehouse: object
    events: str | None
    left_at: datetime

    def holds(self, settings: Settings) -> bool:
        """Whether the warehouse, and Dagster's record of the run, are as the run left them."""
        return self.warehouse == _warehouse(settings) and (self.events is None or Path(self.events).exists())


def basis_of(settings: Settings, hours: HourRange | HourGroups, systems: Collection[str], now: datetime) -> str | None:
    """A digest of all that the results of a run follow from, but for the warehouse itself.

    Args:
        settings: where logs, targets and warehouse are, and what scores depend on.
        hours: the hours asked for.
        systems: the scoring systems asked for; all where none is named.
        now: the time, aware.

    Returns:
        The digest; None where a run is always worth while: hours are not over, logs are missing or cannot be read, or
        the warehouse is no file.
    """
    if hours.end > now or not is_file(settings.warehouse):
        return None
    unreadable: Faults = {}
    try:
        files = list_files(settings.raw, unreadable)
        targets = settings.targets and hashlib.sha256(settings.targets.read_bytes()).hexdigest()
    except (HealthAssetsError, OSError):  # the run is about to say it
        return None
    if unreadable or not files:
        return None
    said = [
        [str(own) for own in hours.ranges],
        sorted(systems),
        settings.model_dump_json(),
        targets,
        [(file.source_file, str(file.path), *file.stamp) for file in files],
        _records(settings),
        _program(),
    ]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def receipt_for(settings: Settings, basis: str | None) -> Receipt | None:
    """The receipt of the last run, if it rested on the same and still holds."""
    said = _receipts().get(_name(settings)) if basis is not None else None
    try:
        receipt = said and Receipt(**{**said, "left_at": datetime.fromisoformat(said["left_at"])})
    except (ValueError, TypeError, KeyError) as error:
        _log.debug("a receipt cannot be read: %s", error)
        return None
    return receipt if receipt and receipt.basis == basis and receipt.holds(settings) else None


def leave_receipt(settings: Settings, basis: str, events: Path | None, now: datetime) -> None:
    """Leave a receipt of a run, to be called before others may write; where there is no cache, none is left.

    Args:
        settings: where the warehouse is.
        basis: what `basis_of` gave before the run, and gives now.
        events: the file in which Dagster keeps the run's events; None where the run was no part of lasting records.
        now: the time, aware.
    """
    folder = cache_folder()
    if folder is None:
        return
    said = {
        "basis": basis,
        "warehouse": _warehouse(settings),
        "events": events and str(events),
        "left_at": now.isoformat(),
    }
    others = {name: other for name, other in _receipts().items() if name != _name(settings)}
    kept = dict([*others.items(), (_name(settings), said)][-MOST_RECEIPTS:])
    try:
        put(folder / FILE, json.dumps(kept).encode())
    except OSError as error:
        _log.debug("no receipt is left in %s: %s", folder, error.strerror)


def _receipts() -> dict[str, Any]:
    """All receipts as JSON has them, by name of the warehouse, the newest last; nothing where there are none."""
    folder = cache_folder()
    if folder is None:
        return {}
    try:
        said = json.loads(own_content(folder / FILE, MOST_BYTES))
    except (OSError, ValueError) as error:
        _log.debug("no receipt is read from %s: %s", folder, error)
        return {}
    return said if isinstance(said, dict) else {}


def _name(settings: Settings) -> str:
    """A name for a warehouse by which no place is told."""
    return hashlib.sha256(os.fsencode(path_of(settings.warehouse).resolve())).hexdigest()


def _warehouse(settings: Settings) -> object:
    """The stamps of the warehouse's file and of its log, as JSON has them."""
    path = path_of(settings.warehouse)
    return [own and list(own) for own in (stamp(path), stamp(Path(f"{path}.wal")))]


def _records(settings: Settings) -> list[object]:
    """The facts by which it is decided where Dagster keeps its records of a run."""
    is_own_warehouse = settings.warehouse == load_settings().warehouse
    return [is_own_warehouse, home_here(os.environ), str(Path.cwd()), Path(CONFIGURATION).exists()]


def _program() -> list[object]:
    """Stamps of this program's modules, and versions of the libraries that have a part in the results."""
    folder = Path(health_assets.__file__).parent
    modules = [(str(path), stamp(path)) for path in sorted(folder.rglob("*.py"))]
    return [sys.version, modules, [version(name) for name in LIBRARIES]]
