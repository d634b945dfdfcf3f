"""The commands about releases: compare versions, and let a pipeline stop a release that is worse."""

from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from health_assets.cli.console import WarehouseOption, console, readable_errors, settings_of
from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HourRange
from health_assets.core.terminal import printable
from health_assets.systems.release_comparison.names import MEASURES, MODEL, SUCCESS_RATE, VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from health_assets.core.settings import Settings
    from health_assets.systems.release_comparison.comparison_rows import Comparison
    from health_assets.warehouse.session import Session

USAGE = 2
"""Exit code of the gate where it cannot tell: its 1 says that a release is worse."""
AGENTS_SHOWN = 50
"""Agents of a table, since a large fleet has more than anybody reads."""
PAIRS_SHOWN = 10


class Form(StrEnum):
    """Forms of comparisons."""

    TEXT = "text"
    JSON = "json"
    JUNIT = "junit"
    MARKDOWN = "markdown"


class Dimension(StrEnum):
    """What may be compared."""

    VERSION = VERSION
    MODEL = MODEL


ByOption = Annotated[Dimension, typer.Option("--by", help="What is new: a version, or a model.")]
FromOption = Annotated[str | None, typer.Option("--from", help="Only what ran before it as this version or model.")]
HourOption = Annotated[
    str | None,
    typer.Option("--hour", help="Hour to look back from, like 2026-06-07T23; by default the newest."),
]


def compare(
    agent: Annotated[str | None, typer.Option(help="The agent; all by default.")] = None,
    by: Annotated[Dimension | None, typer.Option("--by", help="Versions or models alone; both by default.")] = None,
    form: Annotated[Form, typer.Option("--format", help="The form of what is printed.")] = Form.TEXT,
    from_version: FromOption = None,
    to_version: Annotated[str | None, typer.Option("--to", help="Only this new version or model.")] = None,
    hour: HourOption = None,
    warehouse: WarehouseOption = None,
) -> None:
    """Compare new versions and models with what ran before them, each with its verdict."""
    from health_assets.apps.releases.forms import as_json, as_junit, as_markdown
    from health_assets.apps.releases.gate import of_rows
    from health_assets.systems.release_comparison.comparison_rows import by_pair
    from health_assets.systems.release_comparison.newest import newest_comparisons, worst_agents
    from health_assets.systems.release_comparison.report import print_comparisons, print_mixes
    from health_assets.warehouse.store import Warehouse

    with readable_errors():
        settings = settings_of(None, None, warehouse)
        with Warehouse.of(settings).read() as session:
            hours = _hours(session, settings, hour)
            agents = None if agent is None else [agent]
            is_table = form in (Form.TEXT, Form.MARKDOWN)
            is_named = from_version is not None or to_version is not None
            if agents is None and is_table and not is_named:
                agents = worst_agents(session, hours, AGENTS_SHOWN + 1, by)
            rows = newest_comparisons(session, hours, None if agents is None else agents[:AGENTS_SHOWN], by)
            if is_named:
                rows = _named(rows, from_version, to_version)
                agents = [*dict.fromkeys(row["agent_id"] for row in rows)] if is_table else None
                rows = [row for row in rows if agents is None or row["agent_id"] in agents[:AGENTS_SHOWN]]
        if form is Form.JSON:
            typer.echo(as_json(rows))
        elif form is Form.JUNIT:
            typer.echo(as_junit("health-assets compare", of_rows(rows)))
        elif not rows:
            told = f"no new version or model {f'of {printable(agent)} ' if agent else ''}is compared"
            console.print(f"{told}: none ran first while another was known", markup=False, highlight=False)
        elif form is Form.MARKDOWN:
            typer.echo(as_markdown(rows))
        else:
            print_comparisons(console, by_pair(rows))
            print_mixes(console, by_pair(rows))
        if agents is not None and len(agents) > AGENTS_SHOWN:
            typer.echo()  # else Markdown takes it for a row
            typer.echo(f"the worst {AGENTS_SHOWN} of all agents; --agent NAME and --format json have the others")


def gate(
    agent: Annotated[str, typer.Argument(help="The agent.")],
    to_version: Annotated[
        str | None, typer.Option("--to", help="The new version or model; by default the newest.")
    ] = None,
    by: ByOption = Dimension.VERSION,
    measure: Annotated[
        list[str] | None, typer.Option(help=f"Measure that counts ({', '.join(MEASURES)}), again for more.")
    ] = None,
    least_runs: Annotated[int, typer.Option(help="Runs of the new one below which too little is known.", min=0)] = 0,
    needs_verdict: Annotated[
        bool, typer.Option("--needs-verdict", help="Exit with 3 while a measure has no verdict yet.")
    ] = False,
    budget: Annotated[bool, typer.Option(help="Whether a spent error budget stops the release.")] = True,
    junit: Annotated[Path | None, typer.Option(help="File for the reasons as JUnit XML.")] = None,
    hour: HourOption = None,
    warehouse: WarehouseOption = None,
) -> None:
    """Say whether a release may go on.

    Exit code: 0 it may, 1 it is worse or the error budget is spent, 3 too little is known for --least-runs or
    --needs-verdict, or nothing is compared; 2 for an error or a wrong command line.
    """
    from health_assets.apps.releases.forms import as_junit
    from health_assets.apps.releases.gate import PASSED, REFUSED, GateRules, exit_code_of, judged, release_of
    from health_assets.systems.error_budget.newest import budget_spent
    from health_assets.systems.release_comparison.texts import mix_text
    from health_assets.warehouse.store import Warehouse

    with readable_errors(USAGE):
        measures = _known_measures(measure or [SUCCESS_RATE])
        settings = settings_of(None, None, warehouse)
        with Warehouse.of(settings).read() as session:
            hours = _hours(session, settings, hour)
            rows = release_of(session, hours, agent, by, to_version)
            spent = budget_spent(session, hours, agent)
        rules = GateRules(measures=measures, least_runs=least_runs, needs_verdict=needs_verdict, looks_at_budget=budget)
        reasons = judged(rows, spent, rules)
        if junit is not None:
            _write(junit, as_junit(f"health-assets gate {agent}", reasons))
        if rows:
            told = f"{agent}: {by} {rows[0]['from_version']} → {rows[0]['to_version']}"
            console.print(Text(printable(told), style="bold"), soft_wrap=True)
            if mix := mix_text(rows[0], [row["measure"] for row in rows]):
                console.print(Text(f"  {mix}", style="yellow"), soft_wrap=True)
        for reason in reasons:
            style = {PASSED: "green", REFUSED: "red"}.get(reason.exit_code, "yellow")
            console.print(Text(printable(f"  {reason.sentence}", 1000), style=style), soft_wrap=True)
    raise typer.Exit(exit_code_of(reasons))


def _named(rows: "Sequence[Comparison]", from_version: str | None, to_version: str | None) -> "list[Comparison]":
    """The comparisons of the versions or models that were named.

    Raises:
        HealthAssetsError: there is none, so that a name that is misspelt does not look like a release without a fault.
    """
    chosen = [
        row for row in rows
        if from_version in (None, row["from_version"]) and to_version in (None, row["to_version"])
    ]  # fmt: skip
    if chosen:
        return chosen
    asked = " → ".join(printable(name or "any version or model") for name in (from_version, to_version))
    pairs = dict.fromkeys((row["from_version"], row["to_version"]) for row in rows)
    others = ", ".join(f"{printable(one)} → {printable(other)}" for one, other in [*pairs][:PAIRS_SHOWN])
    raise HealthAssetsError(f"{asked} is not compared; compared: {others or 'none'}")


def _hours(session: "Session", settings: "Settings", asked: str | None) -> HourRange:
    """The hours in which the newest comparison of a release is looked for: as many as a release is compared.

    Raises:
        HealthAssetsError: there is no such hour.
    """
    from health_assets.apps.report.blocks import report_hours

    last = report_hours(session, settings, asked, datetime.now(UTC)).end
    return HourRange(last, last).extended_back(settings.comparison_hours)


def _known_measures(names: list[str]) -> list[str]:
    if unknown := [name for name in names if name not in MEASURES]:
        raise HealthAssetsError(f"{printable(unknown[0])!r} is no measure; those are {', '.join(MEASURES)}")
    return list(dict.fromkeys(names))


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise HealthAssetsError(f"cannot write {path}: {error.strerror}") from error
