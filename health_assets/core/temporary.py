"""Temporary folders that do not outlive their process for long, even where that was killed.

What belongs here: making them, and removing those of the dead. What does not: what is in them.

A process that is killed cannot tidy up. So every folder holds a file that its process has locked: the operating system
lets go of the lock, whatever happens, and the next run removes what nobody holds.

A signal's handler may raise in the middle of tidying up, too. So whoever ends a run sweeps up what it has made.
"""

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

PREFIX = "health-assets-"
UNFINISHED = "new-"
HELD = ".held"
_made: set[Path] = set()


@contextmanager
def temporary_folder(purpose: str = "") -> Iterator[Path]:
    """A folder that only this user can read, for as long as the context lasts.

    Args:
        purpose: part of its name, for whoever looks into the folder of temporary files.
    """
    made = Path(tempfile.mkdtemp(prefix=f"{UNFINISHED}{PREFIX}{purpose}"))
    with (made / HELD).open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        # it gets the name that others look for once it is held
        folder = made.rename(made.with_name(made.name.removeprefix(UNFINISHED)))
        _made.add(folder)
        try:
            yield folder
        finally:
            if folder in _made:
                shutil.rmtree(folder)
                _made.discard(folder)


@contextmanager
def swept() -> Iterator[None]:
    """Remove at the end of the block what is left of the folders that this process has made within it."""
    before = set(_made)
    try:
        yield
    finally:
        for folder in _made - before:
            shutil.rmtree(folder, ignore_errors=True)  # it may be half removed already
            _made.discard(folder)


def remove_what_the_dead_left() -> None:
    """Remove temporary folders whose processes have ended; those of other users and programs are left alone."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            _remove_unless_held(folder)
        except OSError:  # somebody holds it, or removes it just now, or it is none of ours
            continue


def _remove_unless_held(folder: Path) -> None:
    """Remove one of this user's folders.

    Anybody may make a folder of such a name, with anything in it: nothing is followed or waited for.

    Raises:
        OSError: its process lives, or it is not one that this user's processes make.
    """
    with _opened(folder, os.O_DIRECTORY) as place, _opened(HELD, within=place) as held:
        if _is_own(place, stat.S_ISDIR) and _is_own(held, stat.S_ISREG):
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder)


@contextmanager
def _opened(path: Path | str, flags: int = 0, within: int | None = None) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | flags, dir_fd=within)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _is_own(descriptor: int, is_of_kind: Callable[[int], bool]) -> bool:
    found = os.fstat(descriptor)
    return found.st_uid == os.geteuid() and is_of_kind(found.st_mode)
