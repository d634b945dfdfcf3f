"""The place of the lease: a value in the run storage of the Dagster instance, which all hosts of an instance see.

What belongs here: reading and changing that value, also where its database is away for a while. What does not: what it
says (`leases`).

It is there rather than in the warehouse, since a DuckDB file cannot be written, or even read, by others while somebody
holds it, and since a dead client ends a run that Dagster keeps in the same place. It is changed by compare-and-set, so
that it needs nothing of the database but that one statement is atomic. Its times are those of the database.
"""

import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

import sqlalchemy as sa
import tenacity

from health_assets.core.errors import HealthAssetsError
from health_assets.defs.dagster_internals import KeyValueStoreTable, SqlRunStorage
from health_assets.defs.write_lock.leases import Lease

KEY = "health_assets/lease"
Change = Callable[[Lease, datetime], Lease]
T = TypeVar("T")


class LeaseStore:
    """The lease of a Dagster instance.

    Args:
        storage: the instance's run storage, which keeps the lease.

    Raises:
        HealthAssetsError: it is no SQL database.
    """

    def __init__(self, storage: object) -> None:
        if not isinstance(storage, SqlRunStorage):
            raise HealthAssetsError(
                f"Dagster keeps its runs in a {type(storage).__name__}, which holds no lease; use SQLite or PostgreSQL"
            )
        self._storage = storage

    def read(self) -> Lease:
        """The lease as it is now."""
        with self._storage.connect() as connection:
            return _parsed(_stored(connection))

    def change(self, change: Change) -> Lease:
        """Change the lease; who was faster is taken into account.

        Args:
            change: makes the new lease from the present one and the store's time, and may be called again.

        Returns:
            The lease as it is afterwards.
        """
        while True:
            try:
                with self._storage.connect() as connection:
                    stored, now = _stored(connection), _time(connection)
                    before = _parsed(stored)
                    after = change(before, now)
                    if after == before or _was_replaced(connection, stored, after.model_dump_json()):
                        return after
            except sa.exc.IntegrityError:  # somebody else was the first ever
                continue


def patiently(do: Callable[[], T], patience_s: float) -> T:
    """Do something with Dagster's database, again and again while that cannot be reached.

    Args:
        do: what to do; it must do no harm twice, since a lost answer tells nothing.
        patience_s: seconds for which the database may be away.

    Raises:
        HealthAssetsError: it was away for longer.
    """
    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception(_may_pass),
        wait=tenacity.wait_random_exponential(multiplier=0.05, max=1.0),
        stop=tenacity.stop_after_delay(patience_s),
        reraise=True,
    )
    try:
        return retrying(do)
    except Exception as error:
        if not _may_pass(error):
            raise
        raise HealthAssetsError(
            f"Dagster's database could not be reached for {patience_s:g} s, so nothing of this step was kept; run it "
            f"again when it is back: {str(error.__cause__ or error).splitlines()[0]}"
        ) from error


def _may_pass(error: BaseException) -> bool:
    """Whether an error, or the cause behind one of Dagster's, says that a database is away or busy."""
    found = error if isinstance(error, sa.exc.DBAPIError) else error.__cause__
    if not isinstance(found, sa.exc.DBAPIError):
        return False
    if isinstance(found.orig, sqlite3.Error):
        return found.orig.sqlite_errorname.startswith("SQLITE_BUSY")  # a full disk is told at once
    return found.connection_invalidated or isinstance(found, sa.exc.OperationalError)


def _stored(connection: sa.Connection) -> str | None:
    table = KeyValueStoreTable
    return connection.execute(sa.select(table.c.value).where(table.c.key == KEY)).scalar()


def _parsed(stored: str | None) -> Lease:
    return Lease() if stored is None else Lease.model_validate_json(stored)


def _time(connection: sa.Connection) -> datetime:
    now = connection.execute(sa.select(sa.func.current_timestamp())).scalar_one()
    return now.replace(tzinfo=UTC) if now.tzinfo is None else now.astimezone(UTC)  # SQLite's is UTC without saying so


def _was_replaced(connection: sa.Connection, stored: str | None, value: str) -> bool:
    table = KeyValueStoreTable
    if stored is None:
        connection.execute(sa.insert(table).values(key=KEY, value=value))
        return True
    is_same = (table.c.key == KEY) & (table.c.value == stored)
    return connection.execute(sa.update(table).where(is_same).values(value=value)).rowcount == 1
