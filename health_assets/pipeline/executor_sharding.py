"""Other machines: dealing raw logs out to them, and finding out which of these they could not read as they are here.

What belongs here: which files go together, their names there, and what is said of a file that is not the same there.
What does not: what is done with the files (`file_reading`) and how work is sent (`warehouse.engines`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import le
from pathlib import Path

from health_assets.core.errors import HealthAssetsError
from health_assets.logs.stores import RawFile, Stamp

BYTES_PER_PASS = 128 << 20
"""Files of about so many bytes are read together where several machines read. A larger file is one pass by itself."""
FILES_PER_PASS = 1_000

_NAME_A_PLACE = "this machine can read it: name a raw root that both reach"


@dataclass(kw_only=True)
class Seen:
    """Files as another machine saw them.

    Args:
        stamps: by file, its size and times; not of objects of a store.
        faults: by file that could not be read, why. Nothing else of its pass counts where there is one.
    """

    stamps: dict[str, Stamp] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)


def dealt_out(files: Sequence[RawFile]) -> Iterator[list[RawFile]]:
    """The files in passes of some size, each for a core of its own, under names that hold in any folder.

    The largest file comes first, so that the longest pass does not begin last.
    """
    group: list[RawFile] = []
    size_bytes = 0
    for file in sorted(map(_anywhere, files), key=lambda file: -file.size_bytes):
        if group and (size_bytes + file.size_bytes > BYTES_PER_PASS or len(group) == FILES_PER_PASS):
            yield group
            group, size_bytes = [], 0
        group.append(file)
        size_bytes += file.size_bytes
    if group:
        yield group


def _anywhere(file: RawFile) -> RawFile:
    """The same file, under a name that does not depend on the folder that a process works in."""
    return (
        file
        if file.store is not None
        else replace(file, path=Path(file.path).absolute(), root=file.root and file.root.absolute())
    )


def stamps_of(files: Iterable[RawFile]) -> dict[str, Stamp]:
    """The stamps that files have on this machine now, by name; not of objects of a store."""
    return {file.source_file: stamp for file in files if (stamp := file.stamp_now())}


def faults_of(files: Sequence[RawFile], seen: Iterable[Seen]) -> dict[str, str]:
    """Find out which files other machines could not read, or read otherwise than they are here; gives the reasons."""
    by_name = {file.source_file: file for file in files}
    faults = {}
    for one in seen:
        for name, fault in one.faults.items():
            faults[name] = f"{fault} (on the cluster; {_NAME_A_PLACE})" if _can_be_read(by_name[name]) else fault
        for name, stamp in one.stamps.items():
            if not _is_same(by_name[name], stamp):
                faults[name] = f"{name} was replaced while it was read, or is another file on the cluster"
    return faults


def _is_same(file: RawFile, seen: Stamp) -> bool:
    """Whether what another machine read was the file of this one, which may have grown since it was listed."""
    own, found = file.stamp[:2], seen[:2]  # a copy on another file system was changed at another time
    if found == own:
        return True
    now = (file.stamp_now() or seen)[:2]
    return all(map(le, own, found)) and all(map(le, found, now))


def _can_be_read(file: RawFile) -> bool:
    try:
        file.beginning(1)
    except HealthAssetsError:
        return False
    return True
