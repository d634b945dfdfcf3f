"""Logs of our own, a JSON object a line: appended at once, and readable by nobody else."""

import json
import os
from pathlib import Path
from typing import Any

MODE = 0o600


def line_of(fields: dict[str, Any]) -> bytes:
    """An object as a line; whatever a text holds, it is one line of ASCII."""
    return json.dumps(fields, separators=(",", ":"), default=str).encode() + b"\n"


def append(path: Path, lines: bytes) -> None:
    """Append whole lines to a file, which is opened anew each time, so that it may be rotated.

    Raises:
        OSError: the file cannot be written; of a disk that fills up, after a part of the lines.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, MODE)
    try:
        while lines:
            lines = lines[os.write(descriptor, lines) :]
    finally:
        os.close(descriptor)
