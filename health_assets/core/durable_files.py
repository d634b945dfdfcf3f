"""Files that stay as they were written, whatever happens to the machine: waiting for the disk, replacing as a whole.

What belongs here: both of these. What does not: which files, and who may read them (`private_files`).
"""

import os
from collections.abc import Iterable
from pathlib import Path


def sync_files(paths: Iterable[Path]) -> None:
    """Wait until the disk has files, and their names in their folders.

    Raises:
        OSError: they cannot be written.
    """
    files = list(paths)
    for path in (*files, *{file.parent for file in files}):
        opened = os.open(path, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def replace_file(path: Path, text: str) -> None:
    """Replace the text of a file atomically and durably.

    Raises:
        OSError: it cannot be written.
    """
    fresh = path.with_name(f"{path.name}.new")
    with fresh.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.rename(path)
