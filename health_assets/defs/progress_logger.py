"""A Dagster logger that hands the events of an in-process run to whoever listens, such as the command line."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import dagster as dg

Listener = Callable[[dg.DagsterEvent], None]

_listeners: list[Listener] = []


class _Handler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        event = getattr(record, "dagster_event", None)
        if event is not None:
            for listener in _listeners:
                listener(event)


@dg.logger({}, description="Hands a run's events to the command line's progress bar.")
def progress_logger(_: dg.InitLoggerContext) -> logging.Logger:
    """The logger; choose it with run config `{"loggers": {"progress": {}}}`, which also silences the console."""
    logger = logging.Logger("health_assets.progress", level=logging.DEBUG)
    logger.addHandler(_Handler())
    return logger


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Call `listener` with every event while the block runs."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
