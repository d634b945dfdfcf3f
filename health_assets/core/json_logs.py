"""Logs as JSON for collectors of logs: with `HEALTH_LOG_FORMAT=json` every line that a process logs is one object.

What belongs here: the form of such a line, and making the loggers of a process write it. What does not: logs that are
JSON in any case (`json_lines`).

The commands' own sentences and tables are lines too, each the message of one object. What a program asks for is left as
it is: `check --json`, a new token, and the lines of the access log.
"""

import io
import logging
import os
import sys
import threading
from datetime import UTC, datetime
from types import TracebackType
from typing import IO, Any, cast

from health_assets.core import json_lines

VARIABLE = "HEALTH_LOG_FORMAT"
LOGGER = "health_assets"


def are_wanted() -> bool:
    """Whether the environment asks for JSON; asked before settings are read, whose errors are lines, too."""
    return os.environ.get(VARIABLE) == "json"


def line_of(level: str, logger: str, message: str, at: datetime, **more: Any) -> bytes:
    """One line: an object with time, level, logger and message, and what else is known."""
    known = {name: value for name, value in more.items() if value is not None}
    head = {"time": at.isoformat(timespec="milliseconds"), "level": level, "logger": logger, "message": message}
    return json_lines.line_of({**head, **known})


class JsonFormatter(logging.Formatter):
    """A record as such a line, with run and step where Dagster tells them, and its exception in one text."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        metadata = getattr(record, "dagster_meta", None) or {}
        line = line_of(
            record.levelname,
            record.name,
            record.getMessage(),
            datetime.fromtimestamp(record.created, UTC),
            run_id=metadata.get("run_id"),
            step=metadata.get("step_key"),
            exception=self.formatException(record.exc_info) if record.exc_info else None,
        )
        return line.decode().rstrip("\n")


class JsonLogger(logging.Logger):
    """A logger whose handlers write JSON, whoever adds them and in whatever form they came.

    Dagster makes the loggers of a run's console by itself, for every run anew, and takes no form for them.
    """

    def addHandler(self, hdlr: logging.Handler) -> None:
        """Add the handler; one that writes to a stream writes JSON from now on."""
        if isinstance(hdlr, logging.StreamHandler):
            hdlr.setFormatter(JsonFormatter())
        super().addHandler(hdlr)


class JsonLines(io.TextIOBase):
    """A text stream whose every line that is not blank becomes an object.

    Args:
        binary: where the lines go.
        level: of the objects.
    """

    def __init__(self, binary: Any, level: str) -> None:
        self.buffer = binary
        self._level = level
        self._rest = ""
        self._lock = threading.Lock()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the texts that are written."""
        return "utf-8"

    def writable(self) -> bool:
        """It is for nothing else."""
        return True

    def write(self, text: str) -> int:
        """Write every line that is whole by now."""
        with self._lock:
            *lines, self._rest = (self._rest + text).split("\n")
            for line in filter(str.strip, lines):
                self.buffer.write(line_of(self._level, LOGGER, line.rstrip(), datetime.now(UTC)))
        self.flush()
        return len(text)

    def flush(self) -> None:
        """Hand on what was written."""
        self.buffer.flush()


def log_json() -> None:
    """Make the loggers of this process, those of Dagster's runs among them, its warnings and its end write JSON."""
    logging.setLoggerClass(JsonLogger)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    handler.setLevel(logging.WARNING)  # as Python does where nothing is configured
    logging.getLogger().addHandler(handler)
    logging.captureWarnings(True)
    sys.excepthook = _log_exception


def write_json() -> IO[str]:
    """Do as `log_json`, and make objects of what is written to standard error.

    Returns:
        A stream for what is told on standard output, which goes there whatever Dagster does to it meanwhile.
    """
    log_json()
    sys.stderr = JsonLines(sys.stderr.buffer, "WARNING")
    return cast(IO[str], JsonLines(os.fdopen(os.dup(1), "wb"), "INFO"))


def _log_exception(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    logging.getLogger(LOGGER).critical("ended by %s", kind.__name__, exc_info=(kind, error, traceback))
