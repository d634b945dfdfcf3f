"""The one exception whose message is written for the person at the terminal.

Raise it for what a user can mend: a bad targets file, a locked warehouse, an unreadable log. Anything else is a
bug and stays an ordinary exception, traceback and all.
"""


class HealthAssetsError(Exception):
    """A fault that a user can mend; the message is one sentence that says what is wrong and what to do."""


class NoRawRootError(HealthAssetsError):
    """The place where the raw logs should lie is not there, or not yet."""


class NoWarehouseError(HealthAssetsError):
    """Nothing has been materialised yet."""


class WarehouseBusyError(HealthAssetsError):
    """Another process holds the warehouse, and went on holding it."""
