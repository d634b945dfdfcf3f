"""The draft's survey, 181,666 agents of which 98.8 % do not answer, in proportion: whether it ends within its hour.

    python -m bench.survey --share 20          # a twentieth of the agents in a twentieth of the hour
    python -m bench.survey --share 1           # all of them

Time limits, rests and places are those of the real survey, so that the rate is the real one and the time to expect is
the time measured times `--share`. The hosts are addresses of this machine's loopback network. Names that nobody serves
fail after a while, as a name service answers for them; everything else is a real connection that is refused, dropped or
taken by a server that answers, is wrong or says nothing. The draft does not tell how its agents failed; the shares are
ours.
"""

import argparse
import asyncio
import json
import multiprocessing
import resource
import socket
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any

import yaml

from health_assets.core.settings import Settings
from health_assets.systems.survey.probing import Probe
from health_assets.systems.survey.surveyed_agents import load_registry
from health_assets.systems.survey.surveying import survey

AGENTS, ALIVE = 181_666, 2_201
WAYS_TO_FAIL = {"gone": 2, "refused": 1, "wrong": 1, "silent": 1, "dropped": 1}
"""How agents that do not answer fail, and how often: a name that is gone, a refused connection, an HTTP error, a server
that takes the request and says nothing, a packet that is lost."""
AGENTS_OF_A_HOST = {1: 5, 20: 3, 2000: 2}
"""How many agents a host serves, and how often an agent is on such a host."""
LOOK_UP_S = 0.3
DOCUMENT = {"schema_version": "0.1.0", "agent_id": "a", "timestamp": "", "health": {"status": "healthy"}}


def main() -> None:
    """Make hosts and registry, survey them and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=int, default=20, help="one in so many of the draft's agents")
    parser.add_argument(
        "--all-silent", action="store_true", help="the worst case: whoever does not answer says nothing"
    )
    chosen = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="survey-")))
        ports = stack.enter_context(_Hosts())
        ways = {"silent": 1} if chosen.all_silent else WAYS_TO_FAIL
        (folder / "registry.yaml").write_text(
            yaml.safe_dump(list(registry(chosen.share, ports, ways))), encoding="utf-8"
        )
        print(json.dumps(measured(folder, chosen.share), indent=2))


def registry(share: int, ports: dict[str, int], ways: dict[str, int]) -> Iterator[dict[str, str]]:
    """The agents: as many answer as in the draft, and those of a large host fare alike but for the ones that live."""
    random, host, left, way = Random(1), 0, 0, ""
    hosts_of_each_size = [agents / min(size, max(20, size // share)) for size, agents in AGENTS_OF_A_HOST.items()]
    alive = set(random.sample(range(AGENTS // share), ALIVE // share))
    for number in range(AGENTS // share):
        if not left:
            host, (size,) = host + 1, random.choices(list(AGENTS_OF_A_HOST), hosts_of_each_size)
            left = min(size, max(20, size // share))
            (way,) = random.choices(list(ways), list(ways.values()))
        left -= 1
        own = "alive" if number in alive else way
        address = f"h{host}.invalid" if own == "gone" else f"127.{1 + (host >> 16)}.{host >> 8 & 255}.{host & 255}"
        yield {"name": f"a{number}", "platform": way, "url": f"http://{address}:{ports.get(own, 80)}/{own}/{number}"}


def measured(folder: Path, share: int) -> dict[str, Any]:
    """Survey; seconds, memory in MiB over time, and what came of the agents."""
    _names_fail_slowly()
    start = time.monotonic()
    agents = load_registry(folder / "registry.yaml")
    loaded_s = time.monotonic() - start
    began = datetime.now(UTC)
    outcomes: Counter[str] = Counter()
    memory_mib = [_memory_mib()]
    every = max(1, len(agents) // 10)

    def note(probe: Probe) -> None:
        outcomes[probe.answer.outcome if probe.was_asked else "unreachable, not asked"] += 1
        if outcomes.total() % every == 0:
            memory_mib.append(_memory_mib())

    settings = Settings.model_validate({"warehouse": str(folder / "health.duckdb"), "allow_private_addresses": True})
    done = survey(settings, agents, until=began + timedelta(hours=1) / share, on_probe=note)
    took_s = time.monotonic() - start
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "agents": len(agents),
        "not_reached_in_time": done.too_late,
        "registry_read_s": round(loaded_s, 1),
        "took_s": round(took_s, 1),
        "of_the_whole_minutes": round(took_s * share / 60, 1),
        "cpu_s": round(used.ru_utime + used.ru_stime, 1),
        "memory_mib": memory_mib,
        "peak_memory_mib": used.ru_maxrss // 1024,
        "outcomes": dict(outcomes),
        "host_lost": done.host_lost,
    }


def _memory_mib() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() // 2**20


def _names_fail_slowly() -> None:
    look_up = socket.getaddrinfo

    def slow_look_up(host: Any, *arguments: Any, **options: Any) -> Any:
        if ".invalid" in (host.decode() if isinstance(host, bytes) else host):
            time.sleep(LOOK_UP_S)
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return look_up(host, *arguments, **options)

    socket.getaddrinfo = slow_look_up


class _Hosts:
    """Servers for all loopback addresses, in a process of their own; gives the port of each way to fare."""

    def __enter__(self) -> dict[str, int]:
        self._full = socket.create_server(("0.0.0.0", 0), backlog=0)
        dropped = self._full.getsockname()[1]
        self._filling = []
        for _ in range(2):  # nobody takes these, so that there is no room for more
            filling = socket.socket()
            filling.setblocking(False)
            with suppress(BlockingIOError):
                filling.connect(("127.0.0.1", dropped))
            self._filling.append(filling)
        self._closed = socket.socket()
        self._closed.bind(("0.0.0.0", 0))
        told, tell = multiprocessing.Pipe(duplex=False)
        self._process = multiprocessing.get_context("spawn").Process(target=_serve, args=(tell,), daemon=True)
        self._process.start()
        port = told.recv()
        return {
            "dropped": dropped,
            "refused": self._closed.getsockname()[1],
            "alive": port,
            "wrong": port,
            "silent": port,
        }

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        for each in (self._full, self._closed, *self._filling):
            each.close()


def _serve(tell: Connection) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(_serve_for_ever(tell))


async def _serve_for_ever(tell: Connection) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            path = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1]
            if path.startswith(b"/alive"):
                body = json.dumps(DOCUMENT | {"timestamp": datetime.now(UTC).isoformat()}).encode()
                head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
                writer.write(head + body)
            elif path.startswith(b"/silent"):
                await reader.read()  # until the client hangs up
            else:
                writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "0.0.0.0", 0, backlog=4096)
    tell.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


if __name__ == "__main__":
    main()
