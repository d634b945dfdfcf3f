"""Files of collected lines: what was acknowledged is in one of them, whole and on the disk.

What belongs here: appending, rotation, and the thread that writes for all requests that wait. What does not: what the
lines say (`requests`).

A file belongs to one process, which makes it anew and never appends to one that is there: a line that a kill tore stays
the last one of its file. After a failed write the file is cut back to what was acknowledged, and the next one begins
another: what a disk does with the pages of a failed fsync is not known.
"""

import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from health_assets.core.hours import floor_hour
from health_assets.core.private_files import FILE_MODE, make_private_folder

FOLDER = "otlp"
"""The folder below the raw root."""
MOST_FILE_BYTES = 100 << 20
"""A file that has more bytes is followed by another."""


def utc_now() -> datetime:
    """The time."""
    return datetime.now(UTC)


@dataclass(kw_only=True)
class _File:
    """A file that is open to be appended to.

    Args:
        path: its place.
        descriptor: its descriptor.
        hour: the hour in which it was made.
        size_bytes: the bytes that are on the disk.
    """

    path: Path
    descriptor: int
    hour: datetime
    size_bytes: int = 0

    @property
    def is_in_place(self) -> bool:
        """Whether the name still leads to it: what is written to a file that was removed is lost."""
        with suppress(FileNotFoundError):
            return os.path.samestat(self.path.stat(), os.fstat(self.descriptor))
        return False


class LogFiles:
    """Appends lines to a file of the hour.

    Args:
        folder: for the files, which have a folder for each day.
        most_bytes: of a file, after which another begins.
        clock: the time.
    """

    def __init__(
        self, folder: Path, *, most_bytes: int = MOST_FILE_BYTES, clock: Callable[[], datetime] = utc_now
    ) -> None:
        self._folder = folder
        self._most_bytes = most_bytes
        self._clock = clock
        self._file: _File | None = None

    def append(self, lines: bytes) -> None:
        """Write whole lines and wait until they are on the disk.

        Raises:
            OSError: they cannot be written; then none of them is in a file.
        """
        file = self._current()
        try:
            left = memoryview(lines)
            while left:
                left = left[os.write(file.descriptor, left) :]
            os.fsync(file.descriptor)
        except OSError:
            self._give_up(file)
            raise
        file.size_bytes += len(lines)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file.descriptor)
            self._file = None

    def _current(self) -> _File:
        now, file = self._clock(), self._file
        if file is not None and (
            file.hour != floor_hour(now) or file.size_bytes >= self._most_bytes or not file.is_in_place
        ):
            self.close()
        if self._file is None:
            self._file = self._new(now)
        return self._file

    def _new(self, now: datetime) -> _File:
        folder = self._folder / f"{now:%Y-%m-%d}"
        missing = [place for place in (folder, *folder.parents) if not place.exists()]
        make_private_folder(folder)
        path = folder / f"{now:%H-%M-%S-%f}-{os.getpid()}.jsonl"
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, FILE_MODE)
        try:
            for place in (folder, *(made.parent for made in missing)):
                _sync_folder(place)
        except OSError:
            os.close(descriptor)
            path.unlink()
            raise
        return _File(path=path, descriptor=descriptor, hour=floor_hour(now))

    def _give_up(self, file: _File) -> None:
        """Cut the file back to what was acknowledged, and leave it."""
        try:
            os.ftruncate(file.descriptor, file.size_bytes)
            if not file.size_bytes:
                file.path.unlink(missing_ok=True)
        except OSError as error:  # a torn line at the end of a file that nothing is appended to any more
            logging.getLogger(__name__).warning("cannot cut %s back: %s", file.path, error.strerror)
        self.close()


def _sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class GroupCommit:
    """Writes lines for all who wait, with one fsync, in a thread of its own.

    Args:
        files: the files.
        on_fault: told in a sentence when lines cannot be written, once while that lasts, and when they can again.
    """

    def __init__(self, files: LogFiles, on_fault: Callable[[str], None]) -> None:
        self._files = files
        self._on_fault = on_fault
        self._is_failing = False
        self._has_work = threading.Condition()
        self._waiting: list[tuple[bytes, Future[None]]] = []
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name="collected lines")

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Write what waits, and end."""
        with self._has_work:
            self._is_over = True
            self._has_work.notify()
        self._thread.join()
        self._files.close()

    def append(self, lines: bytes) -> Future[None]:
        """Have lines written; the future ends once they are on the disk, or with the error for which they are not."""
        future: Future[None] = Future()
        with self._has_work:
            self._waiting.append((lines, future))
            self._has_work.notify()
        return future

    def _run(self) -> None:
        while group := self._next_group():
            wanted = [(lines, future) for lines, future in group if future.set_running_or_notify_cancel()]
            if not wanted:
                continue
            try:
                self._files.append(b"".join(lines for lines, _ in wanted))
            except Exception as error:
                self._tell(error)
                for _, future in wanted:
                    future.set_exception(error)
            else:
                self._tell(None)
                for _, future in wanted:
                    future.set_result(None)

    def _next_group(self) -> list[tuple[bytes, Future[None]]]:
        """All lines that wait, once there are any; none at the end."""
        with self._has_work:
            self._has_work.wait_for(lambda: self._waiting or self._is_over)
            group, self._waiting = self._waiting, []
        return group

    def _tell(self, error: Exception | None) -> None:
        if isinstance(error, OSError) and not self._is_failing:
            self._on_fault(f"cannot write what is sent: {error.strerror}; requests get 503 until it can be written")
        elif error is None and self._is_failing:
            self._on_fault("what is sent is written again")
        self._is_failing = error is not None
