"""Raw logs in a folder of this machine, whoever wrote there and whatever names and times the files have.

What belongs here: walking the folder, who can write what lies in it, and what is odd about files: names that are no
text, times that no calendar of ours has, links that lead out, pipes. What does not: opening (`safe_open`), object
stores, and reading files (`stores`).

Listing never fails for a single file. What cannot be read is told as a fault; what is merely odd is put right in the
same way each time, and reported as a file warning.
"""

import hashlib
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import END_S, FIRST_S
from health_assets.core.judges import NOBODY, Writers, writers_of
from health_assets.core.raw_roots import as_text
from health_assets.logs.safe_open import open_file, open_file_in, open_folder, status_of, why_not

EARLIEST_NS = FIRST_S * 10**9
LATEST_NS = END_S * 10**9 - 1
SECOND_NS = 10**9
OUT_OF_ROOT = "a link that leads out of the raw root is not followed"
_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@dataclass(frozen=True, kw_only=True)
class FolderFile:
    """A file in a folder.

    Args:
        name: path relative to the root, with forward slashes, as text.
        path: where it is; of a link, where that leads.
        size_bytes: its size.
        modified_ns: its modification time, nanoseconds since 1970, in the years 2000 to 2099.
        changed_ns: when its content or its owner, mode or name changed, as the system says, which nobody can set.
        writers: who can write it, or put another file in its place.
    """

    name: str
    path: Path
    size_bytes: int
    modified_ns: int
    changed_ns: int
    writers: Writers


def within_calendar(modified_ns: int) -> int:
    """A modification time within the years 2000 to 2099; others become their first or last second.

    Below that second it is another for each time that was changed so, since it tells that a file has changed.
    """
    if EARLIEST_NS <= modified_ns <= LATEST_NS:
        return modified_ns
    second = EARLIEST_NS if modified_ns < EARLIEST_NS else LATEST_NS + 1 - SECOND_NS
    return second + int.from_bytes(hashlib.sha256(str(modified_ns).encode()).digest()[:8]) % SECOND_NS


@dataclass(frozen=True)
class _Place:
    """A file or folder, by its path below the root.

    Args:
        name: the path by which it was found, perhaps through links.
        real: the path without any link.
        writers: who can write the folders on both.
    """

    name: str
    real: str
    writers: Writers

    def entry(self, name: str) -> "_Place":
        """The entry of this name in the folder."""
        return _Place(_joined(self.name, name), _joined(self.real, name), self.writers)


class Walk:
    """One look through a folder.

    Args:
        root: the folder.
        is_log: whether a file of this name is of interest.
        is_near_miss: whether a file of a name that is not is listed among `near_misses`.
    """

    def __init__(
        self, root: Path, is_log: Callable[[str], object], is_near_miss: Callable[[str], object] = lambda _: False
    ) -> None:
        self._root = root
        self._real_root = os.path.realpath(root)
        self._is_log = is_log
        self._is_near_miss = is_near_miss
        self._found: dict[str, FolderFile] = {}
        self._inner: list[_Place] = []
        self._links: list[_Place] = []
        self.faults: dict[str, str] = {}
        """By the name of a file, or of a folder with a slash behind, why it cannot be read, as a sentence."""
        self.file_warnings: dict[str, str] = {}
        """By the name of a file, or of a folder with a slash behind, what is odd about it."""
        self.near_misses: list[str] = []
        """Files whose names are not those of logs, but near them."""

    def files(self) -> list[FolderFile]:
        """Every file of interest that can be opened, sorted by name.

        Each folder is listed once: one that links lead to, too, under its own name if it has one here. Files are known
        by their names, so these must not follow from the order in which a file system lists a folder.

        Raises:
            HealthAssetsError: the root itself cannot be listed.
        """
        visited: set[str] = set()
        self._inner = [_Place("", "", NOBODY)]
        while self._inner:
            folder = self._inner.pop()
            if folder.real not in visited and self._is_listed(folder):
                visited.add(folder.real)
            if not self._inner:
                self._inner, self._links = sorted(self._links, key=lambda link: link.name, reverse=True), []
        return sorted(self._found.values(), key=lambda file: file.name)

    def _is_listed(self, folder: _Place) -> bool:
        """Look at all that is in a folder; gives whether that could be listed."""
        try:
            descriptor = open_folder(self._root, folder.real)
        except OSError as error:
            self._cannot_list(folder, error)
            return False
        try:
            with os.scandir(descriptor) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
            if folder.real:
                folder = replace(folder, writers=writers_of(folder.writers, os.fstat(descriptor)))
            for entry in entries:
                self._look_at(folder.entry(entry.name), entry, descriptor)
        except OSError as error:
            self._cannot_list(folder, error)
            return False
        finally:
            os.close(descriptor)
        return True

    def _look_at(self, place: _Place, entry: "os.DirEntry[str]", folder: int) -> None:
        is_log = self._is_log(as_text(entry.name))
        try:
            if entry.is_symlink():
                self._look_behind(place, entry, folder, is_log=bool(is_log))
            elif entry.is_dir(follow_symlinks=False):
                self._inner.append(place)
            elif is_log and self._may_be_file(place, entry.stat(follow_symlinks=False)):
                self._add(place, open_file_in(folder, entry.name))
            elif not is_log and self._is_near_miss(as_text(entry.name)) and entry.is_file(follow_symlinks=False):
                self.near_misses.append(as_text(place.name))
        except OSError as error:  # as in a folder that may be listed and not entered
            if is_log:
                self._cannot_read(place, why_not(error))

    def _look_behind(self, place: _Place, entry: "os.DirEntry[str]", folder: int, *, is_log: bool) -> None:
        """Look at what a link leads to, unless that is out of the root.

        Where it leads is opened by the path that it has then, so that nothing is gained by changing the link meanwhile.
        """
        behind = Path(os.path.realpath(Path(self._real_root, place.real)))
        if not behind.is_relative_to(self._real_root):
            is_folder = entry.is_dir()
            if is_log or is_folder:
                self.file_warnings[f"{as_text(place.name)}{'/' if is_folder else ''}"] = OUT_OF_ROOT
            return
        target = replace(place, real=_below(behind, self._real_root))
        try:
            status = status_of(self._root, target.real)
        except FileNotFoundError:
            status = None
        if status is None or stat.S_ISLNK(status.st_mode):
            if is_log:
                leads_to = as_text(os.readlink(entry.name, dir_fd=folder))
                self._cannot_read(place, f"it is a link that leads nowhere, to {leads_to}")
        elif stat.S_ISDIR(status.st_mode):
            self._links.append(replace(target, writers=self._writers_on_the_way(target)))
        elif is_log and self._may_be_file(place, status):
            target = replace(target, writers=self._writers_on_the_way(target))
            self._add(target, open_file(self._root, target.real))

    def _writers_on_the_way(self, target: _Place) -> Writers:
        """The writers of a link's folders, and of those that its target lies in."""
        passed: list[os.stat_result] = []
        os.close(open_folder(self._root, target.real.rpartition("/")[0], passed.append))
        writers = target.writers
        for status in passed:
            writers = writers_of(writers, status)
        return writers

    def _may_be_file(self, place: _Place, status: os.stat_result) -> bool:
        """Whether it is a file; what stands in the place of one is told."""
        for is_kind, name in _KINDS:
            if is_kind(status.st_mode):
                self.file_warnings[as_text(place.name)] = f"it is {name} and no file, so it is not read"
                return False
        return True

    def _add(self, place: _Place, descriptor: int) -> None:
        """Add a file that is open."""
        try:
            status = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        name = as_text(place.name)
        if name in self._found:  # one of them is named as the other is written
            self.faults[f"{name} (another)"] = f"two raw logs have the name {name}; rename one"
            if name != place.name:
                return
        modified_ns = within_calendar(status.st_mtime_ns)
        odd = []
        if name != place.name:
            odd.append("its name is not UTF-8, so it is written with escapes")
        if modified_ns != status.st_mtime_ns:
            odd.append("its modification time is not in the years 2000 to 2099, so the nearest of these counts")
        if odd:
            self.file_warnings[name] = "; ".join(odd)
        self._found[name] = FolderFile(
            name=name,
            path=self._root / place.real,
            size_bytes=status.st_size,
            modified_ns=modified_ns,
            changed_ns=status.st_ctime_ns,
            writers=writers_of(place.writers, status),
        )

    def _cannot_list(self, folder: _Place, error: OSError) -> None:
        sentence = f"cannot list the raw logs in {as_text(self._root / folder.name)}: {why_not(error)}"
        if not folder.real:
            raise HealthAssetsError(sentence) from error
        self.faults[f"{as_text(folder.name)}/"] = sentence

    def _cannot_read(self, place: _Place, why: str) -> None:
        self.faults[as_text(place.name)] = f"cannot read the raw log {as_text(self._root / place.name)}: {why}"


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _below(path: Path, root: str) -> str:
    below = path.relative_to(root).as_posix()
    return "" if below == "." else below
