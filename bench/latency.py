"""`python -m bench.latency`: seconds from an agent's first failures until people hear of it, at ticks of 60 s and 5 s.

A real `health-assets run` with a webhook on loopback and a real `health-assets serve` work on one warehouse. Every
agent is one trial: it runs well for hours, and at a random time a burst of its executions fails. From when these lines
are in the log it is measured when the webhook is told, when the agent's page says so, and when its document does.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from statistics import quantiles
from typing import Any
from urllib.error import URLError
from urllib.parse import quote

from bench.endpoint import cpu_s
from bench.fleet import ROOT

TICKS_S = (60, 5)
TRIALS = 50
MARGIN_S = 15
"""Aim: a p95 of at most the tick and so many seconds."""
HISTORY = timedelta(hours=3)
BETWEEN_RUNS = timedelta(minutes=5)
FAILURES = 8
NEWS_EVERY_S = 2.0
"""How often an agent that still runs well logs an execution; the agents take turns."""
POLL_S = 0.5
PATIENCE_S = 300.0
NOW = "org.health-assets.agent-now"
CHANGES = ("alert", "page", "document")


@dataclass
class Trial:
    """An agent that begins to fail.

    Args:
        agent_id: the agent.
        after_s: when, counted from the beginning of the trials.
        failed_at: when its failures were in the log, by the monotonic clock; None before.
        seen_at: when each of `CHANGES` was there.
    """

    agent_id: str
    after_s: float
    failed_at: float | None = None
    seen_at: dict[str, float] = field(default_factory=dict)

    def see(self, change: str) -> None:
        """Note a change, the first time."""
        self.seen_at.setdefault(change, time.monotonic())

    def waits_for(self, change: str) -> bool:
        """Whether the agent fails and the change is not there yet."""
        return self.failed_at is not None and change not in self.seen_at

    def latency_s(self, change: str) -> float:
        """Seconds from its failures to a change."""
        assert self.failed_at is not None
        return self.seen_at[change] - self.failed_at


def main() -> None:
    """Read the flags, measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.latency", description=__doc__)
    parser.add_argument("--every", type=_seconds, default=list(TICKS_S), help="ticks in seconds, with commas between")
    parser.add_argument("--trials", type=int, default=TRIALS, help="agents that begin to fail, at each tick")
    parser.add_argument(
        "--within", type=float, help="seconds in which they begin to; by default a fifth of a tick for each, at least 3"
    )
    parser.add_argument("--seed", type=int, default=1)
    flags = parser.parse_args()
    for every_s in flags.every:
        within_s = flags.within or flags.trials * max(3.0, every_s / 5)
        random = Random(flags.seed)
        trials = [Trial(f"agent-{number:02d}", random.uniform(0, within_s)) for number in range(flags.trials)]
        with tempfile.TemporaryDirectory(prefix="health-assets-latency-") as folder:
            ticks_cpu_s = measure(Path(folder), every_s, trials)
        print(f"ticks of {every_s} s, {len(trials)} agents that begin to fail within {within_s:.0f} s; {ticks_cpu_s}")
        for change in CHANGES:
            print(f"  {change:<9} {summary([trial.latency_s(change) for trial in trials], every_s)}", flush=True)
    print(f"load average of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


def _seconds(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def summary(latencies_s: list[float], every_s: int) -> str:
    """Their median and 95th percentile."""
    cuts = quantiles(latencies_s, n=20, method="inclusive")
    return (
        f"p50 {cuts[9]:5.1f} s  p95 {cuts[18]:5.1f} s  max {max(latencies_s):5.1f} s; "
        f"aim: p95 at most {every_s + MARGIN_S} s"
    )


def measure(folder: Path, every_s: int, trials: list[Trial]) -> str:
    """Let the agents fail, and wait until all is seen; tells what the worker cost.

    Raises:
        TimeoutError: something was not seen for minutes.
    """
    log = folder / "raw" / "runs.jsonl"
    log.parent.mkdir()
    write_history(log, [trial.agent_id for trial in trials])
    by_agent = {trial.agent_id: trial for trial in trials}
    with webhook(by_agent) as url, chdir(folder):  # where no Dagster records the runs
        alerts = folder / "alerts.yaml"
        # one by one, so that no message says less because others wait with it
        alerts.write_text(
            f"channels: {{pager: {{type: webhook, url: '{url}'}}}}\ndigest_above: {10 * len(trials)}\n",
            encoding="utf-8",
        )
        environment = environment_of(folder, alerts)
        with running(["run", "--every", f"{every_s}s"], environment) as worker, serving(environment) as base:
            _wait(lambda: all(verdict(base, name) is not None for name in by_agent), "documents of all agents")
            _wait(lambda: all(page(base, name) for name in by_agent), "pages of all agents")
            before_s, began = cpu_s(worker.pid), time.monotonic()
            let_fail(log, base, trials)
            ticks = (time.monotonic() - began) / every_s
            return f"{(cpu_s(worker.pid) - before_s) / ticks:.2f} s of CPU a tick"


def environment_of(folder: Path, alerts: Path) -> dict[str, str]:
    """The environment of the programs, without what else may be set."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HEALTH_", "DAGSTER_"))}
    return kept | {
        "PYTHONPATH": str(ROOT), "HEALTH_RAW": str(folder / "raw"), "HEALTH_WAREHOUSE": str(folder / "health.duckdb"),
        "HEALTH_ALERTS": str(alerts), "HEALTH_PRICES": "off",
    }  # fmt: skip


# -- logs ------------------------------------------------------------------------------------------------------------


def write_history(log: Path, agents: list[str]) -> None:
    """Hours in which every agent runs well."""
    now = datetime.now(UTC)
    count = HISTORY // BETWEEN_RUNS
    moments = [now - place * BETWEEN_RUNS for place in range(count, 0, -1)]
    append(log, [run_of(agent, moment, "success") for moment in moments for agent in agents])


def run_of(agent_id: str, ended_at: datetime, status: str) -> dict[str, Any]:
    """An execution."""
    return {
        "type": "execution", "execution_id": f"{agent_id}-{ended_at.timestamp():.6f}", "agent_id": agent_id,
        "started_at": (ended_at - timedelta(seconds=2)).isoformat(), "ended_at": ended_at.isoformat(), "status": status,
    }  # fmt: skip


def append(log: Path, records: list[dict[str, Any]]) -> None:
    """Write lines at the end of a log, in one write."""
    with log.open("a", encoding="utf-8") as file:
        file.write("".join(f"{json.dumps(record)}\n" for record in records))


def let_fail(log: Path, base: str, trials: list[Trial]) -> None:
    """Write what the agents do, and look at their pages and documents until all trials are over.

    Raises:
        TimeoutError: something was not seen for minutes.
    """
    began, news_at, turn = time.monotonic(), 0.0, 0
    last_s = max(trial.after_s for trial in trials)
    while any(change not in trial.seen_at for trial in trials for change in CHANGES):
        after_s = time.monotonic() - began
        if after_s > last_s + PATIENCE_S:
            missing = [f"{one.agent_id} {change}" for one in trials for change in CHANGES if change not in one.seen_at]
            raise TimeoutError(f"not seen: {', '.join(missing)}")
        for trial in trials:
            if trial.failed_at is None and trial.after_s <= after_s:
                fail(log, trial)
        well = [trial.agent_id for trial in trials if trial.failed_at is None]
        if well and after_s >= news_at:
            append(log, [run_of(well[turn % len(well)], datetime.now(UTC), "success")])
            news_at, turn = after_s + NEWS_EVERY_S, turn + 1
        look(base, trials)
        time.sleep(POLL_S)


def fail(log: Path, trial: Trial) -> None:
    """Write the failures with which a trial begins."""
    now = datetime.now(UTC)
    moments = [now - place * timedelta(milliseconds=20) for place in range(FAILURES, 0, -1)]  # after its last success
    append(log, [run_of(trial.agent_id, moment, "failure") for moment in moments])
    trial.failed_at = time.monotonic()


# -- programs --------------------------------------------------------------------------------------------------------


@contextmanager
def running(arguments: list[str], environment: Mapping[str, str], **how: Any) -> Iterator[subprocess.Popen[str]]:
    """A command of the product in a process of its own, until it is told to end."""
    command = [sys.executable, "-m", "health_assets", *arguments]
    how = {"stdout": subprocess.DEVNULL, **how}
    with subprocess.Popen(command, env=environment, text=True, **how) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)


@contextmanager
def serving(environment: Mapping[str, str]) -> Iterator[str]:
    """`health-assets serve`; gives its address."""
    with running(["serve", "--port", "0"], environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        port = process.stdout.readline().split("//")[1].split(",")[0].rpartition(":")[2]
        yield f"http://127.0.0.1:{int(port)}"


@contextmanager
def webhook(trials: Mapping[str, Trial]) -> Iterator[str]:
    """A receiver of alerts, which notes what opens; gives its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            for notice in body.get("notices", [body]):
                trial = trials.get(notice.get("subject", {}).get("id"))
                if trial is not None and notice["event"] == "opened" and notice["rule"] == "failing_now":
                    trial.see("alert")
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


# -- looking ---------------------------------------------------------------------------------------------------------


def look(base: str, trials: list[Trial]) -> None:
    """Note which pages and documents say by now that their agents fail."""
    for trial in trials:
        if trial.waits_for("document") and verdict(base, trial.agent_id) == "failing":
            trial.see("document")
        if trial.waits_for("page") and "failing" in page(base, trial.agent_id):
            trial.see("page")


def verdict(base: str, agent_id: str) -> str | None:
    """What an agent's health document says of the last hours; None where there is no document yet."""
    body = fetched(f"{base}/agents/{quote(agent_id)}/.well-known/agent-health")
    return json.loads(body)["extensions"].get(NOW, {}).get("verdict", "") if body else None


def page(base: str, agent_id: str) -> str:
    """The text of an agent's page; empty where there is none yet."""
    return fetched(f"{base}/ui/agents/{quote(agent_id)}")


def fetched(url: str) -> str:
    """What is there; empty where nothing is yet."""
    with suppress(URLError, TimeoutError), urllib.request.urlopen(url, timeout=30) as response:
        return response.read().decode()
    return ""


def _wait(holds: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > until:
            raise TimeoutError(f"there are no {what}")
        time.sleep(1)


if __name__ == "__main__":
    main()
