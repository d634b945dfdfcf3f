"""The resource that tells assets where logs, targets and warehouse are, and turns user errors into short failures."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Self

import dagster as dg

from health_assets.core.errors import HealthAssetsError
from health_assets.core.raw_roots import RawRoot
from health_assets.core.settings import Settings
from health_assets.core.sql_memory import keep_compiled_sql
from health_assets.core.targets import Targets, load_targets
from health_assets.defs.turns.turns import Turn
from health_assets.logs.limits import Limits
from health_assets.warehouse.cluster_work import ClusterProgress, listening
from health_assets.warehouse.engines.duckdb.shared import SharedDuckDB
from health_assets.warehouse.session import Session
from health_assets.warehouse.store import Warehouse

SECONDS_BETWEEN_TELLING = 15.0


def _now() -> datetime:
    return datetime.now(UTC)


def _nobody(_: str) -> None:
    """Nobody listens."""


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """The resource of all assets: the places of logs, targets and warehouse, and the settings of scores.

    Args:
        settings: the settings.
        shared_duckdb: the DuckDB that the sessions of a run in this process share.
        turn: the run's turn to write, taken by the first session that writes; schedules and sensors have none.
        labels: what a step does and in which run, as people shall find its jobs on a cluster.
        say: tells whoever watches a step what takes so long.
        clock: tells the time, aware.
    """

    settings: Settings
    shared_duckdb: SharedDuckDB | None = None
    turn: Turn | None = None
    labels: Sequence[str] = ()
    say: Callable[[str], None] = _nobody
    clock: Callable[[], datetime] = _now

    def of_step(self, step: dg.OpExecutionContext) -> Self:
        """The pipeline of one step of a run, which names its work on a cluster and tells of its progress."""
        return replace(self, labels=(step.op_def.name, f"run {step.run_id}"), say=step.log.info)

    @property
    def raw_root(self) -> RawRoot:
        """Folder, or URL in an object store, below which the raw logs lie."""
        return self.settings.raw

    @property
    def limits(self) -> Limits:
        """The limits of what is taken of logs, as of now."""
        return Limits.of(self.settings, self.clock())

    def load_targets(self) -> Targets:
        """The targets as their file has them now."""
        return load_targets(self.settings.targets)

    def open(self, most_lock_timeout_s: float = math.inf) -> Warehouse:
        """The warehouse; a schedule or sensor, which has little time, waits for it no longer than it says."""
        timeout_s = min(self.settings.lock_timeout_s, most_lock_timeout_s)
        return Warehouse.of(
            self.settings, lock_timeout_s=timeout_s, shared_duckdb=self.shared_duckdb, guard=self.turn,
            labels=self.labels,
        )  # fmt: skip

    @contextmanager
    def write(self) -> Iterator[Session]:
        """One transaction on the warehouse; an error that a user can mend becomes a failure of one sentence.

        Raises:
            dagster.Failure: where `HealthAssetsError` was raised.
        """
        with readable_failures(), self.telling_progress(), self.open().write() as session:
            yield session

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

    @contextmanager
    def read(self) -> Iterator[Session]:
        """The last committed state of the warehouse, for which no turn to write is needed.

        Raises:
            dagster.Failure: where `HealthAssetsError` was raised.
        """
        with readable_failures(), self.open().read() as session:
            yield session


@contextmanager
def readable_failures() -> Iterator[None]:
    """Show an error that a user can mend as its sentence alone; retrying would not help, so it is not retried."""
    try:
        yield
    except HealthAssetsError as error:
        raise dg.Failure(str(error), allow_retries=False) from error


def pipeline_resource(pipeline: Pipeline) -> dg.ResourceDefinition:
    """The resource; a run that Dagster has started gets a turn and a DuckDB of its own with it, until it ends.

    Every job needs it, also one that writes nothing: Dagster itself does not notice that the process of a run that it
    started has died, and such a run would keep a place of the queue for ever.
    """

    @dg.resource(description="Where logs, targets and warehouse are, and the run's turn to write.")
    def _pipeline(context: dg.InitResourceContext) -> Iterator[Pipeline]:
        if pipeline.turn is not None or context.run is None or context.instance is None or context.log is None:
            yield pipeline
            return
        with (
            SharedDuckDB() as shared_duckdb,
            Turn.of_run(context.instance, pipeline.settings, context.run, context.log.info) as turn,
        ):
            with readable_failures():
                turn.announce()
            yield replace(pipeline, shared_duckdb=shared_duckdb, turn=turn)
        keep_compiled_sql()

    return _pipeline
