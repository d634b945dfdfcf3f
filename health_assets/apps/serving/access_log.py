"""The access log: who asked for what, how it was answered, and how long that took; a JSON object a line.

A thread of its own writes it, so that no answer waits for a disk. When the disk is slower than the requests for long,
lines are left out rather than kept in memory without end, and how many is the next line.
"""

import re
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote_to_bytes

from health_assets.apps.serving.tokens import PREFIX
from health_assets.core import json_lines

STANDARD_ERROR = "-"
MOST_WAITING = 100_000
MOST_PATH = 2048
MOST_ESCAPES = 2
"""How many times over a token may be escaped and is found all the same; each time costs every line."""
WRITE_EVERY_S = 0.2


class AccessLog:
    """Takes lines from the event loop and writes them from a thread.

    Args:
        place: a file, or `-` for standard error.
        plain_tokens: tokens that no prefix tells; like the others, they are not shown in paths.
        on_fault: told in a sentence when lines cannot be written, once while that lasts.
    """

    def __init__(self, place: str, plain_tokens: Iterable[str], on_fault: Callable[[str], None]) -> None:
        self._place = place
        plain = (re.escape(token.encode().decode("latin-1")) for token in plain_tokens)
        self._token = re.compile("|".join([rf"({PREFIX})[\w-]{{20,}}", *plain]), re.ASCII)
        self._on_fault = on_fault
        self._lines: deque[bytes] = deque()
        self._left_out = 0
        self._is_at_fault = False
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="access log", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def stop(self) -> None:
        """Write what is left, and end."""
        self._is_over.set()
        self._thread.join(timeout=5)

    def note(self, who: str, method: str | None, target: bytes | None, status: int, ms: float, size: int) -> None:
        """Take a line.

        Args:
            who: name of the token, or address.
            method: method of the request; None where the connection was refused before there was one.
            target: path and query as they were sent; tokens in it are left out.
            status: of the answer; 0 where none was sent.
            ms: milliseconds from the end of the request's head to the end of the answer.
            size: bytes of the answer's body.
        """
        if len(self._lines) >= MOST_WAITING:
            self._left_out += 1
            return
        line = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "who": who,
            "method": method,
            "path": None if target is None else self._shown(target),
            "status": status,
            "ms": round(ms, 3),
            "bytes": size,
        }
        self._lines.append(json_lines.line_of(line))

    def _run(self) -> None:
        while not self._is_over.wait(WRITE_EVERY_S):
            self._write()
        self._write()

    def _write(self) -> None:
        lines = [self._lines.popleft() for _ in range(len(self._lines))]
        left_out, self._left_out = self._left_out, 0
        if left_out:
            lines.append(json_lines.line_of({"time": datetime.now(UTC).isoformat(), "left_out": left_out}))
        if not lines:
            return
        try:
            if self._place == STANDARD_ERROR:
                sys.stderr.buffer.write(b"".join(lines))
                sys.stderr.buffer.flush()
            else:
                json_lines.append(Path(self._place), b"".join(lines))
        except OSError as error:
            self._left_out += len(lines)
            if not self._is_at_fault:
                self._on_fault(f"HEALTH_ACCESS_LOG: cannot write {self._place}: {error.strerror}")
            self._is_at_fault = True
        else:
            self._is_at_fault = False

    def _shown(self, target: bytes) -> str:
        """The path and query without tokens; where one is written with escapes, without these."""
        texts = [target]
        for _ in range(MOST_ESCAPES):
            texts.append(unquote_to_bytes(texts[-1]))
        told = [text.decode("latin-1") for text in texts]
        text = next((one for one in reversed(told) if self._token.search(one)), told[0])
        return self._token.sub(lambda found: f"{found[1] or ''}…", text)[:MOST_PATH]
