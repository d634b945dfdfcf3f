"""Rows of `raw_files`, one for each raw log that was read.

What belongs here: their columns, and adding some. What does not: what the rows say (`ledger`, `file_ledger`).
"""

from collections.abc import Iterable, Mapping

import pyarrow as pa

from health_assets.logs.identity import Identity
from health_assets.warehouse.session import HOUR_TYPE, Session

_SCHEMA = pa.schema(
    [
        ("source_file", pa.string()),
        ("size_bytes", pa.int64()),
        ("modified_ns", pa.int64()),
        ("changed_ns", pa.int64()),
        ("lines", pa.int64()),
        ("rejected", pa.int64()),
        ("plain_bytes", pa.int64()),
        ("content_digest", pa.string()),
        ("head_digests", pa.string()),
        ("copy_of", pa.string()),
        ("gone_at", HOUR_TYPE),
        ("future_at", HOUR_TYPE),
        ("formats_digest", pa.string()),
    ]
)


def insert_files(session: Session, rows: Iterable[Mapping[str, object]]) -> None:
    """Add rows; a column that a row does not name is null."""
    if table := [*rows]:
        session.insert_arrow("raw_files", pa.Table.from_pylist(table, _SCHEMA))


def columns_of_identity(identity: Identity | None) -> dict[str, int | str | None]:
    """The columns by which `raw_files` identifies a file's content."""
    if identity is None:
        return {"plain_bytes": None, "content_digest": None, "head_digests": None}
    return {
        "plain_bytes": identity.plain_bytes,
        "content_digest": identity.digest,
        "head_digests": identity.heads,
    }
