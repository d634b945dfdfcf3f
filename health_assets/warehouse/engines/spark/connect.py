"""Spark Connect: a session on a cluster, and small tables that it is given.

What belongs here: the client. What does not: which rows are asked for (`lake_session`).
"""

import logging
import socket
from urllib.parse import urlsplit

import ibis
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.connect.session import SparkSession

from health_assets.core.errors import HealthAssetsError
from health_assets.warehouse.engines.spark.tables import column_definitions

PORT = 15002
CONNECT_TIMEOUT_S = 10
_CLIENT_LOGGER = "pyspark.sql.connect.logging"
"""It is off by itself, and on wherever a program configures its own logging, as Dagster does."""
_CONFIGURATION = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "false",  # a share of nothing is null, as everywhere
}


def connected(url: str) -> SparkSession:
    """A session of its own on a cluster.

    Args:
        url: `sc://host:port`, with `/;token=…` or what else Spark Connect takes behind it.

    Raises:
        HealthAssetsError: the cluster cannot be reached.
    """
    place = urlsplit(url)
    logging.getLogger(_CLIENT_LOGGER).setLevel(
        logging.ERROR
    )  # it warns of what a session that ends leaves to the server
    try:
        with socket.create_connection((place.hostname, place.port or PORT), CONNECT_TIMEOUT_S):
            pass  # the client itself would try for ten minutes
        spark = SparkSession.builder.remote(url).create()
        for name, value in _CONFIGURATION.items():
            spark.conf.set(name, value)
    except (PySparkException, OSError) as error:
        raise HealthAssetsError(f"cannot connect to Spark at {place_of(url)}: {error}") from error
    return spark


def place_of(url: str) -> str:
    """Host and port of a URL, without the token that may follow them."""
    return urlsplit(url).netloc


def give(spark: SparkSession, name: str, rows: pa.Table) -> None:
    """Make rows of this process known to a session under a name."""
    frame = spark.createDataFrame(rows) if len(rows) else nothing(spark, ibis.Schema.from_pyarrow(rows.schema))
    frame.createOrReplaceTempView(name)


def nothing(spark: SparkSession, schema: ibis.Schema) -> DataFrame:
    """No row, with these columns."""
    return spark.createDataFrame([], column_definitions(schema))
