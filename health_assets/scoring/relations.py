"""Small helpers for ibis tables that every score needs."""

from collections.abc import Sequence

from ibis import ir


def lookup(rows: ir.Table, other: ir.Table, keys: str | Sequence[str]) -> ir.Table:
    """Left join that adds the other table's columns and keeps only one copy of the keys."""
    keys = [keys] if isinstance(keys, str) else list(keys)
    added = [name for name in other.columns if name not in keys]
    return rows.left_join(other, keys).select(*rows.columns, *added)
