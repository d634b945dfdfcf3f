"""Digests of tables, column by column, so that a difference names the table and the columns."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlmodel import SQLModel

from health_assets_tests.support.projects import RESULT_TABLES, Project, Row, rounded

KEPT = Path(__file__).with_name("digests.json")
DIGEST_LENGTH = 12

Digests = dict[str, dict[str, Any]]
"""By table: `rows`, and `columns` with a digest for each."""


def digests_of(project: Project) -> Digests:
    """Digests of every table whose rows follow from logs and targets; empty tables are left out."""
    tables = project.tables(names=RESULT_TABLES)
    return {name: digest(name, rounded(name, rows)) for name, rows in tables.items() if rows}


def digest(table: str, rows: Sequence[Row]) -> dict[str, Any]:
    """The number of rows, and a digest of each column, in the order of the table's key."""
    keys = [column.name for column in SQLModel.metadata.tables[table].primary_key]
    in_order = sorted(
        [{name: _text(value) for name, value in row.items()} for row in rows], key=lambda row: _place(row, keys)
    )
    columns = {name: _hash("\n".join(row[name] for row in in_order)) for name in in_order[0]}
    return {"rows": len(rows), "columns": columns}


def _place(row: Mapping[str, str], keys: Sequence[str]) -> list[str]:
    return [*(row[key] for key in keys), *row.values()]


def _text(value: object) -> str:
    """A value to the last bit."""
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_text(one)}' for key, one in sorted(value.items()))}}}"
    return repr(value)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_LENGTH]


def differences(found: Digests, kept: Digests) -> list[str]:
    """A sentence for each table that is another one."""
    told = []
    for table in sorted(found.keys() | kept.keys()):
        one, other = found.get(table), kept.get(table)
        if one is None or other is None:
            told.append(
                f"{table}: {'no rows' if one is None else 'rows'} where there were {'none' if other is None else 'some'}"
            )
        elif one["rows"] != other["rows"]:
            told.append(f"{table}: {one['rows']} rows, not {other['rows']}")
        else:
            columns = one["columns"].keys() | other["columns"].keys()
            others = sorted(name for name in columns if one["columns"].get(name) != other["columns"].get(name))
            if others:
                told.append(f"{table}: other values of {', '.join(others)}")
    return told


def kept_digests() -> dict[str, Digests]:
    """The digests that are kept, by case."""
    return json.loads(KEPT.read_text(encoding="utf-8"))


def keep(digests: Mapping[str, Digests]) -> None:
    """Replace the kept digests of these cases."""
    kept = (kept_digests() if KEPT.exists() else {}) | digests
    KEPT.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")
