"""`python -m bench.pages`: pages for people of a large fleet with weeks of history, alone and beside a run that writes.

`bench.pages_data` makes the data, and tells what of it is real. Some agents are personal. So there are three kinds of
callers: an operator, who sees all; a reader, from whom something is hidden and whose sums are made of the rows it may
see; and a member of one team, who sees some two hundred agents. Pages are asked for one after another, as a person
does, each kind from the first request on: the time to the first byte, the bytes that travel, the memory of the server
and of the process that keeps its history. Then again while the newest hour is materialized, which also makes the server
copy it and forget what it remembers; and health documents at a steady rate while somebody reads pages without a pause.
`bench.pages_browser` measures what a person sees.
"""

import argparse
import http.client
import json
import multiprocessing
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import uvloop

from bench.endpoint import load, serving, summary
from bench.fleet import HEADLINE_AGENTS
from bench.measure import Watch
from bench.pages_browser import in_browser, usable
from bench.pages_data import TEAMS, Data, made
from health_assets.apps.serving.history.layout import read_account, read_rows
from health_assets.apps.serving.tokens import new_token
from health_assets.core.hours import HOUR

ASKED, ASKED_OF_OTHERS = 200, 40
"""Requests of each kind: of those that have an aim, of which the 99th of 100 is then the third worst; and of others."""
TOKEN = "a-token-of-the-benchmark-of-pages"
OPERATOR = {"Authorization": f"Bearer {TOKEN}"}
READER: dict[str, str] = {}
SECRET_OF_TEAM, TOKEN_OF_TEAM = new_token("a member of a team", "read", TEAMS[:1])
MEMBER = {"Authorization": f"Bearer {SECRET_OF_TEAM}"}
CALLERS = {"operator": OPERATOR, "reader": READER, "member": MEMBER}
NOT_OF_TEAMS = ("models", "data")
"""Pages that tell a member of a team little or nothing."""
RATE, DOCUMENTS_S = 1_000, 30.0
"""Health documents a second while pages are read, and for how long."""
BESIDE = ("fleet", "agent, 30 days")
"""The pages that have an aim."""
MIB = 1 << 20


def main() -> None:
    """Read the flags, make the data, serve it, ask for pages, print what was measured."""
    parser = argparse.ArgumentParser(prog="python -m bench.pages", description=__doc__)
    parser.add_argument("--agents", type=int, default=HEADLINE_AGENTS)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--folder", type=Path, help="keep the data here (44 GB at full size), and use what is there")
    parser.add_argument("--no-browser", action="store_true", help="leave out what needs Chromium")
    parser.add_argument("--no-run", action="store_true", help="leave out what is beside a run")
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="health-assets-bench-") as temporary:
        folder = flags.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        data = made(folder, flags.agents, flags.days)
        measure(data, has_browser=not flags.no_browser, has_run=not flags.no_run)


def measure(data: Data, *, has_browser: bool, has_run: bool) -> None:
    """Ask for pages alone, then beside a run that writes the hour again."""
    pages = Pages(data)
    kept = json.dumps([TOKEN_OF_TEAM.model_dump(mode="json", exclude_none=True)])
    environment = {**data.environment, "HEALTH_TOKEN": TOKEN, "HEALTH_ANONYMOUS_ROLE": "read", "HEALTH_TOKENS": kept}
    with serving(data.warehouse, environment) as (process, port), MemoryWatch(process.pid) as memory:
        started = time.perf_counter()
        wait_until_there(port)
        print(f"the first page after {time.perf_counter() - started:.1f} s    {memory}", flush=True)
        for name, address_of in pages.kinds.items():
            count = ASKED if name in BESIDE else ASKED_OF_OTHERS
            for caller, headers in CALLERS.items():
                is_member = caller == "member"
                own = pages.of_team.get(name, address_of) if is_member else address_of
                if not (is_member and name in NOT_OF_TEAMS):
                    print(f"{name:<16} {caller:<8} {asked(port, own, headers, count)}", flush=True)
        print(f"{memory}", flush=True)
        print(documents(port, pages), flush=True)
        print(f"{memory}", flush=True)
        if has_browser:
            address = f"http://127.0.0.1:{port}"
            in_browser(address, OPERATOR, pages.search())
            usable(address, OPERATOR, {name: address_of() for name, address_of in pages.kinds.items()})
            print(f"{memory}", flush=True)
        if has_run:
            for name in BESIDE:
                with materializing(data) as is_running:
                    told = asked(port, pages.kinds[name], OPERATOR, ASKED, is_running)
                    print(f"{name:<16} operator {told}, while the hour is materialized", flush=True)
                settle(port)
        print(f"{memory}")


class Pages:
    """The kinds of pages, each with an address that is another one each time."""

    def __init__(self, data: Data) -> None:
        account = read_account(data.history)
        assert account is not None
        hour = data.newest.isoformat()
        faces = {name: data.history / account.series[name].faces[hour] for name in ("agents", "sessions")}
        self._agents = read_rows(faces["agents"], ["agent_id"]).column("agent_id").to_pylist()
        self._sessions = read_rows(faces["sessions"], ["session_id"]).column("session_id").to_pylist()
        back = f"{data.newest - 24 * HOUR:%Y-%m-%dT%H}"
        self.kinds: dict[str, Callable[[], str]] = {
            "fleet": lambda: "/",
            "fleet, search": lambda: f"/?q={self.search()}",
            "fleet, groups": lambda: f"/?group=platform&page={random.randrange(1, 50)}",
            "fleet, a day ago": lambda: f"/?hour={back}",
            "agent, 30 days": lambda: f"/ui/agents/{quote(random.choice(self._agents), safe='')}?days=30",
            "sessions": lambda: "/ui/sessions",
            "sessions, search": lambda: f"/ui/sessions?q={random.choice(self._sessions)[:7]}",
            "a session": lambda: f"/ui/sessions/{quote(random.choice(self._sessions), safe='')}",
            "tools": lambda: "/ui/tools",
            "tools, search": lambda: f"/ui/tools?q={self.search()}",
            "models": lambda: "/ui/models",
            "usage": lambda: "/ui/usage",
            "data": lambda: "/ui/data",
        }

        owned = json.loads((data.folder / "targets.yaml").read_text())["agents"]
        mine = [name for name, own in owned.items() if own.get("team") == TEAMS[0] and not own.get("personal")]
        self.of_team = {"agent, 30 days": lambda: f"/ui/agents/{quote(random.choice(mine), safe='')}?days=30"}
        """Pages at other addresses for a member of a team."""

    def document(self) -> bytes:
        """The path of an agent's health document."""
        return b"/agents/%b/.well-known/agent-health" % quote(random.choice(self._agents), safe="").encode()

    def search(self) -> str:
        """Part of an agent's name."""
        return random.choice(self._agents)[-4:]


def documents(port: int, pages: Pages) -> str:
    """Ask for health documents alone, and while another process reads pages without a pause; both latencies."""
    while ask(port, pages.document().decode(), OPERATOR)[0] != 200:
        time.sleep(0.5)
    alone = uvloop.run(load(port, pages.document, RATE, DOCUMENTS_S))
    addresses = [address_of() for name in BESIDE for address_of in [pages.kinds[name]] for _ in range(200)]
    addresses += [address_of() for address_of in pages.kinds.values()]
    random.shuffle(addresses)
    reading = multiprocessing.get_context("spawn").Process(target=read_on, args=(port, addresses), daemon=True)
    reading.start()
    time.sleep(5)  # until it reads
    beside = uvloop.run(load(port, pages.document, RATE, DOCUMENTS_S))
    reading.terminate()
    reading.join()
    return f"documents        {summary(alone)}\n  while pages are read {summary(beside)}"


def read_on(port: int, addresses: Sequence[str]) -> None:
    """Read pages one after another until somebody ends the process."""
    while True:
        for address in addresses:
            ask(port, address, OPERATOR)


@contextmanager
def materializing(data: Data) -> Iterator[Callable[[], bool]]:
    """Beside a run that materializes the newest hour again; yields whether it still goes on."""
    with data.materialize() as run:
        yield lambda: run.poll() is None
        if run.wait():
            raise RuntimeError("the run has failed")


def wait_until_there(port: int) -> None:
    """Wait until the fleet's page is there."""
    while ask(port, "/", OPERATOR)[0] != 200:
        time.sleep(0.5)


def settle(port: int) -> None:
    """Wait until the history holds what the run wrote: no page says that hours are still to come for a while."""
    time.sleep(20)
    wait_until_there(port)


def ask(port: int, address: str, headers: Mapping[str, str]) -> tuple[int, float, int]:
    """The status of a page, seconds to its first byte, and the bytes that travel."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    start = time.perf_counter()
    connection.request("GET", address, headers={"Accept-Encoding": "gzip", **headers})
    reply = connection.getresponse()
    first_s = time.perf_counter() - start
    size = len(reply.read())
    connection.close()
    return reply.status, first_s, size


def asked(
    port: int,
    address_of: Callable[[], str],
    headers: Mapping[str, str],
    count: int,
    goes_on: Callable[[], bool] = lambda: False,
) -> str:
    """Ask for pages one after another, a number of them or for as long as something goes on; what that took."""
    replies = []
    while len(replies) < count or goes_on():
        replies.append(ask(port, address_of(), headers))
    statuses = {status for status, _, _ in replies}
    assert statuses == {200} or (headers is MEMBER and statuses <= {200, 404}), statuses  # of others' there is no page
    first_ms = 1000 * replies[0][1]
    took_ms = sorted(1000 * first_s for _, first_s, _ in replies)
    largest = max(size for _, _, size in replies) / 1000
    p50, p99 = (took_ms[int(share * (len(took_ms) - 1))] for share in (0.5, 0.99))
    return (
        f"{len(replies):>5} asked  first {first_ms:6.1f} ms  p50 {p50:6.1f} ms  p99 {p99:6.1f} ms  "
        f"worst {took_ms[-1]:6.1f} ms  at most {largest:,.0f} KB  load {os.getloadavg()[0]:.1f}"
    )


class MemoryWatch(Watch):
    """Memory of the server and of the processes that it starts: what is theirs, and their share of what they share.

    Pages of files that are mapped count, though the system takes them back when it likes; `private` is the rest.
    """

    def __init__(self, pid: int) -> None:
        super().__init__(every_s=0.25)
        self._pid = pid
        self._peaks = {"together": 0, "server": 0, "readers": 0, "private": 0}

    def __str__(self) -> str:
        told = "  ".join(f"{name} {size / 1024:.0f}" for name, size in self._peaks.items())
        return f"memory (PSS, MiB), each at its peak: {told}"

    def look(self) -> None:
        """See `Watch.look`."""
        server = _memory_kib(self._pid)
        readers = [_memory_kib(child) for child in _children(self._pid)]
        of_readers = sum(one["Pss"] for one in readers)
        now = {
            "together": server["Pss"] + of_readers,
            "server": server["Pss"],
            "readers": of_readers,
            "private": server["Pss_Anon"] + sum(one["Pss_Anon"] for one in readers),
        }
        self._peaks = {name: max(peak, now[name]) for name, peak in self._peaks.items()}


def _children(pid: int) -> list[int]:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:  # it, or one of its threads, has just ended
        return []


def _memory_kib(pid: int) -> dict[str, int]:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    except OSError:  # it has just ended
        lines = []
    return {"Pss": 0, "Pss_Anon": 0} | {line.split(":")[0]: int(line.split()[1]) for line in lines}


if __name__ == "__main__":
    main()
