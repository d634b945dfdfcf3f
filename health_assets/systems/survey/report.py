"""The survey's block: who answers and who is healthy, by platform, and what the others did."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from health_assets.core.hours import HourRange
from health_assets.core.terminal import printable
from health_assets.core.wording import counted
from health_assets.pipeline.layout import latest_hour, plain_table
from health_assets.systems.survey.probing import Probe
from health_assets.systems.survey.survey_summary import ALL_PLATFORMS
from health_assets.warehouse.session import Session

PLATFORMS_SHOWN = 15
WORDS = {
    "invalid": "no valid document",
    "http_error": "HTTP error",
    "timeout": "too slow",
    "unreachable": "unreachable",
    "refused": "redirected elsewhere",
    "private": "at a private address",
}


@contextmanager
def probing_bar(console: Console, agents: int) -> Iterator[Callable[[Probe], None]]:
    """A bar over the agents of a survey; gives the function that takes its probes."""
    bar = Progress(
        SpinnerColumn(), TextColumn("asking"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        console=console, transient=True,
    )  # fmt: skip
    with bar:
        task = bar.add_task("asking", total=agents)
        yield lambda _: bar.advance(task)


def print_block(console: Console, session: Session, hours: HourRange) -> None:
    """The latest survey of these hours."""
    latest = latest_hour(session, "survey_summary", hours)
    if latest is None:
        return
    found = session.query(
        "SELECT platform, agents, responsive, healthy, survival_rate FROM survey_summary WHERE hour = ? "
        "ORDER BY platform <> ?, agents DESC, platform",
        [latest, ALL_PLATFORMS],
    )
    (_, agents, responsive, healthy, rate), *platforms = found
    title = Text(f"Survey at {latest:%Y-%m-%d %H:%M} UTC: ", style="bold")
    title.append(f"{rate:.1%} survive", style=_colour_of(rate))
    title.append(f"  {counted(agents, 'agent')}: {responsive:,} responsive, {healthy:,} healthy")
    console.print()
    console.print(title)
    table = plain_table()
    table.add_column("platform", no_wrap=True, max_width=24)
    for name in ("agents", "responsive", "healthy", "survival"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("what the others did")
    others = _others(session, latest)
    for platform, *counts, share in platforms[:PLATFORMS_SHOWN]:
        table.add_row(
            Text(printable(platform)), *(f"{count:,}" for count in counts),
            Text(f"{share:.1%}", style=_colour_of(share)), Text(", ".join(others.get(platform, ()))),
        )  # fmt: skip
    console.print(table)
    captions = ["responsive: answered with a valid health document; survival: responsive of all agents"]
    if len(platforms) > PLATFORMS_SHOWN:
        captions.append(f"the largest {PLATFORMS_SHOWN} of {len(platforms):,} platforms; all are in survey_summary")
    for caption in captions:
        console.print(Text(caption, style="dim italic"))


def _others(session: Session, hour: datetime) -> dict[str, list[str]]:
    """Counts of the agents that gave no valid document, by platform and reason, most frequent first."""
    counts = session.query(
        "SELECT platform, outcome, count(*) AS agents FROM agent_probes WHERE hour = ? AND outcome <> 'valid' "
        "GROUP BY platform, outcome ORDER BY agents DESC, outcome",
        [hour],
    )
    told: dict[str, list[str]] = {}
    for platform, outcome, agents in counts:
        told.setdefault(platform, []).append(f"{agents:,} {WORDS[outcome]}")
    return told


def _colour_of(rate: float) -> str:
    return "green" if rate >= 0.95 else "yellow" if rate >= 0.5 else "red"
