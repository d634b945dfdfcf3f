"""Upgrades: statements that bring the rows of an older warehouse up to date.

Tables and columns that it lacks are not added here: each engine adds them its own way (`engines.duckdb.store`,
`migrations`).
"""

from collections.abc import Iterator, Mapping, Sequence

STATEMENTS: Mapping[int, Sequence[str]] = {}
"""SQL by the version that it leads to, valid on DuckDB and PostgreSQL alike. To have every log read again, as where
another version makes other rows of it: `UPDATE raw_files SET modified_ns = -1`."""


def statements_since(version: int) -> Iterator[str]:
    """The statements that lead from a version to this program's, in order."""
    for newer in sorted(STATEMENTS):
        if newer > version:
            yield from STATEMENTS[newer]
