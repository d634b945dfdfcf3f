"""Results that several pages of one hour need, kept for the next request.

What belongs here: keeping few of them, and none of a history that has changed since. What does not: what they are.
"""

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

T = TypeVar("T")
MOST_RESULTS = 1024
"""Callers of a few dozen views, each of which has a dozen results an hour: who sees other teams shares none."""
FOR_GOOD = sys.maxsize
"""Version of what is made from a file that never changes; it goes when other results are used more."""
MOST_BYTES = 256 << 20
"""Most that they take; a table of a large fleet has tens of megabytes."""


class _Made(NamedTuple):
    result: Any
    size: int


class ResultCache:
    """The results that were used last; one that several threads want at once is made once.

    Results of several versions may be there: those of the next one are made while pages still show the one before.

    Args:
        most_bytes: how much they take at most.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._first = 0
        self._results: OrderedDict[tuple[int, Hashable], _Made] = OrderedDict()
        self._making: dict[tuple[int, Hashable], Future[Any]] = {}
        self._size = 0

    def of(self, version: int, key: Hashable, make: Callable[[], T]) -> T:
        """The result of a key, made where it is not known.

        Args:
            version: of what the result is made from.
            key: all that the result depends on besides.
            make: makes it.
        """
        place, own = (version, key), Future[T]()
        with self._lock:
            if place in self._results:
                self._results.move_to_end(place)
                return self._results[place].result
            others = self._making.get(place)
            if others is None:
                self._making[place] = own
        if others is not None:
            return others.result()
        try:
            made = make()
        except BaseException as error:
            self._end(place, None)
            own.set_exception(error)
            raise
        self._end(place, _Made(made, _size(made)))
        own.set_result(made)
        return made

    def forget_before(self, version: int) -> None:
        """Forget the results of older versions, and keep none of them any more."""
        with self._lock:
            self._first = version
            for place in [place for place in self._results if place[0] < version]:
                self._size -= self._results.pop(place).size

    def _end(self, place: tuple[int, Hashable], made: _Made | None) -> None:
        with self._lock:
            del self._making[place]
            if made is None or place[0] < self._first:
                return
            self._results[place] = made
            self._size += made.size
            while len(self._results) > MOST_RESULTS or self._size > self._most_bytes:
                self._size -= self._results.popitem(last=False)[1].size


def _size(result: Any) -> int:
    """Bytes of a table, a text, or of those in a dataclass or a collection; numbers and times are small."""
    if isinstance(result, pa.Table):
        return result.nbytes
    if isinstance(result, str):
        return sys.getsizeof(result)
    if is_dataclass(result):
        return sum(_size(getattr(result, one.name)) for one in fields(result))
    if isinstance(result, Mapping):
        return sys.getsizeof(result) + sum(map(_size, result.values()))
    if isinstance(result, list | tuple):
        return sys.getsizeof(result) + sum(map(_size, result))
    return 0
