"""Raw logs in a folder of this machine, whoever wrote there and whatever names and times the files have.

What belongs here: walking the folder, opening what is a file, and what is odd about files: names that are no text,
times that no calendar of ours has, links that lead out. What does not: object stores, and reading files (`stores`).

Listing never fails for a single file. What cannot be read is told as a fault; what is merely odd is put right in the
same way each time, and told as an oddity.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from health_assets.core.errors import HealthAssetsError
from health_assets.core.raw_roots import as_text

EARLIEST_NS = int(datetime(2000, 1, 1, tzinfo=UTC).timestamp()) * 10**9
LATEST_NS = int(datetime(2100, 1, 1, tzinfo=UTC).timestamp()) * 10**9 - 1
SECOND_NS = 10**9


@dataclass(frozen=True, kw_only=True)
class FolderFile:
    """A file in a folder.

    Args:
        name: path relative to the root, with forward slashes, as text.
        path: where it is; of a link, where that leads.
        size_bytes: its size.
        modified_ns: its modification time, nanoseconds since 1970, in the years 2000 to 2099.
    """

    name: str
    path: Path
    size_bytes: int
    modified_ns: int


def within_calendar(modified_ns: int) -> int:
    """A modification time within the years 2000 to 2099; others become their first or last second.

    Below that second it is another for each time that was changed so, since it tells that a file has changed.
    """
    if EARLIEST_NS <= modified_ns <= LATEST_NS:
        return modified_ns
    second = EARLIEST_NS if modified_ns < EARLIEST_NS else LATEST_NS + 1 - SECOND_NS
    return second + int.from_bytes(hashlib.sha256(str(modified_ns).encode()).digest()[:8]) % SECOND_NS


def open_file(path: Path | str) -> int:
    """A descriptor for reading a file, without waiting for whatever else may stand there since it was listed.

    Raises:
        OSError: it cannot be opened, or is a link, a pipe, a device or a folder.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is no file any more")


class Walk:
    """One look through a folder.

    Args:
        root: the folder.
        is_log: whether a file of this name is of interest.
    """

    def __init__(self, root: Path, is_log: Callable[[str], object]) -> None:
        self._root = root
        self._real_root = os.path.realpath(root)
        self._is_log = is_log
        self.faults: dict[str, str] = {}
        """By the name of a file, or of a folder with a slash behind, why it cannot be read, as a sentence."""
        self.oddities: dict[str, str] = {}
        """By the name of a file, or of a folder with a slash behind, what is odd about it."""

    def files(self) -> list[FolderFile]:
        """Every file of interest that can be opened, sorted by name.

        Raises:
            HealthAssetsError: the root itself cannot be listed.
        """
        found: dict[str, FolderFile] = {}
        for folder, names in self._folders():
            for path in (Path(folder, name) for name in names if self._is_log(as_text(name))):
                try:
                    file = self._looked_at(path) if self._is_inside(path) and _is_file(path) else None
                except OSError as error:  # as in a folder that may be listed and not entered
                    self._cannot_read(path, error)
                    continue
                if file is None:
                    continue
                if file.name in found:  # one of them is named as the other is written
                    self.faults[f"{file.name} (another)"] = f"two raw logs have the name {file.name}; rename one"
                    if self._name(path) != path.relative_to(self._root).as_posix():
                        continue
                found[file.name] = file
        return sorted(found.values(), key=lambda file: file.name)

    def _folders(self) -> Iterator[tuple[str, list[str]]]:
        """Every folder with the names in it, once: one that links lead to, too, under its own name if it has one here.

        Files are known by their names, so these must not follow from the order in which a file system lists a folder.
        """
        visited: set[str] = set()
        waiting = [self._root]
        while waiting:
            links: list[Path] = []
            for start in waiting:
                for folder, subfolders, names in os.walk(start, onerror=self._cannot_list):
                    real = os.path.realpath(folder)
                    if real in visited:
                        subfolders.clear()
                        continue
                    visited.add(real)
                    links += [path for name in subfolders if _is_link(path := Path(folder, name))]
                    yield folder, names
            waiting = sorted(link for link in links if self._is_inside(link, "/"))

    def _cannot_list(self, error: OSError) -> None:
        folder = Path(error.filename)
        sentence = f"cannot list the raw logs in {as_text(folder)}: {error.strerror}"
        if folder == self._root:
            raise HealthAssetsError(sentence) from error
        self.faults[f"{self._name(folder)}/"] = sentence

    def _cannot_read(self, path: Path, error: OSError) -> None:
        why = _leads_nowhere(path) if error.errno == errno.ENOENT else None
        self.faults[self._name(path)] = f"cannot read the raw log {as_text(path)}: {why or error.strerror}"

    def _is_inside(self, path: Path, mark: str = "") -> bool:
        """Whether a path is no link that leads out of the root."""
        if not path.is_symlink() or Path(os.path.realpath(path)).is_relative_to(self._real_root):
            return True
        self.oddities[f"{self._name(path)}{mark}"] = "a link that leads out of the raw root is not followed"
        return False

    def _looked_at(self, path: Path) -> FolderFile | None:
        """The file, if it can be opened."""
        name = self._name(path)
        try:
            place = Path(os.path.realpath(path)) if path.is_symlink() else path
            descriptor = open_file(place)
            try:
                status = os.fstat(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            self._cannot_read(path, error)
            return None
        modified_ns = within_calendar(status.st_mtime_ns)
        odd = []
        if name != str(path.relative_to(self._root)):
            odd.append("its name is not UTF-8, so it is written with escapes")
        if modified_ns != status.st_mtime_ns:
            odd.append("its modification time is not in the years 2000 to 2099, so the nearest of these counts")
        if odd:
            self.oddities[name] = "; ".join(odd)
        return FolderFile(name=name, path=place, size_bytes=status.st_size, modified_ns=modified_ns)

    def _name(self, path: Path) -> str:
        return as_text(path.relative_to(self._root).as_posix())


def _is_link(path: Path) -> bool:
    """Whether it is a link; where nobody can tell, whoever lists it as a folder finds out."""
    try:
        return path.is_symlink()
    except OSError:
        return False


def _leads_nowhere(path: Path) -> str | None:
    """A sentence on a link that leads nowhere; None on anything else, as on a file that is gone by now."""
    try:
        return f"it is a link that leads nowhere, to {as_text(path.readlink())}"
    except OSError:
        return None


def _is_file(path: Path) -> bool:
    """Whether it is a file, or a link that leads nowhere (which must be told); a pipe or a device is no log."""
    return path.is_file() or not path.exists()
