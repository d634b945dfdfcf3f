"""Names of tables and logs as OpenLineage has them: a namespace for the place, and a name within it."""

from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from health_assets.core.raw_roots import RawRoot
from health_assets.core.settings import Settings
from health_assets.warehouse.location import database_of, is_postgres, is_spark, path_of

POSTGRES_PORT = 5432
AZURE_SCHEMES = frozenset({"abfs", "abfss", "adl", "az", "wasb", "wasbs"})
"""Their URLs name a container where others name a user: `abfss://container@account/…`."""


class DatasetName(NamedTuple):
    """A dataset of OpenLineage.

    Args:
        namespace: its place, without a password.
        name: its name there.
    """

    namespace: str
    name: str


def table_name(settings: Settings, table: str) -> DatasetName:
    """The name of a table of the warehouse.

    Raises:
        HealthAssetsError: the warehouse's URL cannot be read.
    """
    url = settings.warehouse
    if is_spark(url):
        place = _place(settings.lake or "")
        return DatasetName(place.namespace, f"{place.name}/{table}")
    if is_postgres(url):
        parts = urlsplit(database_of(url).uri)
        database = parts.path.removeprefix("/") or parts.username
        host = f"{parts.hostname or 'localhost'}:{parts.port or POSTGRES_PORT}"
        return DatasetName(f"postgres://{host}", f"{database}.public.{table}")
    return DatasetName(f"duckdb://{path_of(url).absolute()}", f"main.{table}")


def logs_name(settings: Settings) -> DatasetName:
    """The name of the raw logs, as a whole."""
    return _place(settings.raw)


def _place(root: RawRoot) -> DatasetName:
    """A folder, or a place in an object store."""
    if isinstance(root, Path) or "://" not in root:
        return DatasetName("file", str(Path(root).absolute()))
    parts = urlsplit(root)
    container = f"{parts.username}@" if parts.scheme in AZURE_SCHEMES and parts.username else ""
    return DatasetName(f"{parts.scheme}://{container}{parts.hostname or ''}", parts.path.strip("/") or "/")
