"""Parts that all commands share: where they print, how an error ends them, and options that several have.

What does not belong here: any command (`commands`, `alerts_commands`).
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from rich.console import Console

from health_assets.core.errors import HealthAssetsError, WriteLockTimeoutError
from health_assets.core.raw_roots import RawRoot, raw_root
from health_assets.core.terminal import printable

if TYPE_CHECKING:
    from health_assets.core.settings import Settings

console = Console(width=None if sys.stdout.isatty() else 120, emoji=False)
errors = Console(stderr=True, emoji=False)  # an error for want of memory cannot load their table
MOST_TOLD = 4000
"""Most characters of one line on the terminal."""

RawOption = Annotated[
    str | None, typer.Option("--raw", help="Folder of the raw logs, or a URL like s3://bucket/logs (HEALTH_RAW).")
]
TargetsOption = Annotated[Path | None, typer.Option("--targets", help="Targets file (HEALTH_TARGETS).")]
WarehouseOption = Annotated[
    str | None,
    typer.Option(
        "--warehouse",
        help="DuckDB file, PostgreSQL URL, or sc://host:port with HEALTH_LAKE and HEALTH_LEDGER (HEALTH_WAREHOUSE).",
    ),
]


def settings_of(raw: RawRoot | None, targets: Path | None, warehouse: str | None) -> "Settings":
    """The settings, with what options name in place of theirs.

    Raises:
        HealthAssetsError: they cannot be so.
    """
    from health_assets.core.settings import load_settings

    given = {"raw": raw and raw_root(raw), "targets": targets, "warehouse": warehouse}
    settings = load_settings().model_copy(update={name: value for name, value in given.items() if value is not None})
    if settings.lake_among_logs is not None:
        raise HealthAssetsError(settings.lake_among_logs)
    return settings


@contextmanager
def readable_errors(exit_code: int = 1) -> Iterator[None]:
    """End the process with one sentence and an exit code where the block raises an error of ours."""
    try:
        yield
    except WriteLockTimeoutError as error:
        complain(str(error), os.EX_TEMPFAIL)
    except HealthAssetsError as error:
        complain(str(error), exit_code)


def say(sentence: str) -> None:
    """Print a sentence on standard error."""
    errors.print(f"health-assets: {sentence}", markup=False, highlight=False, soft_wrap=True)


def complain(sentence: str, exit_code: int = 1) -> NoReturn:
    """Print a sentence on standard error, in red, and end the process."""
    told = "\n".join(printable(line, MOST_TOLD) for line in f"health-assets: {sentence}".split("\n"))
    errors.print(told, style="red", markup=False, highlight=False, soft_wrap=True)
    sys.exit(exit_code)
