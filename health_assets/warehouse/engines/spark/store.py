"""A warehouse that a Spark cluster computes: tables in a lake, and the account of them in a ledger.

What belongs here: opening the cluster and the ledger together. What does not: a session (`lake_session`).

Who writes holds the ledger's lock, so writers follow one another, as on the ledger's engine alone. Who reads sees what
the ledger had published at that moment.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from typing import Protocol

from grpc import RpcError
from pyspark.errors import PySparkException, RetriesExceeded
from pyspark.sql.connect.session import SparkSession

from health_assets.core.errors import HealthAssetsError, NoWarehouseError
from health_assets.core.redaction import REDACTION
from health_assets.warehouse.cluster_work import ClusterSession
from health_assets.warehouse.engines.spark import executors
from health_assets.warehouse.engines.spark.connect import connected, counts_rows, end, is_same, place_of
from health_assets.warehouse.engines.spark.executor_versions import program
from health_assets.warehouse.engines.spark.lake import GRACE, Lake
from health_assets.warehouse.engines.spark.lake_place import ID_FILE, LakePlace
from health_assets.warehouse.engines.spark.lake_session import LakeSession
from health_assets.warehouse.location import cluster_of
from health_assets.warehouse.session import Session, Told, Work

MOST_SAID = 500
"""Characters of an error that are shown; Spark repeats a plan of many pages."""

ANEW = "it was started anew meanwhile"


class Ledger(Protocol):
    """The place of the ledger, which is a warehouse on another engine."""

    @property
    def exists(self) -> bool:
        """See `Warehouse.exists`."""

    def write(self) -> AbstractContextManager[Session]:
        """See `Warehouse.write`."""

    def read(self) -> AbstractContextManager[Session]:
        """See `Warehouse.read`."""


class SparkCluster:
    """The cluster, the lake and the ledger of a warehouse, and how they are opened.

    Args:
        url: `sc://host:port`, as Spark Connect takes it.
        lake: a folder or bucket, reached by the same name from here and from the cluster.
        ledger: where the account is.
        labels: what its sessions are for, in a few words each.
        spark_ui: address of the cluster's own web page.

    Raises:
        HealthAssetsError: the URL cannot be read.
    """

    def __init__(
        self, url: str, lake: str, ledger: Ledger, labels: Sequence[str] = (), spark_ui: str | None = None
    ) -> None:
        cluster_of(url)  # what cannot be read is refused now, and not shown
        self._labels = labels
        self._spark_ui = spark_ui
        self._url = url
        self._lake = lake
        self._ledger = ledger

    @property
    def exists(self) -> bool:
        """See `Warehouse.exists`."""
        return self._ledger.exists

    @contextmanager
    def write(self) -> Iterator[Session]:
        """See `Warehouse.write`."""
        place = LakePlace(self._lake)  # one that cannot be named leaves no ledger behind
        with ExitStack() as stack:
            ledger = stack.enter_context(self._ledger.write())
            lake = Lake(place, ledger)
            if not lake.is_published:
                self._claim(lake)
                stack.close()  # so that the folders of a first run that is killed have an owner, who removes them
                ledger = stack.enter_context(self._ledger.write())
                lake = Lake(place, ledger)
            lake.require_own()
            lake.sweep()
            yield stack.enter_context(self._session(lake, ledger))

    def _claim(self, lake: Lake) -> None:
        lake_id = lake.claim()
        with self._cluster() as spark:
            _require_same_lake(spark, lake, lake_id)

    @contextmanager
    def read(self) -> Iterator[Session]:
        """See `Warehouse.read`."""
        with self._ledger.read() as ledger:
            lake = Lake(LakePlace(self._lake), ledger)
            if not lake.is_published:
                said = f"nothing was published in the lake {lake.place.shown} yet; materialize some hours"
                raise NoWarehouseError(said)
            lake.require_own()
            begun_s = time.monotonic()
            with self._session(lake, ledger) as session:
                yield session
            if time.monotonic() - begun_s > GRACE.total_seconds():
                raise HealthAssetsError(
                    f"this took longer than {GRACE}, after which folders of the lake that were replaced are removed; "
                    "what was read may lack rows"
                )

    def each(self, works: Sequence[Work], do: Callable[[Work], Told], told: type[Told]) -> list[Told]:
        """See `Warehouse.each`; executors call the function."""
        if not works:
            return []
        with self._cluster() as spark:
            answers = executors.answers(spark, works, partial(executors.computed, do=do, ordered=program()))
        return [executors.understood(one, told).told for one in answers]

    @contextmanager
    def _session(self, lake: Lake, ledger: Session) -> Iterator[LakeSession]:
        with self._cluster() as spark:
            counts = counts_rows(spark, self._url)
            if not counts:  # such a cluster also takes a folder that is not there for one without rows
                _require_same_lake(spark, lake, lake.require_own())
            session = LakeSession(spark, lake, ledger, counts_rows=counts, cluster=self._named(spark))
            try:
                yield session
                if not is_same(spark):
                    raise self._failed(ANEW)
            finally:
                session.close()

    @contextmanager
    def _cluster(self) -> Iterator[SparkSession]:
        spark = connected(self._url, self._labels)
        try:
            yield spark
        except (PySparkException, RpcError) as error:
            raise self._failed(_reason(spark, error)) from error
        finally:
            end(spark)

    def _named(self, spark: SparkSession) -> ClusterSession:
        page = f"{self._spark_ui.rstrip('/')}/connect/session/?id={spark.session_id}" if self._spark_ui else None
        return ClusterSession(session_id=spark.session_id, page=page)

    def _failed(self, reason: str) -> HealthAssetsError:
        return HealthAssetsError(f"Spark at {place_of(self._url)} failed, nothing of this step was kept: {reason}")


def _reason(spark: SparkSession, error: Exception) -> str:
    if isinstance(error, RetriesExceeded):
        return "it does not answer any more"
    with suppress(PySparkException, RpcError):  # it may be gone by now
        if not is_same(spark):
            return ANEW
    [said], _ = REDACTION.of_texts([" ".join(str(error).split())])  # it may quote a line of a log
    return shortened(said)


def shortened(said: str) -> str:
    """The beginning and the end of an error, which is where Spark says what failed, and Python why."""
    half = MOST_SAID // 2
    return said if len(said) <= MOST_SAID else f"{said[:half]} … {said[-half:]}"


def _require_same_lake(spark: SparkSession, lake: Lake, lake_id: str) -> None:
    """Refuse a lake that the cluster knows under another name: what it writes would not be found here.

    Raises:
        HealthAssetsError: the cluster does not see the file by which the lake is known.
    """
    try:
        seen = [row[0] for row in spark.read.text(lake.place.url_of(ID_FILE)).collect()]
    except PySparkException:
        seen = []
    if seen != [lake_id]:
        raise HealthAssetsError(
            f"the cluster does not see the lake {lake.place.shown} that this machine sees; name a place that both reach"
        )
