"""Opening files below a folder, one component at a time, so that no link ever leads out of it.

What belongs here: descriptors of files and folders. What does not: which files there are (`folders`).

`O_NOFOLLOW` guards the last component of a path only, so a folder above a file could be swapped for a link after the
file was listed. Each component is therefore opened beneath the descriptor of the one before it. Only the root itself
may be a link: its path is the operator's.
"""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_BENEATH = _FLAGS | os.O_NOFOLLOW
_SWAPPED = (errno.ELOOP, errno.ENOTDIR, errno.EMLINK)
"""Errors of opening a component that became a link, or a folder that is none any more."""

OnFolder = Callable[[os.stat_result], None]
"""Called with the status of each folder that is passed, but for the root."""


def open_file(root: Path, below: str, on_folder: OnFolder | None = None) -> int:
    """A descriptor for reading a file.

    Args:
        root: the folder that no link leads out of.
        below: path of the file relative to it, without `..`.
        on_folder: sees the folders on the way.

    Raises:
        OSError: it cannot be opened, or is a link, a pipe, a device or a folder.
    """
    folder, _, name = below.rpartition("/")
    above = open_folder(root, folder, on_folder)
    try:
        return open_file_in(above, name)
    finally:
        os.close(above)


def open_folder(root: Path, below: str, on_folder: OnFolder | None = None) -> int:
    """A descriptor of a folder; arguments as of `open_file`, an empty path is the root.

    Raises:
        OSError: it cannot be opened, or it or a folder above it is a link or no folder.
    """
    descriptor = os.open(root, _FLAGS | os.O_DIRECTORY)
    for name in filter(None, below.split("/")):
        above = descriptor
        try:
            if name == "..":
                raise OSError(errno.EINVAL, "the path leads out of its folder")
            descriptor = os.open(name, _BENEATH | os.O_DIRECTORY, dir_fd=above)
        finally:
            os.close(above)
        if on_folder:
            on_folder(os.fstat(descriptor))
    return descriptor


def open_file_in(folder: int, name: str) -> int:
    """A descriptor for reading a file of a folder, without waiting for whatever else may stand there by now.

    Raises:
        OSError: it cannot be opened, or is a link, a pipe, a device or a folder.
    """
    descriptor = os.open(name, _BENEATH, dir_fd=folder)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is no file any more")


def status_of(root: Path, below: str) -> os.stat_result:
    """The status of whatever lies there, of a link its own; arguments as of `open_file`.

    Raises:
        OSError: nothing is there, or nobody may look.
    """
    folder, _, name = below.rpartition("/")
    above = open_folder(root, folder)
    try:
        return os.stat(name or ".", dir_fd=above, follow_symlinks=False)
    finally:
        os.close(above)


def why_not(error: OSError) -> str:
    """The reason of an error of this module, as a part of a sentence."""
    if error.errno in _SWAPPED:
        return "it, or a folder above it, was replaced by a link or by something else since it was listed"
    return error.strerror or str(error)
