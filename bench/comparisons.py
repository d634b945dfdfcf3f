"""The rows of the benchmark: what is timed against what, and how the ratio should be."""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from bench.fleet import BACKFILL, BACKFILL_AGENTS, DATA, HEADLINE_AGENTS, HEADLINE_HOUR, HEADLINE_PER_HOUR
from bench.measure import Sample, Timing, by_turns, progress, run
from bench.otlp import SPANS_PER_LINE, SPANS_PER_TRACE
from health_assets.core.hours import HOUR

SHORT_HOURS = 72
QUICK_HOURS = 72
EVALUATION = (100, 200, 8, 30)  # agents, tasks, runs of each task, actions of each run
TRACES = 50_000
MOST_DIFFERENCE = 1e-9
MOST_GIB = 2
POSTGRES = {"shared_buffers": "1GB", "max_wal_size": "8GB", "checkpoint_timeout": "30min"}
"""Settings of the server that the benchmark starts; all else, `fsync` too, is as PostgreSQL has it."""


@dataclass(frozen=True)
class Comparison:
    """A ratio and what it should be.

    Args:
        what: what is compared.
        above: the timing above the line.
        below: the timing below the line.
        limit: what the ratio should be at most, or at least.
        is_least: whether `limit` is the least.
    """

    what: str
    above: Timing
    below: Timing
    limit: float | None
    is_least: bool = False

    @property
    def ratio(self) -> float:
        """Ratio of the medians of wall time."""
        return self.above.wall_s / self.below.wall_s

    @property
    def cpu_ratio(self) -> float:
        """Ratio of the processor seconds, which other programs on the machine hardly change."""
        return self.above.cpu_s / self.below.cpu_s

    @property
    def target(self) -> str:
        """The target as text."""
        return "–" if self.limit is None else f"{'≥' if self.is_least else '≤'} {self.limit:g}"

    @property
    def is_met(self) -> bool | None:
        """Whether the target is met; None without target."""
        if self.limit is None:
            return None
        return self.ratio >= self.limit if self.is_least else self.ratio <= self.limit


@dataclass
class Findings:
    """What a benchmark found.

    Args:
        comparisons: the ratios.
        runs: runs of the product whose steps are worth a look.
        notes: what a reader must know.
    """

    comparisons: list[Comparison] = field(default_factory=list)
    runs: list[Timing] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class Benchmark:
    """Runs the rows asked for.

    Args:
        scale: share of the agents that take part, 1 for the real thing.
        repeats: how often each piece of work is timed.
        is_quick: run the pandas script on the first hours only, and extrapolate.
    """

    def __init__(self, scale: float, repeats: int, *, is_quick: bool) -> None:
        self._headline_agents = max(1, round(HEADLINE_AGENTS * scale))
        self._backfill_agents = max(1, round(BACKFILL_AGENTS * scale))
        self._scale = scale
        self._repeats = repeats
        self._is_quick = is_quick
        self._backfilled: Timing | None = None
        self._headline: Timing | None = None
        self.findings = Findings()
        if scale != 1:
            self.findings.notes.append(
                f"SMALLER DATA: {scale:g} of the agents; these ratios are not those of the real thing."
            )

    def headline(self) -> None:
        """The headline hour, against DuckDB merely reading its file."""
        data = _data("headline", agents=self._headline_agents)
        raw = str(data / "raw")
        with _scratch() as folder:

            def product(*systems: str) -> Sample:
                warehouse = Path(shutil.copy(data / "history.duckdb", folder / "health.duckdb"))
                return _product(data, warehouse, HEADLINE_HOUR, HEADLINE_HOUR + HOUR, systems)

            run("read_json", raw=raw, select="aggregate")  # now the file is in memory
            timed, alone, table, aggregate = by_turns(
                self._repeats,
                {
                    "headline hour": product,
                    "headline hour, the Agent Health Model alone": lambda: product("agent_health_model"),
                    "read_json into a table": lambda: run("read_json", raw=raw, select="table"),
                    "read_json, counts only": lambda: run("read_json", raw=raw, select="aggregate"),
                },
            )
        executions = self._headline_agents * HEADLINE_PER_HOUR
        self.findings.comparisons += [
            Comparison(f"{executions:,} executions through all assets and checks", timed, table, 10),
            Comparison("the same, over reading without keeping", timed, aggregate, None),
            Comparison("the same executions, the Agent Health Model alone", alone, table, 4.5),
        ]
        self._headline = timed
        self.findings.runs += [timed, alone]
        self.findings.notes += [
            f"Headline: {self._headline_agents:,} agents. The warehouse holds the 23 hours before "
            f"({23 * executions:,} executions and their components), made with SQL before and not timed.",
            f"Headline: peak memory {timed.peak_gib:.2f} GiB; at most {MOST_GIB} wanted.",
        ]

    def cores(self) -> None:
        """Reading the headline hour, and making all of it, on one core and on two."""
        data = _data("headline", agents=self._headline_agents)
        hour = f"{HEADLINE_HOUR:%Y-%m-%dT%H}"
        with _scratch() as folder:
            warehouse = folder / "health.duckdb"

            def ingest(cores: int) -> Callable[[], Sample]:
                where = {"raw": str(data / "raw"), "hour": hour, "cores": cores}
                return lambda: run("ingested", warehouse=_new(warehouse), **where)

            def everything(cores: int) -> Callable[[], Sample]:
                def work() -> Sample:
                    shutil.copy(data / "history.duckdb", warehouse)
                    return _product(data, warehouse, HEADLINE_HOUR, HEADLINE_HOUR + HOUR, cores=cores)

                return work

            one, two = by_turns(self._repeats, {"ingest on 1 core": ingest(1), "ingest on 2 cores": ingest(2)})
            alone, both = by_turns(
                self._repeats,
                {"headline hour on 1 core": everything(1), "headline hour on 2 cores": everything(2)},
            )
        what = f"the headline's {two.median.details['lines']:,} lines into empty tables, on 1 core over 2"
        self.findings.comparisons += [
            Comparison(what, one, two, 1.8, is_least=True),
            Comparison("the headline hour with everything, on 1 core over 2", alone, both, None),
        ]
        self.findings.notes.append(
            f"Cores: by Amdahl's law from one core and two, {_seconds_on_cores(one, two)} for reading, "
            f"{_seconds_on_cores(alone, both)} for everything, on n cores."
        )

    def window(self) -> None:
        """The stage that merges windows, against the same when every agent executes four times as often."""
        data = _data("headline", agents=self._headline_agents)
        with _scratch() as folder:

            def stage(factor: int) -> Callable[[], Sample]:
                def work() -> Sample:
                    warehouse = shutil.copy(data / f"window-{factor}x.duckdb", folder / "window.duckdb")
                    return run("window_stage", warehouse=str(warehouse), hour=f"{HEADLINE_HOUR:%Y-%m-%dT%H}")

                return work

            once, often = by_turns(
                self._repeats + 2, {"window stage": stage(1), "window stage, 4 × executions": stage(4)}
            )
        self.findings.comparisons.append(
            Comparison("window stage when every agent executes 4 × as often", often, once, 1.2)
        )

    def backfill(self) -> None:
        """Thirty days of the Agent Health Model in one run, against a pandas script and bare SQL."""
        hours = len(BACKFILL)
        data = self._backfill_data(hours)
        raw = str(data / "raw")
        script_hours = min(QUICK_HOURS, hours) if self._is_quick else hours
        with _scratch() as folder:
            by_product, by_sql, by_pandas = (folder / f"{name}.duckdb" for name in ("product", "sql", "pandas"))
            timed, bare = by_turns(
                self._repeats,
                {
                    f"backfill of {hours} hours": lambda: _backfilled(data, by_product, hours),
                    "bare SQL": lambda: run("bare_sql", raw=raw, warehouse=_new(by_sql)),
                },
            )
            (script,) = by_turns(
                1,
                {
                    "pandas script": lambda: run(
                        "pandas_backfill", raw=raw, warehouse=_new(by_pandas), hours=script_hours
                    )
                },
            )
            _require_agreement(by_product, by_sql, hours * self._backfill_agents)
            _require_agreement(by_product, by_pandas, script_hours * self._backfill_agents)
        if script_hours < hours:
            script = Timing(
                f"pandas script, EXTRAPOLATED from {script_hours} hours", script.samples, hours / script_hours
            )
        what = f"{hours} hours × {self._backfill_agents:,} agents, the Agent Health Model as one run"
        self.findings.comparisons += [
            Comparison(what, script, timed, 5, is_least=True),
            Comparison(what, timed, bare, 1.8),
        ]
        self.findings.runs.append(timed)
        self.findings.notes.append(
            f"Backfill: pandas script, bare SQL and product agree on every score to {MOST_DIFFERENCE:g}."
        )
        self._backfilled = timed

    def scaling(self) -> None:
        """Ten times the hours."""
        hours = len(BACKFILL)
        short, long = self._backfill_data(SHORT_HOURS), self._backfill_data(hours)
        with _scratch() as folder:
            name = "backfill of {} hours"
            works = {name.format(SHORT_HOURS): lambda: _backfilled(short, folder / "health.duckdb", SHORT_HOURS)}
            if self._backfilled is None:
                works[name.format(hours)] = lambda: _backfilled(long, folder / "health.duckdb", hours)
            few, *others = by_turns(self._repeats, works)
        many = self._backfilled or others[0]
        self.findings.comparisons.append(Comparison("ten times the hours", many, few, 11))

    def reliability(self) -> None:
        """The reliability evaluation of a campaign in one hour, against plain Python loops."""
        agents, tasks, runs, actions = max(1, round(EVALUATION[0] * self._scale)), *EVALUATION[1:]
        data = _data("evaluation", agents=agents, tasks=tasks, runs=runs, actions=actions)
        hour = f"{HEADLINE_HOUR:%Y-%m-%dT%H}"
        with _scratch() as folder:
            warehouse = shutil.copy(data / "evaluation.duckdb", folder / "evaluation.duckdb")
            arguments = {"warehouse": str(warehouse), "hour": hour}
            (timed,) = by_turns(self._repeats, {"reliability evaluation": lambda: run("reliability", **arguments)})
            (loops,) = by_turns(1, {"the same as Python loops": lambda: run("reliability_loops", **arguments)})
        found = loops.median.details
        if found["agents"] != agents or found["differing"] or found["largest"] > MOST_DIFFERENCE:
            raise RuntimeError(f"the product and the loops do not agree: {found}")
        what = f"reliability of {agents:,} agents × {tasks} tasks × {runs} runs × {actions} actions"
        self.findings.comparisons.append(Comparison(what, loops, timed, 20, is_least=True))

    def otlp(self) -> None:
        """A collector's file of spans into the tables, against a plain Python loop over it."""
        traces = max(1, round(TRACES * self._scale))
        data = _data("traces", count=traces)
        raw, hour = str(data / "raw"), f"{HEADLINE_HOUR:%Y-%m-%dT%H}"
        with _scratch() as folder:
            warehouse = folder / "traces.duckdb"
            timed, loops = by_turns(
                self._repeats,
                {
                    "spans into the tables": lambda: run("otlp_ingest", raw=raw, warehouse=_new(warehouse), hour=hour),
                    "the same file as a Python loop": lambda: run("otlp_loop", raw=raw),
                },
            )
        if timed.median.details != loops.median.details:
            raise RuntimeError(f"the product and the loop differ: {timed.median.details}, {loops.median.details}")
        spans = traces * SPANS_PER_TRACE
        what = f"{spans:,} spans of a collector's file"
        self.findings.comparisons.append(Comparison(what, loops, timed, 5, is_least=True))
        self.findings.notes.append(
            f"Spans: {spans / timed.wall_s:,.0f} a second from file to committed tables, "
            f"{spans / SPANS_PER_LINE / timed.wall_s:,.0f} lines; the loop {spans / loops.wall_s:,.0f} spans a second."
        )

    def postgres(self) -> None:
        """The headline hour into PostgreSQL, and a load of its executions against a bare COPY of the same rows."""
        import psycopg

        from health_assets_tests.support.postgres_server import start_server

        data = _data("headline", agents=self._headline_agents)
        hour = f"{HEADLINE_HOUR:%Y-%m-%dT%H}"
        with tempfile.TemporaryDirectory(prefix="health-assets-") as folder:  # where a user without rights may read
            url = start_server(Path(folder), POSTGRES).rpartition("/")[0]
            with psycopg.connect(f"{url}/postgres", autocommit=True) as server:
                server.execute("CREATE DATABASE history")
                progress.print("the history is copied into PostgreSQL")
                run("postgres_history", warehouse=str(data / "history.duckdb"), url=f"{url}/history")

                def product(*systems: str) -> Sample:
                    server.execute("DROP DATABASE IF EXISTS health")
                    server.execute("CREATE DATABASE health TEMPLATE history STRATEGY FILE_COPY")
                    return _product(data, f"{url}/health", HEADLINE_HOUR, HEADLINE_HOUR + HOUR, systems)

                name = "headline hour on PostgreSQL"
                alone, timed = by_turns(
                    self._repeats,
                    {f"{name}, the Agent Health Model alone": lambda: product("agent_health_model"), name: product},
                )
                arguments = {"url": f"{url}/health", "hour": hour}
                bare, load = by_turns(
                    self._repeats,
                    {
                        "bare COPY": lambda: run("postgres_copy", **arguments),
                        "load": lambda: run("postgres_load", **arguments),
                    },
                )
        executions = self._headline_agents * HEADLINE_PER_HOUR
        self.findings.comparisons += [
            Comparison(f"load of {executions:,} executions into PostgreSQL, over a bare COPY", load, bare, 2),
            Comparison("all assets and checks of the hour on PostgreSQL, over the same COPY", timed, bare, None),
            Comparison("the Agent Health Model alone on PostgreSQL, over the same COPY", alone, bare, None),
        ]
        if self._headline is not None:
            what = "all assets and checks of the hour, on PostgreSQL over DuckDB"
            self.findings.comparisons.append(Comparison(what, timed, self._headline, 3))
        self.findings.runs += [timed, alone]
        self.findings.notes.append(
            "PostgreSQL: a server of its own with fsync, whose processor seconds and memory are not counted; the bare "
            f"COPY is binary, into a table without index. Peak memory of the product {timed.peak_gib:.2f} GiB."
        )

    def _backfill_data(self, hours: int) -> Path:
        return _data("backfill", agents=self._backfill_agents, hours=hours)


def _data(kind: str, **arguments: int) -> Path:
    progress.print(f"data for {kind}, made now unless it is there")
    return Path(run("make_data", kind=kind, **arguments).details["folder"])


@contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="run-", dir=DATA) as folder:
        yield Path(folder)


def _seconds_on_cores(one: Timing, two: Timing) -> str:
    """The seconds that work takes on n cores, by Amdahl's law: those of its serial part, and those that are shared."""
    shared_s = 2 * (one.wall_s - two.wall_s)
    return f"{one.wall_s - shared_s:.1f} s + {shared_s:.1f} s / n"


def _product(
    data: Path,
    warehouse: Path | str,
    start: datetime,
    end: datetime,
    systems: Sequence[str] = (),
    cores: int | None = None,
) -> Sample:
    return run(
        "product",
        cores=cores,
        raw=str(data / "raw"),
        targets=str(data / "targets.yaml"),
        warehouse=str(warehouse),
        start=f"{start:%Y-%m-%dT%H}",
        end=f"{end:%Y-%m-%dT%H}",
        systems=list(systems),
    )


def _backfilled(data: Path, warehouse: Path, hours: int) -> Sample:
    """The system alone that the script and the bare SQL know too."""
    end = BACKFILL.start + hours * HOUR
    return _product(data, Path(_new(warehouse)), BACKFILL.start, end, ["agent_health_model"])


def _new(warehouse: Path) -> str:
    warehouse.unlink(missing_ok=True)
    return str(warehouse)


def _require_agreement(warehouse: Path, other: Path, rows: int) -> None:
    """Stop unless both hold the same rows with the same scores."""
    found = run("agreement", warehouse=str(warehouse), other=str(other)).details
    if found["rows"] != rows or found["differing"] or found["largest"] > MOST_DIFFERENCE:
        raise RuntimeError(f"{warehouse.stem} and {other.stem} do not agree on {rows} scores: {found}")
