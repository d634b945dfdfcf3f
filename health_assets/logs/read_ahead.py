"""Fetching: the bytes of objects of a store are asked for before they are wanted.

What belongs here: which ranges are asked for next, how many at a time, and giving them out in order. What does not: a
single request (`stores`) and what is in the bytes (`files`).

A request to a store takes tens of milliseconds, however little it fetches. So while one range is parsed, the next ones
of that object and of the objects behind it are on their way. Files of a folder, and of stores whose library asks for
one thing after another, are opened when they are read.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from health_assets.core.errors import HealthAssetsError
from health_assets.core.interruption import check
from health_assets.logs.stores import RawFile

RANGE_BYTES = 8 << 20
AHEAD_BYTES = 64 << 20
"""Most bytes that are on their way or wait to be read."""
REQUESTS_AT_ONCE = 16
"""Most ranges that are on their way or wait to be read."""
CHECK_S = 0.2
"""Seconds after which whoever waits for a store looks whether the process is asked to end."""


class Readable(Protocol):
    """Bytes that are read from the start."""

    def read(self, count: int, /) -> bytes | None:
        """The next bytes, at most so many; none at the end."""
        ...


@dataclass(frozen=True)
class _Range:
    """A range of a file's bytes, half-open."""

    file: RawFile
    start: int
    end: int

    @property
    def size_bytes(self) -> int:
        return self.end - self.start


class Ahead:
    """Opens files one after another, and asks for the bytes of the next ones meanwhile.

    Args:
        files: the files, in the order in which they will be opened; what is passed over is not read.
    """

    def __init__(self, files: Iterable[RawFile]) -> None:
        self._to_ask: Iterator[_Range] = (part for file in files if file.takes_requests for part in _ranges(file))
        self._next = next(self._to_ask, None)
        self._asked: deque[tuple[_Range, Future[bytes]]] = deque()
        self._asked_bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give up all that is on its way."""
        self._to_ask, self._next = iter(()), None
        while self._asked:
            self._give_up()

    @contextmanager
    def opened(self, file: RawFile) -> Iterator[Readable]:
        """The file's bytes, from the start.

        Args:
            file: one of the files, behind those that were opened before.

        Raises:
            HealthAssetsError: it cannot be opened or read.
            ValueError: it is none of the files, or was passed over.
        """
        if not file.takes_requests:
            with file.opened() as raw:
                yield raw
            return
        if file.size_bytes:  # of an empty one, nothing is asked for
            self._go_on(lambda part: part.file is file and not part.start)
            if not self._asked and self._next is None:
                raise ValueError(f"{file.source_file} is none of the files that are to be opened")
        yield _Arriving(self, file)

    def whole(self, file: RawFile) -> bytes:
        """All bytes of a file that is as small as one range.

        Raises:
            HealthAssetsError: it cannot be opened or read.
        """
        with self.opened(file) as raw:
            return raw.read(file.size_bytes) or b""

    def take(self, file: RawFile) -> bytes:
        """The next range of the file that is open; empty at its end.

        Raises:
            HealthAssetsError: it cannot be read.
        """
        self._ask()
        if not self._asked or self._asked[0][0].file is not file:
            return b""
        part, future = self._asked[0]
        try:
            block = _arrived(file, future)
        finally:
            self._give_up()
        self._ask()
        if len(block) > part.size_bytes:
            raise HealthAssetsError(f"cannot read the raw log {file.source_file}: its store gives no ranges of it")
        if len(block) < part.size_bytes:  # it is shorter than when it was listed, so it ends here
            self._go_on(lambda part: part.file is not file)
        return block

    def _ask(self) -> None:
        """Ask for as much as may be on its way, at least one range."""
        while (part := self._next) is not None:
            is_full = self._asked_bytes + part.size_bytes > AHEAD_BYTES or len(self._asked) >= REQUESTS_AT_ONCE
            if self._asked and is_full:
                return
            self._asked.append((part, part.file.requested(part.start, part.end)))
            self._asked_bytes += part.size_bytes
            self._next = next(self._to_ask, None)

    def _go_on(self, is_wanted: Callable[[_Range], bool]) -> None:
        """Pass over all up to the first range that is wanted."""
        while self._asked and not is_wanted(self._asked[0][0]):
            self._give_up()
        while not self._asked and self._next is not None and not is_wanted(self._next):
            self._next = next(self._to_ask, None)

    def _give_up(self) -> None:
        """Let go of the range that is next, whether or not it has come."""
        part, future = self._asked.popleft()
        self._asked_bytes -= part.size_bytes
        future.cancel()


class _Arriving:
    """The bytes of an object, as they arrive."""

    def __init__(self, ahead: Ahead, file: RawFile) -> None:
        self._ahead = ahead
        self._file = file
        self._block = b""
        self._given = 0

    def read(self, count: int, /) -> bytes:
        """The next bytes, at most so many; none at the end."""
        if self._given == len(self._block):
            self._block, self._given = b"", 0  # let go before the next is waited for
            self._block = self._ahead.take(self._file)
        if not self._given and len(self._block) <= count:
            block, self._block = self._block, b""
            return block
        piece = self._block[self._given : self._given + count]
        self._given += len(piece)
        return piece


def _ranges(file: RawFile) -> Iterator[_Range]:
    for start in range(0, file.size_bytes, RANGE_BYTES):
        yield _Range(file, start, min(start + RANGE_BYTES, file.size_bytes))


def _arrived(file: RawFile, future: Future[bytes]) -> bytes:
    """The bytes that were asked for, as soon as they are there."""
    while not future.done():
        check()
        wait([future], CHECK_S)
    with file.told():
        return future.result()
