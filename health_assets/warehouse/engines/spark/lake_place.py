"""The place of a lake: the folder or bucket, and the names of folders in it.

What belongs here: what whoever writes there needs, on any machine. What does not: which folders count, which the ledger
knows (`lake`).
"""

import os
import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from uuid import uuid4

import pyarrow.parquet as pq
from pyarrow import fs

from health_assets.core.disk import sync_disk_of
from health_assets.core.errors import HealthAssetsError
from health_assets.core.private_files import make_private_folder

ID_FILE = "lake_id"
"""Holds what the ledger and the cluster know the lake by; a name with a low line in front Spark would not read."""
_OF_PATTERNS = frozenset("*?[]{}\\")
_HIDDEN = ("_", ".")
"""The beginning of names that readers pass over, as of what a task has left that was not the first to end."""
_FILES_AT_ONCE = 16
HOUR_COLUMN = "hour_folder"
"""Names the folder of an hour, as `hour_folder=2026060700`; it is no column of the files in it."""
HOUR_FORMAT = "%Y%m%d%H"
FOLDER_NAME = re.compile("[0-9a-f]{32}")
"""The name that `new_folder` gives, below that of the table."""


@dataclass(frozen=True, kw_only=True)
class WrittenFolder:
    """A folder with rows of a table that somebody has written.

    Args:
        table: the table.
        folder: its name in the lake.
        hours: the hours that it holds rows of.
        rows: how many it holds.
    """

    table: str
    folder: str
    hours: list[datetime]
    rows: int


class LakePlace:
    """The place of a lake, which can be sent to other machines.

    Args:
        place: a folder or bucket that this machine and the cluster reach by the same name.

    Raises:
        HealthAssetsError: the name cannot be read.
    """

    def __init__(self, place: str) -> None:
        self.name = place.rstrip("/") if "://" in place else str(Path(place).expanduser().absolute())
        if _OF_PATTERNS & set(self.name):
            raise HealthAssetsError(
                f"the lake {self.shown} has a sign in its name by which a cluster takes it for a pattern, one of "
                f"{' '.join(sorted(_OF_PATTERNS))}"
            )
        try:
            self.files, self._root = fs.FileSystem.from_uri(self.name)
        except (ValueError, OSError) as error:
            raise HealthAssetsError(f"the lake {self.shown} is no folder or bucket") from error

    @property
    def shown(self) -> str:
        """The name, as it may be shown: without a key and its secret."""
        return re.sub(r"//[^/]*@", "//…@", self.name).partition("?")[0]

    def make(self) -> None:
        """Make the folder where it is not there yet, for this user alone.

        Raises:
            OSError: it cannot be made.
        """
        if isinstance(self.files, fs.LocalFileSystem):
            make_private_folder(Path(self._root))
        else:
            self.files.create_dir(self._root, recursive=True)

    def url_of(self, folder: str) -> str:
        """A folder as the cluster calls it."""
        return f"{self.name}/{folder}"

    def path_of(self, folder: str = "") -> str:
        """A folder, or the place itself, as `files` calls it."""
        return f"{self._root}/{folder}" if folder else self._root

    def written(self, table: str, folder: str) -> WrittenFolder:
        """Look up which hours a folder holds, and how many rows; none of one that nobody has written to."""
        hours = sorted(_hour_of(name) for name in self.folders_in(folder) if name.startswith(f"{HOUR_COLUMN}="))
        rows = self.rows_in(folder_of_hour(folder, hour) for hour in hours)
        return WrittenFolder(table=table, folder=folder, hours=hours, rows=rows)

    def rows_in(self, folders: Iterable[str]) -> int:
        """The number of rows in folders, as their files tell; none where there is no folder."""
        with ThreadPoolExecutor(_FILES_AT_ONCE) as pool:  # a bucket answers each after a while
            files = chain.from_iterable(pool.map(self._files_of_rows, folders))
            return sum(pool.map(self._rows_of, files))

    def _files_of_rows(self, folder: str) -> list[str]:
        inside = self.files.get_file_info(fs.FileSelector(self.path_of(folder), allow_not_found=True))
        return [
            info.path for info in inside if info.type == fs.FileType.File and not info.base_name.startswith(_HIDDEN)
        ]

    def _rows_of(self, path: str) -> int:
        rows: int = pq.read_metadata(path, filesystem=self.files).num_rows
        return rows

    def folders_in(self, folder: str) -> dict[str, datetime | None]:
        """The folders in a folder, by name, and when each was changed; a bucket knows no such time of folders."""
        inside = self.files.get_file_info(fs.FileSelector(self.path_of(folder), allow_not_found=True))
        return {info.base_name: info.mtime for info in inside if info.type == fs.FileType.Directory}

    def newest_file(self, folder: str) -> datetime | None:
        """The time of the newest file in a folder and those below it; None where there is no file."""
        inside = self.files.get_file_info(fs.FileSelector(self.path_of(folder), allow_not_found=True, recursive=True))
        return max((info.mtime for info in inside if info.type == fs.FileType.File), default=None)

    def mark(self, name: str) -> datetime:
        """Write an empty file anew; its time is the present by the clock of whoever keeps the files."""
        with self.files.open_output_stream(self.path_of(name)):
            pass
        return self.files.get_file_info(self.path_of(name)).mtime

    def marked(self, name: str) -> datetime | None:
        """The time of such a file; None where there is none."""
        return self.files.get_file_info(self.path_of(name)).mtime

    def text_of(self, name: str) -> str | None:
        """The text of a file; None where there is none."""
        path = self.path_of(name)
        if self.files.get_file_info(path).type == fs.FileType.NotFound:
            return None
        with self.files.open_input_stream(path) as file:
            return file.read().decode()

    def flush(self) -> None:
        """Have the machine write to its disk what it still has in memory of a folder; a bucket has what it has taken.

        Raises:
            OSError: the disk fails.
        """
        if not isinstance(self.files, fs.LocalFileSystem):
            return
        root = os.open(self._root, os.O_RDONLY)
        try:
            sync_disk_of(root)
        finally:
            os.close(root)

    def remove(self, folder: str) -> None:
        """Remove a folder, where it is there."""
        path = self.path_of(folder)
        if self.files.get_file_info(path).type != fs.FileType.NotFound:
            self.files.delete_dir(path)


def new_folder(table: str) -> str:
    """The name of a folder that nobody has written to."""
    return f"{table}/{uuid4().hex}"


def folder_of_hour(folder: str, hour: datetime) -> str:
    """The folder of an hour in one that somebody has written."""
    return f"{folder}/{HOUR_COLUMN}={hour.astimezone(UTC):{HOUR_FORMAT}}"


def _hour_of(name: str) -> datetime:
    return datetime.strptime(name.partition("=")[2], HOUR_FORMAT).replace(tzinfo=UTC)
