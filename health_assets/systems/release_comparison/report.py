"""The block of releases: new versions and models beside what ran before them, with a verdict on each measure."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from health_assets.core.console import is_narrow, plain_table
from health_assets.core.hours import HourRange
from health_assets.core.terminal import printable
from health_assets.core.wording import counted
from health_assets.systems.release_comparison.comparisons import Comparison, by_pair
from health_assets.systems.release_comparison.names import BETTER, MODEL, SUCCESS_RATES, WORSE
from health_assets.systems.release_comparison.newest import compared_and_worse, newest_comparisons, worst_agents
from health_assets.systems.release_comparison.texts import NAMES, brief_verdict, difference_text, mix_text, value_text
from health_assets.warehouse.session import Session

RELEASES_SHOWN = 6
STYLES = {WORSE: "red", BETTER: "green"}


def print_block(console: Console, session: Session, hours: HourRange) -> None:
    """What these hours say of new versions and models; nothing where none is compared."""
    compared, worse = compared_and_worse(session, hours)
    if not compared:
        return
    # each agent has at least one release, and a large fleet has too many to fetch them all
    releases = by_pair(newest_comparisons(session, hours, worst_agents(session, hours, RELEASES_SHOWN)))
    title = Text("Releases compared: ", style="bold")
    title.append(f"{counted(compared, 'new version or model', 'new versions and models')}, ")
    title.append(f"{worse:,} worse in something", style="red" if worse else "green")
    console.print()
    console.print(title)
    shown = [_telling(rows) for rows in releases[:RELEASES_SHOWN]]
    console.print(comparisons_table(shown, is_brief=is_narrow(console)))
    print_mixes(console, shown)
    which = f"the first {RELEASES_SHOWN} of {compared:,}; " if compared > RELEASES_SHOWN else ""
    console.print(f"{which}health-assets compare has all measures", highlight=False)


def print_mixes(console: Console, releases: list[list[Comparison]]) -> None:
    """A line for each release that ran another mix of tasks."""
    for text in mixes_told(releases):
        console.print(Text(text, style="yellow"), soft_wrap=True)


def mixes_told(releases: list[list[Comparison]]) -> list[str]:
    """The same as text."""
    return [
        f"{printable(rows[0]['agent_id'])} {release_text(rows[0])}: {told}"
        for rows in releases
        if (told := mix_text(rows[0], [row["measure"] for row in rows])) is not None
    ]


def _telling(rows: list[Comparison]) -> list[Comparison]:
    """The success rates of a release, and the other measures that are worse or better."""
    return [row for row in rows if row["measure"] in SUCCESS_RATES or row["verdict"] in STYLES]


def comparisons_table(releases: list[list[Comparison]], *, is_brief: bool = False) -> Table:
    """A row for each measure of each release."""
    table = plain_table()
    table.add_column("agent", no_wrap=True, max_width=14 if is_brief else 18)
    table.add_column("release", no_wrap=True, max_width=14 if is_brief else 22)
    table.add_column("measure", no_wrap=True)
    for heading in () if is_brief else ("before", "now"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("difference (95%)", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for rows in releases:
        for place, row in enumerate(rows):
            table.add_row(*_cells(row, is_first=place == 0, is_brief=is_brief))
    return table


def _cells(row: Comparison, *, is_first: bool, is_brief: bool) -> list[str | Text]:
    values = [value_text(row["measure"], row[name]) for name in ("estimate_from", "estimate_to")]
    return [
        Text(printable(row["agent_id"]) if is_first else ""),
        Text(release_text(row) if is_first else ""),
        NAMES[row["measure"]],
        *([] if is_brief else values),
        difference_text(row).replace(" points", " pts"),
        Text(brief_verdict(row), style=STYLES.get(row["verdict"], "")),
    ]


def release_text(row: Comparison) -> str:
    """`1.4 → 1.5`, or `model small → large`."""
    kind = "model " if row["dimension"] == MODEL else ""
    return f"{kind}{printable(row['from_version'])} → {printable(row['to_version'])}"
