"""The block of releases: new versions and models beside what ran before them, with a verdict on each measure."""

from collections.abc import Sequence
from itertools import chain

from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from health_assets.core.console import plain_table
from health_assets.core.formatting import counted
from health_assets.core.hours import HourRange
from health_assets.core.terminal import printable
from health_assets.systems.release_comparison.comparison_rows import Comparison, by_pair
from health_assets.systems.release_comparison.names import BETTER, MODEL, SUCCESS_RATES, WORSE
from health_assets.systems.release_comparison.newest import compared_and_worse, newest_comparisons, worst_agents
from health_assets.systems.release_comparison.texts import (
    NAMES,
    brief_verdict,
    difference_text,
    margin_text,
    margins_text,
    mix_text,
    runs_text,
    value_text,
)
from health_assets.warehouse.session import Session

RELEASES_SHOWN = 6
STYLES = {WORSE: "red", BETTER: "green"}
INDENT = 2
HEADINGS = ("measure", "before", "now", "difference (95%)", "margin", "runs", "verdict")
_BRIEF_HEADINGS = ("measure", "difference (95%)", "runs", "verdict")


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
    print_comparisons(console, shown)
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


def print_comparisons(console: Console, releases: list[list[Comparison]]) -> None:
    """Each release by name, and below it a row for each measure; columns are aligned over all releases."""
    cells, widths = _laid_out(releases, is_brief=False)
    is_brief = INDENT + sum(widths) + len(widths) > console.width
    if is_brief:
        cells, widths = _laid_out(releases, is_brief=True)
    headings = _BRIEF_HEADINGS if is_brief else HEADINGS
    for place, (rows, own) in enumerate(zip(releases, cells, strict=True)):
        heading = f"{printable(rows[0]['agent_id'])}: {release_text(rows[0])}"
        console.print(Text(heading, style="bold"), soft_wrap=True)
        table = _measures_table(headings, widths, rows, own, has_header=place == 0)
        console.print(Padding(table, (0, 0, 0, INDENT), expand=False))
    if is_brief:
        margins = margins_text(chain(*releases))
        console.print(f"no difference that matters: within {margins}", markup=False, highlight=False)


def _laid_out(releases: list[list[Comparison]], *, is_brief: bool) -> tuple[list[list[list[str]]], list[int]]:
    """The texts of each release's rows, and the widths of the columns of all of them."""
    cells = [[_cells(row, is_brief=is_brief) for row in rows] for rows in releases]
    headings = _BRIEF_HEADINGS if is_brief else HEADINGS
    widths = [max(cell_len(row[place]) for row in (headings, *chain(*cells))) for place in range(len(headings))]
    return cells, widths


def _measures_table(
    headings: Sequence[str],
    widths: Sequence[int],
    rows: list[Comparison],
    cells: list[list[str]],
    *,
    has_header: bool,
) -> Table:
    table = plain_table()
    table.show_header = has_header
    for heading, width in zip(headings, widths, strict=True):
        justify: JustifyMethod = "right" if heading in ("before", "now", "margin", "runs") else "left"
        if heading == "verdict":  # which goes on in the next line where there is no room
            table.add_column(heading)
        else:
            table.add_column(heading, justify=justify, no_wrap=True, min_width=width)
    for row, texts in zip(rows, cells, strict=True):
        table.add_row(*texts[:-1], Text(texts[-1], style=STYLES.get(row["verdict"], "")))
    return table


def _cells(row: Comparison, *, is_brief: bool) -> list[str]:
    values = [value_text(row["measure"], row[name]) for name in ("estimate_from", "estimate_to")]
    return [
        NAMES[row["measure"]],
        *([] if is_brief else values),
        difference_text(row).replace(" points", " pts"),
        *([] if is_brief else [margin_text(row)]),
        runs_text(row),
        brief_verdict(row),
    ]


def release_text(row: Comparison) -> str:
    """`1.4 → 1.5`, or `model small → large`."""
    kind = "model " if row["dimension"] == MODEL else ""
    return f"{kind}{printable(row['from_version'])} → {printable(row['to_version'])}"
