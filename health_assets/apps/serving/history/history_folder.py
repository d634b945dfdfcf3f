"""The folder of the history: whether it is one, who fills it, and which of its files count.

What belongs here: what is done to the folder as a whole. What does not: its files (`layout`).

Somebody may name a folder that holds other things. So nothing is written into a folder that is neither empty nor a
history, and nothing is removed but what the history itself has named.
"""

import fcntl
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from health_assets.apps.serving.history.layout import ACCOUNT, INDEX_SUFFIX, Account
from health_assets.core.errors import HealthAssetsError
from health_assets.core.private_files import make_private_folder

HELD = "held"
"""Locked by the process that fills the folder."""
SPILLED = "spilled"
"""Subfolder of what does not fit into memory."""
_OF_THE_DISK = {"lost+found"}
_OURS = re.compile(r".+\.\d+\.arrow(\.index)?")
_SPILLED = re.compile(r"duckdb_temp_.+")


class NoHistoryError(HealthAssetsError):
    """The folder holds something else."""


class HistoryInUseError(HealthAssetsError):
    """Another process fills this folder."""


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold the folder, which is made where there is none, so that nobody else fills it meanwhile.

    Raises:
        NoHistoryError: it holds something else than a history.
        HistoryInUseError: another process holds it.
        OSError: it cannot be written.
    """
    make_private_folder(folder)
    there = {path.name for path in folder.iterdir()} - _OF_THE_DISK
    if there and not there & {ACCOUNT, HELD}:
        raise NoHistoryError(f"{folder} holds other files; HEALTH_HISTORY must name a folder of its own")
    with (folder / HELD).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HistoryInUseError(f"another process fills {folder}") from None
        yield


def fresh_name(account: Account, name: str) -> str:
    """A name that no file of an earlier account has."""
    return f"{name}.{account.version + 1}.arrow"


def remove_unnamed(folder: Path, keep: Collection[str]) -> None:
    """Remove files of the history that no account names."""
    named = set(keep) | {f"{path}{INDEX_SUFFIX}" for path in keep}
    for path in _files(folder):
        is_ours = _SPILLED.fullmatch(path.name) if path.parent.name == SPILLED else _OURS.fullmatch(path.name)
        if is_ours and str(path.relative_to(folder)) not in named:
            path.unlink(missing_ok=True)


def forget_lost(folder: Path, account: Account) -> bool:
    """Take from an account what is not there any more, so that it is copied again; returns whether that is anything."""
    there = {str(path.relative_to(folder)) for path in _files(folder)}
    count = len(account.paths())
    for kept in account.series.values():
        for part in kept.parts():
            if part.path not in there or (kept.key is not None and f"{part.path}{INDEX_SUFFIX}" not in there):
                kept.drop(part.stamps)
        kept.drop({hour for hour, path in kept.faces.items() if path not in there})
    for name in [name for name, path in account.whole.items() if path not in there]:
        del account.whole[name]
    return len(account.paths()) < count


def _files(folder: Path) -> Iterator[Path]:
    """The files in the folder's own subfolders; a link leads elsewhere, and is followed nowhere."""
    for below in folder.iterdir():
        if below.is_dir() and not below.is_symlink() and below.name not in _OF_THE_DISK:
            yield from (path for path in below.iterdir() if path.is_file())
