"""Session metrics of a million traces: the published code of those who thought them up, against the product's.

`python -m bench.peers` clones the peer's code to a temporary folder, or takes a clone that `--pandaprobe` names, gives
both the same traces by turns, checks that they agree on every session to the four digits that the peer keeps, and
prints the ratio. What cannot be cloned is skipped with a word.

The peer gets its traces grouped by session, with their signals at hand, which the service around it asks its database
for. The product starts from the cleaned `executions` of one hour. Neither writes.

The reliability metrics of princeton-pli/hal-harness are published without a licence, so nobody may run them here.
`bench.reliability_loops` are the same formulas, from the paper.
"""

import argparse
import asyncio
import importlib
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import duckdb
from rich.console import Console

from bench.session_loops import by_turns, executions_made, product, with_sizes
from health_assets.schema.catalog import columns_of
from health_assets.warehouse.engines.duckdb.store import DuckDBSession

PANDAPROBE = "https://github.com/chirpz-ai/pandaprobe"
METRICS = {"agent_reliability": "AgentReliabilityMetric", "agent_consistency": "AgentConsistencyMetric"}
"""The peer's classes, by the names that both give to the scores."""
CLONE_TIMEOUT_S = 120
REPEATS = 3
MOST_DIFFERENCE = 0.5e-4 + 1e-9
"""The peer rounds scores to four digits."""

Signals = dict[str, dict[str, float]]
"""By trace, the signals that are known, each 0 to 1."""


class OneSession(NamedTuple):
    """A session as the peer is given it."""

    session_id: str
    traces: list[Any]
    signals: Signals


class UnreachableError(Exception):
    """The code of a peer cannot be had."""


@contextmanager
def clone(address: str, given: Path | None) -> Iterator[Path]:
    """A folder with the peer's code.

    Args:
        address: of its repository.
        given: a clone that is there already.

    Raises:
        UnreachableError: it cannot be cloned from here.
    """
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="health-assets-peer-") as folder:
        command = ["git", "clone", "--quiet", "--depth", "1", address, folder]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=CLONE_TIMEOUT_S)
        except (OSError, subprocess.SubprocessError) as error:
            raise UnreachableError(f"{address} cannot be cloned from here: {_reason(error)}") from error
        yield Path(folder)


def _reason(error: Exception) -> str:
    said = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
    return said[-1] if said else type(error).__name__


def pandaprobe(folder: Path) -> Callable[[list[OneSession]], dict[str, dict[str, float]]]:
    """The peer's two session metrics, as its service calls them one after another for each session."""
    sys.path.insert(0, str(folder / "backend"))
    home = "app.core.evals.metrics.session"
    metrics = {
        name: getattr(importlib.import_module(f"{home}.{name}.metric"), kind)() for name, kind in METRICS.items()
    }

    async def scores(session: OneSession) -> dict[str, float]:
        return {
            name: (
                await metric.evaluate(session.session_id, session.traces, llm=None, precomputed_signals=session.signals)
            ).score
            for name, metric in metrics.items()
        }

    async def all_scores(sessions: list[OneSession]) -> dict[str, dict[str, float]]:
        return {session.session_id: await scores(session) for session in sessions}

    return lambda sessions: asyncio.run(all_scores(sessions))


def grouped(connection: duckdb.DuckDBPyConnection) -> list[OneSession]:
    """The traces of each session in the order of their ends."""
    names = columns_of("signals")[-4:]
    sql = f"SELECT session_id, execution_id, {', '.join(names)} FROM executions ORDER BY ended_at"
    signals = [name.removeprefix("signal_") for name in names]
    sessions: dict[str, OneSession] = {}
    for session_id, trace_id, *values in connection.execute(sql).fetchall():
        session = sessions.setdefault(session_id, OneSession(session_id, [], {}))
        session.traces.append(SimpleNamespace(trace_id=trace_id))
        known = {name: value for name, value in zip(signals, values, strict=True) if value is not None}
        session.signals[trace_id] = known
    return [*sessions.values()]


def largest_difference(theirs: dict[str, dict[str, float]], ours: list[dict[str, Any]]) -> float:
    """The largest difference of a score.

    Raises:
        RuntimeError: the two have scored different sessions.
    """
    if theirs.keys() != {row["session_id"] for row in ours}:
        raise RuntimeError("the two have scored different sessions")
    return max(abs(theirs[row["session_id"]][name] - row[name]) for row in ours for name in METRICS)


def compare(folder: Path, traces: int, sessions: int, console: Console) -> None:
    """Time both by turns, and print the ratio.

    Raises:
        SystemExit: they do not agree.
    """
    peer = pandaprobe(folder)
    with executions_made(traces, sessions) as connection:
        given, work = grouped(connection), product(DuckDBSession(connection))
        medians, found = by_turns(REPEATS, {"peer": lambda: peer(given), "product": work})
    largest = largest_difference(found["peer"], found["product"].to_pylist())
    console.print(
        f"{traces:,} traces in {sessions:,} sessions, medians of {REPEATS}; largest difference {largest:.1e}\n"
        f"pandaprobe's session metrics {medians['peer']:.2f} s, product {medians['product']:.2f} s: "
        f"{medians['peer'] / medians['product']:.1f} times"
    )
    if largest > MOST_DIFFERENCE:
        sys.exit("the two do not agree")


def main() -> None:
    """Read the flags and run."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("--pandaprobe", type=Path, help=f"a clone of {PANDAPROBE} that is there already")
    flags = with_sizes(parser).parse_args()
    console = Console(highlight=False)
    try:
        with clone(PANDAPROBE, flags.pandaprobe) as folder:
            compare(folder, flags.traces, flags.sessions, console)
    except UnreachableError as error:
        console.print(f"skipped: {error}")


if __name__ == "__main__":
    main()
