"""The user's cache: small files that save work and may be removed at any time, their owner's alone.

What belongs here: where the folder is, reading a file of it and putting one in place. What does not: what the files
say (`sql_memory`).
"""

import errno
import os
import stat
import tempfile
from pathlib import Path

from health_assets.core.private_files import make_private_folder

FOLDER = "health-assets"


def cache_folder() -> Path | None:
    """The folder of this program in the user's cache; None where the environment names none."""
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if named.is_absolute():
        return named / FOLDER
    home = os.environ.get("HOME")
    return Path(home) / ".cache" / FOLDER if home else None


def put(path: Path, content: bytes) -> None:
    """Put a file in place at once, whatever other processes do; its folder is made where it is missing.

    Raises:
        OSError: it cannot be written.
    """
    make_private_folder(path.parent)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-")
    unfinished = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def own_content(path: Path, most_bytes: int) -> bytes:
    """The content of a file that this user alone can write, and that has at most so many bytes.

    Raises:
        OSError: there is none.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        is_own = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022
        if not is_own or found.st_size > most_bytes:
            raise PermissionError(errno.EPERM, "it is not this user's alone")
        return file.read()
