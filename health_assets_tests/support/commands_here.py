"""Commands in the process of the test, which has imported all that they need and compiled their SQL.

What belongs here: running one, and giving what it said. What does not: commands whose process is what a test is about
(`projects.forked_command`), and assertions.
"""

import contextlib
import os
import subprocess
from pathlib import Path

from typer.testing import CliRunner

from health_assets.cli.commands import app
from health_assets_tests.support.projects import REPOSITORY, command_environment


def command_here(
    *arguments: str, environment: dict[str, str] | None = None, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Do as `projects.command` does, without a process: no error but those that end a command may leave it."""
    before, given = dict(os.environ), command_environment() | (environment or {})
    with contextlib.chdir(folder or REPOSITORY.parent):
        try:
            os.environ.clear()
            os.environ.update(given)
            told = CliRunner().invoke(app, arguments, catch_exceptions=False)
        finally:
            os.environ.clear()
            os.environ.update(before)
    return subprocess.CompletedProcess(arguments, told.exit_code, told.stdout, told.stderr)
