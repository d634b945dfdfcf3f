"""The commands about formats of logs; each does little more than read its flags and call the rest."""

from pathlib import Path
from typing import Annotated

import typer

from health_assets.cli.console import TargetsOption, console, readable_errors, say, settings_of
from health_assets.core.formatting import counted
from health_assets.core.terminal import printable


def inspect(
    path: Annotated[list[Path], typer.Argument(help="File of logs, or a folder of them; again for more.")],
    suggest: Annotated[
        bool, typer.Option("--suggest", help="Print a first declaration of the format of a JSON file, to review.")
    ] = False,
    targets: TargetsOption = None,
) -> None:
    """Show what files of logs are taken for, which records they hold, and what is ignored or rejected, and why.

    Exit code: 0 where every file holds records, or is known to hold none, else 1.
    """
    from health_assets.apps.inspecting.block import print_inspection
    from health_assets.apps.inspecting.suggesting import suggested
    from health_assets.core.targets import load_targets
    from health_assets.logs.formats.format_settings import FormatSettings
    from health_assets.logs.inspection import files_at, inspected
    from health_assets.logs.limits import current_limits

    with readable_errors():
        settings, limits = settings_of(None, targets, None), current_limits()
        file_warnings: dict[str, str] = {}
        unreadable: dict[str, str] = {}
        format_settings = FormatSettings.of(settings)
        files = [found for one in path for found in files_at(one, format_settings, file_warnings, unreadable)]
        if suggest and files:
            typer.echo(suggested(files[0]), nl=False)
            return
        useful = 0
        for found in inspected(files, load_targets(settings.targets), limits):
            print_inspection(console, found)
            useful += found.is_useful
        for name, file_warning in file_warnings.items():
            console.print(printable(f"{name}: {file_warning}", 400), soft_wrap=True, markup=False, highlight=False)
        for fault in unreadable.values():
            say(fault)
    count = len(files) + len(unreadable)
    if count > 1:
        console.print(f"{counted(count, 'file')}, of which {count - useful:,} could not be used")
    if useful < max(count, 1):
        raise typer.Exit(1)


def formats() -> None:
    """List the formats of logs that are read, and what becomes of each."""
    from health_assets.apps.inspecting.block import print_formats
    from health_assets.core.settings import load_settings
    from health_assets.logs.formats import DESCRIPTIONS
    from health_assets.logs.formats.format_settings import FormatSettings

    with readable_errors():
        own = FormatSettings.of(load_settings()).own
    print_formats(console, DESCRIPTIONS | {one.name: ("HEALTH_FORMATS", one.becomes) for one in own})
