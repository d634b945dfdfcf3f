"""An inspection, and the list of formats, as a terminal shows them."""

from collections import Counter

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from health_assets.core.console import plain_table
from health_assets.core.formatting import counted
from health_assets.core.terminal import printable
from health_assets.logs.inspection import Inspection, Records

MOST_SHOWN, MOST_REASONS = 5, 20
"""Agents and values, and notes and reasons, of which each is shown."""
_SHOWN_TYPES = {"agent_update": "agent updates", "signals": "signals"}


def print_inspection(console: Console, found: Inspection) -> None:
    """Print what a file was taken for, with which records, and what is ignored or rejected, and why."""
    console.print(Text(_headline(found)), soft_wrap=True)
    if found.passed_over is not None:
        console.print(Text(f"  a load passes it over for its name; {found.passed_over}"), soft_wrap=True)
    if found.records:
        console.print(Padding(_records(found), (0, 0, 0, 2)))
    _print_list(console, "ignored or mended", found.notes)
    if found.look is not None:
        return  # the file is rejected as a whole, for what the headline says
    _print_list(
        console,
        "rejected",
        Counter({f"{one.reason} (first in line {one.first_line:,})": one.lines for one in found.rejections}),
    )


def _headline(found: Inspection) -> str:
    name = printable(found.name)
    if len(found.formats) > 1:
        return f"{name} is taken for {' and for '.join(found.formats)}, so nothing of it is read"
    if not found.formats:
        return f"{name} is of no format that is known" + (f"; it {found.look}" if found.look else "")
    return f"{name} is {found.formats[0]}" + ("" if found.records else ", and no record of it would be kept")


def _records(found: Inspection) -> Table:
    table = plain_table()
    for header, justify in (("records", "left"), ("", "right"), ("", "left"), ("agents", "left"), ("UTC", "left")):
        table.add_column(header, justify=justify)  # type: ignore[arg-type]
    for kind, records in found.records.items():
        name = _SHOWN_TYPES.get(kind, f"{kind.replace('_', ' ')}s")
        table.add_row(name, f"{records.lines:,}", _shown(records.values), _shown(records.agents), _times(records))
    return table


def _shown(values: Counter[str]) -> str:
    """The most frequent ones, each with its number."""
    shown = [f"{count:,} {printable(value, 40)}" for value, count in values.most_common(MOST_SHOWN)]
    others = len(values) - MOST_SHOWN
    return ", ".join([*shown, *([counted(others, "other")] if others > 0 else [])])


def _times(records: Records) -> str:
    if records.first is None or records.last is None:
        return ""
    is_one_day = records.first.date() == records.last.date()
    return f"{records.first:%Y-%m-%d %H:%M} to {records.last:{'%H:%M' if is_one_day else '%Y-%m-%d %H:%M'}}"


def _print_list(console: Console, title: str, counts: Counter[str]) -> None:
    if not counts:
        return
    console.print(f"  [bold]{title}[/]")
    for text, count in counts.most_common(MOST_REASONS):
        console.print(Text(f"    {count:,} × {printable(text, 1000)}"), soft_wrap=True)
    if len(counts) > MOST_REASONS:
        others = Counter(dict(counts.most_common()[MOST_REASONS:]))
        console.print(f"    {others.total():,} for {counted(len(others), 'other reason')}")


def print_formats(console: Console, formats: dict[str, tuple[str, str]]) -> None:
    """Print the formats that are known.

    Args:
        console: where to.
        formats: by name, the files and what they become.
    """
    table = plain_table()
    for header in ("format", "files", "becomes"):
        table.add_column(header)
    for name, (files, becomes) in formats.items():
        table.add_row(name, files, becomes)
    console.print(table)
