"""`python -m bench.endpoint`: the health endpoint under a steady load, while its data stands still and when it changes.

Open loop: requests are due at a fixed rate whatever the server does, and a latency is counted from when its request was
due, so that a server that stalls cannot hide the requests that waited meanwhile. Server and load share the machine.

At the end as many documents as go are asked of two servers in turn, one of which has a token, a host of its own, quotas
and an access log: what these cost is a ratio, which a busy machine leaves as it is.
"""

import argparse
import asyncio
import gc
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from statistics import median
from urllib.error import HTTPError

import uvloop

from bench.fleet import HEADLINE_AGENTS, HEADLINE_HOUR, ROOT
from bench.measure import Watch
from health_assets.core.hours import HOUR, HourRange
from health_assets.schema.catalog import describe
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.store import Warehouse

CONNECTIONS = 64
TICK_S = 0.001
REFRESH_S = 60.0
BEFORE_LOADED_S, AFTER_LOADED_S = 8.0, 3.0
"""What counts as the refresh: from when its reader starts until the old data has been let go."""
HOST = b"Host: localhost\r\n"
GUARDED_HOST, TOKEN = "health.example", "a-token-of-the-benchmark"
GUARDED = b"Host: %b\r\nAuthorization: Bearer %b\r\n" % (GUARDED_HOST.encode(), TOKEN.encode())
ROUNDS = 9


def main() -> None:
    """Read the flags, make the data, serve it, ask for it, print what was measured."""
    parser = argparse.ArgumentParser(prog="python -m bench.endpoint", description=__doc__)
    parser.add_argument("--agents", type=int, default=HEADLINE_AGENTS)
    parser.add_argument("--rate", type=int, default=1000, help="requests a second")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long the first measurement lasts")
    parser.add_argument("--burst", type=int, default=5000, help="documents of each round of the last measurement")
    parser.add_argument("--only-guards", action="store_true", help="only the last measurement")
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="health-assets-bench-") as folder:
        warehouse = Warehouse(f"{folder}/health.duckdb")
        write_hour(warehouse, HEADLINE_HOUR, flags.agents)
        if not flags.only_guards:
            measure_load(warehouse, flags)
        measure_guards(warehouse, flags, Path(folder, "access.jsonl"))
    print(f"load average of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


def measure_load(warehouse: Warehouse, flags: argparse.Namespace) -> None:
    """Latencies under a steady load, while the data stands still and while a new hour is loaded."""
    with serving(warehouse.path) as (process, port), MemoryWatch(process.pid) as memory:
        print(f"{flags.agents:,} agents loaded after {wait_until_loaded(port):.1f} s    {memory}", flush=True)
        before_s = cpu_s(process.pid)
        still = run_load(port, flags, flags.seconds)
        cost_ms = 1000 * (cpu_s(process.pid) - before_s) / len(still)
        print(f"data stands still   {summary(still)}    {memory}")
        print(f"  a request costs   {cost_ms:.3f} ms of processor time", flush=True)
        write_hour(warehouse, HEADLINE_HOUR + HOUR, flags.agents)
        changing = run_load(port, flags, REFRESH_S + AFTER_LOADED_S)
        loaded_at = datetime.fromisoformat(status(port)["loaded_at"]).timestamp()
        during = [(at, s) for at, s in changing if -BEFORE_LOADED_S < at - loaded_at < AFTER_LOADED_S]
        print(f"with a refresh      {summary(changing)}    {memory}")
        print(f"  during it alone   {summary(during)}")


def measure_guards(warehouse: Warehouse, flags: argparse.Namespace, access_log: Path) -> None:
    """Documents a second without and with tokens, allowed hosts, quotas and access log, in turn, and what one costs."""
    guards = {
        "HEALTH_TOKEN": TOKEN, "HEALTH_ALLOWED_HOSTS": GUARDED_HOST, "HEALTH_ANONYMOUS_ROLE": "none",
        "HEALTH_ACCESS_LOG": str(access_log), "HEALTH_SERVE_RATE_LIMIT": "1000000",
    }  # fmt: skip
    with serving(warehouse.path) as (plain, open_port), serving(warehouse.path, guards) as (server, guarded_port):
        heads = {open_port: HOST, guarded_port: GUARDED}
        for port, head in heads.items():
            uvloop.run(first_document(port, head))
        taken: dict[int, list[float]] = {port: [] for port in heads}
        before_s = [cpu_s(process.pid) for process in (plain, server)]
        for _ in range(ROUNDS):
            for port, head in heads.items():
                taken[port].append(uvloop.run(burst(port, flags.agents, flags.burst, head)))
        cost_s = [cpu_s(process.pid) - before for process, before in zip((plain, server), before_s, strict=True)]
        without, guarded = (flags.burst / median(taken[port]) for port in heads)
    ratios = sorted(one / other for one, other in zip(taken[open_port], taken[guarded_port], strict=True))
    assert len(access_log.read_text().splitlines()) >= ROUNDS * flags.burst
    print(f"without guards      {without:,.0f} documents/s")
    print(
        f"with all of them    {guarded:,.0f} documents/s, {median(ratios):.2f} times as many "
        f"({ratios[0]:.2f} to {ratios[-1]:.2f} in {ROUNDS} rounds)"
    )
    cost_ms = [1000 * seconds / (ROUNDS * flags.burst) for seconds in cost_s]
    told = " and ".join(f"{ms:.3f}" for ms in cost_ms)
    print(f"  a document costs  {told} ms of processor time, {cost_ms[1] / cost_ms[0]:.2f} times as much")


# -- data ------------------------------------------------------------------------------------------------------------


def write_hour(warehouse: Warehouse, hour: datetime, agents: int) -> None:
    """An hour of health states and scores of this many agents, as the assets would leave it."""
    made = {
        "hour": "$hour",
        "window_start": "$hour - INTERVAL 23 HOUR",
        "window_end": "$hour + INTERVAL 1 HOUR",
        "last_healthy_at": "$hour + INTERVAL 1 HOUR",
        "last_capability_update": "$hour - INTERVAL 100 HOUR",
        "agent_id": "'https://agents.example/fleet/agent-' || i",
        "status": "CASE WHEN r < 0.5 THEN 'unhealthy' WHEN r < 0.95 THEN 'degraded' ELSE 'healthy' END",
        "state": "CASE WHEN r < 0.65 THEN 'unhealthy' WHEN r < 0.85 THEN 'degraded' ELSE 'healthy' END",
        "calibration_trend": "'stable'",
        "health_score": "100 * r",
        "formula_version": "'1.0'",
    }
    by_type = {"int64": "CAST(1000 * r AS BIGINT)", "float64": "random()", "string": "''"}
    by_type["boolean"] = "false"
    with warehouse.write() as session:
        for table in ("agent_health", "agent_health_state"):
            columns = ", ".join(
                f"{made.get(name, by_type.get(kind, 'NULL'))} AS {name}" for name, kind, *_ in describe(table)
            )
            session.query(
                f"INSERT INTO {table} SELECT {columns} FROM (SELECT range AS i, random() AS r FROM range($agents))",
                {"hour": hour, "agents": agents},
            )
            PartitionStates(session).note(table, HourRange.of(hour), [hour])


def path_of(agent: int) -> bytes:
    """The path of an agent's health document."""
    return b"/agents/https%%3A%%2F%%2Fagents.example%%2Ffleet%%2Fagent-%d/.well-known/agent-health" % agent


# -- the server ------------------------------------------------------------------------------------------------------


@contextmanager
def serving(warehouse: Path, settings: Mapping[str, str] = {}) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """`health-assets serve` in a process of its own, and its port."""
    command = [
        sys.executable,
        "-m",
        "health_assets",
        "serve",
        "--port",
        "0",
        "--warehouse",
        str(warehouse),
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HEALTH_SERVE_REFRESH_S": str(REFRESH_S), **settings}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            yield process, int(process.stdout.readline().split("//")[1].split(",")[0].rpartition(":")[2])
        finally:
            process.terminate()


def status(port: int) -> dict:
    """What the server says about its data."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/status", timeout=5) as response:
        return json.load(response)


def wait_until_loaded(port: int) -> float:
    """Seconds until the first document was there."""
    start = time.perf_counter()
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path_of(0).decode()}", timeout=5):
                return time.perf_counter() - start
        except HTTPError:
            time.sleep(0.05)


def cpu_s(pid: int) -> float:
    """Processor seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class MemoryWatch(Watch):
    """Resident memory of the server, and the most that one of its readers had."""

    def __init__(self, pid: int) -> None:
        super().__init__(every_s=0.1)
        self._pid = pid
        self._reader_kib = 0

    def __str__(self) -> str:
        now, peak = self._kib(self._pid, "VmRSS"), self._kib(self._pid, "VmHWM")
        return f"server {now / 1024:.0f} MiB (peak {peak / 1024:.0f}), reader's peak {self._reader_kib / 1024:.0f} MiB"

    def look(self) -> None:
        """See `Watch.look`."""
        for task in Path(f"/proc/{self._pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                self._reader_kib = max(self._reader_kib, self._kib(int(child), "VmHWM"))

    @staticmethod
    def _kib(pid: int, name: str) -> int:
        try:
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        except OSError:
            return 0
        return next((int(line.split()[1]) for line in lines if line.startswith(name)), 0)


# -- the load --------------------------------------------------------------------------------------------------------

Latencies = list[tuple[float, float]]
"""When a request was due (seconds since 1970), and after how many seconds its answer was there."""


@dataclass
class Load:
    """Connections that are kept open, and the requests that wait for one."""

    idle: deque["Connection"] = field(default_factory=deque)
    waiting: deque[tuple[float, bytes]] = field(default_factory=deque)
    latencies: Latencies = field(default_factory=list)

    def ask(self, due: float, request: bytes) -> None:
        """Send a request that is due, on a connection that is free or will be."""
        if self.idle:
            self.idle.popleft().send(due, request)
        else:
            self.waiting.append((due, request))


class Connection(asyncio.Protocol):
    """One connection with one request at a time."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._due = 0.0
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._load.idle.append(self)

    def send(self, due: float, request: bytes) -> None:
        self._due = due
        self._transport.write(request)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self._data += data
        head, separator, body = self._data.partition(b"\r\n\r\n")
        if not separator or len(body) < int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0]):
            return
        assert head.startswith(b"HTTP/1.1 200"), head
        self._load.latencies.append((self._due, time.time() - self._due))
        self._data = b""
        if self._load.waiting:
            self.send(*self._load.waiting.popleft())
        else:
            self._load.idle.append(self)


def run_load(port: int, flags: argparse.Namespace, seconds: float) -> Latencies:
    """Ask for random agents at the rate of the flags."""
    return uvloop.run(load(port, lambda: path_of(random.randrange(flags.agents)), flags.rate, seconds))


def request_of(path: bytes, head: bytes) -> bytes:
    """A request for a health document."""
    return b"GET %b HTTP/1.1\r\n%b\r\n" % (path, head)


async def first_document(port: int, head: bytes) -> None:
    """Wait until the first document is there."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answer = b""
    while not answer.startswith(b"HTTP/1.1 200"):
        writer.write(request_of(path_of(0), head))
        answer = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(answer.partition(b"content-length: ")[2].partition(b"\r\n")[0]))
        await asyncio.sleep(0.05)
    writer.close()


async def burst(port: int, agents: int, count: int, head: bytes) -> float:
    """Seconds that so many documents of random agents take, asked for as fast as they come."""
    loop, state = asyncio.get_running_loop(), Load()
    for _ in range(CONNECTIONS):
        await loop.create_connection(lambda: Connection(state), "127.0.0.1", port)
    start = time.time()
    for _ in range(count):
        state.ask(start, request_of(path_of(random.randrange(agents)), head))
    while len(state.latencies) < count:
        await asyncio.sleep(TICK_S)
    return time.time() - start


async def load(port: int, some_path: Callable[[], bytes], rate: int, seconds: float) -> Latencies:
    """Requests due every 1/rate seconds, each for another path."""
    loop, state = asyncio.get_running_loop(), Load()
    for _ in range(CONNECTIONS):
        await loop.create_connection(lambda: Connection(state), "127.0.0.1", port)
    gc.disable()
    start = time.time()
    for number in range(int(rate * seconds)):
        due = start + number / rate
        while (early_s := due - time.time()) > 0:
            await asyncio.sleep(max(early_s, TICK_S))
        state.ask(due, request_of(some_path(), HOST))
    while len(state.latencies) < int(rate * seconds):
        await asyncio.sleep(TICK_S)
    gc.enable()
    return state.latencies


def summary(latencies: Latencies) -> str:
    """Quantiles in milliseconds, and the rate that was reached."""
    ordered = sorted(1000 * seconds for _, seconds in latencies)
    span_s = max(at + seconds for at, seconds in latencies) - min(at for at, _ in latencies)
    p50, p99, p999 = (ordered[min(len(ordered) - 1, int(q * len(ordered)))] for q in (0.5, 0.99, 0.999))
    return (
        f"{len(ordered) / span_s:,.0f} requests/s  p50 {p50:.2f}  p99 {p99:.2f}  p99.9 {p999:.2f}  "
        f"max {ordered[-1]:.2f} ms"
    )


if __name__ == "__main__":
    main()
