"""The page of one line of a raw log: its text, and whether the file is still the one that was loaded.

What belongs here: who may read it, and how it is shown. What does not: finding it (`apps.serving.log_lines`).

A line may say anything, of any agent: so it is for callers who may read texts of the logs and from whom nothing is
hidden, like the text of a rejected line.
"""

from dataclasses import dataclass
from typing import Any

from health_assets.apps.serving.pages.page import Page
from health_assets.apps.serving.pages.scoped_history import ScopedHistory

SENTENCES = {
    "same": "The file is as it was when it was loaded.",
    "grown": "Lines were added to the file since it was loaded; this one is as it was.",
    "changed": "The file has changed since it was loaded, so this may be another line than the one that was counted.",
    "gone": "The file is gone, or was renamed: it is not below the raw root any more. What was loaded of it stays.",
    "short": "The file has changed since it was loaded: it has no such line any more.",
    "unknown": "No log of this name was loaded.",
}
DOUBTFUL = ("changed", "gone", "short", "unknown")
WITHHELD = "The text of a log is withheld: it may say anything, of any agent."


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The line that is asked for.

    Args:
        file: the raw log, relative to the raw root.
        number: number of the line, from 1.
        line: what `log_lines.line_of` says of it; None where it was not read.
        why_not: why it could not be read; None where it could, or need not be.
    """

    file: str
    number: int
    line: dict[str, Any] | None = None
    why_not: str | None = None


def line_page(look: ScopedHistory, wanted: Wanted) -> Page:
    """One line of a raw log."""
    line = wanted.line if look.shows_lines else None
    state = line["state"] if line else None
    data = {
        "source_file": wanted.file,
        "line_number": wanted.number,
        "state": state,
        "text": line["text"] if line else None,
        "cut_characters": line["cut_characters"] if line else 0,
        "is_converted": line is not None and line["is_converted"],
        "detail": SENTENCES[state] if state else None,
        "why_not": (wanted.why_not or None) if look.shows_lines else WITHHELD,
    }
    shown = {"is_doubtful": state in DOUBTFUL, "is_withheld": not look.shows_lines}
    status = 403 if not look.shows_lines else 404 if state in ("gone", "short", "unknown") else 200
    return Page(name="line", title=f"{wanted.file}:{wanted.number}", data=data, shown=shown, status=status)
