"""The block of versions: what each agent's versions did in a window, side by side.

What belongs here: shares and means. What does not: whether versions differ by more than chance.
"""

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

from ibis import ir
from rich.console import Console
from rich.table import Table
from rich.text import Text

from health_assets.core.console import plain_table
from health_assets.core.formatting import counted, dollars, share
from health_assets.core.hours import HourRange
from health_assets.core.terminal import printable
from health_assets.warehouse.session import Session

AGENTS_SHOWN, VERSIONS_SHOWN = 10, 10
FEWEST_RUNS = 20
"""A version with fewer runs is not to be compared; an agent's score is provisional up to as many, too."""
TOO_FEW = "too few runs to compare"
NO_VERSION = "(no version)"
_SUMS = (
    "executions", "successes", "executions_with_tokens", "executions_with_cost", "input_tokens", "output_tokens",
    "cost_usd",
)  # fmt: skip


def print_versions(console: Console, session: Session, hours: HourRange) -> None:
    """Print the versions of the agents that ran in several, the newest first; nothing where no execution names one.

    Args:
        console: where to.
        session: a session on the warehouse.
        hours: the window.
    """
    rows = session.dicts(_versions(session.hours_of("usage_components", hours)))
    if not any(row["agent_version"] for row in rows):
        return
    agents = [list(own) for _, own in groupby(rows, itemgetter("agent_id"))]
    several = sorted((own for own in agents if len(own) > 1), key=_runs, reverse=True)
    console.print()
    title = Text("Versions compared: ", style="bold")
    title.append(f"{counted(len(several), 'agent')} in several versions in {len(hours):,} h")
    console.print(title)
    if several:
        console.print(_table(several[:AGENTS_SHOWN]))
    if len(several) > AGENTS_SHOWN:
        console.print(f"the {AGENTS_SHOWN} of {len(several):,} agents with most runs", highlight=False)


def _versions(components: ir.Table) -> ir.Table:
    """The sums of each version of each agent, of which any run ended, by agent and the newest first."""
    sums = components.group_by(["agent_id", "agent_version"]).aggregate(
        first_hour=components.hour.min(), **{name: components[name].sum() for name in _SUMS}
    )
    ran = sums.filter(sums.executions > 0)
    return ran.order_by(ran.agent_id, ran.first_hour.desc(), ran.agent_version.desc())


def _runs(versions: list[dict[str, Any]]) -> int:
    return sum(version["executions"] for version in versions)


def _table(agents: list[list[dict[str, Any]]]) -> Table:
    table = plain_table()
    table.add_column("agent", no_wrap=True, max_width=30)
    table.add_column("version", no_wrap=True, max_width=24)
    for heading in ("since", "runs", "succeeded", "tokens a run", "cost a run"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("")
    for versions in agents:
        for row in _rows(versions):
            table.add_row(*row)
    table.caption = "shares and means: a difference may be chance"
    return table


def _rows(versions: list[dict[str, Any]]) -> Iterator[list[str | Text]]:
    """A row for each of an agent's newest versions, and one for how many others there are."""
    for place, version in enumerate(versions[:VERSIONS_SHOWN]):
        runs = version["executions"]
        tokens = _mean(_tokens(version), version["executions_with_tokens"])
        cost = _mean(version["cost_usd"], version["executions_with_cost"])
        yield [
            Text(printable(version["agent_id"]) if place == 0 else ""),
            Text(printable(version["agent_version"] or NO_VERSION)),
            f"{version['first_hour']:%Y-%m-%d}", f"{runs:,}", share(version["successes"] / runs),
            "–" if tokens is None else f"{tokens:,.0f}", "–" if cost is None else dollars(cost),
            TOO_FEW if runs < FEWEST_RUNS else "",
        ]  # fmt: skip
    if others := versions[VERSIONS_SHOWN:]:
        yield ["", f"{counted(len(others), 'older one')}", "", f"{_runs(others):,}", "", "", "", ""]


def _tokens(version: dict[str, Any]) -> int | None:
    """All tokens that the runs of a version tell."""
    known = [version[name] for name in ("input_tokens", "output_tokens") if version[name] is not None]
    return sum(known) if known else None


def _mean(total: float | None, runs: int) -> float | None:
    """The mean over the runs that tell an amount."""
    return None if total is None or not runs else total / runs
