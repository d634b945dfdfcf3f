"""The resource that tells assets where logs, targets and warehouse are, and turns user errors into short failures."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg

from health_assets.errors import HealthAssetsError
from health_assets.settings import Settings
from health_assets.targets import Targets, load_targets
from health_assets.warehouse.store import Session, Warehouse


class Pipeline(dg.ConfigurableResource):
    """Where the logs, the targets and the warehouse are; the fields are those of `Settings`."""

    raw: str
    targets: str | None
    warehouse: str
    window_hours: int
    lookback_hours: int
    lock_timeout_s: float
    memory_limit: str

    @classmethod
    def of(cls, settings: Settings) -> "Pipeline":
        """The resource for these settings."""
        return cls(
            raw=str(settings.raw),
            targets=str(settings.targets) if settings.targets else None,
            warehouse=settings.warehouse,
            window_hours=settings.window_hours,
            lookback_hours=settings.lookback_hours,
            lock_timeout_s=settings.lock_timeout_s,
            memory_limit=settings.memory_limit,
        )

    @property
    def raw_root(self) -> Path:
        """Folder below which the raw logs lie."""
        return Path(self.raw)

    def load_targets(self) -> Targets:
        """The targets as their file has them now."""
        return load_targets(Path(self.targets) if self.targets else None)

    def open(self, most_lock_timeout_s: float = math.inf) -> Warehouse:
        """The warehouse; a schedule or sensor, which has little time, waits for it no longer than it says."""
        lock_timeout_s = min(self.lock_timeout_s, most_lock_timeout_s)
        return Warehouse(self.warehouse, lock_timeout_s=lock_timeout_s, memory_limit=self.memory_limit)

    @contextmanager
    def write(self) -> Iterator[Session]:
        """One transaction on the warehouse; an error that a user can mend becomes a failure of one sentence.

        Raises:
            dagster.Failure: where `HealthAssetsError` was raised.
        """
        with readable_failures(), self.open().write() as session:
            yield session


@contextmanager
def readable_failures() -> Iterator[None]:
    """Show an error that a user can mend as its sentence alone; retrying would not help, so it is not retried."""
    try:
        yield
    except HealthAssetsError as error:
        raise dg.Failure(str(error), allow_retries=False) from error
