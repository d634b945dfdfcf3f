"""The lake: Parquet files of tables by hour in a folder, of which those count that the ledger has published.

What belongs here: which lake is the ledger's, which folders hold the rows of which hours, and which folders
nobody needs any more. What does not: names of folders (`lake_place`), and writing rows and reading them
(`lake_session`).

Each statement writes into a new folder, with a folder for each hour inside. No file is ever changed. The ledger says
which folders of hours make up a table, and says so in its own transaction: what a run has written counts for all
readers from its commit on, and never where it has none. Folders that another one has replaced stay for `GRACE`, since
a reader may still be reading them.
"""

import re
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from uuid import uuid4

from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HourRange
from health_assets.warehouse.engines.spark.lake_place import (
    FOLDER_NAME,
    ID_FILE,
    LakePlace,
    WrittenFolder,
    folder_of_hour,
)
from health_assets.warehouse.engines.spark.tables import LAKE_TABLES
from health_assets.warehouse.session import Session

GRACE = timedelta(hours=6)
SWEEP_EVERY = timedelta(hours=1)
SCRATCH = "_kept"
_KEPT_NAME = re.compile(r"ibis_kept_\w+")
"""Names that a session gives to rows that it keeps."""
SWEPT_FILE = "lake_swept"
"""Its time is when folders were last listed for those that nobody needs."""

_TABLES = (
    "CREATE TABLE IF NOT EXISTS lake_hours (table_name VARCHAR, hour TIMESTAMP WITH TIME ZONE, folder VARCHAR)",
    "CREATE TABLE IF NOT EXISTS lake_withdrawn (folder VARCHAR, withdrawn_at TIMESTAMP WITH TIME ZONE)",
    "CREATE TABLE IF NOT EXISTS lake_identity (lake_id VARCHAR, place VARCHAR)",
)


class Lake:
    """The folders of a lake, as one transaction of the ledger sees them.

    Args:
        place: where it is.
        ledger: an open session of the ledger.
    """

    def __init__(self, place: LakePlace, ledger: Session) -> None:
        self.place = place
        self._ledger = ledger
        self._touched: dict[str, set[datetime]] = {}

    def claim(self) -> str:
        """Make a ledger that is of no lake that of this one, for good.

        A lake has one ledger, since that one removes what it does not know (`sweep`). One without a folder of any
        table may be claimed again: whoever claimed it before was cut off.

        Returns:
            What the lake is known by.

        Raises:
            HealthAssetsError: the ledger holds a warehouse of its own; the lake holds tables, which are another
                ledger's; or it cannot be written.
        """
        if any(self._ledger.query(f"SELECT 1 FROM {table} LIMIT 1") for table in ("raw_files", "partition_states")):
            raise HealthAssetsError(
                "HEALTH_LEDGER names a warehouse that has hours of its own; name another database for the ledger"
            )
        self.make_account()
        try:
            if any(self.place.folders_in(table) for table in LAKE_TABLES):
                raise HealthAssetsError(
                    f"the lake {self.place.shown} holds tables of another ledger, or folders that are none of ours; "
                    "name that ledger in HEALTH_LEDGER, or another lake"
                )
            lake_id = self._new_id()
        except OSError as error:
            raise HealthAssetsError(f"cannot write to the lake {self.place.shown}: {error}") from error
        self._ledger.query("INSERT INTO lake_identity VALUES (?, ?)", [lake_id, self.place.shown])
        return lake_id

    def require_own(self) -> str:
        """Refuse a lake that is not the ledger's: its tables would seem to be empty.

        Returns:
            What the lake is known by.

        Raises:
            HealthAssetsError: the ledger is that of another lake.
        """
        [(lake_id, place)] = self._ledger.query("SELECT lake_id, place FROM lake_identity")
        try:
            known_by = self.place.text_of(ID_FILE)
        except OSError as error:
            raise HealthAssetsError(f"cannot read the lake {self.place.shown}: {error}") from error
        if known_by != lake_id:
            raise HealthAssetsError(
                f"the lake {self.place.shown} is not the one of HEALTH_LEDGER, whose tables are in {place}; "
                "set HEALTH_LAKE"
            )
        return lake_id

    def _new_id(self) -> str:
        lake_id = uuid4().hex
        self.place.make()
        with self.place.files.open_output_stream(self.place.path_of(ID_FILE)) as file:
            file.write(lake_id.encode())
        self.place.flush()
        return lake_id

    def make_account(self) -> None:
        """Make the tables of the ledger that say what is published, where they are not there yet."""
        for statement in _TABLES:
            self._ledger.query(statement)

    @property
    def is_published(self) -> bool:
        """Whether the ledger is one of a lake."""
        return self._ledger.has_tables(["lake_hours"])

    def folders(self, table: str, hours: HourRange | None = None) -> list[str]:
        """The published folders of a table, of these hours or all."""
        inside = "" if hours is None else " AND hour >= ? AND hour < ?"
        span = [] if hours is None else [hours.start, hours.end]
        sql = f"SELECT folder FROM lake_hours WHERE table_name = ?{inside} ORDER BY hour, folder"
        return [folder for (folder,) in self._ledger.query(sql, [table, *span])]

    def count(self, table: str, hours: Collection[datetime]) -> int:
        """The number of published rows of a table in these hours, as the files tell."""
        sql = "SELECT folder FROM lake_hours WHERE table_name = ? AND hour IN (SELECT unnest(?))"
        return self.place.rows_in(folder for (folder,) in self._ledger.query(sql, [table, sorted(hours)]))

    def publish(self, written: Iterable[WrittenFolder]) -> None:
        """Let the hours that were written to folders count, beside what is published of them."""
        rows = [(one.table, hour, folder_of_hour(one.folder, hour)) for one in written for hour in one.hours]
        for table, hour, _ in rows:
            self._touched.setdefault(table, set()).add(hour)
        if rows:
            self._ledger.query(
                "INSERT INTO lake_hours SELECT unnest(?), unnest(?), unnest(?)",
                [list(column) for column in zip(*rows, strict=True)],
            )

    def crowded(self, most_folders: int) -> dict[str, list[datetime]]:
        """By table, the hours published in this transaction that have more folders than this."""
        sql = (
            "SELECT hour FROM lake_hours WHERE table_name = ? AND hour IN (SELECT unnest(?)) "
            "GROUP BY hour HAVING count(*) > ?"
        )
        return {
            table: [hour for (hour,) in self._ledger.query(sql, [table, sorted(hours), most_folders])]
            for table, hours in self._touched.items()
        }

    def withdraw(self, table: str, hours: Collection[datetime]) -> None:
        """Let nothing of these hours of a table count; folders are removed when no reader can need them."""
        chosen = "table_name = ? AND hour IN (SELECT unnest(?))"
        values = [table, sorted(hours)]
        # since when, the next writer notes: readers see them until this transaction is committed, whenever that is
        self._ledger.query(f"INSERT INTO lake_withdrawn (folder) SELECT folder FROM lake_hours WHERE {chosen}", values)
        self._ledger.query(f"DELETE FROM lake_hours WHERE {chosen}", values)

    def flush(self) -> None:
        """Have the disk keep what was published in this transaction, as it will the ledger's commit.

        Raises:
            HealthAssetsError: it does not.
        """
        if not self._touched:
            return
        try:
            self.place.flush()
        except OSError as error:
            raise HealthAssetsError(f"cannot keep what was written to the lake {self.place.shown}: {error}") from error

    def hours_of(self, table: str, hours: HourRange) -> list[datetime]:
        """The hours among these of which anything is published."""
        sql = "SELECT DISTINCT hour FROM lake_hours WHERE table_name = ? AND hour >= ? AND hour < ?"
        return sorted(hour for (hour,) in self._ledger.query(sql, [table, hours.start, hours.end]))

    def sweep(self) -> None:
        """Remove what nobody needs any more; to be called by a writer that has not written anything yet.

        - A folder that was withdrawn goes `GRACE` after the next writer has seen so: readers that began before may need
          it until then.
        - A folder that is neither published nor withdrawn is one that a run wrote that was killed, or an executor that
          was lost, or one whose hours are all gone. It can be published no more: whoever writes holds the ledger's
          lock, however long it takes, so what is not published when a writer begins is nobody's. It goes `GRACE` after
          its last change all the same, so that a cluster that still works for a driver that is dead is left alone.
        - What a session keeps for itself (`SCRATCH`) it removes at its end. What is older than `GRACE` was left by one
          that was killed, or belongs to a reader that is slower than any may be (`store.SparkCluster.read`).

        Folders are listed once an hour at most. What says when is a file of the lake, whose time and those of the
        folders are by one clock.

        Raises:
            HealthAssetsError: a folder cannot be removed.
        """
        try:
            self._remove_withdrawn()
            last = self.place.marked(SWEPT_FILE)
            if last is None or self._ledger.now() - last >= SWEEP_EVERY:
                self._remove_unknown(self.place.mark(SWEPT_FILE) - GRACE)
        except OSError as error:
            raise HealthAssetsError(
                f"cannot remove what nobody needs any more from the lake {self.place.shown}; let this user remove what "
                f"the cluster has written: {error}"
            ) from error

    def _remove_withdrawn(self) -> None:
        now = self._ledger.now()
        self._ledger.query("UPDATE lake_withdrawn SET withdrawn_at = ? WHERE withdrawn_at IS NULL", [now])
        until = now - GRACE
        for (folder,) in self._ledger.query("SELECT folder FROM lake_withdrawn WHERE withdrawn_at < ?", [until]):
            self.place.remove(folder)
        self._ledger.query("DELETE FROM lake_withdrawn WHERE withdrawn_at < ?", [until])

    def _remove_unknown(self, until: datetime) -> None:
        """Remove folders that the ledger does not know and that nobody has changed since some moment."""
        written = " UNION ".join(
            f"SELECT split_part(folder, '/', 2) FROM {table}" for table in ("lake_hours", "lake_withdrawn")
        )
        known = {name for (name,) in self._ledger.query(written)}
        for above in (*LAKE_TABLES, SCRATCH):
            for name, changed in self.place.folders_in(above).items():
                folder = f"{above}/{name}"
                is_own = FOLDER_NAME.fullmatch(name) or _KEPT_NAME.fullmatch(name)
                if is_own and name not in known and (changed or self.place.newest_file(folder) or until) < until:
                    self.place.remove(folder)
