"""The demo's folder: sample logs, their targets, a warehouse and Dagster's records, apart from all of the user's own.

What belongs here: what lies where in the folder, making the samples anew, and the settings that make every command, and
Dagster, work on it. What does not: what the samples tell (`apps.demo.samples`) and which folder Dagster shows (`dev`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from health_assets.apps.demo.sample_fleet import TARGETS_HEADER, TARGETS_YAML
from health_assets.apps.demo.samples import sample_files, sample_globs, span_until
from health_assets.cli.dagster_home import write_home
from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HourRange


@dataclass(frozen=True)
class Demo:
    """A demo in a folder of its own, which need not be there yet."""

    folder: Path

    @property
    def raw(self) -> Path:
        """Folder of the raw logs."""
        return self.folder / "raw"

    @property
    def targets(self) -> Path:
        """The targets file, whose first line marks the folder as a demo's."""
        return self.folder / "targets.yaml"

    @property
    def warehouse(self) -> Path:
        """The warehouse, a DuckDB file."""
        return self.folder / "health.duckdb"

    @property
    def lake(self) -> Path:
        """Folder of the tables, where a cluster makes them."""
        return self.folder / "lake"

    @property
    def ledger(self) -> Path:
        """The account of the lake, a DuckDB file."""
        return self.folder / "ledger.duckdb"

    @property
    def dagster_home(self) -> Path:
        """The folder in which Dagster keeps the demo's runs."""
        return self.folder / "dagster"

    @property
    def is_there(self) -> bool:
        """Whether a demo was made here."""
        return self.targets.is_file() and self.targets.read_bytes().startswith(TARGETS_HEADER.encode())

    def environment(self, cluster: str | None = None) -> dict[str, str]:
        """The settings, as environment variables, by which commands and Dagster work on the demo.

        Its logs end at some hour, so no schedule starts by itself, which would build empty hours behind them.

        Args:
            cluster: URL of a Spark that makes the tables; DuckDB by default.
        """
        of_cluster = {"HEALTH_LAKE": str(self.lake.resolve()), "HEALTH_LEDGER": str(self.ledger.resolve())}
        return {
            "HEALTH_RAW": str(self.raw.resolve()),
            "HEALTH_TARGETS": str(self.targets.resolve()),
            "HEALTH_WAREHOUSE": cluster or str(self.warehouse.resolve()),
            **(of_cluster if cluster else {}),
            "HEALTH_SCHEDULES": "off",
            "DAGSTER_HOME": str(self.dagster_home.resolve()),
        }

    def make_samples(self, end: datetime) -> HourRange:
        """Write the sample fleet's logs up to an hour, its targets and Dagster's configuration; start a new warehouse.

        The samples and the warehouse of an earlier demo in the folder are removed; no other file is touched.

        Args:
            end: the hour that the logs stop before, an aware datetime on a whole UTC hour.

        Returns:
            The hours that the logs fill.

        Raises:
            HealthAssetsError: the folder cannot be written, or holds logs, targets or a warehouse that no demo made.
        """
        hours = span_until(end)
        try:
            self._require_own()
            for path in self._earlier_files():
                path.unlink()
            for name, content in sample_files(hours).items():
                path = self.raw / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            self.targets.write_text(TARGETS_YAML, encoding="utf-8")
            write_home(self.dagster_home)
        except OSError as error:
            raise HealthAssetsError(f"cannot write the demo to {self.folder}: {error.strerror}") from error
        return hours

    def _require_own(self) -> None:
        """A demo marks its targets file; where that mark is missing, whatever is there is somebody's."""
        has_logs = self.raw.exists() and any(self.raw.iterdir())
        places = (self.targets, self.warehouse, self.lake, self.ledger)
        if not self.is_there and (has_logs or any(place.exists() for place in places)):
            raise HealthAssetsError(
                f"{self.folder} holds logs, targets or a warehouse that no demo made; use another --folder"
            )

    def _earlier_files(self) -> Iterator[Path]:
        for pattern in sample_globs():
            yield from self.raw.glob(pattern)
        for database in (self.warehouse, self.ledger):
            yield from self.folder.glob(f"{database.name}*")  # with its write-ahead log
        yield from (path for path in self.lake.rglob("*") if path.is_file())
