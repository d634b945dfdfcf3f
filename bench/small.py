"""An hour of the demo's fleet with all systems, as a command: from the prompt to the prompt.

`python -m bench.small` makes the demo's logs, materializes all hours but the newest, and then times the command for the
newest, the same command again with nothing new, which makes no run, and once more with `--full-refresh`, which does.
They start from the same files each time. The SQL and the bytecode that earlier commands compiled are kept, as they are
for a user after the first day.
"""

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from bench.fleet import HEADLINE_HOUR
from health_assets.cli.demo import Demo
from health_assets.core.hours import HOUR, HourRange

REPEATS = 3
NEXT, AGAIN, REFRESH = "the next hour", "the same hour again", "the same hour again, fully refreshed"
AIMS_S = {NEXT: 3, AGAIN: 2}
NO_RUN = "no run was made"


class Cost(NamedTuple):
    """Seconds on the clock, and of the processor in all processes of a command."""

    wall_s: float
    cpu_s: float


def materialize(hours: HourRange, environment: Mapping[str, str], kind: str = NEXT) -> Cost:
    """Run the command of a kind to its end.

    Raises:
        RuntimeError: it failed, or made a run where there was nothing new, or none where there was.
    """
    bounds = ["--from", f"{hours.start:%Y-%m-%dT%H}", "--to", f"{hours.end:%Y-%m-%dT%H}"]
    start, before = time.perf_counter(), _cpu_of_children_s()
    command = [sys.executable, "-m", "health_assets", "materialize", *bounds]
    command += ["--full-refresh"] if kind == REFRESH else []
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the command failed: {done.stdout}{done.stderr}")
    if (NO_RUN in done.stdout) != (kind == AGAIN):
        raise RuntimeError(f"this was not {kind}: {done.stdout}")
    return Cost(time.perf_counter() - start, _cpu_of_children_s() - before)


def _cpu_of_children_s() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def main() -> None:
    """Read the flags and run."""
    parser = argparse.ArgumentParser(prog="python -m bench.small", description=__doc__)
    parser.add_argument("--repeats", type=int, default=REPEATS, help="how often each command is timed")
    flags = parser.parse_args()
    costs: dict[str, list[Cost]] = {NEXT: [], AGAIN: [], REFRESH: []}
    with tempfile.TemporaryDirectory(prefix="health-assets-small-") as scratch:
        before, now = Path(scratch, "before"), Path(scratch, "now")
        made = Demo(now / "demo")
        hours = made.make_samples(HEADLINE_HOUR)
        newest = HourRange.of(hours.end - HOUR)
        environment = {**os.environ, **made.environment(), **_kept_in(Path(scratch))}
        materialize(HourRange(hours.start, newest.start), environment)
        shutil.copytree(now, before)
        materialize(newest, environment)  # what it compiles is kept
        for _ in range(flags.repeats):
            shutil.rmtree(now)
            shutil.copytree(before, now)
            for kind in costs:
                costs[kind].append(materialize(newest, environment, kind))
    console = Console(highlight=False)
    for kind, spent in costs.items():
        walls, cpus = zip(*spent, strict=True)
        console.print(
            f"{kind}: {statistics.median(walls):.2f} s ({min(walls):.2f} to {max(walls):.2f}), "
            f"CPU {statistics.median(cpus):.2f} s{f'; aim {AIMS_S[kind]} s' if kind in AIMS_S else ''}"
        )


def _kept_in(folder: Path) -> dict[str, str]:
    """Variables that keep bytecode and the user's cache in a folder, whatever the environment says of bytecode."""
    return {
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
        "XDG_CACHE_HOME": str(folder / "cache"),
    }


if __name__ == "__main__":
    main()
