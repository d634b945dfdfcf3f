"""`python -m bench`: make the data (4 GB, below data/bench or BENCH_DATA), time all, print the table of ratios."""

import argparse

from rich.console import Console

from bench.comparisons import Benchmark
from bench.fleet import DATA
from bench.report import machine, markdown, print_tables

ROWS = ("headline", "cores", "window", "backfill", "scaling", "reliability", "otlp", "postgres")


def main() -> None:
    """Read the flags and run."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--only", type=_rows, default=list(ROWS), help=f"rows to run, of {','.join(ROWS)}")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the agents, for a quick look")
    parser.add_argument("--repeats", type=int, default=3, help="how often each piece of work is timed")
    parser.add_argument("--quick", action="store_true", help="run the pandas script on 72 hours and extrapolate")
    parser.add_argument(
        "--markdown", action="store_true", help="also print Markdown, on stdout; the tables go to stderr"
    )
    flags = parser.parse_args()

    DATA.mkdir(parents=True, exist_ok=True)
    machine_line = machine()
    benchmark = Benchmark(flags.scale, flags.repeats, is_quick=flags.quick)
    for row in flags.only:
        getattr(benchmark, row)()
    print_tables(Console(stderr=flags.markdown), benchmark.findings, machine_line)
    if flags.markdown:
        print(markdown(benchmark.findings, machine_line))


def _rows(text: str) -> list[str]:
    names = text.split(",")
    if unknown := set(names) - set(ROWS):
        raise argparse.ArgumentTypeError(f"unknown row {min(unknown)!r}; choose from {', '.join(ROWS)}")
    return [name for name in ROWS if name in names]


if __name__ == "__main__":
    main()
