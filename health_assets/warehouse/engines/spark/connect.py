"""Spark Connect: a session on a cluster, and small tables that it is given.

What belongs here: the client. What does not: which rows are asked for (`lake_session`).
"""

import logging
import socket
import warnings
from collections.abc import Iterable, Sequence

import ibis
import pyarrow as pa
from pyspark.errors import PySparkException, UnsupportedOperationException
from pyspark.sql import DataFrame, Observation
from pyspark.sql.connect.client.retries import DefaultPolicy
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.connect.shell.progress import ProgressHandler, StageInfo
from pyspark.sql.functions import count, lit

from health_assets.core.errors import HealthAssetsError
from health_assets.warehouse.cluster_work import ClusterProgress, tell
from health_assets.warehouse.engines.spark.tables import column_definitions
from health_assets.warehouse.location import cluster_of

CONNECT_TIMEOUT_S = 10
PRODUCT = "health-assets"
PATIENCE = DefaultPolicy(max_retries=5)
"""Tries again for 17 s. The client by itself would for ten minutes; but a server that begins anew knows no session."""
_CLIENT_LOGGER = "pyspark.sql.connect.logging"
"""It is off by itself, and on wherever a program configures its own logging, as Dagster does."""
_CONFIGURATION = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.ansi.enabled": "false",  # a share of nothing is null, as everywhere
    "spark.sql.variable.substitute": "false",  # a text that holds ${HOME} is that text
    "spark.sql.files.ignoreMissingFiles": "false",  # rows that lack are an error
    "spark.sql.files.ignoreCorruptFiles": "false",
}
"""Settings that results follow from, whatever a cluster has as its own."""
_RAW_TEXTS = "spark.sql.parser.escapedStringLiterals"
"""A setting with which a text with a backslash is another one. Spark warns of whoever sets it."""

_COUNTS_ROWS: dict[str, bool] = {}
"""Clusters that this process has asked (`counts_rows`), by URL."""

_MARK = "health_assets.session"
"""A setting of ours, by which a session is known to be the one that was begun."""


def connected(url: str, labels: Sequence[str] = ()) -> SparkSession:
    """A session of its own on a cluster.

    Args:
        url: `sc://host:port`, with `/;token=…` or what else Spark Connect takes behind it.
        labels: what it is for, by which people know its jobs on the cluster's page.

    Raises:
        HealthAssetsError: the URL cannot be read, or the cluster not be reached.
    """
    # it warns of what a session that ends leaves to the server, and writes pages about errors that it raises as well
    logging.getLogger(_CLIENT_LOGGER).setLevel(logging.CRITICAL)
    try:
        with socket.create_connection(cluster_of(url), CONNECT_TIMEOUT_S):
            pass  # the client itself would try for ten minutes
        spark = SparkSession.builder.remote(url).create()
        try:
            _set_up(spark, labels)
        except BaseException:
            end(spark)
            raise
    except (PySparkException, OSError) as error:
        said = str(error).replace(url, place_of(url)).rstrip(".")
        tls = "; a token means TLS, does the server speak it?" if ";token=" in url else ""
        raise HealthAssetsError(f"cannot connect to Spark at {place_of(url)}: {said}{tls}") from error
    return spark


def _set_up(spark: SparkSession, labels: Sequence[str]) -> None:
    spark.client.set_retry_policies([PATIENCE])
    for name, value in _CONFIGURATION.items():
        spark.conf.set(name, value)
    if spark.conf.get(_RAW_TEXTS, "false") != "false":
        with warnings.catch_warnings(action="ignore"):
            spark.conf.set(_RAW_TEXTS, "false")
    spark.conf.set(_MARK, spark.session_id)
    _label(spark, [PRODUCT, *labels])


def _label(spark: SparkSession, labels: Sequence[str]) -> None:
    """Let the cluster's page show labels with each job and statement, and listeners hear of progress."""
    said = " · ".join(labels)
    # a job has the group in its first column, and a notebook may cancel the jobs of one
    spark.conf.set("spark.job.description", said)
    spark.conf.set("spark.jobGroup.id", said)
    for label in labels:
        spark.addTag(label.replace(",", " "))  # a comma parts tags
    spark.registerProgressHandler(_Teller())


class _Teller(ProgressHandler):
    """Tells listeners what the client hears of the statement that it waits for."""

    def __call__(
        self, stages: Iterable[StageInfo] | None, inflight_tasks: int, operation_id: str | None, done: bool
    ) -> None:
        """Take the tasks of each stage."""
        del inflight_tasks, operation_id
        found = [*(stages or ())]
        if done:
            tell(None)
        elif found:
            done_tasks = sum(stage.num_completed_tasks for stage in found)
            tell(ClusterProgress(tasks=sum(stage.num_tasks for stage in found), tasks_done=done_tasks))


def is_same(spark: SparkSession) -> bool:
    """Whether the session is the one that was begun, and knows what was set and named in it.

    A server that was killed and started begins it anew under the same name. Sail says nothing of that.
    """
    return spark.conf.get(_MARK, "") == spark.session_id


def counts_rows(spark: SparkSession, url: str) -> bool:
    """Whether a cluster counts the rows of a statement beside it, as Apache Spark does and Sail does not.

    Args:
        spark: a session on it.
        url: its URL; it is asked once.
    """
    if url not in _COUNTS_ROWS:
        try:
            spark.range(1).observe(Observation(), count(lit(1)).alias("rows")).collect()
            _COUNTS_ROWS[url] = True
        except UnsupportedOperationException:
            _COUNTS_ROWS[url] = False
    return _COUNTS_ROWS[url]


def end(spark: SparkSession) -> None:
    """End a session, also where the cluster is what broke."""
    spark.client.set_retry_policies([])
    spark.stop()
    # a forgotten session closes its client again, and with it a pool of threads that all sessions of a process share:
    # where that happens within another one's request, the request fails
    spark.client.close = _nothing_to_close  # type: ignore[method-assign]


def _nothing_to_close() -> None:
    """Stands where a client that is closed could be closed."""


def place_of(url: str) -> str:
    """Host and port of a URL, without the token that may follow them."""
    host, port = cluster_of(url)
    return f"{host}:{port}"


def give(spark: SparkSession, name: str, rows: pa.Table) -> None:
    """Make rows of this process known to a session under a name."""
    frame = spark.createDataFrame(rows) if len(rows) else nothing(spark, ibis.Schema.from_pyarrow(rows.schema))
    frame.createOrReplaceTempView(name)


def nothing(spark: SparkSession, schema: ibis.Schema) -> DataFrame:
    """No row, with these columns."""
    return spark.createDataFrame([], column_definitions(schema))
