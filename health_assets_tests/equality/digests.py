"""Digests of tables, column by column, so that a difference names the table and the columns."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlmodel import SQLModel

from health_assets_tests.support.projects import RESULT_TABLES, Project, Row, rounded

EXPECTED = Path(__file__).with_name("digests.json")
DIGEST_LENGTH = 12
OF_EXPONENTIALS = {
    "task_consistency": ("c_conf", "c_res"),
    "agent_reliability": ("c_conf", "c_res", "r_con", "reliability"),
}
"""Columns that follow from numpy's exponential, whose last bit differs between processors with and without AVX-512."""

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
        [{name: _text(_portable(table, name, value)) for name, value in row.items()} for row in rows],
        key=lambda row: _place(row, keys),
    )
    columns = {name: _hash("\n".join(row[name] for row in in_order)) for name in in_order[0]}
    return {"rows": len(rows), "columns": columns}


def _place(row: Mapping[str, str], keys: Sequence[str]) -> list[str]:
    return [*(row[key] for key in keys), *row.values()]


def _portable(table: str, column: str, value: object) -> object:
    """The value, to 12 digits where its last bit depends on the processor."""
    return float(f"{value:.12g}") if column in OF_EXPONENTIALS.get(table, ()) and isinstance(value, float) else value


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


def differences(actual: Digests, expected: Digests) -> list[str]:
    """A message for each table that differs."""
    messages = []
    for table in sorted(actual.keys() | expected.keys()):
        actual_table, expected_table = actual.get(table), expected.get(table)
        if actual_table is None or expected_table is None:
            messages.append(
                f"{table}: {'no rows' if actual_table is None else 'rows'} where there were {'none' if expected_table is None else 'some'}"
            )
        elif actual_table["rows"] != expected_table["rows"]:
            messages.append(f"{table}: {actual_table['rows']} rows, not {expected_table['rows']}")
        else:
            columns = actual_table["columns"].keys() | expected_table["columns"].keys()
            others = sorted(
                name for name in columns if actual_table["columns"].get(name) != expected_table["columns"].get(name)
            )
            if others:
                messages.append(f"{table}: other values of {', '.join(others)}")
    return messages


def expected_digests() -> dict[str, Digests]:
    """The expected digests, by case."""
    return json.loads(EXPECTED.read_text(encoding="utf-8"))


def update(digests: Mapping[str, Digests]) -> None:
    """Replace the expected digests of these cases."""
    expected = (expected_digests() if EXPECTED.exists() else {}) | digests
    EXPECTED.write_text(json.dumps(expected, indent=1, sort_keys=True) + "\n", encoding="utf-8")
