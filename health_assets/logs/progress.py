"""Progress of the reading of raw logs, for callers that show it.

What belongs here: counting files and bytes while they are read, and telling listeners. What does not: how it is
shown (`cli.progress_bar`).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rich.filesize import decimal

from health_assets.core.formatting import counted
from health_assets.logs.stores import RawFile


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The files and bytes read so far.

    Args:
        files: files that are to be read.
        files_done: files that were read to their end, or cannot be read.
        size_bytes: their size, as they lie there.
        bytes_done: how much of that was read.
    """

    files: int
    files_done: int
    size_bytes: int
    bytes_done: int

    @property
    def share(self) -> float:
        """The share that is done, 0 to 1."""
        return min(1.0, self.bytes_done / self.size_bytes) if self.size_bytes else 1.0

    def __str__(self) -> str:
        files = f"{self.files_done:,} of {counted(self.files, 'file')}"
        return f"{files}, {decimal(self.bytes_done)} of {decimal(self.size_bytes)}"


Listener = Callable[[Progress], None]

_listeners: list[Listener] = []


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Call `listener` as files are read while the block runs, from whatever thread reads."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


class Meter:
    """Counts what is read.

    Args:
        files: the files that are to be read.
    """

    def __init__(self, files: Sequence[RawFile] = ()) -> None:
        self._files = len(files)
        self._size_bytes = sum(file.size_bytes for file in files)
        self._files_done = self._bytes_of_done = self._bytes_of_file = 0

    def add_bytes(self, count: int) -> None:
        """Count bytes of the file that is being read."""
        self._bytes_of_file += count
        self._tell()

    def end_file(self, file: RawFile) -> None:
        """Count a file as read, whoever read its bytes."""
        self._files_done += 1
        self._bytes_of_done += file.size_bytes
        self._bytes_of_file = 0
        self._tell()

    def _tell(self) -> None:
        if not _listeners:
            return
        done_bytes = self._bytes_of_done + self._bytes_of_file
        progress = Progress(
            files=self._files, files_done=self._files_done, size_bytes=self._size_bytes, bytes_done=done_bytes
        )
        for listener in _listeners:
            listener(progress)
