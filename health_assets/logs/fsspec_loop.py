"""The event loop of fsspec, on whose one thread all of its asynchronous stores work.

What belongs here: fsspec's private parts, as they are since its first asynchronous stores and in 2026.6; the packages
of the stores (`s3fs`, `gcsfs`, `adlfs`) choose its version. `test_fsspec_loop` fails first when they move. What does
not: which bytes are read (`stores`, `read_ahead`).

- `_cat_file` reads a range without waiting for it. The documented `cat_file` waits, and `cat_ranges` for all of its
  ranges, so that a log could not be parsed while the next bytes of it are on their way.
- `asyn.loop` and `asyn.iothread` are all that tells of the thread. fsspec never ends it, and one that runs into the
  interpreter's end keeps objects alive that libraries complain of on the terminal.
"""

import asyncio
import atexit
from concurrent.futures import Future
from functools import cache
from typing import Any

STOP_TIMEOUT_S = 5


def takes_requests(store: Any) -> bool:
    """Whether ranges of a store's files may be asked for side by side."""
    return bool(getattr(store, "async_impl", False))


def requested(store: Any, path: str, start: int, end: int) -> Future[bytes]:
    """A range of a file, from byte `start` to before `end`, which is on its way; of a store that takes requests."""
    reading = store._cat_file(path, start=start, end=end)  # noqa: SLF001
    return asyncio.run_coroutine_threadsafe(reading, store.loop)


@cache
def stop_the_thread_at_exit() -> None:
    """See to it that the thread ends before the interpreter does; once is enough."""
    atexit.register(stop_the_thread)


def stop_the_thread() -> None:
    """End the thread, if there is one, or give up after `STOP_TIMEOUT_S`."""
    from fsspec import asyn  # a raw root in a folder does without

    loop, thread = asyn.loop[0], asyn.iothread[0]
    if loop is not None and thread is not None:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(STOP_TIMEOUT_S)
