"""Published tables as a warehouse that is only read: views over Parquet files in a DuckDB without a file.

What belongs here: the views, and what can go wrong with files. What does not: which files count (`manifest`), and
writing them (`pipeline.publishing`).

Nobody is locked out and nobody waits: a session reads the files of the manifest that it found when it began.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from health_assets.core.errors import HealthAssetsError, NoWarehouseError
from health_assets.core.sql_text import quoted
from health_assets.core.temporary import temporary_folder
from health_assets.schema.catalog import ALL_TABLES, SCHEMA_VERSION, describe
from health_assets.warehouse.engines.duckdb.store import SESSION_SETTINGS, DuckDBSession, config_of
from health_assets.warehouse.engines.duckdb.tables import TYPES
from health_assets.warehouse.engines.published.manifest import Manifest, PublishedTable, read_manifest
from health_assets.warehouse.session import Session

_FILE = re.compile(r"""["']([^"']+\.parquet)["']""")
_GONE = re.compile("no files found", re.IGNORECASE)
_DAMAGED = re.compile(
    "footer|magic bytes|decompress|snappy|zstd|thrift|corrupt|too small|no longer valid", re.IGNORECASE
)

TOLD = "published tables"
"""How each sentence about a file begins."""


class PublishedTables:
    """A folder of published tables.

    Args:
        folder: the folder.
        memory_limit: most memory that DuckDB may use before it spills to disk, like `3GB`.
    """

    is_read_only = True

    def __init__(self, folder: Path, memory_limit: str) -> None:
        self.path = folder.resolve()
        self._memory_limit = memory_limit

    @property
    def exists(self) -> bool:
        """See `Warehouse.exists`."""
        return True

    @contextmanager
    def write(self) -> Iterator[Session]:
        """Refuse to write.

        Raises:
            HealthAssetsError: always.
        """
        raise HealthAssetsError(f"{self.path} holds published tables, which are only read; name the warehouse itself")
        yield

    @contextmanager
    def read(self) -> Iterator[Session]:
        """See `Warehouse.read`."""
        manifest = read_manifest(self.path)
        if manifest is None:
            raise NoWarehouseError(f"there are no published tables in {self.path} yet")
        with temporary_folder("published-") as spilled, self._translated_errors(manifest):
            config = config_of(self._memory_limit) | {"temp_directory": str(spilled)}
            with duckdb.connect(config=config) as connection:
                connection.execute(f"{SESSION_SETTINGS}; SET parquet_metadata_cache = true")
                for table in ALL_TABLES:
                    self._create_view(connection, table, manifest)
                yield DuckDBSession(connection)

    def _create_view(self, connection: duckdb.DuckDBPyConnection, table: str, manifest: Manifest) -> None:
        """Make the view of a table; one whose first file cannot be opened raises when it is read, others go on."""
        try:
            connection.execute(f"CREATE VIEW {table} AS {self._select(table, manifest)}")
        except duckdb.Error as error:
            if (sentence := self._sentence(error, manifest)) is None:
                raise
            connection.execute(f"CREATE VIEW {table} AS {_empty(table)} OR error({quoted(sentence)}) IS NULL")

    def _select(self, table: str, manifest: Manifest) -> str:
        """SQL of a table's rows, typed as the warehouse has them."""
        if table == "warehouse_version":
            return f"SELECT {SCHEMA_VERSION} AS version"
        own = manifest.tables.get(table, PublishedTable())
        if not own.files:
            return _empty(table)
        paths = ", ".join(quoted(_literally(self.path) + f"/{file.path}") for file in own.files.values())
        columns = ", ".join(
            f"CAST({name} AS JSON) AS {name}" if kind == "json" else name for name, kind, *_ in describe(table)
        )
        return f"SELECT {columns} FROM read_parquet([{paths}], hive_partitioning = false)"

    @contextmanager
    def _translated_errors(self, manifest: Manifest) -> Iterator[None]:
        try:
            yield
        except duckdb.InterruptException as error:
            raise KeyboardInterrupt from error
        except duckdb.OutOfMemoryException as error:
            raise HealthAssetsError(
                f"reading {self.path} needs more than the memory limit of {self._memory_limit}; "
                "raise HEALTH_MEMORY_LIMIT"
            ) from error
        except duckdb.Error as error:
            if (sentence := self._sentence(error, manifest)) is None:
                raise
            raise HealthAssetsError(sentence) from error

    def _sentence(self, error: duckdb.Error, manifest: Manifest) -> str | None:
        """What is wrong with a file, if that is it."""
        text = " ".join(str(error).split())
        if TOLD in text:  # by a view that could not be made
            return text[text.index(TOLD) :]
        found = _FILE.search(text)
        if found is None:
            return None
        if _GONE.search(text) and (now := read_manifest(self.path)) and now.version != manifest.version:
            return f"{TOLD} in {self.path} were published anew while they were read; try again"
        if _GONE.search(text) or _DAMAGED.search(text):
            return f"{TOLD} cannot be read: {found[1]} is gone or damaged; remove it, and run `health-assets publish`"
        return f"{TOLD} cannot be read: {text}"


def _empty(table: str) -> str:
    """SQL of no row of a table."""
    nulls = (f"CAST(NULL AS {TYPES[kind]}) AS {name}" for name, kind, *_ in describe(table))
    return f"SELECT {', '.join(nulls)} WHERE false"


def _literally(path: Path) -> str:
    """A path in which DuckDB takes no sign for a pattern."""
    return re.sub(r"[*?[]", r"[\g<0>]", str(path))
