"""The survey's block: who answers and who is healthy, by platform, and what the others did."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import ibis
from ibis import ir
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from health_assets.core.console import plain_table
from health_assets.core.formatting import counted
from health_assets.core.hours import HourRange
from health_assets.core.terminal import printable
from health_assets.systems.survey.names import ALL_PLATFORMS, COUNTS, WITHOUT_DOCUMENT
from health_assets.warehouse.session import Session

if TYPE_CHECKING:
    from health_assets.systems.survey.probing import Probe

PLATFORMS_SHOWN = 15


@contextmanager
def probing_bar(console: Console, agents: int) -> Iterator[Callable[["Probe"], None]]:
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
    latest = session.latest_hour("survey_summary", hours)
    if latest is None:
        return
    summary, probes = (session.hours_of(name, HourRange.of(latest)) for name in ("survey_summary", "agent_probes"))
    everyone, *platforms = session.dicts(_from_the_largest_on(summary))
    rate = everyone["survival_rate"]
    title = Text(f"Survey at {latest:%Y-%m-%d %H:%M} UTC: ", style="bold")
    title.append(f"{rate:.1%} survive", style=_colour_of(rate))
    title.append(f"  {counted(everyone['agents'], 'agent')}: {everyone['responsive']:,} responsive, ")
    title.append(f"{everyone['healthy']:,} healthy")
    console.print()
    console.print(title)
    console.print(_table(platforms[:PLATFORMS_SHOWN], session.dicts(_without_a_document(probes))))
    captions = ["responsive: answered with a valid health document; survival: responsive of all agents"]
    if len(platforms) > PLATFORMS_SHOWN:
        captions.append(f"the largest {PLATFORMS_SHOWN} of {len(platforms):,} platforms; all are in survey_summary")
    for caption in captions:
        console.print(Text(caption, style="dim italic"))


def _from_the_largest_on(summary: ir.Table) -> ir.Table:
    """The row of all platforms, and behind it the platforms, the largest first."""
    return summary.order_by(summary.platform != ALL_PLATFORMS, ibis.desc("agents"), "platform").select(
        "platform", *COUNTS, "survival_rate"
    )


def _without_a_document(probes: ir.Table) -> ir.Table:
    """By platform and outcome, the agents that gave no valid document, most frequent first."""
    others = probes.filter(probes.outcome != "valid")
    by_outcome = others.group_by("platform", "outcome").aggregate(agents=others.count())
    return by_outcome.order_by(ibis.desc("agents"), "outcome")


def _table(platforms: list[dict[str, Any]], without_a_document: list[dict[str, Any]]) -> Table:
    others: dict[str, list[str]] = {}
    for found in without_a_document:
        others.setdefault(found["platform"], []).append(f"{found['agents']:,} {WITHOUT_DOCUMENT[found['outcome']]}")
    table = plain_table()
    table.add_column("platform", no_wrap=True, max_width=24)
    for name in (*COUNTS, "survival"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("what the others did")
    for platform in platforms:
        rate = platform["survival_rate"]
        table.add_row(
            Text(printable(platform["platform"])), *(f"{platform[name]:,}" for name in COUNTS),
            Text(f"{rate:.1%}", style=_colour_of(rate)), Text(", ".join(others.get(platform["platform"], ()))),
        )  # fmt: skip
    return table


def _colour_of(rate: float) -> str:
    return "green" if rate >= 0.95 else "yellow" if rate >= 0.5 else "red"
