"""Interruption: noticing a signal that asks the process to end, also while the database works; SIGTERM ends a block.

What belongs here: noticing that. What does not: ending a run within Dagster, whose handlers do so as soon as the main
thread comes back from the database.

Python runs a signal's handler in the main thread between two of its own steps. While that thread waits within DuckDB
for a long statement, it has none, and the statement waits for lines. So a thread of its own hears of the signal, and
the lines end.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

NO_SIGNAL = 0
_asked = threading.Event()


class InterruptedReadingError(Exception):
    """The process is asked to end, so there are no more lines."""


@contextmanager
def noticed() -> Iterator[None]:
    """Let `check` notice signals that ask the process to end while the block runs; in the main thread alone.

    Raises:
        KeyboardInterrupt: the process was asked to end, and whatever the database made of that came out of the block.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    listener = threading.Thread(target=_listen, args=(reading,), daemon=True)
    listener.start()
    try:
        yield
    except Exception as error:
        _end(listener, writing)
        if _asked.is_set():
            raise KeyboardInterrupt from error
        raise
    finally:
        _end(listener, writing)
        signal.set_wakeup_fd(before)
        os.close(writing)
        os.close(reading)
        _asked.clear()


def _end(listener: threading.Thread, writing: int) -> None:
    """Let the listener hear of all that has come, and end."""
    if listener.is_alive():
        os.write(writing, bytes([NO_SIGNAL]))
        listener.join()


def _listen(reading: int) -> None:
    numbers = b""
    while NO_SIGNAL not in numbers:
        numbers = os.read(reading, 64)
        if {signal.SIGTERM, signal.SIGINT} & set(numbers):
            _asked.set()


def check() -> None:
    """Stop handing out lines where the process is asked to end.

    Raises:
        InterruptedReadingError: it is.
    """
    if _asked.is_set():
        raise InterruptedReadingError("the process is asked to end")


@contextmanager
def ended_by_sigint() -> Iterator[None]:
    """Let SIGINT end the block also where a shell had the process ignore it, as it has its background jobs.

    Dagster treats SIGTERM as it treats SIGINT, and would ignore both.
    """
    is_ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if not is_ignored or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Let a SIGTERM end the block like any other exception, where Python would end the process without tidying up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _: FrameType | None) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
