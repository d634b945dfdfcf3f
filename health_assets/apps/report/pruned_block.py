"""Report of a pruning: the rows that it dropped, and the lines that came late for dropped hours."""

from rich.console import Console

from health_assets.core.formatting import counted
from health_assets.core.hours import contiguous
from health_assets.pipeline.retention import Pruned

RANGES_SHOWN = 5


def print_pruned(console: Console, pruned: Pruned) -> None:
    """Rows by table, largest first, and the dropped hours whose logs have changed since."""
    before = f"{pruned.before:%Y-%m-%dT%H}"
    if not pruned.hours:
        console.print(f"nothing to drop: no record or component table has rows from before {before}")
    else:
        total = counted(sum(pruned.rows.values()), "row")
        console.print(f"[bold]dropped {total}[/] of {pruned.hours:,} h before {before}; every score stays")
        for table, rows in sorted(pruned.rows.items(), key=lambda item: (-item[1], item[0])):
            if rows:
                console.print(f"  {rows:>12,} {table}")
    if pruned.late:
        late = counted(len(pruned.late), "dropped hour has", "dropped hours have")
        lines = counted(sum(count for _, count in pruned.late), "line waits", "lines wait")
        console.print(f"[yellow]{late} other lines or traces since ({lines}); materialize to have these counted:[/]")
        ranges = contiguous(hour for hour, _ in pruned.late)
        for hours in ranges[:RANGES_SHOWN]:
            console.print(f"[yellow]  --from {hours.start:%Y-%m-%dT%H} --to {hours.end:%Y-%m-%dT%H}[/]")
        if len(ranges) > RANGES_SHOWN:
            console.print(f"[yellow]  and {counted(len(ranges) - RANGES_SHOWN, 'more range')}[/]")
