"""The disk: what the operating system still has in memory is written to it.

What belongs here: the one call that Python has no name for. What does not: when it is needed (`warehouse`).
"""

import ctypes
import os


def sync_disk_of(descriptor: int) -> None:
    """Write to the disk whatever is in memory of the file system that an open file or folder is on.

    Raises:
        OSError: the disk fails.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "syncfs"):  # which only Linux has; elsewhere all disks are written
        os.sync()
    elif libc.syncfs(descriptor):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
