"""A thread that does one small thing every few seconds, whatever the other threads wait for."""

import threading
import traceback
from collections.abc import Callable


class Repeated:
    """Does something again and again until it is stopped.

    Args:
        name: of the thread.
        what: what it does; a bug in it is told, and it is done again all the same.
        every_s: how long it rests in between.
        on_fault: told of a bug.
    """

    def __init__(self, name: str, what: Callable[[], None], every_s: float, on_fault: Callable[[str], None]) -> None:
        self._what = what
        self._every_s = every_s
        self._on_fault = on_fault
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin; the first rest comes first."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stopping.set()
        self._thread.join(timeout=5)

    def _run(self) -> None:
        while not self._stopping.wait(self._every_s):
            try:
                self._what()
            except Exception:  # a bug must neither go unseen nor end the thread
                self._on_fault(traceback.format_exc())
