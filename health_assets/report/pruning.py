"""What a pruning shows: what was dropped, and what came late for hours that are."""

from rich.console import Console

from health_assets.hours import contiguous
from health_assets.retention import Pruned

RANGES_SHOWN = 5


def print_pruned(console: Console, pruned: Pruned) -> None:
    """Rows by table, largest first, and the dropped hours whose logs have changed since."""
    total = sum(pruned.rows.values())
    before = f"{pruned.before:%Y-%m-%dT%H}"
    if not pruned.hours:
        console.print(f"nothing to drop: no record or component table has rows from before {before}")
    else:
        console.print(f"[bold]dropped {total:,} rows[/] of {pruned.hours:,} h before {before}; every score stays")
        for table, rows in sorted(pruned.rows.items(), key=lambda item: (-item[1], item[0])):
            if rows:
                console.print(f"  {rows:>12,} {table}")
    if pruned.late:
        lines = sum(count for _, count in pruned.late)
        console.print(
            f"[yellow]{len(pruned.late):,} dropped hours have other lines or traces since ({lines:,} lines wait); "
            "materialise them to have these counted:[/]"
        )
        ranges = contiguous(hour for hour, _ in pruned.late)
        for hours in ranges[:RANGES_SHOWN]:
            console.print(f"[yellow]  --from {hours.start:%Y-%m-%dT%H} --to {hours.end:%Y-%m-%dT%H}[/]")
        if len(ranges) > RANGES_SHOWN:
            console.print(f"[yellow]  and {len(ranges) - RANGES_SHOWN} more ranges[/]")
