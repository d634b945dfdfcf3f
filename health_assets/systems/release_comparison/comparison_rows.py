"""Rows of `release_comparison` as values, for programs that use no engine."""

from collections.abc import Iterable
from typing import Any

PAIR = ("agent_id", "dimension", "to_version")
"""The columns that name a release."""
Comparison = dict[str, Any]
"""A row of `release_comparison` by column."""


def key_of(row: Comparison) -> tuple[str, ...]:
    """The release that a row is about."""
    return tuple(row[name] for name in PAIR)


def by_pair(rows: Iterable[Comparison]) -> list[list[Comparison]]:
    """The rows of each new version or model together, in the order of the first; a version may be released again."""
    by_release: dict[tuple[Any, ...], list[Comparison]] = {}
    for row in rows:
        by_release.setdefault((*key_of(row), row["released_at"]), []).append(row)
    return list(by_release.values())
