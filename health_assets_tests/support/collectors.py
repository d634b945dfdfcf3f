"""The collector as a user starts it, in a process of its own, and clients that send to it.

What does not belong here: exporters of OpenTelemetry, which tests use as they are.
"""

import json
import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import httpx

from health_assets_tests.support.logs_made import START
from health_assets_tests.support.ports import free_port
from health_assets_tests.support.projects import start_forked_command
from health_assets_tests.support.traces_made import agent, otlp_line, span_id, trace_id

PATIENCE_S = 120.0


class Collector:
    """`health-assets collect` in a process of its own.

    Args:
        raw: the raw root.
        said: where its output goes.
        port: its port; 0 for any.
        environment: further settings.
    """

    def __init__(self, raw: Path, said: Path, port: int = 0, **environment: str) -> None:
        outputs = [said.with_suffix(".stdout"), said.with_suffix(".stderr")]
        self._stdout, self.stderr = outputs
        self._stdout.unlink(missing_ok=True)
        self.process = start_forked_command(
            ["collect", "--raw", str(raw), "--port", str(port)],
            environment,
            said.parent,
            [str(path) for path in outputs],
        )
        self.url = self._wait_for_address()

    def _wait_for_address(self) -> str:
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            said = self._stdout.read_text() if self._stdout.exists() else ""
            if found := re.match(r"collecting on (https?://\S+) \(Ctrl-C stops\)\n", said):
                return found[1]
            assert self.process.is_alive(), self.stderr.read_text()
            time.sleep(0.01)
        raise AssertionError("the collector did not start")

    def end(self, number: int = signal.SIGTERM) -> int | None:
        assert self.process.pid is not None
        os.kill(self.process.pid, number)
        self.process.join(PATIENCE_S)
        return self.process.exitcode


@contextmanager
def collecting(folder: Path, **environment: str) -> Iterator[Collector]:
    """A collector that writes below `folder/raw`."""
    collector = Collector(folder / "raw", folder / "said", **environment)
    try:
        yield collector
    finally:
        if collector.process.is_alive():
            collector.end(signal.SIGKILL)


def request_of(*spans: dict[str, Any]) -> bytes:
    """The body of a request in JSON."""
    return otlp_line(*spans).encode()


def post(url: str, body: bytes, **headers: str) -> httpx.Response:
    named = {"content-type": "application/json"} | {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.post(f"{url}/v1/traces", content=body, headers=named, timeout=PATIENCE_S)


def lines_in(raw: Path) -> list[bytes]:
    """The lines of all files, each with its end if it has one; by file."""
    return [line for path in sorted(raw.rglob("*.jsonl")) for line in path.read_bytes().splitlines(keepends=True)]


def ids_in(raw: Path) -> set[tuple[str, str]]:
    """Trace and span of each span that whole lines hold."""
    found = set()
    for line in lines_in(raw):
        if line.endswith(b"\n"):
            for resource in json.loads(line)["resourceSpans"]:
                for scope in resource["scopeSpans"]:
                    found |= {(span["traceId"], span["spanId"]) for span in scope["spans"]}
    return found


def send_until_taken(client: httpx.Client, url: str, body: bytes, pause_s: float = 0.02) -> int:
    """Send a request to a collector until it is acknowledged; gives how many tries that took.

    Raises:
        AssertionError: the collector refuses it for good, or does not take it in time.
    """
    end, tries = time.monotonic() + PATIENCE_S, 0
    while time.monotonic() < end:
        tries += 1
        with suppress(httpx.TransportError):
            answer = client.post(f"{url}/v1/traces", content=body, headers={"Content-Type": "application/json"})
            if answer.status_code == 200:
                return tries
            assert answer.status_code in (429, 503), f"{answer.status_code}: {answer.text}"
        time.sleep(pause_s)
    raise AssertionError("the collector takes nothing")


@dataclass
class RetryingClient:
    """Sends requests of some spans one after the other, each until it is taken.

    Args:
        url: the collector.
        trace: the number of its trace, which no other client has.
        spans: number of spans of a request.
    """

    url: str
    trace: int
    spans: int = 20
    taken: set[tuple[str, str]] = field(default_factory=set)
    tries: int = 0
    is_over: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        number = 0
        with httpx.Client(timeout=PATIENCE_S) as client:
            while not self.is_over.is_set():
                numbers = range(number + 1, number + self.spans + 1)
                spans = [agent(self.trace, one, START, padding="x" * 200) for one in numbers]
                self.tries += send_until_taken(client, self.url, request_of(*spans))
                self.taken |= {(trace_id(self.trace), span_id(one)) for one in numbers}
                number = numbers[-1]


@dataclass(frozen=True)
class Killed:
    """What became of a collector that was killed under load.

    Args:
        kills: how often it was killed.
        taken: spans that were acknowledged.
        retries: requests that were sent again.
        torn: files whose last line has no end.
    """

    kills: int
    taken: set[tuple[str, str]]
    retries: int
    torn: int

    def __str__(self) -> str:
        return (
            f"{self.kills} kills of the collector under load: {len(self.taken):,} spans acknowledged, none lost; "
            f"{self.retries:,} requests sent again, {self.torn} files with a torn line"
        )


def kill_under_load(folder: Path, count: int, random: Random, clients: int = 3) -> Killed:
    """Kill the collector so often while clients send, starting it again each time.

    Raises:
        AssertionError: a span that was acknowledged is in no whole line.
    """
    raw, port = folder / "raw", free_port()
    senders = [RetryingClient(f"http://127.0.0.1:{port}", trace) for trace in range(1, clients + 1)]
    threads = [threading.Thread(target=sender.run) for sender in senders]
    collector = Collector(raw, folder / "said", port)
    for thread in threads:
        thread.start()
    try:
        for _ in range(count):
            before = sum(len(sender.taken) for sender in senders)
            while sum(len(sender.taken) for sender in senders) == before:
                time.sleep(0.001)
            time.sleep(0.05 * random.random())
            taken = set().union(*(list(sender.taken) for sender in senders))
            collector.end(signal.SIGKILL)
            assert taken <= ids_in(raw)
            collector = Collector(raw, folder / "said", port)
    finally:
        for sender in senders:
            sender.is_over.set()
        for thread in threads:
            thread.join(PATIENCE_S)
        collector.end()
    assert collector.process.exitcode == -signal.SIGTERM
    taken = set().union(*(sender.taken for sender in senders))
    assert taken == ids_in(raw)
    requests = sum(len(sender.taken) // sender.spans for sender in senders)
    files = [path.read_bytes() for path in raw.rglob("*.jsonl")]
    torn = sum(bool(content) and not content.endswith(b"\n") for content in files)
    return Killed(count, taken, sum(sender.tries for sender in senders) - requests, torn)
