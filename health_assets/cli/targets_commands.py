"""The commands about targets; each does little more than read its flags and call the rest."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from health_assets.cli.console import TargetsOption, WarehouseOption, console, errors, readable_errors, settings_of
from health_assets.core.errors import HealthAssetsError

targets_app = typer.Typer(no_args_is_help=True, help="Targets: what is expected of each agent.")


@targets_app.callback()
def _targets() -> None:
    """Keep `suggest` a command of the group while it is the only one."""


@targets_app.command()
def suggest(
    agent: Annotated[list[str] | None, typer.Option(help="Agent, again for more; all by default.")] = None,
    days: Annotated[int, typer.Option(help="UTC days to look at, up to the newest complete hour.", min=3)] = 14,
    targets: TargetsOption = None,
    warehouse: WarehouseOption = None,
    output: Annotated[
        Path | None, typer.Option(help="New file for the suggestions; by default they are printed.")
    ] = None,
) -> None:
    """Suggest targets from each agent's history, as YAML to review; say how they differ from the present ones."""
    from health_assets.apps.report.targets_block import print_changes
    from health_assets.apps.target_suggestions.document import changes, document
    from health_assets.apps.target_suggestions.suggesting import suggest as suggest_targets
    from health_assets.core.targets import load_targets
    from health_assets.warehouse.store import Warehouse

    with readable_errors():
        settings = settings_of(None, targets, warehouse)
        present = load_targets(settings.targets)
        with Warehouse.of(settings).read() as session:
            found = suggest_targets(session, present, datetime.now(UTC), days, agent or ())
        text = document(found)
        if output is not None:
            _write_new(output, text)
            console.print(f"the suggestions are in {output}", soft_wrap=True, markup=False, highlight=False)
        elif console.is_terminal:
            console.print(_pale_comments(text), soft_wrap=True)
        else:
            typer.echo(text, nl=False)
        against = "the defaults" if settings.targets is None else str(settings.targets)
        # beside YAML on standard output, which may go to a file, it is on standard error
        print_changes(errors if output is None else console, changes(found.found, present), against)


def _write_new(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise HealthAssetsError(f"{path} exists already, and nothing is overwritten; name another --output") from None
    except OSError as error:
        raise HealthAssetsError(f"cannot write {path}: {error.strerror}") from error


def _pale_comments(text: str) -> Text:
    shown = Text(text.rstrip("\n"))
    shown.highlight_regex(r"(?m)(^| )#.*$", "dim")
    return shown
