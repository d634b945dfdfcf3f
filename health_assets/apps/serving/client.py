"""The server's end of a reader: start the process, ask it, and give it up when it does not answer in time."""

import json
import os
import selectors
import subprocess
import sys
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Any

from health_assets.core.errors import HealthAssetsError
from health_assets.core.settings import Settings

UNREADABLE = "unreadable"
NOT_STARTED = "not started"
NEEDED = {
    "warehouse", "lake", "ledger", "published", "targets", "window_hours", "lookback_hours", "min_agents_per_aggregate",
    "history_days", "raw", "max_unpacked_gib", "max_packing_ratio", "comparison_margin",
}  # fmt: skip
"""Settings that a reader needs; the tokens it does not."""


class ReaderError(HealthAssetsError):
    """A reader could not answer.

    Args:
        kind: the fault, as a key of `SENTENCES`.
        sentence: the fault in words, for the operator; it may name files.
    """

    def __init__(self, kind: str, sentence: str) -> None:
        super().__init__(sentence)
        self.kind = kind


SENTENCES = {
    "missing": "there is no warehouse yet",
    "empty": "nothing has been materialized yet",
    "busy": "the warehouse is busy",
    "targets": "the targets file cannot be used",
    "refused": "that cannot be changed",
    "crowded": "too many sessions are asked for at once",
    UNREADABLE: "the warehouse cannot be read",
    NOT_STARTED: "the process that reads the warehouse cannot be started",
}
"""What the world is told: no path, no host, no trace."""


IDLE_S = 30.0
"""So long the process of a `ReusedReader` waits for the next question, since to start one takes seconds."""
LONG_S = 10.0
"""After an answer that took longer it ends at once, so that its memory is free until there is something new."""
READER, WRITER = "health_assets.apps.serving.reader_process", "health_assets.apps.serving.writer_process"


def _new_process(program: str) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            [sys.executable, "-m", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the server, which ends its readers
        )
    except OSError as error:
        raise ReaderError(NOT_STARTED, f"{SENTENCES[NOT_STARTED]}: {error}") from error


class Reader:
    """A process of `serving.reader`; it starts with the first question, and again after it died.

    Args:
        settings: the warehouse and the targets.
        program: the module that it runs, which answers as a reader does.
    """

    def __init__(self, settings: Settings, program: str = READER) -> None:
        self._program = program
        self._settings = settings.model_dump_json(include=NEEDED)
        self._process: subprocess.Popen[bytes] | None = None
        self._asking = threading.Lock()

    def ask(self, request: dict[str, Any], timeout_s: float) -> Any:
        """Ask, wait, and return what the reader says.

        Raises:
            ReaderError: the reader says what is wrong, cannot be started, dies, or does not answer in time.
        """
        with self._asking:
            process = self._started()
            line = self._exchange(process, json.dumps(request).encode() + b"\n", timeout_s)
        reply = json.loads(line)
        if "fault" in reply:
            raise ReaderError(reply["fault"], reply["sentence"])
        return reply["ok"]

    def interrupt(self) -> None:
        """End the process from another thread; who is asking it is told that it did not answer."""
        if (process := self._process) is not None:
            process.kill()

    def close(self) -> None:
        """End the process, whatever it is doing."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            self.close()
        if self._process is None:
            self._process = _new_process(self._program)
            assert self._process.stdin is not None
            # the URL of a warehouse may hold a password, and a command line is for everyone to see
            with suppress(OSError):  # who died at once does not answer either
                self._process.stdin.write(self._settings.encode() + b"\n")
        return self._process

    def _exchange(self, process: subprocess.Popen[bytes], request: bytes, timeout_s: float) -> bytes:
        assert process.stdin is not None and process.stdout is not None
        line, deadline = b"", time.monotonic() + timeout_s
        # a selector, since `select` fails among a thousand connections
        with suppress(OSError), selectors.DefaultSelector() as replies:
            process.stdin.write(request)
            process.stdin.flush()
            replies.register(process.stdout, selectors.EVENT_READ)
            # a reply may come in pieces, so that only the whole line counts
            while not line.endswith(b"\n") and replies.select(max(0.0, deadline - time.monotonic())):
                piece = os.read(process.stdout.fileno(), 1 << 20)
                if not piece:
                    break
                line += piece
        if not line.endswith(b"\n"):
            self.close()
            raise ReaderError(UNREADABLE, f"reading the warehouse was given up: no answer within {timeout_s:g} s")
        return line


class ReusedReader(Reader):
    """A reader for what is asked whenever there is something new: its process ends when nobody asks for a while."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._answered_at_s = 0.0

    def ask(self, request: dict[str, Any], timeout_s: float) -> Any:
        """See `Reader.ask`."""
        began_s = time.monotonic()
        try:
            return super().ask(request, timeout_s)
        finally:
            self._answered_at_s = time.monotonic()
            if self._answered_at_s - began_s > LONG_S:
                self.close()

    def end_if_idle(self) -> None:
        """End the process if nobody has asked it for `IDLE_S`."""
        if time.monotonic() - self._answered_at_s > IDLE_S:
            self.close()
