"""What the blocks have in common: the hour that they are about, and how their tables look."""

from datetime import datetime

from rich.console import Console
from rich.table import Table

from health_assets.core.hours import HourRange
from health_assets.warehouse.session import Session


def latest_hour(session: Session, table: str, hours: HourRange) -> datetime | None:
    """The last of these hours that has rows in a table; None where none has."""
    return session.newest_hour(table, hours)


NARROW = 100
"""A console with fewer columns than that shows less of each row, rather than the beginning of everything."""


def is_narrow(console: Console) -> bool:
    """Whether the console has room for the few most telling columns only."""
    return console.width < NARROW


def plain_table() -> Table:
    """A table without lines, its columns one space apart."""
    return Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1, 0, 0), caption_justify="left")
