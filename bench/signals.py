"""Whether computed signals tell failures: their AUROC against the known outcomes of published trajectories.

    python -m bench.signals --data FOLDER

FOLDER holds `<format>/<data set>/…`, where the format is one of `trajectories`. Each data set goes through the product
as a user's logs do, `health-assets materialize --system session_scores` into a warehouse of its own. Signals come from
`computed_signals`, outcomes from `executions`; `step_risk` is what the signals would make, were they stated. A greater
risk should mean a failure; 0.5 is chance. The number of tool calls is the trivial baseline. Runs without a tool call
have no signal: they are counted and left out.

The second table compares other formulas with these by the mean of their areas. Of the data sets in alphabetical
order, the first, third and so on are there to choose by, the others to confirm the choice.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import duckdb
from tabulate import tabulate

from bench.auroc import auroc, auroc_difference, auroc_within, fifths
from bench.trajectories import CONVERTERS, READ_AS_THEY_ARE, START, lines_of

QUERY = """
WITH calls AS (
    SELECT *, status = 'failure' AS has_failed,
        coalesce(result_digest, if(status = 'failure', coalesce(error, ''), NULL)) AS came_of_it,
        came_of_it IS NOT NULL AND arguments_digest IS NOT NULL AS is_known,
        row_number() OVER in_order AS place,
        count(*) OVER (PARTITION BY execution_id, agent_id) AS last_place
    FROM tool_calls
    WINDOW in_order AS (PARTITION BY execution_id, agent_id ORDER BY ended_at, length(call_id), call_id)
),
calls_of_runs AS (
    SELECT execution_id, agent_id,
        sum(place) FILTER (has_failed) / sum(place) AS late_failures,
        count(*) FILTER (has_failed AND place > last_place - 5) / least(5, count(*)) AS failures_of_last_5,
        (count(*) FILTER (is_known) - count(DISTINCT (tool, arguments_digest, status, came_of_it)) FILTER (is_known))
            / count(*) AS same_results
    FROM calls GROUP BY execution_id, agent_id
)
SELECT e.status = 'failure' AS has_failed, c.tool_calls,
    1 - c.signal_tool_correctness AS tool_risk, 1 - c.signal_loop_detection AS loop_risk,
    greatest(0.8 * tool_risk, loop_risk) AS step_risk,  -- by the default weights; a null counts as 0
    c.tool_failures / c.tool_calls AS every_failure,
    (c.tool_failures - c.repaired_failures) / c.tool_calls AS unrepaired,
    r.same_results, r.late_failures, r.failures_of_last_5,
    c.tool_failures + c.repeated_steps AS count_of_both
FROM executions AS e
LEFT JOIN computed_signals AS c USING (hour, execution_id, agent_id)
LEFT JOIN calls_of_runs AS r ON r.execution_id = e.execution_id AND r.agent_id = e.agent_id
"""
HEADERS = (
    "data set", "runs", "failed", "with a signal", "step_risk", "tool_risk", "loop_risk", "number of calls",
    "step_risk - number of calls", "step_risk of runs as long",
)  # fmt: skip
NOT_KNOWN = "not known"
SIGNALS = ("step_risk", "tool_risk", "loop_risk", "tool_calls")
FORMULAS = {
    "step_risk": "`step_risk`",
    "every_failure": "failed calls / calls, repaired or not",
    "unrepaired": "failed calls that nothing repaired / calls",
    "same_results": "calls with the same result as before / calls, without cycles",
    "late_failures": "failed calls / calls, each weighted by its place",
    "failures_of_last_5": "failed calls of the last 5 / 5",
    "count_of_both": "failed calls + repeated steps",
    "tool_calls": "number of calls",
}
"""By column of the query, the formulas that are compared."""

Runs = dict[str, list[Any]]
"""The columns of the query."""


def main() -> None:
    """Read the flags, run the data sets through the product and print both tables."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.signals", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of trajectories, <format>/<data set>/…")
    folder = parser.parse_args().data
    formats = sorted([*CONVERTERS, *READ_AS_THEY_ARE])
    sets = [path for name in formats for path in sorted((folder / name).glob("*/"))]
    if not sets:
        parser.error(f"{folder} has no data set; a folder of a format is named {', '.join(formats)}")
    measured = []
    for data_set in sets:
        print(f"{data_set.parent.name}/{data_set.name}", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(prefix="health-assets-signals-") as scratch:
            measured.append(runs_of(data_set, Path(scratch)))
    rows = [
        [f"{data_set.parent.name}/{data_set.name}", *areas(runs)] for data_set, runs in zip(sets, measured, strict=True)
    ]
    print(tabulate(rows, HEADERS, tablefmt="github", disable_numparse=True), end="\n\n")
    print(tabulate(means(measured), ("formula", "chosen by", "confirmed by"), tablefmt="github", floatfmt=".2f"))


def runs_of(data_set: Path, scratch: Path) -> Runs:
    """What is known of the runs of a data set, after it went through the product in an empty folder.

    Raises:
        RuntimeError: the command failed.
    """
    raw, warehouse = scratch / "raw", scratch / "health.duckdb"
    raw.mkdir()
    write_logs(data_set, raw)
    command = [sys.executable, "-m", "health_assets", "materialize", "--system", "session_scores"]
    environment = {**os.environ, "HEALTH_RAW": str(raw), "HEALTH_WAREHOUSE": str(warehouse), "HEALTH_TARGETS": ""}
    done = subprocess.run(command, env=environment, cwd=scratch, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the command failed: {done.stdout}{done.stderr}")
    with duckdb.connect(str(warehouse), read_only=True) as connection:
        return connection.sql(QUERY).to_arrow_table().to_pydict()


def write_logs(data_set: Path, raw: Path) -> None:
    """Fill the folder of raw logs: converted lines, or copies for the product's own reader."""
    if data_set.parent.name in READ_AS_THEY_ARE:
        for file in data_set.rglob("*.json"):
            copy = shutil.copyfile(file, raw / file.name)
            os.utime(copy, (START.timestamp(),) * 2)  # the time of a tau-bench trial is that of its file
        return
    with (raw / "runs.jsonl").open("w", encoding="utf-8") as log:
        for run in CONVERTERS[data_set.parent.name](data_set):
            log.writelines(f"{line}\n" for line in lines_of(run))


def areas(runs: Runs) -> list[str]:
    """The cells of a data set: counts, and areas where two runs with a signal failed and two did not."""
    own = _with_signal(runs)
    counts = [len(runs["has_failed"]), sum(runs["has_failed"])]
    cells = [*map(str, counts), f"{len(own['has_failed']) / max(1, counts[0]):.0%}"]
    if not _is_enough(own):
        return [*cells, *[NOT_KNOWN] * (len(HEADERS) - len(cells) - 1)]
    has_failed, calls, risks = own["has_failed"], own["tool_calls"], own["step_risk"]
    cells += [str(auroc(has_failed, own[name])) for name in SIGNALS]
    return [*cells, str(auroc_difference(has_failed, risks, calls)), _within(has_failed, risks, calls)]


def _within(has_failed: Sequence[bool], risks: Sequence[float], calls: Sequence[float]) -> str:
    try:
        return str(auroc_within(has_failed, risks, fifths(calls)))
    except ValueError:
        return NOT_KNOWN


def means(measured: Sequence[Runs]) -> list[list[Any]]:
    """By formula, the mean area over the data sets to choose by and over those to confirm the choice; null for none."""
    halves = [
        [own for runs in half if _is_enough(own := _with_signal(runs))] for half in (measured[::2], measured[1::2])
    ]
    return [
        [title, *(mean(auroc(own["has_failed"], own[name]).value for own in half) if half else None for half in halves)]
        for name, title in FORMULAS.items()
    ]


def _with_signal(runs: Runs) -> Runs:
    places = [place for place, risk in enumerate(runs["step_risk"]) if risk is not None]
    return {name: [values[place] or 0 for place in places] for name, values in runs.items()}


def _is_enough(runs: Runs) -> bool:
    failures = sum(runs["has_failed"])
    return min(failures, len(runs["has_failed"]) - failures) >= 2


if __name__ == "__main__":
    main()
