"""The ADBC driver's private parts: what it knows of a database outlives the connections that share it."""

import os

from health_assets.warehouse.engines.postgres import adbc_database
from health_assets.warehouse.engines.postgres.adbc_database import opened
from health_assets_tests.support.postgres_server import empty_database

COUNT = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'"


def one(connection: object, sql: str) -> object:
    with connection.cursor() as cursor:  # type: ignore[attr-defined]
        cursor.execute(sql)
        return cursor.fetchone()[0]


def test_connections_to_one_url_share_a_database_that_outlives_them() -> None:
    uri = empty_database()
    with opened(uri) as first:
        assert one(first, "SELECT 1") == 1
    known = adbc_database._database(uri, os.getpid())
    with opened(uri) as second, opened(uri) as third:
        assert (one(second, "SELECT 2"), one(third, "SELECT 3")) == (2, 3)
    assert adbc_database._database(uri, os.getpid()) is known


def test_a_connection_that_is_closed_leaves_none_open_at_the_server() -> None:
    uri = empty_database()
    for _ in range(3):
        with opened(uri) as connection:
            assert one(connection, COUNT) == 1


def test_the_driver_is_where_its_package_says() -> None:
    path = adbc_database.adbc_driver_postgresql._driver_path()
    assert "adbc_driver_postgresql" in os.fspath(path)
