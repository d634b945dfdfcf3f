"""Reliability over k trials of published Terminal-Bench results, beside a script that reads the files by itself.

    python -m bench.trials --data FOLDER

FOLDER holds a folder of runs for each agent. The product reads them as a user's logs, with the runs of a folder folded
into one agent by `names:` of the targets file. The script computes tasks, trials, accuracy and the consistency of
outcomes (source 2, "Outcome Consistency") of `results.json` in one loop. Both must agree to 1e-9.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from datetime import datetime, timedelta
from pathlib import Path
from statistics import mean, variance
from typing import Any

import duckdb
import yaml
from tabulate import tabulate

EPSILON = 1e-8
TOLERANCE = 1e-9
Figures = tuple[int, int, float, float]
"""Tasks, trials, accuracy and consistency of outcomes."""


def trials_of(folder: Path) -> list[dict[str, Any]]:
    """All trials of an agent's runs."""
    return [trial for path in folder.rglob("results.json") for trial in json.loads(path.read_text())["results"]]


def by_script(folder: Path) -> Figures:
    """The figures of one agent."""
    outcomes: dict[str, list[float]] = defaultdict(list)
    for trial in trials_of(folder):
        outcomes[trial["task_id"]].append(float(bool(trial["is_resolved"])))
    consistencies = []
    for own in outcomes.values():
        p = mean(own)
        consistencies.append(max(0.0, 1 - variance(own) / (p * (1 - p) + EPSILON)))
    every = [one for own in outcomes.values() for one in own]
    return len(outcomes), len(every), mean(every), mean(consistencies)


def by_product(folders: list[Path], raw: Path, scratch: Path) -> dict[str, Figures]:
    """The figures of every agent, as of the hour in which the last trial ended."""
    names, ends = [], []
    for folder in folders:
        trials = trials_of(folder)
        runs = {re.sub(r"^.*?\.\d+-of-\d+\.", "", trial["trial_name"]) for trial in trials}
        names.append({"match": "|".join(map(re.escape, sorted(runs))), "agent": folder.name})
        ends += [trial["trial_ended_at"] for trial in trials if trial["trial_ended_at"]]
    last = datetime.fromisoformat(max(ends)).replace(minute=0, second=0, microsecond=0, tzinfo=None)
    targets, warehouse = scratch / "targets.yaml", scratch / "health.duckdb"
    targets.write_text(yaml.safe_dump({"names": names}))
    environment = os.environ | {
        "HEALTH_RAW": str(raw.resolve()), "HEALTH_TARGETS": str(targets), "HEALTH_WAREHOUSE": str(warehouse),
        "HEALTH_EVALUATION_WINDOW_HOURS": "8784", "HEALTH_LOOKBACK_HOURS": "8784",
    }  # fmt: skip
    hours = ("--from", f"{last:%Y-%m-%dT%H}", "--to", f"{last + timedelta(hours=1):%Y-%m-%dT%H}")
    command = [sys.executable, "-m", "health_assets", "materialize", "--system", "reliability", *hours]
    subprocess.run(command, env=environment, check=True, stdout=sys.stderr)
    with duckdb.connect(str(warehouse), read_only=True) as connection:
        rows = connection.execute(
            "SELECT agent_id, tasks, baseline_runs, baseline_accuracy, c_out FROM agent_reliability "
            "WHERE task_source = 'evaluation'"
        ).fetchall()
    return {agent: tuple(figures) for agent, *figures in rows}


def main() -> None:
    """Print both figures of each agent; end with an error where they differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with a folder of runs for each agent")
    raw = parser.parse_args().data
    folders = sorted(path for path in raw.iterdir() if path.is_dir())
    with tempfile.TemporaryDirectory() as scratch:
        product = by_product(folders, raw, Path(scratch))
    rows, differences = [], []
    for folder in folders:
        script, own = by_script(folder), product[folder.name]
        differences += [abs(one - other) for one, other in zip(script, own, strict=True)]
        rows.append([folder.name, *script, max(differences[-4:])])
    headers = ["agent", "tasks", "trials", "accuracy", "c_out", "greatest difference"]
    print(tabulate(rows, headers=headers, floatfmt=".6g"))
    if max(differences) > TOLERANCE:
        sys.exit("the product and the script differ")


if __name__ == "__main__":
    main()
