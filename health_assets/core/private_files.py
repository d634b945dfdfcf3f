"""Private files: what this program writes is its owner's alone (0600, folders 0700), whatever the process's umask is.

What belongs here: how files are made so. What does not: which files (`warehouse`, `apps.judge`, `model_tracker`,
`logs`).

DuckDB makes files by itself and when it likes: the database, its log beside it, what it spills. So the umask is the
only way to have them private from their first moment. It is the whole process's, and is therefore set for as long as
anyone needs it, by a count.
"""

import logging
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FILE_MODE = 0o600
FOLDER_MODE = 0o700
_OTHERS = 0o007

_lock = threading.Lock()
_users = 0
_umask_before = 0


@contextmanager
def private_files() -> Iterator[None]:
    """Files and folders that the process makes meanwhile, in any thread, are its owner's alone."""
    global _users, _umask_before
    with _lock:
        if not _users:
            _umask_before = os.umask(0o777 & ~FOLDER_MODE)
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users:
                os.umask(_umask_before)


def make_private_folder(path: Path) -> None:
    """Make a folder, and those above it that are missing; what is there keeps its mode.

    Raises:
        OSError: it cannot be made.
    """
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
    if not missing:
        path.mkdir(exist_ok=True)  # raises where it is no folder


def shut_out_others(path: Path) -> None:
    """Take from everybody but owner and group what an older program let them do with a file, if it is one.

    The group keeps what it may do: that is how an operator lets another user read the file.
    """
    try:
        mode = path.stat().st_mode
        if stat.S_ISREG(mode) and mode & _OTHERS:
            path.chmod(stat.S_IMODE(mode) & ~_OTHERS)
    except FileNotFoundError:
        return
    except OSError as error:
        logging.getLogger(__name__).warning("others may read %s, which cannot be changed: %s", path, error.strerror)
