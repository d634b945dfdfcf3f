"""The manifest of published tables: which files hold which hours of which table.

What belongs here: its JSON, read and replaced as a whole. What does not: writing rows (`pipeline.publishing`) and
reading them (`store`).

A published file never changes. A reader that opened one manifest finds its files for `KEPT_S` after they were replaced.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from health_assets.core.durable_files import replace_file
from health_assets.core.errors import HealthAssetsError
from health_assets.schema.catalog import ALL_TABLES, SCHEMA_VERSION
from health_assets.warehouse.location import MANIFEST

FORMAT = 1
NEVER = datetime.min.replace(tzinfo=UTC)
KEPT_S = 900.0
"""Seconds for which a replaced file stays for those who read it; a step of the pages' history takes 600 at most."""
PRIVATE = frozenset({"digest_salt", "warehouse_version"})
"""Tables that are not published: who has the salt can guess contents by their digests; the manifest has the version."""
PUBLISHED = tuple(name for name in ALL_TABLES if name not in PRIVATE)


@dataclass(frozen=True, kw_only=True)
class PublishedFile:
    """A file.

    Args:
        path: relative to the folder.
        period: what it holds of its table: a UTC day, the hour of one (`2026-06-07T14`), or `all`.
        rows: rows, at least one.
        size_bytes: its size.
    """

    path: str
    period: str
    rows: int
    size_bytes: int


@dataclass(kw_only=True)
class PublishedTable:
    """The files of a table.

    Args:
        files: by period; none for a period without rows.
        marks: by period, what changes whenever the warehouse's rows of it do.
    """

    files: dict[str, PublishedFile] = field(default_factory=dict)
    marks: dict[str, str] = field(default_factory=dict)


@dataclass(kw_only=True)
class Manifest:
    """All files that count.

    Args:
        warehouse: digest of the name of the warehouse.
        schema_version: version of the tables.
        version: rises with each publication.
        published_at: when it was written, aware.
        tables: by name.
        replaced: files that no longer count, with when they were replaced; they are removed later.
    """

    warehouse: str
    schema_version: int = SCHEMA_VERSION
    version: int = 0
    published_at: datetime = NEVER
    tables: dict[str, PublishedTable] = field(default_factory=dict)
    replaced: dict[str, datetime] = field(default_factory=dict)

    def paths(self) -> set[str]:
        """The files that count."""
        return {file.path for table in self.tables.values() for file in table.files.values()}

    def dumps(self) -> str:
        """Its JSON."""
        tables = {
            name: {"files": [vars(file) for file in table.files.values()], "marks": table.marks}
            for name, table in self.tables.items()
        }
        told = {
            "format": FORMAT,
            "schema_version": self.schema_version,
            "warehouse": self.warehouse,
            "version": self.version,
            "published_at": self.published_at.isoformat(),
            "tables": tables,
            "replaced": {path: at.isoformat() for path, at in self.replaced.items()},
        }
        return json.dumps(told)


def read_manifest(folder: Path, *, of_any_version: bool = False) -> Manifest | None:
    """The manifest of a folder; None where there is none.

    Args:
        folder: the folder.
        of_any_version: whether its files may be of another version of the tables.

    Raises:
        HealthAssetsError: it is damaged, or of another version of this program.
    """
    path = folder / MANIFEST
    try:
        told = json.loads(path.read_bytes())
        if told["format"] == FORMAT and (of_any_version or told["schema_version"] == SCHEMA_VERSION):
            return _manifest_of(told)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise HealthAssetsError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise HealthAssetsError(f"{path} is damaged; remove it, and publish the tables again") from error
    raise HealthAssetsError(
        f"the tables in {folder} were published by another version of health-assets; publish them again with this one"
    )


def _manifest_of(told: Mapping[str, Any]) -> Manifest:
    tables = {
        name: PublishedTable(
            files={file["period"]: PublishedFile(**file) for file in table["files"]}, marks=table["marks"]
        )
        for name, table in told["tables"].items()
    }
    return Manifest(
        schema_version=told["schema_version"],
        warehouse=told["warehouse"],
        version=told["version"],
        published_at=datetime.fromisoformat(told["published_at"]),
        tables=tables,
        replaced={path: datetime.fromisoformat(at) for path, at in told["replaced"].items()},
    )


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replace the manifest of a folder.

    Raises:
        OSError: it cannot be written.
    """
    replace_file(folder / MANIFEST, manifest.dumps())
