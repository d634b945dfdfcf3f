"""`python -m health_assets_tests.soak.live --minutes 120`; exit code 1 where a promise broke.

An installation without Dagster that is live: logs that are written and rotated, traces that are sent to a collector,
`health-assets run` at short ticks, an endpoint, and clients that read it. The programs are killed again and again.
What belongs here: what runs, the kills, and what must be true at the end. What does not: who writes (`writer`,
`sender`) and who reads (`clients`).
"""

import argparse
import json
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from health_assets.systems.due_hours import due_hours
from health_assets.warehouse.store import Warehouse
from health_assets_tests.soak.clients import Clients
from health_assets_tests.soak.installation import READY_S, Installation, end_with_journal, start_writer, wait_until
from health_assets_tests.soak.sender import SENT_AGENTS
from health_assets_tests.soak.services import Manager, Service, python_module
from health_assets_tests.soak.verdict import (
    assert_equal_to_a_clean_rebuild,
    assert_every_execution_is_there,
    assert_memory_is_flat,
    materialized,
    thirds,
)
from health_assets_tests.soak.writer import AGENTS
from health_assets_tests.support.ports import free_port
from health_assets_tests.support.projects import command_environment, command_line

KILLED = ("worker", "collector", "endpoint")
QUIET_S = 600.0
REFRESH_S = 60
QUIET_TICKS = 8
"""The worker has caught up when it has said nothing for so many ticks, and as long as it puts off parts of an hour."""


@dataclass(frozen=True, kw_only=True)
class Lived:
    """The figures of a live soak in which nothing was wrong.

    Args:
        lines: lines that the writer wrote.
        executions: executions of finished hours, which are all there, once.
        sent: of them, those of traces that a collector acknowledged.
        tries: requests to the collector.
        hours: finished hours.
        kills: by program, how often it was killed.
        runs: runs of the worker.
        answers: what clients were answered, by how often.
        slowest_s: the longest wait for a right answer, by what was asked.
        rss_mib: by program, the median of its memory in the first, second and last third.
    """

    lines: int
    executions: int
    sent: int
    tries: int
    hours: int
    kills: dict[str, int]
    runs: int
    answers: dict[str, int]
    slowest_s: dict[str, float]
    rss_mib: dict[str, tuple[float, float, float]]

    def __str__(self) -> str:
        """The figures as a person reads them."""
        slowest = ", ".join(f"{what} {seconds:.1f} s" for what, seconds in sorted(self.slowest_s.items()))
        memory = "; ".join(f"{name} " + ", ".join(f"{part:.0f}" for part in mib) for name, mib in self.rss_mib.items())
        return (
            f"{self.lines:,} lines written, {self.sent:,} traces acknowledged in {self.tries:,} requests\n"
            f"all {self.executions:,} executions of {self.hours} finished hours are there, once; "
            "every table equals a clean rebuild, and nothing is due\n"
            f"runs: {self.runs}; kills: {self.kills}\n"
            f"answers: {self.answers}; slowest: {slowest}\n"
            f"memory in the first, second and last third, MiB: {memory}"
        )


def live_soak(folder: Path, minutes: float, every_s: float, seed: int, report: Callable[[str], None]) -> Lived:
    """Kill the programs of a live installation for some minutes, and judge what is left.

    Args:
        folder: a folder that is there.
        minutes: how long the programs are killed.
        every_s: seconds between two ticks of the worker.
        seed: of what is written, and of the moments of the kills.
        report: called with each thing that happens.

    Raises:
        AssertionError: something was not as it must be.
    """
    random, kills = Random(seed), dict.fromkeys(KILLED, 0)
    with _installed(folder, every_s, seed) as (installation, clients):
        start = time.monotonic()
        while (passed_s := time.monotonic() - start) < minutes * 60 or not all(kills.values()):
            time.sleep(random.uniform(0.5, 1.5) * max(10.0, minutes * 60 / 100))
            name = min(KILLED, key=lambda name: (kills[name], random.random()))
            if installation.services[name].send(signal.SIGKILL):
                kills[name] += 1
                report(f"{timedelta(seconds=round(passed_s))}  killed the {name}")
        return _judge(installation, clients, every_s, kills)


@contextmanager
def _installed(folder: Path, every_s: float, seed: int) -> Iterator[tuple[Installation, Clients]]:
    collector_port, endpoint_port = free_port(), free_port()
    environment = command_environment() | {
        "HEALTH_RAW": str(folder / "raw"), "HEALTH_WAREHOUSE": str(folder / "health.duckdb"), "HEALTH_MCP": "on",
        "HEALTH_PUBLISHED": str(folder / "published"), "HEALTH_ALERTS": str(folder / "alerts.yaml"),
        "HEALTH_RUNNING_HOUR_REFRESH_S": str(REFRESH_S),
    }  # fmt: skip
    installation = Installation(folder, folder, False, environment)
    installation.raw.mkdir()
    (folder / "alerts.yaml").write_text("rules: {failing_now: on}\n", encoding="utf-8")
    services = installation.services
    url = f"http://127.0.0.1:{collector_port}"
    sender = python_module("health_assets_tests.soak.sender", url, folder / "sender.json", "--seed", seed)
    commands = {
        "collector": command_line("collect", "--port", str(collector_port)),
        "worker": command_line("run", "--every", f"{every_s:g}s"),
        "endpoint": command_line("serve", "--port", str(endpoint_port)),
        "sender": sender,
    }
    clients = Clients(f"http://127.0.0.1:{endpoint_port}", (*AGENTS, *SENT_AGENTS))
    try:
        start_writer(installation, seed)
        for name, command in commands.items():
            services[name] = Service(name, command, environment, folder / f"{name}.log")
            services[name].start()
        with Manager(services):
            wait_until((folder / "health.duckdb").exists, READY_S, "the worker makes no warehouse")
            clients.start()
            yield installation, clients
    finally:
        for service in reversed(list(services.values())):
            service.end()
        clients.stop()


def _judge(installation: Installation, clients: Clients, every_s: float, kills: dict[str, int]) -> Lived:
    sender_journal = installation.folder / "sender.json"
    end_with_journal(installation, "writer", installation.journal)
    end_with_journal(installation, "sender", sender_journal)
    sent = json.loads(sender_journal.read_text(encoding="utf-8"))
    _wait_until_quiet(installation, every_s)
    _wait_for_right_answers(clients)
    clients.stop()
    for name in KILLED:
        service = installation.services[name]
        service.end()
        assert service.starts == kills[name] + 1, f"the {name} ended by itself {service.starts - kills[name] - 1} times"
    assert not clients.wrong, clients.wrong[:5]
    hours = materialized(installation)
    lines, executions = assert_every_execution_is_there(installation, hours, sent["executions"])
    with Warehouse(installation.environment["HEALTH_WAREHOUSE"]).read() as session:
        due = due_hours(session, installation.settings, datetime.now(UTC))
    assert not due, f"hours are due that the worker did not make: {due}"
    assert_equal_to_a_clean_rebuild(installation, hours)
    for name in KILLED:
        assert_memory_is_flat(installation.services[name])
    return Lived(
        lines=lines,
        executions=executions,
        sent=sum(sent["executions"].values()),
        tries=sent["tries"],
        hours=len(hours),
        kills=kills,
        runs=(installation.folder / "worker.log").read_text(encoding="utf-8").count(" UTC\n"),
        answers=dict(sorted(clients.counts.items())),
        slowest_s=clients.slowest_s,
        rss_mib={name: thirds(installation.services[name].rss_mib) for name in KILLED},
    )


def _wait_for_right_answers(clients: Clients) -> None:
    """Wait until everything is answered right once more, after the last kill."""
    before = clients.right()

    def has_answered() -> bool:
        return all(count > before[what] for what, count in clients.right().items())

    wait_until(has_answered, READY_S, "the endpoint does not answer everything")


def _wait_until_quiet(installation: Installation, every_s: float) -> None:
    """Wait until the worker has caught up."""
    log, end = installation.folder / "worker.log", time.monotonic() + QUIET_S
    size, changed_at = -1, time.monotonic()
    while time.monotonic() - changed_at < REFRESH_S + QUIET_TICKS * every_s:
        assert time.monotonic() < end, f"the worker does not come to rest; see {log}"
        if log.stat().st_size != size:
            size, changed_at = log.stat().st_size, time.monotonic()
        time.sleep(0.5)


def main() -> None:
    """Soak, and print how it went; what failed keeps its folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--every", type=float, default=5, help="seconds between two ticks of the worker")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="soak-live-"))
    print(f"in {folder}", flush=True)
    print(live_soak(folder, chosen.minutes, chosen.every, chosen.seed, lambda text: print(text, flush=True)))
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
