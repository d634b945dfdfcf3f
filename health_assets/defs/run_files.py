"""Files of Dagster's runs: giving back the space of those that are deleted.

What belongs here: which files a run leaves besides rows, and making shared files smaller. What does not: which runs are
old (`run_retention`), and the file of one run's events (`event_storage`, which deletes it with them).
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import dagster as dg
from rich.filesize import decimal

from health_assets.defs.dagster_internals import SqliteEventLogStorage

_RUN_ID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
WORTH_BYTES = 1 << 20
WORTH_SHARE = 0.25
"""Writing a shared file anew pays where so much of it is free, in bytes and as a share."""
MOST_KEPT_BYTES = 1 << 30
"""Most that is written anew: who wants to write to the file waits that long, and Dagster gives up after 30 seconds."""
PATIENCE_S = 10.0


@dataclass(frozen=True)
class Shrunk:
    """The outcome for a shared file.

    Args:
        path: the file.
        freed_bytes: by how much it is smaller.
        problem: why it could not be made smaller; empty where it could.
    """

    path: Path
    freed_bytes: int
    problem: str = ""


def delete_run(instance: dg.DagsterInstance, run_id: str) -> None:
    """Delete a run, its events, and what it and its steps wrote to their output."""
    instance.compute_log_manager.delete_logs(prefix=[run_id])
    instance.delete_run(run_id)


def deleted_runs_with_files(instance: dg.DagsterInstance, before: datetime) -> list[str]:
    """Ids of runs that nothing knows any more, and whose events still have a file: earlier versions left it.

    Args:
        instance: the instance.
        before: files that were written to since then stay; a run that begins has a file before it is known.
    """
    storage = instance.event_log_storage
    if not isinstance(storage, SqliteEventLogStorage):
        return []
    files = [path for path in Path(storage.path_for_shard("any")).parent.glob("*.db") if _RUN_ID.fullmatch(path.stem)]
    old = [path.stem for path in files if path.stat().st_mtime < before.timestamp()]
    return [run_id for run_id in old if not instance.has_run(run_id)]


def shared_files(instance: dg.DagsterInstance) -> list[Path]:
    """The SQLite files that hold rows of many runs, schedules and sensors; none where these are in PostgreSQL."""
    storages = [instance.run_storage, instance.event_log_storage, instance.schedule_storage]
    return sorted({path for storage in storages for path in _files(storage)})


def _files(storage: object) -> Iterator[Path]:
    connect = getattr(storage, "index_connection", None) or getattr(storage, "connect", None)
    if connect is None:
        return
    with connect() as connection:
        engine = connection.engine
        database = engine.url.database if engine.dialect.name == "sqlite" else None
    if database and Path(database).is_file():
        yield Path(database)


def shrink(path: Path, patience_s: float = PATIENCE_S, most_kept_bytes: int = MOST_KEPT_BYTES) -> Shrunk | None:
    """Write a SQLite file anew without its free pages, where that pays.

    Args:
        path: the file; others may have it open.
        patience_s: how long to wait for a moment in which nobody reads or writes it.
        most_kept_bytes: a file that keeps more than that stays as it is.

    Returns:
        None where too little is free; a problem where it keeps too much, somebody goes on using it, or the disk has no
        room for the copy.
    """
    before = _size_bytes(path)
    try:
        with closing(sqlite3.connect(path, timeout=patience_s, isolation_level=None)) as file:
            page_bytes, pages, free = (
                file.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_size", "page_count", "freelist_count")
            )
            if free * page_bytes < WORTH_BYTES or free < WORTH_SHARE * pages:
                return None
            if (pages - free) * page_bytes > most_kept_bytes:
                return Shrunk(path, 0, f"it keeps more than {decimal(most_kept_bytes)}, and others would wait too long")
            file.execute("VACUUM")
            file.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    except sqlite3.OperationalError as error:
        return Shrunk(path, 0, str(error))
    return Shrunk(path, before - _size_bytes(path))


def _size_bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in (path, Path(f"{path}-wal")) if file.exists())
