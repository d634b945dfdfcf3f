"""The lake: Parquet files of tables by hour in a folder, of which those count that the ledger has published.

What belongs here: which lake is the ledger's, which folders hold the rows of which hours, and removing folders that
nobody reads any more. What does not: names of folders (`lake_place`), and writing rows and reading them
(`lake_session`).

Each statement writes into a new folder, with a folder for each hour inside. No file is ever changed. The ledger says
which folders of hours make up a table, and says so in its own transaction: what a run has written counts for all
readers from its commit on, and never where it has none. Folders that another one has replaced stay for `GRACE`, since
a reader may still be reading them.
"""

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from uuid import uuid4

from pyarrow import fs

from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HourRange
from health_assets.warehouse.engines.spark.lake_place import LakePlace, WrittenFolder, folder_of_hour
from health_assets.warehouse.session import Session

GRACE = timedelta(hours=6)
SCRATCH = "_kept"
ID_FILE = "lake_id"
"""Holds what the ledger and the cluster know the lake by; a name with a low line in front Spark would not read."""

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

    def claim(self) -> str | None:
        """Refuse a ledger of another lake, and make one that is of none that of this lake; to be called before writing.

        Returns:
            What the lake is known by, where that is new to the ledger.

        Raises:
            HealthAssetsError: the ledger is that of another lake, or holds a warehouse of its own; the lake cannot be
                written.
        """
        if self.is_published:
            self.require_own()
            return None
        if any(self._ledger.query(f"SELECT 1 FROM {table} LIMIT 1") for table in ("raw_files", "materialized_hours")):
            raise HealthAssetsError(
                "HEALTH_LEDGER names a warehouse that has hours of its own; name another database for the ledger"
            )
        self.make_account()
        try:
            lake_id = self._known_by() or self._new_id()
        except OSError as error:
            raise HealthAssetsError(f"cannot write to the lake {self.place.shown}: {error}") from error
        self._ledger.query("INSERT INTO lake_identity VALUES (?, ?)", [lake_id, self.place.shown])
        return lake_id

    def require_own(self) -> None:
        """Refuse a lake that is not the ledger's: its tables would seem to be empty.

        Raises:
            HealthAssetsError: the ledger is that of another lake.
        """
        [(lake_id, place)] = self._ledger.query("SELECT lake_id, place FROM lake_identity")
        try:
            known_by = self._known_by()
        except OSError as error:
            raise HealthAssetsError(f"cannot read the lake {self.place.shown}: {error}") from error
        if known_by != lake_id:
            raise HealthAssetsError(
                f"the lake {self.place.shown} is not the one of HEALTH_LEDGER, whose tables are in {place}; "
                "set HEALTH_LAKE"
            )

    def _known_by(self) -> str | None:
        path = self.place.path_of(ID_FILE)
        if self.place.files.get_file_info(path).type == fs.FileType.NotFound:
            return None
        with self.place.files.open_input_stream(path) as file:
            return file.read().decode()

    def _new_id(self) -> str:
        lake_id = uuid4().hex
        self.place.files.create_dir(self.place.path_of(), recursive=True)
        with self.place.files.open_output_stream(self.place.path_of(ID_FILE)) as file:
            file.write(lake_id.encode())
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

    def publish(self, written: Iterable[WrittenFolder]) -> None:
        """Let the hours that were written to folders count, beside what is published of them."""
        rows = [(one.table, hour, folder_of_hour(one.folder, hour)) for one in written for hour in one.hours]
        if rows:
            self._ledger.query(
                "INSERT INTO lake_hours SELECT unnest(?), unnest(?), unnest(?)",
                [list(column) for column in zip(*rows, strict=True)],
            )

    def withdraw(self, table: str, hours: Collection[datetime]) -> None:
        """Let nothing of these hours of a table count; folders are removed when no reader can need them."""
        chosen = "table_name = ? AND hour IN (SELECT unnest(?))"
        values = [table, sorted(hours)]
        self._ledger.query(
            f"INSERT INTO lake_withdrawn SELECT folder, CAST(? AS TIMESTAMP WITH TIME ZONE) FROM lake_hours "
            f"WHERE {chosen}",
            [self._ledger.now(), *values],
        )
        self._ledger.query(f"DELETE FROM lake_hours WHERE {chosen}", values)

    def hours_of(self, table: str, hours: HourRange) -> list[datetime]:
        """The hours among these of which anything is published."""
        sql = "SELECT DISTINCT hour FROM lake_hours WHERE table_name = ? AND hour >= ? AND hour < ?"
        return sorted(hour for (hour,) in self._ledger.query(sql, [table, hours.start, hours.end]))

    def sweep(self) -> None:
        """Remove what was withdrawn so long ago that no reader needs it."""
        until = self._ledger.now() - GRACE
        for (folder,) in self._ledger.query("SELECT folder FROM lake_withdrawn WHERE withdrawn_at < ?", [until]):
            self.place.remove(folder)
        self._ledger.query("DELETE FROM lake_withdrawn WHERE withdrawn_at < ?", [until])
