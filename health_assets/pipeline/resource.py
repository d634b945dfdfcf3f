"""The resource that every step asks for: where logs, targets and warehouse are, and the settings of scores.

What belongs here: opening the warehouse, loading targets, telling of progress. What does not: the steps (`engine`), and
how Dagster provides it (`defs.pipeline`).
"""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Self

from health_assets.core.raw_roots import RawRoot
from health_assets.core.settings import Settings
from health_assets.core.targets import Targets, load_targets
from health_assets.logs.limits import Limits
from health_assets.pipeline.events import Event
from health_assets.pipeline.ingest_report import IngestReport
from health_assets.warehouse.cluster_work import ClusterProgress, listening
from health_assets.warehouse.engines.duckdb.shared import SharedDuckDB
from health_assets.warehouse.session import Session
from health_assets.warehouse.store import Guard, Warehouse

SECONDS_BETWEEN_TELLING = 15.0


def _now() -> datetime:
    return datetime.now(UTC)


def _ignore(_: object) -> None:
    """Do nothing."""


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """The resource of all steps.

    Args:
        settings: the settings.
        shared_duckdb: the DuckDB that the sessions of a run in this process share.
        write_lock: the run's write lock, taken by the first session that writes; schedules and sensors have none.
        step: the step, or the asset that it makes; a label of its jobs on a cluster.
        run: the run; another label.
        loaded: report of logs that the command loaded just before the run.
        say: called with a sentence about what takes long.
        on_event: called with every event of the steps.
        clock: the current time, aware.
    """

    settings: Settings
    shared_duckdb: SharedDuckDB | None = None
    write_lock: Guard | None = None
    step: str = ""
    run: str = ""
    loaded: IngestReport | None = None
    say: Callable[[str], None] = _ignore
    on_event: Callable[[Event], None] = _ignore
    clock: Callable[[], datetime] = _now

    @property
    def raw_root(self) -> RawRoot:
        """Folder, or URL in an object store, below which the raw logs lie."""
        return self.settings.raw

    @property
    def limits(self) -> Limits:
        """The limits of what is taken of logs, as of now."""
        return Limits.of(self.settings, self.clock())

    @property
    def salt(self) -> str:
        """The salt of digests of contents that the settings name; empty where the warehouse has its own."""
        return self.settings.digest_salt.get_secret_value() if self.settings.digest_salt else ""

    @property
    def horizon(self) -> datetime | None:
        """Logs of hours before it are not loaded, since retention would drop them; None where everything is kept."""
        return self.settings.horizon(self.clock())

    def load_targets(self) -> Targets:
        """The targets as their file has them now."""
        return load_targets(self.settings.targets)

    def waiting_at_most(self, timeout_s: float) -> Self:
        """The same for a schedule or sensor, which has little time to wait for the warehouse or for the write lock."""
        lock_timeout_s = min(self.settings.lock_timeout_s, timeout_s)
        settings = self.settings.model_copy(update={"lock_timeout_s": lock_timeout_s, "lease_timeout_s": timeout_s})
        return replace(self, settings=settings)

    def open(self) -> Warehouse:
        """The warehouse."""
        return Warehouse.of(
            self.settings, shared_duckdb=self.shared_duckdb, guard=self.write_lock,
            labels=[label for label in (self.step, self.run) if label],
        )  # fmt: skip

    @contextmanager
    def write(self) -> Iterator[Session]:
        """One transaction on the warehouse, which tells of a cluster's progress.

        Raises:
            HealthAssetsError: as `Warehouse.write`.
        """
        with self.telling_progress(), self.open().write() as session:
            yield session

    def read(self) -> AbstractContextManager[Session]:
        """The last committed state of the warehouse, for which no write lock is needed.

        Raises:
            HealthAssetsError: as `Warehouse.read`.
        """
        return self.open().read()

    @contextmanager
    def telling_progress(self) -> Iterator[None]:
        """Tell of the progress of a cluster now and then while the block runs."""
        told_at_s = time.monotonic()

        def take(progress: ClusterProgress | None) -> None:
            nonlocal told_at_s
            if progress and time.monotonic() - told_at_s >= SECONDS_BETWEEN_TELLING:
                told_at_s = time.monotonic()
                self.say(f"the cluster has done {progress} of a statement")

        with listening(take):
            yield
