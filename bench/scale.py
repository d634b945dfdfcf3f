"""A warehouse on Spark, in figures: how much one machine reads and computes there, and what the driver needs for it.

`python -m bench.scale` starts LakeSail, and an Apache Spark where SPARK_HOME names one, each in a process of its own.
It prints a table in Markdown for each question: reading ever more lines, counting what they hold, reading spans, one
hour with everything beside DuckDB, without and with the hours before it, some hours as one run and as a run each, one
worker and two, and one agent with half of all executions.
"""

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import psutil

from bench.fleet import BACKFILL, DATA, HEADLINE_AGENTS, HEADLINE_HOUR, HEADLINE_PER_HOUR
from bench.measure import Sample, Watch, progress, run
from bench.report import machine
from health_assets.core.hours import HOUR, HourRange
from health_assets_tests.support.spark_servers import apache_spark_process, sail_process

ROWS = ("lines", "spans", "hour", "headline", "backfill", "workers", "skew")
AGENTS = 83_333
"""A million executions in an hour, by what each agent executes."""
PARTS_PER_MILLION = 8
MILLIONS = (1, 5, 20)
TRACES = 50_000
"""Traces of ten spans each."""
LOCAL_CORES = 2
WORKER_MB = 2048
THE_HOUR = HourRange.of(HEADLINE_HOUR)
Servers = Callable[[], AbstractContextManager[tuple[str, int]]]


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The cost of a piece of work.

    Args:
        name: what it was.
        sample: seconds and memory of the process that gave the orders.
        cluster_cpu_s: processor seconds of the cluster; None without one.
        cluster_gib: most memory of the cluster at once; None without one.
        steps_cluster_cpu_s: processor seconds of the cluster, by the work's step.
    """

    name: str
    sample: Sample
    cluster_cpu_s: float | None = None
    cluster_gib: float | None = None
    steps_cluster_cpu_s: Mapping[str, float] = field(default_factory=dict)

    def of_step(self, step: str) -> str:
        """The seconds of a step, and in brackets the processor seconds here and, behind a plus sign, of the cluster."""
        told = self.sample.details
        if step not in told["steps"]:
            return "–"
        there = f" + {self.steps_cluster_cpu_s[step]:.1f}" if step in self.steps_cluster_cpu_s else ""
        return f"{told['steps'][step]:.2f} ({told['steps_cpu_s'][step]:.1f}{there})"


class ClusterWatch(Watch):
    """Looks at the memory and the processor seconds of a server and all its children."""

    def __init__(self, number: int) -> None:
        super().__init__(every_s=0.2)
        self._number = number
        self.most_bytes = 0
        self._looked_at: list[float] = []
        self._cpu_s: list[float] = []

    def look(self) -> None:
        """Look once."""
        self.most_bytes = max(self.most_bytes, int(_sum(self._number, lambda process: process.memory_info().rss)))
        self._looked_at.append(time.time())
        self._cpu_s.append(_cpu_s(self._number))

    def cpu_s(self, began_at: float, ended_at: float) -> float:
        """Processor seconds between two moments of Unix time, as far as looks tell them apart."""
        # those of a process that has ended are its parent's a moment later
        before, after = np.interp([began_at, ended_at], self._looked_at, np.maximum.accumulate(self._cpu_s))
        return float(after - before)


def on_cluster(name: str, number: int, work: Callable[[], Sample]) -> Cost:
    """Do a piece of work beside a cluster whose process has this number."""
    before = _cpu_s(number)
    with ClusterWatch(number) as watch:
        sample = work()
    cost = Cost(
        name=name,
        sample=sample,
        cluster_cpu_s=_cpu_s(number) - before,
        cluster_gib=watch.most_bytes / 2**30,
        steps_cluster_cpu_s={step: watch.cpu_s(*at) for step, at in sample.details.get("steps_at", {}).items()},
    )
    progress.print(f"  {name}: {sample.wall_s:.1f} s, {cost.cluster_cpu_s:.1f} CPU s of the cluster")
    return cost


def _sum(number: int, figure: Callable[[psutil.Process], float]) -> float:
    """The sum of a figure over the processes of a server that are still there."""
    root, found = psutil.Process(number), 0.0
    for process in (root, *root.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):  # it may end while it is looked at
            found += figure(process)
    return found


def _cpu_s(number: int) -> float:
    """Processor seconds of a server, with those of its children that have ended."""
    return _sum(number, lambda process: sum(process.cpu_times()[:4]))


class Scale:
    """Answers the questions.

    Args:
        folder: for warehouses and logs of servers.
        millions: how many million lines are read.
        hour_agents: agents of the hour with everything.
        headline_agents: agents of that with the hours before it.
        backfill_hours: how many hours are made as one run and as a run each.
    """

    def __init__(
        self, folder: Path, millions: tuple[int, ...], hour_agents: int, headline_agents: int, backfill_hours: int
    ) -> None:
        self._folder = folder
        self._millions = millions
        self._hour_agents = hour_agents
        self._headline_agents = headline_agents
        self._backfill_hours = backfill_hours
        self._has_apache = bool(os.getenv("SPARK_HOME"))

    def lines(self) -> list[Cost]:
        """Reading more and more lines with Sail, and the first of them with DuckDB alone."""
        found = []
        hour = f"{HEADLINE_HOUR:%Y-%m-%dT%H}"
        for millions in self._millions:
            raw = str(_spread(millions) / "raw")
            with self._sail() as (url, number):
                work = partial(run, "ingested_on_spark", raw=raw, url=url, hour=hour, **self._new_places())
                found.append(on_cluster(f"{millions} million lines, Sail", number, work))
        warehouse = str(self._folder / f"{uuid4().hex}.duckdb")
        raw = str(_spread(self._millions[0]) / "raw")
        sample = run("ingested", raw=raw, warehouse=warehouse, hour=hour, cores=LOCAL_CORES)
        return [*found, Cost(name=f"{self._millions[0]} million lines, DuckDB", sample=sample)]

    def spans(self) -> list[Cost]:
        """Reading spans and putting their traces together, with Sail and with DuckDB alone."""
        own = {"raw": str(_made("traces", count=TRACES) / "raw"), "hour": f"{HEADLINE_HOUR:%Y-%m-%dT%H}"}
        with self._sail() as (url, number):
            work = partial(run, "ingested_on_spark", url=url, **own, **self._new_places())
            found = on_cluster("500,000 spans, Sail", number, work)
        sample = run("ingested", warehouse=str(self._folder / f"{uuid4().hex}.duckdb"), cores=LOCAL_CORES, **own)
        return [found, Cost(name="500,000 spans, DuckDB", sample=sample)]

    def hour(self) -> list[Cost]:
        """The headline hour with all assets and checks, without the hours before it, on each engine."""
        folder = _made("headline", agents=self._hour_agents)
        warehouse = str(self._folder / f"{uuid4().hex}.duckdb")
        found = [Cost(name="DuckDB", sample=_product(folder, {"warehouse": warehouse}))]
        for name, servers in self._engines().items():
            with servers() as (url, number):
                where = {"warehouse": url, **self._new_places()}
                found.append(on_cluster(name, number, partial(_product, folder, where)))
        return found

    def headline(self) -> list[Cost]:
        """The headline hour with all assets and checks, with the 23 hours before it, on each engine."""
        folder = _made("headline", agents=self._headline_agents)
        history = folder / "history.duckdb"
        copied = shutil.copy(history, self._folder / f"{uuid4().hex}.duckdb")
        found = [Cost(name="DuckDB", sample=_product(folder, {"warehouse": str(copied)}))]
        for name, servers in self._engines().items():
            where = self._new_places()
            with self._sail() as (url, _):  # whichever engine reads it: this program writes it
                run("spark_history", warehouse=str(history), url=url, **where)
            with servers() as (url, number):
                found.append(on_cluster(name, number, partial(_product, folder, {"warehouse": url, **where})))
        return found

    def backfill(self) -> list[Cost]:
        """Hours in which every agent executes once, all systems: as one run, and as a run each, one after another."""
        folder = _made("backfill", agents=self._hour_agents, hours=self._backfill_hours)
        hours = HourRange(BACKFILL.start, BACKFILL.start + self._backfill_hours * HOUR)
        found = []
        for name, servers in self._engines().items():
            with servers() as (url, number):
                where = {"warehouse": url, **self._new_places()}
                work = partial(_product, folder, where, hours=hours)
                found.append(on_cluster(f"{name}, one run of {self._backfill_hours} hours", number, work))
            with servers() as (url, number):
                where = {"warehouse": url, **self._new_places()}
                for each in hours:
                    work = partial(_product, folder, where, hours=HourRange.of(each))
                    found.append(on_cluster(f"{name}, {each:%H}:00 alone", number, work))
        return found

    def workers(self) -> list[Cost]:
        """One worker with a million lines, and two with two, of Apache Spark: read, and scored by one system."""
        found = []
        for count in (1, 2) if self._has_apache else ():
            folder = _spread(count)
            with self._apache(f"local-cluster[{count},1,{WORKER_MB}]") as (url, number):
                where = {"warehouse": url, **self._new_places()}
                work = partial(_product, folder, where, "agent_health_model")
                found.append(on_cluster(f"{count} × 1 core, {count} million lines", number, work))
        return found

    def skew(self) -> list[Cost]:
        """The same million executions with one agent that has half of them, all systems."""
        found = []
        for percent in (0, 50):
            folder = _spread(1, percent)
            with self._sail() as (url, number):
                where = {"warehouse": url, **self._new_places()}
                found.append(on_cluster(f"{percent} % of one agent, Sail", number, partial(_product, folder, where)))
        return found

    def _engines(self) -> Mapping[str, Servers]:
        engines: dict[str, Servers] = {"Sail": self._sail}
        if self._has_apache:
            engines["Apache Spark"] = lambda: self._apache(f"local[{LOCAL_CORES}]")
        return engines

    def _sail(self) -> AbstractContextManager[tuple[str, int]]:
        return sail_process(self._folder)

    def _apache(self, master: str) -> AbstractContextManager[tuple[str, int]]:
        return apache_spark_process(self._folder, master)

    def _new_places(self) -> dict[str, str]:
        name = uuid4().hex
        return {"lake": str(self._folder / f"lake-{name}"), "ledger": str(self._folder / f"ledger-{name}.duckdb")}


def _spread(millions: int, loudest_percent: int = 0) -> Path:
    """Folder with so many million lines of one hour."""
    parts = millions * PARTS_PER_MILLION
    return _made("spread", agents=millions * AGENTS, parts=parts, loudest_percent=loudest_percent)


def _made(kind: str, **arguments: int) -> Path:
    """A folder of data, made by another process: the memory of this one would count as that of those it starts."""
    return Path(run("make_data", kind=kind, **arguments).details["folder"])


def _product(folder: Path, where: Mapping[str, str], *systems: str, hours: HourRange = THE_HOUR) -> Sample:
    """Hours with the assets and checks of these systems, or of all."""
    span = {"start": f"{hours.start:%Y-%m-%dT%H}", "end": f"{hours.end:%Y-%m-%dT%H}"}
    inputs: dict[str, Any] = {"raw": str(folder / "raw"), "targets": str(folder / "targets.yaml")}
    return run("product", **inputs, **where, **span, systems=list(systems))


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder on the disk of the data."""
    DATA.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="run-", dir=DATA) as folder:
        yield Path(folder)


def table(costs: list[Cost]) -> Iterator[str]:
    """What pieces of work cost, as Markdown, with the seconds of each step where they tell them."""
    yield "| work | seconds | CPU s here | memory here | CPU s of the cluster | memory of the cluster |"
    yield "|---|---:|---:|---:|---:|---:|"
    for cost in costs:
        own = cost.sample
        there = (
            ("–", "–") if cost.cluster_cpu_s is None else (f"{cost.cluster_cpu_s:.1f}", f"{cost.cluster_gib:.2f} GiB")
        )
        here = f"{own.wall_s:.1f} | {own.cpu_s:.1f} | {own.peak_bytes / 2**30:.2f} GiB"
        yield f"| {cost.name} | {here} | {' | '.join(there)} |"
    steps = dict.fromkeys(step for cost in costs for step in cost.sample.details.get("steps", {}))
    if not steps:
        return
    yield ""
    yield f"| step: seconds (CPU s here + of the cluster) | {' | '.join(cost.name for cost in costs)} |"
    yield f"|---|{'---:|' * len(costs)}"
    for step in steps:
        yield f"| {step} | {' | '.join(cost.of_step(step) for cost in costs)} |"


def main() -> None:
    """Read the flags and run."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("--only", default=",".join(ROWS), help=f"questions, of {','.join(ROWS)}")
    parser.add_argument("--millions", default=",".join(map(str, MILLIONS)), help="how many million lines are read")
    parser.add_argument("--agents", type=int, default=59_950, help="agents of the hour with everything")
    parser.add_argument("--headline-agents", type=int, default=HEADLINE_AGENTS, help="agents of the headline")
    parser.add_argument("--hours", type=int, default=4, help="hours of the backfill")
    flags = parser.parse_args()
    machine_line = machine()
    with ExitStack() as stack:
        millions = tuple(map(int, flags.millions.split(",")))
        scale = Scale(
            stack.enter_context(scratch()), millions, flags.agents, flags.headline_agents, backfill_hours=flags.hours
        )
        for name in flags.only.split(","):
            progress.print(name)
            costs = getattr(scale, name)()
            print(f"\n**{name}**: {getattr(Scale, name).__doc__.partition(': ')[0]}\n")
            print("\n".join(table(costs)), flush=True)
    per_hour = f"{HEADLINE_PER_HOUR} executions of each agent in the hour"
    print(f"\nOne run each; {per_hour}. Machine: {machine_line}.")


if __name__ == "__main__":
    main()
