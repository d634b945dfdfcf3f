"""A page, and the three ways to write it: HTML for people, JSON and CSV for programs.

What belongs here: what all pages share. What does not: what a page tells, and how HTML looks (in templates).
"""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from health_assets.apps.serving.answers import JSON, dumps
from health_assets.apps.serving.pages.rendering import render

Format = Literal["html", "json", "csv"]
HTML = b"text/html; charset=utf-8"
CSV = b"text/csv; charset=utf-8"
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""With these a spreadsheet would take a text for a formula."""


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page as plain values.

    Args:
        name: its template, without `.html`.
        title: its heading, and that of the browser's window.
        data: contents of the page: dicts, lists, texts, numbers, datetimes.
        listing: name of the list of dicts among these that CSV writes.
        shown: further values for the template, such as addresses.
        status: the HTTP status.
        retry_after_s: seconds after which to ask again; None for an answer that stays as it is.
    """

    name: str
    title: str
    data: Mapping[str, Any]
    listing: str | None = None
    shown: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200
    retry_after_s: int | None = None

    def written(self, how: Format, frame: Mapping[str, Any]) -> tuple[bytes, bytes]:
        """The body and its content type.

        Args:
            how: in which of the three ways.
            frame: what the HTML around it shows: the hour, where one is, the state of the data. Of it JSON tells how
                many hours are still to be copied, `missing`.
        """
        if how == "json":
            around = {"title": self.title, "hours_to_copy": frame.get("missing", 0)}
            return dumps(plain({**self.data, **around})), JSON
        if how == "csv":
            return _csv(self.data[self.listing] if self.listing else []), CSV
        return render(f"{self.name}.html", title=self.title, data=self.data, **self.shown, **frame), HTML


def plain(value: Any) -> Any:
    """The value as JSON can write it."""
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value


def _csv(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Rows below the names of their columns (RFC 4180)."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_cell(plain(row.get(name))) for name in columns])
    return text.getvalue().encode()


def _cell(value: Any) -> Any:
    """The value of a cell; a text that a spreadsheet would compute gets an apostrophe before it."""
    if isinstance(value, dict | list):
        return dumps(value).decode()
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_STARTS) else value
