"""A file's stamp: it changes whenever the file is written or replaced, and costs no reading.

What belongs here: the stamp alone. What does not: digests of what a file holds (`logs`).
"""

from pathlib import Path

Stamp = tuple[int, int, int, int]
"""Inode, size in bytes, and modification and change time in nanoseconds; the system alone sets the latter."""


def stamp(path: Path) -> Stamp | None:
    """The file's stamp; None where there is no file, or nobody may look at it."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns
