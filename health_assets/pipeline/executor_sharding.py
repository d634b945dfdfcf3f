"""Executor sharding: dealing raw logs out to other machines, and finding those that differ or are unreadable there.

What belongs here: which files go together, their names there, and what is said of a file that is not the same there.
What does not: what is done with the files (`file_reading`) and how work is sent (`warehouse.engines`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import le
from pathlib import Path

from health_assets.core.errors import HealthAssetsError
from health_assets.logs.stores import RawFile, Stamp

BYTES_PER_SHARD = 128 << 20
"""Files of about so many bytes are read together where several machines read. A larger file is a shard by itself."""
FILES_PER_SHARD = 1_000

_NAME_A_PLACE = "this machine can read it: name a raw root that both reach"


@dataclass(kw_only=True)
class ShardReport:
    """What another machine reports of the files of its shard.

    Args:
        stamps: by file, its size and times; not of objects of a store.
        faults: by file that could not be read, why. Nothing else of its shard counts where there is one.
    """

    stamps: dict[str, Stamp] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)


def shards(files: Sequence[RawFile]) -> Iterator[list[RawFile]]:
    """Shards of some size, each for a core of its own, under names that hold in any folder.

    The largest file comes first, so that the longest shard does not begin last.
    """
    group: list[RawFile] = []
    size_bytes = 0
    for file in sorted(map(_anywhere, files), key=lambda file: -file.size_bytes):
        if group and (size_bytes + file.size_bytes > BYTES_PER_SHARD or len(group) == FILES_PER_SHARD):
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


def faults_of(files: Sequence[RawFile], reports: Iterable[ShardReport]) -> dict[str, str]:
    """Find out which files other machines could not read, or read otherwise than they are here; gives the reasons."""
    by_name = {file.source_file: file for file in files}
    faults = {}
    for report in reports:
        for name, fault in report.faults.items():
            faults[name] = f"{fault} (on the cluster; {_NAME_A_PLACE})" if _can_be_read(by_name[name]) else fault
        for name, stamp in report.stamps.items():
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
