"""Scores of one session: asked of a reader, since a look-back may hold more traces than memory, and kept for a while.

This is the one answer that needs the warehouse. It is kept away from the others: its own reader process, few questions
at a time, a limit on each, and answers of bounded size that are kept for as long as the snapshot's are.
"""

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from health_assets.serving.answers import dumps
from health_assets.serving.client import SENTENCES, Reader, ReaderError
from health_assets.settings import Settings

TIMEOUT_S = 20.0
MOST_WAITING = 4
MOST_KEPT = 64


@dataclass(frozen=True, slots=True)
class SessionAnswer:
    """The JSON of a session, whether its agent is somebody's own, and when it was read."""

    body: bytes
    is_personal: bool
    read_at: datetime


class Sessions:
    """Looks sessions up; to be called from worker threads.

    Args:
        settings: which warehouse, and how long an answer is kept.
    """

    def __init__(self, settings: Settings) -> None:
        self._reader = Reader(settings)
        self._keep_s = settings.serve_refresh_s
        self._kept: OrderedDict[str, tuple[float, SessionAnswer | None]] = OrderedDict()
        self._keeping = threading.Lock()
        self._waiting = threading.BoundedSemaphore(MOST_WAITING)

    def find(self, session_id: str) -> SessionAnswer | None:
        """The newest scores of a session; None where it had nothing in the look-back.

        Raises:
            ReaderError: the warehouse cannot be asked now.
        """
        with self._keeping:
            kept_until, kept = self._kept.get(session_id, (0.0, None))
        if time.monotonic() < kept_until:
            return kept
        if not self._waiting.acquire(blocking=False):
            raise ReaderError("crowded", SENTENCES["crowded"])
        try:
            found = self._reader.ask({"session": session_id}, TIMEOUT_S)
        finally:
            self._waiting.release()
        fresh = found and SessionAnswer(dumps(found["answer"]), found["is_personal"], datetime.now(UTC))
        self._keep(session_id, fresh)
        return fresh

    def close(self) -> None:
        """End the reader."""
        self._reader.interrupt()
        self._reader.close()

    def _keep(self, session_id: str, fresh: Any) -> None:
        with self._keeping:
            self._kept.pop(session_id, None)
            self._kept[session_id] = (time.monotonic() + self._keep_s, fresh)
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
