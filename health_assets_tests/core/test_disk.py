"""The operating system writes to the disk, or an error says that it did not."""

import os
import sys
from pathlib import Path

import pytest

from health_assets.core.disk import sync_disk_of


def test_the_disk_of_a_folder_is_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("rows")
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        sync_disk_of(folder)
    finally:
        os.close(folder)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere all disks are written, and nothing is told")
def test_a_disk_that_cannot_be_written_is_an_error() -> None:
    with pytest.raises(OSError, match="Bad file descriptor"):
        sync_disk_of(-1)
