"""The blocks of silences and of the periodic digest, as commands print them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.text import Text

from health_assets.apps.alerts.digest_texts import lines_of, title_of
from health_assets.apps.alerts.silences import Silence
from health_assets.apps.alerts.silencing import Preview
from health_assets.core.console import plain_table
from health_assets.core.terminal import printable

STYLES = {"active": "yellow", "planned": "blue", "expired": "dim", "ended": "dim"}
STATES = tuple(STYLES)
MOST = 300


def print_preview(console: Console, preview: Preview) -> None:
    """Print what a silence would silence and for how long, and what speaks against it."""
    silence = preview.silence
    when = f"from {_time(silence.starts_at)} until {_time(silence.ends_at)}"
    console.print(Text(f"{printable(silence.scope, MOST)}, {when}"), soft_wrap=True)
    for remark in preview.remarks:
        console.print(Text(remark, style="yellow" if remark.startswith("warning") else ""), soft_wrap=True)


def print_silences(console: Console, silences: Sequence[Silence], now: datetime) -> None:
    """Print silences: those in force first, then those to come, then those that are over."""
    if not silences:
        console.print("there is no silence")
        return
    table = plain_table()
    for heading in ("id", "state", "from", "until"):
        table.add_column(heading, no_wrap=True)
    table.add_column("of")
    table.add_column("why")
    for silence in sorted(silences, key=lambda one: (STATES.index(one.state(now)), one.ends_at)):
        state = silence.state(now)
        why = f"{printable(silence.reason, MOST)} ({printable(silence.added_by)})"
        table.add_row(
            printable(silence.silence_id),
            Text(f"{state}, of the file" if silence.is_of_file else state, style=STYLES[state]),
            _time(silence.starts_at),
            _time(silence.over_at),
            Text(printable(silence.scope, MOST)),
            Text(why),
        )
    console.print(table)


def print_digest(console: Console, content: dict[str, Any]) -> None:
    """Print a periodic digest as its message says it."""
    console.print(Text(title_of(content), style="bold"), soft_wrap=True)
    for line in lines_of(content):
        console.print(Text(line), soft_wrap=True)


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
