"""The one exception whose message is written for the person at the terminal.

Raise it for what a user can mend: a bad targets file, a locked warehouse, an unreadable log. Anything else is a
bug and stays an ordinary exception, traceback and all.
"""

from collections.abc import Mapping


class HealthAssetsError(Exception):
    """A fault that a user can mend; the message is one sentence that says what is wrong and what to do."""


class NoRawRootError(HealthAssetsError):
    """The place where the raw logs should lie is not there, or not yet."""


class UnreadableFilesError(HealthAssetsError):
    """Raw logs cannot be read; whoever can do without them says so and goes on.

    Args:
        faults: by the name of each file, why it cannot be read, as a sentence.
    """

    def __init__(self, faults: Mapping[str, str]) -> None:
        super().__init__("; ".join(faults.values()))
        self.faults = dict(faults)


class NoWarehouseError(HealthAssetsError):
    """Nothing has been materialised yet."""


class WarehouseBusyError(HealthAssetsError):
    """Another process holds the warehouse, and went on holding it."""
