"""The one exception whose message is written for the person at the terminal.

Raise it for what a user can mend: a bad targets file, a locked warehouse, an unreadable log. Anything else is a
bug and stays an ordinary exception, traceback and all. Want of memory is neither, and has many names.
"""

import errno
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
    """Nothing has been materialized yet."""


class WarehouseBusyError(HealthAssetsError):
    """Another process holds the warehouse, and went on holding it."""


class RefusedError(HealthAssetsError):
    """Somebody asks for a change that cannot be; the warehouse is well, and to try again does not help."""


class WriteLockTimeoutError(WarehouseBusyError):
    """Other runs went on writing for longer than this one waits for the write lock."""


WANT_OF_MEMORY = ("cannot allocate memory", "failed to map segment", "can't start new thread", "out of memory")
"""How the system, the loader of libraries, threads and databases say it."""


def is_want_of_memory(error: BaseException) -> bool:
    """Whether an error, or one behind it, says that the process may not have more memory."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        if isinstance(link, MemoryError) or (isinstance(link, OSError) and link.errno == errno.ENOMEM):
            return True
        is_a_librarys = (
            isinstance(link, ImportError | OSError | RuntimeError) or type(link).__name__ == "OutOfMemoryException"
        )
        if is_a_librarys and any(sign in str(link).lower() for sign in WANT_OF_MEMORY):
            return True
        link = link.__cause__ or link.__context__
    return False
