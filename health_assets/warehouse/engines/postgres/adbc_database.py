"""A database as the ADBC driver knows it, shared by connections that come and go.

What belongs here: the driver manager's classes below its documented `dbapi.connect`, and the driver's private path, as
of 1.13 (`pyproject.toml` keeps both below 2); `test_adbc_database` fails first when they move. What does not: what is
said on a connection (`store`).

`connect` would make a database for every connection, and the driver then asks the server for all its types, which takes
ten times as long as to connect. `adbc_clone` shares one, but only while a connection to it is open.
"""

import os
from functools import cache

import adbc_driver_manager.dbapi as adbc
import adbc_driver_postgresql
from adbc_driver_manager import AdbcConnection, AdbcDatabase


class _Kept(AdbcDatabase):
    """A database that outlives its connections."""

    def close(self) -> None:
        """Do nothing: a connection would close it at its own end."""


@cache
def _database(uri: str, _process: int) -> _Kept:
    return _Kept(driver=adbc_driver_postgresql._driver_path(), uri=uri)  # noqa: SLF001


def opened(uri: str) -> adbc.Connection:
    """A connection; all of a process to the same URL share what the driver knows of the database.

    Raises:
        adbc_driver_manager.Error: the server cannot be reached, or refuses.
    """
    database = _database(uri, os.getpid())
    return adbc.Connection(database, AdbcConnection(database))
