"""A proxy before a server of the tests: every request takes as long as one over a network, and is counted."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from urllib.parse import urlsplit

PIECE_BYTES = 1 << 20
GRACE_S = 0.1


class SlowProxy:
    """Passes connections on, and what a client sends only after a while.

    Args:
        url: of the server behind it.
        latency_s: seconds that every request waits, besides the time that the server takes.
    """

    def __init__(self, url: str, latency_s: float) -> None:
        self._behind = urlsplit(url)
        self.latency_s = latency_s
        self.url = ""
        self.requests: list[str] = []
        """First line of every request, in the order in which they came."""
        self.answered_bytes = 0
        """Bytes that clients have got."""
        self._writers: set[asyncio.StreamWriter] = set()
        self._waiting = 0
        self.most_waiting = 0
        """Most requests that waited at once."""

    async def serve(self, started: threading.Event) -> None:
        """Take connections until `end` is called, from another thread."""
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        started.set()
        await self._ended.wait()
        await asyncio.sleep(GRACE_S)  # asyncio forgets a connection that it has accepted when its server closes first
        server.close()
        while others := asyncio.all_tasks() - {asyncio.current_task()}:  # also those that still take a connection
            for writer in self._writers:
                writer.transport.abort()  # whatever it has still to send: nobody reads that
            for other in others:
                other.cancel()
            await asyncio.gather(*others, return_exceptions=True)
        await asyncio.sleep(GRACE_S)  # a transport that was closed just now closes its socket

    def end(self) -> None:
        """Let `serve` end."""
        self._loop.call_soon_threadsafe(self._ended.set)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with AsyncExitStack() as ends:
            ends.enter_context(suppress(asyncio.CancelledError))  # that is the end, and asyncio would call it a fault
            ends.push_async_callback(self._close, writer)
            self._writers.add(writer)
            answers, requests = await asyncio.open_connection(self._behind.hostname, self._behind.port)
            ends.push_async_callback(self._close, requests)
            self._writers.add(requests)
            passed = (self._pass_requests(reader, requests), self._pass_answers(answers, writer))
            await asyncio.gather(*passed, return_exceptions=True)  # who hangs up ends no test

    async def _close(self, writer: asyncio.StreamWriter) -> None:
        """Close a connection and wait until it is, as one that the end of the loop closes counts as forgotten."""
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        self._writers.discard(writer)

    async def _pass_requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(PIECE_BYTES):
            self.requests.append(piece.partition(b"\r\n")[0].decode(errors="replace"))
            self._waiting += 1
            self.most_waiting = max(self.most_waiting, self._waiting)
            await asyncio.sleep(self.latency_s)
            self._waiting -= 1
            writer.write(piece)
        writer.close()

    async def _pass_answers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(PIECE_BYTES):
            self.answered_bytes += len(piece)
            writer.write(piece)
            await writer.drain()
        writer.close()


@contextmanager
def slow_proxy(url: str, latency_s: float) -> Iterator[SlowProxy]:
    """A proxy that listens while the block runs, in a thread of its own."""
    proxy, started = SlowProxy(url, latency_s), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(proxy.serve(started)))
    thread.start()
    assert started.wait(10)
    try:
        yield proxy
    finally:
        proxy.end()
        thread.join(10)
