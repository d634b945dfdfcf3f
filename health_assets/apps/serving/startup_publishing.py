"""Publishing when a server starts: what no run published, by a process beside the server.

What belongs here: asking for it without making anybody wait. What does not: publishing (`pipeline.publishing`), and the
process (`writer_process`).
"""

import threading
from collections.abc import Callable

from health_assets.apps.serving.client import WRITER, Reader, ReaderError
from health_assets.core.settings import Settings
from health_assets.warehouse.location import published_folder

TIMEOUT_S = 3600.0
LOOK_S = 0.1
PASSING = ("missing", "busy")
"""Faults that end with the first run."""


class StartupPublishing:
    """Publishes once, in the background.

    Args:
        settings: the warehouse, and where its tables are published.
        on_fault: told in a sentence, for the operator, why nothing was published.
    """

    def __init__(self, settings: Settings, on_fault: Callable[[str], None]) -> None:
        self._is_wanted = published_folder(settings) is not None
        self._process = Reader(settings, WRITER)
        self._on_fault = on_fault
        self._thread = threading.Thread(target=self._publish, name="publishing", daemon=True)
        self._is_stopped = False

    def start(self) -> None:
        """Begin."""
        if self._is_wanted:
            self._thread.start()

    def stop(self) -> None:
        """End the process, whatever it is doing; the published tables stay whole."""
        self._is_stopped = True
        while self._thread.is_alive():
            self._process.interrupt()  # again, where it is only being started
            self._thread.join(LOOK_S)

    def _publish(self) -> None:
        with self._process as process:
            try:
                process.ask({"publish": True}, TIMEOUT_S)
            except ReaderError as error:
                if not self._is_stopped and error.kind not in PASSING:
                    self._on_fault(
                        f"{error}; what runs published is served, HEALTH_PUBLISHED=off serves the warehouse itself"
                    )
