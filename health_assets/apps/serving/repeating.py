"""A thread that does one thing again and again, whatever the other threads wait for."""

import threading
import traceback
from collections.abc import Callable


class Repeated:
    """Does something again and again until it is stopped.

    Args:
        name: of the thread.
        what: the work; a bug in it is told, and it is done again all the same.
        rest_s: asked each time how long to rest before the next time.
        on_bug: told the traceback of a bug.
        is_at_once: whether the first time comes before the first rest.
    """

    def __init__(
        self,
        name: str,
        what: Callable[[], None],
        rest_s: Callable[[], float],
        on_bug: Callable[[str], None],
        *,
        is_at_once: bool = False,
    ) -> None:
        self._what = what
        self._rest_s = rest_s
        self._on_bug = on_bug
        self._is_at_once = is_at_once
        self._stopping = threading.Event()
        self._woken = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def is_stopping(self) -> bool:
        """Whether somebody has asked it to end."""
        return self._stopping.is_set()

    def rest(self, seconds: float) -> bool:
        """Rest in the middle of what it does; returns whether somebody has asked it to end."""
        return self._stopping.wait(seconds)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def ask_to_stop(self) -> None:
        """Let it end after what it is doing."""
        self._stopping.set()
        self._woken.set()

    def hurry(self) -> None:
        """Let the rest between two times end at once: that of now, or where it is at work, the next one."""
        self._woken.set()

    def stop(self) -> None:
        """Let it end, and wait for that for a while."""
        self.ask_to_stop()
        self._thread.join(timeout=5)

    def _run(self) -> None:
        is_over = not self._is_at_once and self._rested()
        while not is_over:
            try:
                self._what()
            except Exception:  # a bug must neither go unseen nor end the thread
                self._on_bug(traceback.format_exc())
            is_over = self._rested()

    def _rested(self) -> bool:
        """Rest between two times; returns whether it is to end."""
        self._woken.wait(self._rest_s())
        self._woken.clear()
        return self._stopping.is_set()
