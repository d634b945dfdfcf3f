"""The thread in the server that keeps the history new.

What belongs here: when to look, and what the operator is told. What does not: the work itself, which a process of its
own does (`apps.serving.reader_process`).
"""

import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from health_assets.apps.serving.client import ReaderError, ReusedReader
from health_assets.apps.serving.history.layout import ACCOUNT
from health_assets.apps.serving.history.reading import History
from health_assets.apps.serving.repeating import Repeated
from health_assets.core.errors import HealthAssetsError
from health_assets.core.file_stamps import stamp
from health_assets.core.hours import floor_hour
from health_assets.core.settings import Settings
from health_assets.warehouse.location import account_file, ledger_of, path_of

STEP_TIMEOUT_S = 600.0
BETWEEN_STEPS_S = 1.0
"""Rest between two steps while hours are missing, in which a writer gets its turn."""
LOOK_S = 3.0
"""How often stamps of files are looked at, which costs nothing."""
REST_RATIO = 4.0
"""So many times as long as the last filling took the next one waits, up to `LONGEST_REST_S`."""
LONGEST_REST_S = 15.0
"""After so long a database is asked again."""
CATCHING_UP_S = 0.1
SILENT = ("busy", "missing", "empty")
"""Faults that pass by themselves, of which the refresher tells anyway."""


Clock = Callable[[], datetime]


def now() -> datetime:
    """The time."""
    return datetime.now(UTC)


def history_folder(settings: Settings) -> Path:
    """The folder of the history.

    Raises:
        HealthAssetsError: the warehouse's URL names no file.
    """
    if settings.history is not None:
        return settings.history
    if account_file(settings) is None:
        return Path("data/history")
    path = path_of(ledger_of(settings))
    return path.with_name(f"{path.name}.history")


class Updater:
    """Holds the history and fills it in the background.

    Args:
        settings: which warehouse, and where the history is.
        on_fault: told in a sentence, for the operator, when filling fails in a new way.
        clock: tells the time.
    """

    def __init__(self, settings: Settings, on_fault: Callable[[str], None], clock: Clock = now) -> None:
        self._settings = settings
        self._clock = clock
        self._on_fault = on_fault
        self._folder = history_folder(settings)
        self._reader = ReusedReader(settings)
        self._fault: str | None = None
        self._seen: object = None
        self._filled_s = 0.0
        self.history = History(self._folder)
        self.on_new: Callable[[History], None] = lambda _: None
        """Called with a history that has changed and holds an hour, before it takes the place of the one before."""
        self.on_taken: Callable[[], None] = lambda: None
        """Called when it has."""
        self.is_empty = False
        """Whether the last look at the warehouse found no hour at all."""
        self._is_made_ahead = False
        self._repeated = Repeated("history", self._work, self._rest_s, self._on_fault, is_at_once=True)
        self.history.on_lost = self._repeated.hurry

    def start(self) -> None:
        """Begin to fill in the background."""
        self._repeated.start()

    def stop(self) -> None:
        """End the thread, and the process that it may be waiting for."""
        self._repeated.ask_to_stop()
        self._reader.interrupt()
        self._repeated.stop()
        self._reader.close()

    def catch_up(self, is_there: Callable[[History], bool], timeout_s: float) -> bool:
        """Look at the warehouse at once, and wait until the history has something, or for so long.

        Args:
            is_there: whether it has it.
            timeout_s: how long to wait at most.

        Returns:
            Whether it has it.
        """
        self._repeated.hurry()
        deadline = time.monotonic() + timeout_s
        while not is_there(self.history):
            if time.monotonic() > deadline:
                return False
            time.sleep(CATCHING_UP_S)
        return True

    def _rest_s(self) -> float:
        if self.history.missing:
            return BETWEEN_STEPS_S
        is_file = account_file(self._settings) is not None
        return min(LONGEST_REST_S, max(LOOK_S, REST_RATIO * self._filled_s)) if is_file else LONGEST_REST_S

    def _work(self) -> None:
        if not self._is_made_ahead:  # what was copied before this server started
            self._is_made_ahead = True
            self._make_ahead(self.history)
        fingerprint = self._fingerprint()
        is_known = fingerprint is not None and (*fingerprint, stamp(self._folder / ACCOUNT)) == self._seen
        if is_known and not self.history.missing:
            self._reader.end_if_idle()
            return
        began_s = time.monotonic()
        try:
            self._fill()
            self._seen = None if fingerprint is None else (*fingerprint, self.history.seen)
            self._fault = None
            self.is_empty = self.history.newest("agents") is None
        except (ReaderError, OSError) as error:
            kind = error.kind if isinstance(error, ReaderError) else "unreadable"
            if not self._repeated.is_stopping and kind not in SILENT and kind != self._fault:
                self._on_fault(f"the history of the pages is not kept: {error}")
            self._fault = kind
            self.is_empty = kind in ("missing", "empty") and self.history.newest("agents") is None
        finally:
            self._filled_s = time.monotonic() - began_s

    def _fill(self) -> None:
        """Fill step by step, as long as hours are missing."""
        while not self._repeated.is_stopping:
            told = self._reader.ask({"history": str(self._folder)}, STEP_TIMEOUT_S)
            if (newer := self.history.newer()) is not None:
                self._take(newer)
            if not told["missing"] or self._repeated.rest(BETWEEN_STEPS_S):
                return

    def _take(self, newer: History) -> None:
        """Show a newer history once what pages rest on is made; at once where nothing is shown yet."""
        if self.history.newest("agents") is None:
            self.history = newer
        self._make_ahead(newer)
        self.history = newer
        self.on_taken()

    def _make_ahead(self, history: History) -> None:
        """Let what pages rest on be made before anybody asks by this history."""
        if history.newest("agents") is not None:
            with suppress(HealthAssetsError):  # of a file that is lost, or targets that cannot be used, each page tells
                self.on_new(history)

    def _fingerprint(self) -> tuple[object, ...] | None:
        """Changes with the files of the warehouse and of the targets, with each hour that ends, and with each loss.

        None for a database, which is asked each time.
        """
        path = account_file(self._settings)
        if path is None:
            return None
        files = (path, path.with_name(f"{path.name}.wal"), *filter(None, [self._settings.targets]))
        return (floor_hour(self._clock()), self.history.lost, *(stamp(file) for file in files))
