"""Remembered results: none of an older history, and no more bytes than are allowed."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
import pytest

from health_assets.apps.serving.pages.result_cache import MOST_RESULTS, ResultCache

TABLE = pa.table({"n": pa.array(range(1000), pa.int64())})


def made(memory: ResultCache, version: int, key: object) -> bool:
    """Whether a result had to be made."""
    asked: list[object] = []

    def make() -> pa.Table:
        asked.append(key)
        return TABLE

    assert memory.of(version, key, make) is TABLE
    return bool(asked)


def test_a_result_is_made_once_for_each_version_until_older_ones_are_forgotten() -> None:
    memory = ResultCache()
    assert [made(memory, 1, "a"), made(memory, 1, "a"), made(memory, 1, "b")] == [True, False, True]
    assert [made(memory, 2, "a"), made(memory, 2, "a"), made(memory, 1, "a")] == [True, False, False]
    memory.forget_before(2)
    assert [place for place, _ in memory._results.items()] == [(2, "a")]
    assert memory._size == TABLE.nbytes
    assert [made(memory, 1, "b"), made(memory, 1, "b")] == [True, True], "an old one is made, and not kept"


def test_a_result_of_a_history_that_changed_while_it_was_made_is_not_kept() -> None:
    memory = ResultCache()

    def make() -> str:
        memory.forget_before(2)
        return "old"

    assert memory.of(1, "a", make) == "old"
    assert not memory._results


def test_a_result_that_several_want_at_once_is_made_once() -> None:
    memory, begun, go_on = ResultCache(), threading.Event(), threading.Event()
    makers: list[str] = []

    def make() -> str:
        makers.append("made")
        begun.set()
        assert go_on.wait(10)
        return "it"

    with ThreadPoolExecutor(3) as threads:
        first = threads.submit(memory.of, 1, "a", make)
        assert begun.wait(10)
        others = [threads.submit(memory.of, 1, "a", make) for _ in range(2)]
        go_on.set()
        assert [one.result(10) for one in (first, *others)] == ["it"] * 3
    assert makers == ["made"]


def test_a_result_that_cannot_be_made_is_tried_again() -> None:
    memory = ResultCache()
    with pytest.raises(ZeroDivisionError):
        memory.of(1, "a", lambda: 1 / 0)
    assert made(memory, 1, "a")


def test_tables_take_no_more_bytes_than_are_allowed_and_those_used_last_stay() -> None:
    memory = ResultCache(most_bytes=3 * TABLE.nbytes)
    for key in ("a", "b", "c"):
        made(memory, 1, key)
    made(memory, 1, "a")
    made(memory, 1, "d")
    assert [made(memory, 1, key) for key in ("a", "c", "d")] == [False, False, False]
    assert made(memory, 1, "b")
    assert memory._size == sum(one.size for one in memory._results.values()) == 3 * TABLE.nbytes


@dataclass
class Found:
    rows: pa.Table
    count: int


def test_a_table_within_a_result_counts() -> None:
    memory = ResultCache(most_bytes=TABLE.nbytes)
    for key in ("a", "b"):
        memory.of(1, key, lambda: Found(TABLE, 7))
    assert list(memory._results) == [(1, "b")]


@pytest.mark.parametrize(
    "made_of", [str, lambda text: [text], lambda text: {"key": (text,)}], ids=["text", "list", "dict"]
)
def test_a_long_text_counts_wherever_it_stands(made_of: Callable[[str], object]) -> None:
    memory = ResultCache(most_bytes=15_000)
    for key in ("a", "b"):
        memory.of(1, key, lambda: made_of("x" * 10_000))
    assert list(memory._results) == [(1, "b")]


def test_results_without_tables_are_bounded_by_their_number() -> None:
    memory = ResultCache()
    for number in range(2 * MOST_RESULTS):
        memory.of(1, number, list)
    assert len(memory._results) == MOST_RESULTS
