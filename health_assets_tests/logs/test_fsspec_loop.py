"""fsspec's private parts: a range of a file is asked for without waiting, and the one thread of its loop ends."""

import asyncio
import subprocess
import sys
import threading
from typing import Any

import fsspec
from fsspec.asyn import AsyncFileSystem

from health_assets.logs.fsspec_loop import requested, stop_the_thread, takes_requests
from health_assets_tests.support.projects import command_environment

CONTENT = bytes(range(256))


class Slow(AsyncFileSystem):
    """A store that hands out its bytes once it may."""

    cachable = False

    def __init__(self) -> None:
        super().__init__()
        self.may_answer = threading.Event()

    async def _cat_file(self, _path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        while not self.may_answer.is_set():
            await asyncio.sleep(0.01)
        return CONTENT[start:end]


def test_a_range_is_asked_for_without_waiting_and_ends_before_its_end() -> None:
    store = Slow()
    ranges = [requested(store, "file", start, start + 3) for start in (0, 5)]
    assert not any(each.done() for each in ranges)
    store.may_answer.set()
    assert [each.result(30) for each in ranges] == [CONTENT[:3], CONTENT[5:8]]


def test_the_documented_way_reads_the_same_range() -> None:
    store = Slow()
    store.may_answer.set()
    assert store.cat_file("file", start=5, end=8) == requested(store, "file", 5, 8).result(30)


def test_a_store_that_works_one_request_after_another_takes_none_side_by_side() -> None:
    assert takes_requests(Slow())
    assert not takes_requests(fsspec.filesystem("memory"))


PROGRAM = """
from fsspec import asyn
from health_assets.logs.fsspec_loop import stop_the_thread
stop_the_thread()  # there is none yet
asyn.sync(asyn.get_loop(), __import__("asyncio").sleep, 0)
[thread] = asyn.iothread
assert thread.is_alive() and asyn.loop[0].is_running()
stop_the_thread()
assert not thread.is_alive()
"""


def test_the_thread_ends_when_it_is_told_to() -> None:
    assert callable(stop_the_thread)
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, env=command_environment(), timeout=120)
