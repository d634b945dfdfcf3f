"""The look of tables on a console. What does not belong here: what is in them, and text from outside (`terminal`)."""

from rich.console import Console
from rich.table import Table

NARROW = 100
"""A console with fewer columns than that shows less of each row, rather than the beginning of everything."""


def is_narrow(console: Console) -> bool:
    """Whether the console has room for the few most telling columns only."""
    return console.width < NARROW


def plain_table() -> Table:
    """A table without lines, its columns one space apart."""
    return Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1, 0, 0), caption_justify="left")
