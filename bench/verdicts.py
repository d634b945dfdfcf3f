"""`python -m bench.verdicts`: all simulations of releases and drift: the tables of docs/releases.md and docs/drift.md.

Each module of `SIMULATIONS` runs in a process of its own, as many at once as there are cores.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

SIMULATIONS = {
    "bench.releases": ["--count=20", "--hours=10"],
    "bench.drift": ["--agents=50", "--weeks=1", "--drifting=10"],
    "bench.release_measures": ["--count=20", "--hours=10"],
}
"""Modules, the longest first, and what makes them so small that their figures say nothing."""


def main() -> None:
    """Read the flags, simulate, and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.verdicts", description=__doc__)
    parser.add_argument("--small", action="store_true", help="so few comparisons that the figures say nothing")
    is_small = parser.parse_args().small
    started = time.monotonic()
    commands = [[module, *(flags if is_small else [])] for module, flags in SIMULATIONS.items()]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for told in pool.map(_told, commands):
            print(told, flush=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{time.monotonic() - started:,.0f} s, {used.ru_utime + used.ru_stime:,.0f} s of CPU")


def _told(command: list[str]) -> str:
    return subprocess.run([sys.executable, "-m", *command], stdout=subprocess.PIPE, text=True, check=True).stdout


if __name__ == "__main__":
    main()
