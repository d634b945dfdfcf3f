"""What the benchmark shows: tables for a terminal, or the same in Markdown."""

import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.comparisons import Comparison, Findings
from bench.measure import Timing


@dataclass(frozen=True)
class Grid:
    """A table: title, headings (those with numbers start with `>`), rows of text."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


def machine() -> str:
    """One line about what this runs on."""
    gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = os.getloadavg()[0]
    libraries = ", ".join(f"{name} {version(name.lower())}" for name in ("DuckDB", "Dagster", "pandas"))
    return (
        f"{os.cpu_count()} cores {_processor()}, {gib:.0f} GiB memory, {platform.system()}, "
        f"Python {platform.python_version()}, {libraries}; load average {load:.1f} at the start"
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def grids(findings: Findings) -> Iterator[Grid]:
    """The tables: ratios, what each piece of work cost, and the steps of the product's median runs."""
    yield Grid(
        "Ratios of medians, measured in one run",
        ("what", "time of", ">seconds", "over", ">seconds", ">ratio", ">target", "met", ">CPU ratio"),
        [_ratio_row(comparison) for comparison in findings.comparisons],
    )
    timings = {id(timing): timing for each in findings.comparisons for timing in (each.above, each.below)}
    yield Grid(
        "What each cost",
        ("work", ">runs", ">seconds (least to most)", ">CPU seconds", ">start and imports", ">peak memory"),
        [_cost_row(timing) for timing in timings.values()],
    )
    for run in findings.runs:
        steps = run.median.details["steps"]
        rest = run.median.wall_s - sum(steps.values())
        rows = [
            (name, f"{seconds:.2f}", f"{seconds / run.median.wall_s:.0%}")
            for name, seconds in (*steps.items(), ("Dagster around them", rest))
        ]
        yield Grid(f"Steps, {run.name}", ("step", ">seconds", ">share"), rows)


def _ratio_row(each: Comparison) -> tuple[str, ...]:
    met = {True: "yes", False: "NO", None: ""}[each.is_met]
    return (
        each.what, each.above.name, f"{each.above.wall_s:.2f}", each.below.name, f"{each.below.wall_s:.2f}",
        f"{each.ratio:.2f}", each.target, met, f"{each.cpu_ratio:.2f}",
    )  # fmt: skip


def _cost_row(timing: Timing) -> tuple[str, ...]:
    walls = [timing.factor * sample.wall_s for sample in timing.samples]
    seconds = f"{timing.wall_s:.2f} ({min(walls):.2f} to {max(walls):.2f})"
    return (
        timing.name,
        str(len(walls)),
        seconds,
        f"{timing.cpu_s:.2f}",
        f"{timing.start_s:.2f}",
        f"{timing.peak_gib:.2f} GiB",
    )


def captions(findings: Findings, machine_line: str) -> list[str]:
    """What stands below the tables."""
    return [
        *findings.notes,
        "Seconds without interpreter start and imports; files in the page cache.",
        f"Machine: {machine_line}.",
    ]


def print_tables(console: Console, findings: Findings, machine_line: str) -> None:
    """Show the tables in a terminal."""
    for place, grid in enumerate(grids(findings)):
        table = Table(title=grid.title, title_justify="left", title_style="bold", caption_justify="left")
        for heading in grid.headings:
            table.add_column(heading.removeprefix(">"), justify="right" if heading.startswith(">") else "left")
        for row in grid.rows:
            table.add_row(*row, style="red" if "NO" in row else None)
        if place == 0:
            table.caption = "\n".join(captions(findings, machine_line))
        console.print(table)


def markdown(findings: Findings, machine_line: str) -> str:
    """The same for a README."""
    parts = []
    for place, grid in enumerate(grids(findings)):
        rules = ["---:" if heading.startswith(">") else "---" for heading in grid.headings]
        lines = [[heading.removeprefix(">") for heading in grid.headings], rules, *grid.rows]
        parts.append(f"**{grid.title}**\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines))
        if place == 0:
            parts += captions(findings, machine_line)
    return "\n\n".join(parts)
