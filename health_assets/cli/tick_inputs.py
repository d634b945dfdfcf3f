"""The inputs of a tick, cheap enough to compare before the warehouse is opened.

What belongs here: stamps of the logs, the warehouse and the files of settings. What does not: what the clock alone
changes (`systems.due_hours`, `apps.alerts.evaluator`).
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Self

from health_assets.core.errors import HealthAssetsError
from health_assets.core.file_stamps import Stamp, stamp
from health_assets.core.settings import Settings
from health_assets.logs import stores
from health_assets.logs.formats.format_settings import FormatSettings
from health_assets.logs.stores import list_files
from health_assets.warehouse.location import account_file

SETTLED_NS = 2_000_000_000
"""A file that was written more recently may be written again under the same stamp, where clocks of files are coarse."""


@dataclass(frozen=True, kw_only=True)
class TickInputs:
    """All that the outcome of a tick follows from besides the clock.

    Args:
        logs: by name of a raw log, its stamp and who can write it.
        unreadable: what cannot be read, with the reason.
        file_warnings: what is odd about raw logs, by name.
        formats_digest: digest of the settings of formats.
        files: stamps of the warehouse, the targets and the rules of alerts.
    """

    logs: Mapping[str, tuple[stores.Stamp, stores.Writers]]
    unreadable: Mapping[str, str]
    file_warnings: Mapping[str, str]
    formats_digest: str
    files: tuple[Stamp | None, ...]

    @classmethod
    def of(cls, settings: Settings) -> Self | None:
        """The inputs as they are now; None where a later change might not show.

        That is so of a database, of a file that was written a moment ago, and of logs that cannot be listed.
        """
        warehouse = account_file(settings)
        if warehouse is None:
            return None
        named = (warehouse, Path(f"{warehouse}.wal"), settings.targets, settings.alerts)
        files = tuple(None if path is None else stamp(path) for path in named)
        settled_until_ns = time.time_ns() - SETTLED_NS
        if any(file and max(file[2:]) > settled_until_ns for file in files):
            return None
        unreadable: dict[str, str] = {}
        file_warnings: dict[str, str] = {}
        try:
            logs = list_files(settings.raw, unreadable, file_warnings)
            formats_digest = FormatSettings.of(settings).digest
        except HealthAssetsError:  # which the tick tells
            return None
        return cls(
            logs={log.source_file: (log.stamp, log.writers) for log in logs},
            unreadable=unreadable,
            file_warnings=file_warnings,
            formats_digest=formats_digest,
            files=files,
        )


@dataclass(frozen=True, kw_only=True)
class QuietTick:
    """A tick that found nothing to do.

    Args:
        inputs: its inputs.
        at: when it was.
        until: when the clock alone may give a tick something to do.
    """

    inputs: TickInputs
    at: datetime
    until: datetime

    def holds(self, inputs: TickInputs | None, now: datetime) -> bool:
        """Whether a tick with these inputs finds nothing to do now, either."""
        return inputs == self.inputs and self.at <= now < self.until
