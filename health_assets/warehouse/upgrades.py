"""Upgrades: what an older warehouse needs besides the tables and columns that it does not have.

What belongs here: statements by the version that they lead to, valid on DuckDB and PostgreSQL alike. What does not:
tables and columns, which each engine adds its own way (`duckdb_store`, `migrations`).
"""

from collections.abc import Iterator

_READ_AGAIN = """
UPDATE raw_files SET modified_ns = -1 WHERE source_file IN (
    SELECT source_file FROM raw_logs WHERE record_type IN ('span', 'rejected') AND lines > 0
)
"""
"""Lets files count as changed whose spans and rejected lines this version reads otherwise."""

STATEMENTS = {3: (_READ_AGAIN,)}


def statements_since(version: int) -> Iterator[str]:
    """The statements that lead from a version to this program's, in order."""
    for newer in sorted(STATEMENTS):
        if newer > version:
            yield from STATEMENTS[newer]
