"""The warehouse: where it is, and how it is opened for reading and for writing.

What belongs here: choosing the engine, and taking the write lock before anything is written. What does not: what
happens in a session (`session`), and how an engine opens one (`engines`).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol, Self

from health_assets.core.errors import HealthAssetsError
from health_assets.core.settings import Settings
from health_assets.warehouse.engines.duckdb.shared import SharedDuckDB
from health_assets.warehouse.location import WITHOUT_LEDGER, is_postgres, is_published, is_spark, path_of
from health_assets.warehouse.session import Session, Told, Work


class Place(Protocol):
    """The place of a warehouse, and the way to open it there."""

    @property
    def exists(self) -> bool:
        """Whether anything has been written yet."""

    def write(self) -> AbstractContextManager[Session]:
        """See `Warehouse.write`."""

    def read(self) -> AbstractContextManager[Session]:
        """See `Warehouse.read`."""


class Cluster(Place, Protocol):
    """A place whose machines compute."""

    def each(self, works: Sequence[Work], do: Callable[[Work], Told], told: type[Told]) -> list[Told]:
        """See `Warehouse.each`."""


class Guard(Protocol):
    """Says who may write, and when."""

    def take(self) -> None:
        """Take the write lock; called before the warehouse is opened for writing. It may wait."""

    def check(self) -> None:
        """Check that the lock is still held; called before a commit, which it stops by raising."""


class Warehouse:
    """A DuckDB file, a schema of a PostgreSQL database, a Spark cluster with its lake, or published tables.

    Args:
        url: path of the file or folder, `duckdb:///path`, `postgresql://user@host/database`, or `sc://host:port`.
        lock_timeout_s: how long to wait while another process holds the warehouse.
        memory_limit: most memory that DuckDB may use before it spills to disk, like `3GB`.
        shared_duckdb: the DuckDB that its sessions share; without one, each starts its own.
        guard: asked before whatever is written; without one, only the warehouse's own lock orders writers.
        lake: of a cluster, the folder or bucket of its tables.
        ledger: of a cluster, the URL of the database that keeps the account of them, which is on another engine.
        labels: of a cluster, what its sessions are for, as people shall find their jobs there.
        spark_ui: of a cluster, the address of its own web page.

    Raises:
        HealthAssetsError: the URL names an engine that is not supported or not installed, or a cluster without lake or
            ledger.
    """

    def __init__(
        self,
        url: str,
        *,
        lock_timeout_s: float = 60.0,
        memory_limit: str = "3GB",
        shared_duckdb: SharedDuckDB | None = None,
        guard: Guard | None = None,
        lake: str | None = None,
        ledger: str | None = None,
        labels: Sequence[str] = (),
        spark_ui: str | None = None,
    ) -> None:
        self._guard = guard

        def opened(place: str, *, is_ledger: bool = False) -> Place:
            """A database, which keeps a whole warehouse or the account of a lake."""
            if is_postgres(place):
                from health_assets.warehouse.engines.postgres.store import PostgresSchema

                return PostgresSchema(place, lock_timeout_s, is_ledger=is_ledger)
            if not is_ledger and is_published(path_of(place)):
                from health_assets.warehouse.engines.published.store import PublishedTables

                return PublishedTables(path_of(place), memory_limit)
            from health_assets.warehouse.engines.duckdb.store import DuckDBFile

            return DuckDBFile(place, lock_timeout_s, memory_limit, shared_duckdb, is_ledger=is_ledger)

        as_ledger = partial(opened, is_ledger=True)
        self._cluster = _cluster(url, lake, ledger, as_ledger, labels, spark_ui) if is_spark(url) else None
        self._place = self._cluster or opened(url)

    @classmethod
    def of(
        cls,
        settings: Settings,
        *,
        lock_timeout_s: float | None = None,
        shared_duckdb: SharedDuckDB | None = None,
        guard: Guard | None = None,
        labels: Sequence[str] = (),
    ) -> Self:
        """The warehouse that settings name, with their limits, or another limit on waiting for it."""
        timeout_s = settings.lock_timeout_s if lock_timeout_s is None else lock_timeout_s
        return cls(
            settings.warehouse,
            lock_timeout_s=timeout_s,
            memory_limit=settings.memory_limit,
            shared_duckdb=shared_duckdb,
            guard=guard,
            lake=settings.lake,
            ledger=settings.ledger,
            labels=labels,
            spark_ui=settings.spark_ui,
        )

    @property
    def path(self) -> Path | None:
        """The file, where it is one."""
        return getattr(self._place, "path", None)

    @property
    def exists(self) -> bool:
        """Whether anything has been written yet."""
        return self._place.exists

    @contextmanager
    def write(self) -> Iterator[Session]:
        """A transaction that commits when the block ends and leaves no trace when it raises.

        Raises:
            HealthAssetsError: the warehouse stays locked, cannot be reached, is none or newer, or the disk is full; or
                the guard refuses.
        """
        if self._guard is not None:
            self._guard.take()
        with self._place.write() as session:
            yield session
            session.before_commit()
            if self._guard is not None:
                self._guard.check()

    def read(self) -> AbstractContextManager[Session]:
        """A view of the last committed state, next to other readers.

        Raises:
            HealthAssetsError: as `write`, or there is no warehouse yet.
        """
        return self._place.read()

    @property
    def is_read_only(self) -> bool:
        """Whether it is published tables."""
        return getattr(self._place, "is_read_only", False)

    @property
    def is_distributed(self) -> bool:
        """Whether `each` calls its function on other machines."""
        return self._cluster is not None

    def each(self, works: Sequence[Work], do: Callable[[Work], Told], told: type[Told]) -> list[Told]:
        """Have some pieces of work done that need no table; nothing is opened, so there need be no warehouse yet.

        Args:
            works: the pieces, which are sent to other machines where the warehouse is distributed.
            do: the function, of a module or a `partial` of one, which gets a piece.
            told: type of what it tells: a dataclass of plain values, which come back as JSON.

        Returns:
            What it told of each piece, in their order.

        Raises:
            HealthAssetsError: the cluster cannot be reached or fails, or a machine of it has another program.
        """
        if self._cluster is None:
            return [do(work) for work in works]
        return self._cluster.each(works, do, told)


def _cluster(
    url: str,
    lake: str | None,
    ledger: str | None,
    opened: Callable[[str], Place],
    labels: Sequence[str],
    spark_ui: str | None,
) -> Cluster:
    """A cluster, with the lake and the ledger that it needs."""
    if lake is None or ledger is None:
        raise HealthAssetsError(WITHOUT_LEDGER)
    try:
        from health_assets.warehouse.engines.spark.store import SparkCluster
    except ImportError as error:
        raise HealthAssetsError("a warehouse on Spark needs its client: pip install 'health-assets[spark]'") from error
    return SparkCluster(url, lake, opened(ledger), labels, spark_ui)
