"""`python -m bench.verdicts`: all simulations of releases and drift: the tables of docs/releases.md and docs/drift.md.

Each simulation runs in a process of its own, as many at once as there are cores; the longest begin first.
"""

import argparse
import os
import resource
import time
from concurrent.futures import ProcessPoolExecutor

from rich.console import Console

from bench import drift, release_measures, releases


def main() -> None:
    """Read the flags, simulate, and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.verdicts", description=__doc__)
    parser.add_argument("--releases", type=int, default=10_000, help="comparisons of success rates of each release")
    parser.add_argument("--measures", type=int, default=2000, help="comparisons of other measures of each release")
    parser.add_argument("--hours", type=int, default=720, help="hours of each comparison")
    parser.add_argument("--agents", type=int, default=25_000, help="agents of each healthy fleet")
    parser.add_argument("--weeks", type=int, default=4, help="weeks of each healthy fleet")
    parser.add_argument("--drifting", type=int, default=200, help="agents that drift, among ten times as many")
    flags = parser.parse_args()
    started = time.monotonic()
    console = Console(width=140)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        healthy = drift.healthy_simulated(flags.agents, flags.weeks, pool.map)
        of_rates = releases.all_simulated(flags.releases, flags.hours, pool.map)
        of_measures = release_measures.all_simulated(flags.measures, flags.hours, pool.map)
        drifting = drift.drifting_simulated(flags.drifting, pool.map)
        console.print(releases.table_of(of_rates, flags.releases, flags.hours))
        console.print(release_measures.table_of(of_measures, flags.measures, flags.hours))
        console.print(drift.healthy_table(healthy, flags.agents, flags.weeks))
        console.print(drift.drifting_table(drifting, flags.drifting))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    console.print(f"{time.monotonic() - started:,.0f} s, {used.ru_utime + used.ru_stime:,.0f} s of CPU")


if __name__ == "__main__":
    main()
