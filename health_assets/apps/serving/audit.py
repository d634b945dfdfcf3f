"""The audit log: who changed what, when, and how it ended.

What belongs here: changes that a person asks for by a command, and tokens that the endpoint takes in or leaves out.
What does not: who reads (`access_log`), and what Dagster runs by itself, of which it keeps its own account.

A change is noted before it is made and again when it is over, with the same id: what has no end was killed, or its end
could not be noted, which the operator is told. A change whose beginning cannot be noted is not made.
"""

import os
import pwd
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from health_assets.core import json_lines
from health_assets.core.errors import HealthAssetsError
from health_assets.core.terminal import printable

if TYPE_CHECKING:
    from health_assets.core.settings import Settings

MOST_TOLD = 1000


class UnwritableLogError(HealthAssetsError):
    """The audit log cannot be written.

    Args:
        path: the file.
        error: words of the system.
    """

    def __init__(self, path: Path, error: OSError) -> None:
        self.reason = f"HEALTH_AUDIT_LOG: cannot write {path}: {error.strerror}"
        super().__init__(f"{self.reason}; nothing is changed that is not noted")


@contextmanager
def audited(settings: "Settings", what: str, **details: Any) -> Iterator[None]:
    """Note a change, and when the block ends, how that ended.

    How it ended stays what it is where that cannot be noted; a sentence on standard error says so.

    Args:
        settings: name the file.
        what: the command.
        details: the change that was asked for; no secret.

    Raises:
        HealthAssetsError: the log cannot be written, so nothing has been changed.
    """
    change = secrets.token_hex(8)
    _note(settings, change, what, {"asked": {name: value for name, value in details.items() if value is not None}})
    try:
        yield
    except BaseException as error:
        is_refused = isinstance(error, HealthAssetsError)
        reason = str(error) if is_refused else type(error).__name__
        _note_end(settings, change, what, {"outcome": "failed", "error": reason})
        raise
    _note_end(settings, change, what, {"outcome": "done"})


def note_change(settings: "Settings", what: str, details: dict[str, Any]) -> None:
    """Note a change that has been made.

    Raises:
        UnwritableLogError: the log cannot be written.
    """
    _note(settings, secrets.token_hex(8), what, {**details, "outcome": "done"})


def warehouse_name(settings: "Settings") -> str:
    """The warehouse, or the ledger of one on a cluster, as it may be shown, without a password.

    Raises:
        HealthAssetsError: its URL cannot be read.
    """
    from health_assets.warehouse.location import database_of, is_postgres, ledger_of, path_of  # SQLAlchemy, 0.3 s

    account = ledger_of(settings)
    return database_of(account).name if is_postgres(account) else str(path_of(account))


def _note(settings: "Settings", change: str, what: str, details: dict[str, Any]) -> None:
    path = settings.audit_log
    if path is None:
        return
    who = current_user()
    line = {"time": datetime.now(UTC).isoformat(), "id": change, "who": who, "what": what, **details}
    try:
        json_lines.append(path, json_lines.line_of(line))
    except OSError as error:
        raise UnwritableLogError(path, error) from error


def _note_end(settings: "Settings", change: str, what: str, details: dict[str, Any]) -> None:
    """Note how a change ended, or say that it cannot be noted: what has been changed is changed."""
    try:
        _note(settings, change, what, details)
    except UnwritableLogError as error:
        sentence = f"health-assets: {what}: {details['outcome']}, but its end is not noted: {error.reason}"
        print(printable(sentence, MOST_TOLD), file=sys.stderr, flush=True)


def current_user() -> str:
    """The user of this process; of one that used sudo, who that was."""
    number = os.getuid()
    try:
        name = pwd.getpwuid(number).pw_name
    except KeyError:  # as in a container
        name = str(number)
    behind = os.environ.get("SUDO_USER")
    return f"{name} (sudo by {behind})" if behind else name
