"""The block that says how suggested targets differ from the present ones."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from health_assets.apps.target_suggestions.document import Change, number
from health_assets.core.console import plain_table
from health_assets.core.formatting import counted
from health_assets.core.terminal import printable

ROWS_SHOWN = 40
MOST = 400


def print_changes(console: Console, changes: Sequence[Change], against: str) -> None:
    """Print each target that would change, below its agent.

    Args:
        console: where to print.
        changes: what would change.
        against: the present targets, in words.
    """
    agents = len({change.agent_id for change in changes})
    title = f"{counted(len(changes), 'target')} of {counted(agents, 'agent')} would change against {against}"
    console.print()
    told = title if changes else f"nothing would change against {against}"
    console.print(Text(printable(told, MOST), style="bold"), soft_wrap=True)
    if not changes:
        return
    table = plain_table()
    table.add_column("agent", no_wrap=True, max_width=30)
    table.add_column("target", no_wrap=True)
    for heading in ("present", "suggested"):
        table.add_column(heading, justify="right", no_wrap=True)
    above = None
    for change in changes[:ROWS_SHOWN]:
        agent = "" if change.agent_id == above else printable(change.agent_id)
        table.add_row(Text(agent), change.name, _present(change), Text(number(change.suggested)))
        above = change.agent_id
    if len(changes) > ROWS_SHOWN:
        table.caption = f"the first {ROWS_SHOWN} of {len(changes):,}; --agent shows one agent"
    console.print(table)


def _present(change: Change) -> Text:
    if change.present is None:
        return Text("none", style="dim")
    default = Text("default " if change.is_default else "", style="dim")
    return default.append(number(change.present), style="none")
