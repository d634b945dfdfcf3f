"""Session metrics of a million traces: source 5's formulas as plain Python loops, against the product's expressions.

`python -m bench.session_loops` makes the traces, runs both by turns, checks that they agree on every session to 1e-9,
and prints the ratio. Both start from the cleaned `executions` of one hour: the loops from rows that are already Python
objects, the product from its table; neither writes. Signals are mostly good, as in the demo.
"""

import argparse
import math
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import duckdb

from bench.fleet import HEADLINE_HOUR
from health_assets.core.hours import HourRange
from health_assets.core.settings import Settings
from health_assets.schema.catalog import columns_of
from health_assets.systems.session_scores.session_scores import session_scores
from health_assets.systems.session_scores.trace_risks import trace_risks
from health_assets.warehouse.engines.duckdb.store import DuckDBSession
from health_assets.warehouse.engines.duckdb.tables import create_statement
from health_assets.warehouse.session import Session

TRACES = 1_000_000
SESSIONS = 50_000
REPEATS = 5
MOST_DIFFERENCE = 1e-9
LEAST_RATIO = 20

Trace = tuple[str, str, str, float | None, float | None, float | None, float | None]


# -- what an honest user writes ----------------------------------------------------------------------------------------


def loops(traces: list[Trace]) -> dict[str, dict[str, Any]]:
    """Both metrics of every session, with the source's metadata."""
    sessions = defaultdict(list)
    for session_id, *trace in traces:
        sessions[session_id].append(trace)
    return {session_id: session_metrics(own) for session_id, own in sessions.items()}


def session_metrics(traces: list[list[Any]]) -> dict[str, Any]:
    """Both metrics of one session: source 5, line by line."""
    weights = {"confidence": 1.0, "loop_detection": 1.0, "tool_correctness": 0.8, "coherence": 1.0}
    per_trace = {}
    for trace_id, _, confidence, loop_detection, tool_correctness, coherence in traces:
        risks = {}
        if confidence is not None:
            risks["confidence"] = 1.0 - confidence
        if loop_detection is not None:
            risks["loop_detection"] = 1.0 - loop_detection
        if tool_correctness is not None:
            risks["tool_correctness"] = 1.0 - tool_correctness
        if coherence is not None:
            risks["coherence"] = 1.0 - coherence
        if not risks:
            continue
        row = {**risks, "step_risk": max(weights[name] * risk for name, risk in risks.items())}
        if "confidence" in risks:
            penalty = sum(weights[name] * risk for name, risk in risks.items() if name != "confidence")
            row["situational_penalty"] = penalty
            row["weighted_uncertainty"] = (1.0 + penalty) * (weights["confidence"] * risks["confidence"])
        per_trace[trace_id] = row

    result: dict[str, Any] = {"total_traces": len(traces), "traces_evaluated": len(per_trace), "agent_reliability": 1.0}
    ordered = sorted((row["step_risk"] for row in per_trace.values()), reverse=True)
    if ordered:
        k = max(1, math.ceil(len(ordered) * 0.15))
        mean_top_k, max_risk = sum(ordered[:k]) / k, ordered[0]
        raw_risk = 0.9 * mean_top_k + 0.1 * max_risk
        result |= {"mean_top_k_risk": mean_top_k, "max_risk": max_risk, "raw_risk": raw_risk}
        result["agent_reliability"] = min(1.0, max(0.0, 1.0 - raw_risk))
    flagged = [(trace_id, row["step_risk"]) for trace_id, row in per_trace.items() if row["step_risk"] > 0.5]
    result["flagged_traces"] = [trace_id for trace_id, _ in sorted(flagged, key=lambda pair: (-pair[1], pair[0]))]

    uncertain = [row["weighted_uncertainty"] for row in per_trace.values() if "weighted_uncertainty" in row]
    result["agent_consistency"] = 1.0
    if uncertain:
        rms = math.sqrt(sum(value**2 for value in uncertain) / len(uncertain))
        result |= {"raw_instability": rms, "agent_consistency": min(1.0, max(0.0, 1.0 - rms))}
    result["agent_id"] = traces[-1][1]
    return result


# -- the comparison ----------------------------------------------------------------------------------------------------


def make_executions(connection: duckdb.DuckDBPyConnection, traces: int, sessions: int) -> None:
    """The cleaned executions of an hour; every tenth lacks a signal, one in twelve has a bad one."""
    signals = ", ".join(
        f"CASE WHEN (dice >> {8 * place}) % 40 = 0 THEN NULL WHEN (dice >> {8 * place}) % 50 = 1 THEN 0.3 "
        f"ELSE 0.8 + (dice >> {8 * place + 4}) % 200 / 1e3 END AS {name}"
        for place, name in enumerate(columns_of("signals")[-4:])
    )
    for table in ("executions", "signals", "computed_signals", "trace_risks"):
        connection.execute(create_statement(table).replace(" NOT NULL", ""))  # of their rows a part is enough
    connection.execute(
        f"""
        INSERT INTO executions BY NAME
        SELECT TIMESTAMPTZ '{HEADLINE_HOUR}' AS hour, hour + to_milliseconds(3_600_000 * place // {traces}) AS ended_at,
            'a.jsonl' AS source_file, place AS line_number, lower(lpad(to_hex(dice), 16, '0')) AS execution_id,
            printf('s-%06d', dice % {sessions}) AS session_id, printf('agent-%05d', dice % {sessions}) AS agent_id,
            {signals}
        FROM (SELECT place, hash(place) AS dice FROM range({traces}) AS places(place))
        """
    )


def product(session: Session) -> Callable[[], list[dict[str, Any]]]:
    """Work that gives the rows of `session_scores` by the expressions of both assets, without a table between them."""
    hours, settings = HourRange.of(HEADLINE_HOUR), Settings()
    executions, signals, computed = (session.table(name) for name in ("executions", "signals", "computed_signals"))
    risks = trace_risks(executions, signals, computed, hours, settings)

    def work() -> Any:
        return session.arrow(session_scores(risks, executions, signals, computed, hours, settings))

    return work


def by_turns(repeats: int, works: dict[str, Callable[[], Any]]) -> tuple[dict[str, float], dict[str, Any]]:
    """Do each work so often, taking turns, in this process; medians of the seconds, and the last results."""
    samples: dict[str, list[float]] = {name: [] for name in works}
    found = {}
    for _ in range(repeats):
        for name, work in works.items():
            start = time.perf_counter()
            found[name] = work()
            samples[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in samples.items()}, found


@contextmanager
def executions_made(traces: int, sessions: int) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database in memory with the cleaned executions of an hour."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'; SET preserve_insertion_order = false")
        make_executions(connection, traces, sessions)
        yield connection


def with_sizes(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """A parser of flags that also knows those of the data's size."""
    parser.add_argument("--traces", type=int, default=TRACES)
    parser.add_argument("--sessions", type=int, default=SESSIONS)
    return parser


def _differences(by_loops: dict[str, dict[str, Any]], by_product: list[dict[str, Any]]) -> float:
    """The largest difference of any number.

    Raises:
        RuntimeError: the sessions, or the traces flagged in one, differ.
    """
    if by_loops.keys() != {row["session_id"] for row in by_product}:
        raise RuntimeError("the two have scored different sessions")
    largest = 0.0
    for row in by_product:
        for name, value in by_loops[row["session_id"]].items():
            if isinstance(value, float):
                largest = max(largest, abs(row[name] - value))
            elif name != "agent_id" and row[name] != value:
                raise RuntimeError(f"{name} of {row['session_id']} is {row[name]} and {value}")
    return largest


def main() -> None:
    """Read the flags, compare, and say whether the aim is met."""
    flags = with_sizes(argparse.ArgumentParser(prog="python -m bench.session_loops", description=__doc__)).parse_args()
    traces, sessions = flags.traces, flags.sessions
    with executions_made(traces, sessions) as connection:
        columns = "session_id, execution_id, agent_id, " + ", ".join(columns_of("signals")[-4:])
        rows = connection.execute(f"SELECT {columns} FROM executions ORDER BY ended_at").fetchall()
        work = product(DuckDBSession(connection))
        medians, found = by_turns(REPEATS, {"loops": lambda: loops(rows), "product": work})
    largest = _differences(found["loops"], found["product"].to_pylist())
    ratio = medians["loops"] / medians["product"]
    print(f"{traces:,} traces in {sessions:,} sessions, medians of {REPEATS}; largest difference {largest:.1e}")
    print(f"loops {medians['loops']:.2f} s, product {medians['product']:.2f} s: {ratio:.1f} times, aim {LEAST_RATIO}")
    if largest > MOST_DIFFERENCE:
        sys.exit("the two do not agree")


if __name__ == "__main__":
    main()
