"""The thread that keeps the snapshot new, and the account of how old it is.

It looks at the stamps of the files of warehouse and targets every few seconds, and only when one has changed, or an
hour has ended, does it ask a reader; one that takes long is asked less often. A database, which has no file
that would tell, is asked every `HEALTH_SERVE_REFRESH_S` seconds. Whatever goes wrong, the last good snapshot stays.
"""

import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from health_assets.apps.serving.client import SENTENCES, UNREADABLE, ReaderError, ReusedReader
from health_assets.apps.serving.repeating import Repeated
from health_assets.apps.serving.snapshot import Batch, Snapshot
from health_assets.core.errors import HealthAssetsError
from health_assets.core.file_stamps import Stamp, stamp
from health_assets.core.hours import floor_hour
from health_assets.core.settings import Settings
from health_assets.core.temporary import remove_what_the_dead_left, temporary_folder
from health_assets.warehouse.location import account_file

READ_TIMEOUT_S = 600.0
FIRST_RETRY_S = 5.0
"""While there is nothing to answer from, a warehouse that is not there yet is looked for more often."""
LOOK_S = 3.0
"""How often stamps of files are looked at, which costs nothing."""
REST_RATIO = 4.0
"""So many times as long as the last reading took the next one waits, so that much data takes no more of the machine."""
BETWEEN_BATCHES_S = 0.002

Fingerprint = tuple[datetime | Stamp | None, ...]


class Refresher:
    """Holds the newest snapshot.

    Args:
        settings: the warehouse, the targets, and how often to look.
        on_fault: told in a sentence, for the operator, when refreshing fails in a new way.

    Raises:
        HealthAssetsError: the warehouse's URL names no file.
    """

    def __init__(self, settings: Settings, on_fault: Callable[[str], None]) -> None:
        self._settings = settings
        account_file(settings)  # raises now what it would raise at each look
        self._on_fault = on_fault
        self._seen: Fingerprint | None = None
        self._read_s = 0.0
        self._reader = ReusedReader(settings)
        self._repeated = Repeated("refresher", self.refresh, self._rest_s, self._note_bug, is_at_once=True)
        self.snapshot: Snapshot | None = None
        """The newest good one; replaced as a whole."""
        self.pipeline: dict[str, Any] = {}
        """Facts about hours, lines and incidents, as `fleet_facts` gathers them."""
        self.checked_at: datetime | None = None
        """When the snapshot was last known to be what the warehouse holds."""
        self.fault: str | None = None
        """Why the last attempt to refresh failed, as a key of `client.SENTENCES`; None after a good one."""

    def start(self) -> None:
        """Begin to refresh in the background."""
        self._repeated.start()

    def stop(self) -> None:
        """End the thread, and the reader that it may be waiting for."""
        self._repeated.ask_to_stop()
        self._reader.interrupt()
        self._repeated.stop()
        self._reader.close()

    def describe(self) -> dict[str, Any]:
        """The age of the data, for `/status`."""
        snapshot = self.snapshot
        return {
            "is_ready": snapshot is not None,
            "is_current": snapshot is not None and self.fault is None,
            "data_hour": snapshot and snapshot.hour.isoformat(),
            "data_age_s": snapshot and round((datetime.now(UTC) - snapshot.known_until).total_seconds(), 1),
            "loaded_at": snapshot and snapshot.loaded_at.isoformat(timespec="seconds"),
            "checked_at": self.checked_at and self.checked_at.isoformat(timespec="seconds"),
            "refresh_s": self._settings.serve_refresh_s,
            "last_error": self.fault and SENTENCES[self.fault],
        }

    def refresh(self) -> None:
        """Look once, and replace the snapshot where there is a newer one."""
        fingerprint = self._fingerprint()
        if self._warehouse is not None and fingerprint == self._seen:
            self.checked_at, self._read_s = datetime.now(UTC), 0.0
            self._reader.end_if_idle()
            return
        began_s = time.monotonic()
        try:
            fresh = self._read()
        except (ReaderError, OSError) as error:
            if not self._repeated.is_stopping:
                self._note(error)
            return
        finally:
            self._read_s = time.monotonic() - began_s
        if fresh is not None:
            batches = self.snapshot.batches if self.snapshot else []
            self.snapshot = fresh
            _let_go(batches)
        self._seen, self.fault, self.checked_at = fingerprint, None, datetime.now(UTC)

    def _rest_s(self) -> float:
        wait_s = self._settings.serve_refresh_s
        if not self.snapshot:
            return min(wait_s, FIRST_RETRY_S)
        return wait_s if self._warehouse is None else min(wait_s, max(LOOK_S, REST_RATIO * self._read_s))

    def _read(self) -> Snapshot | None:
        if self.snapshot is None:
            remove_what_the_dead_left()  # a server that was killed left its data behind
        if self._warehouse is not None and not self._warehouse.exists():
            raise ReaderError("missing", f"there is no warehouse at {self._warehouse} yet; it is waited for")
        with temporary_folder("serve-") as folder:
            known = self.snapshot.version if self.snapshot else None
            found = self._reader.ask({"snapshot": str(folder), "known": known}, READ_TIMEOUT_S)
            self.pipeline = found["pipeline"]
            return Snapshot.read(folder, found["snapshot"]) if found["snapshot"] else None

    def _note_bug(self, traceback: str) -> None:
        self._note(ReaderError(UNREADABLE, traceback))

    def _note(self, error: HealthAssetsError | OSError) -> None:
        kind = error.kind if isinstance(error, ReaderError) else UNREADABLE
        if kind != self.fault:
            self._on_fault(str(error))
        self.fault, self._seen = kind, None

    @property
    def _warehouse(self) -> Path | None:
        """The file that tells of a change; None of a database, which is asked each time whether it has anything new."""
        return account_file(self._settings)

    def _fingerprint(self) -> Fingerprint:
        """Changes whenever one of the files does, and whenever an hour ends: it may have been written before."""
        files = [self._settings.targets] if self._settings.targets else []
        if (warehouse := self._warehouse) is not None:
            files += [warehouse, Path(f"{warehouse}.wal")]
        return (floor_hour(datetime.now(UTC)), *(stamp(path) for path in files))


def tell_operator(sentence: str) -> None:
    """Say something on standard error."""
    print(f"health-assets: {sentence}", file=sys.stderr, flush=True)


def _let_go(batches: list[Batch]) -> None:
    """Free the batches of an old snapshot one by one: hundreds of megabytes at once would hold up every request.

    The list must be the last thing that holds them.
    """
    while batches:
        batches.pop()
        time.sleep(BETWEEN_BATCHES_S)
