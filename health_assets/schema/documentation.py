"""The tables as a page of the documentation, written from their classes by `make docs`."""

from pathlib import Path

from health_assets.schema.catalog import ALL_TABLES, describe

PAGE = Path("docs/tables.md")
SQL_NAMES = {
    "timestamp('UTC')": "TIMESTAMP WITH TIME ZONE",
    "float64": "DOUBLE PRECISION",
    "int64": "BIGINT",
    "boolean": "BOOLEAN",
    "string": "VARCHAR",
    "array<string>": "VARCHAR[]",
    "array<int16>": "SMALLINT[]",
    "json": "JSON",
}
"""What people who query the tables call the types of columns, on any engine."""


def tables_page() -> str:
    """Markdown of every table: what a row is, and each column's type and meaning."""
    parts = [
        "# Tables",
        "",
        "Written from `health_assets/schema/catalog/` by `make docs`; edit that, not this.",
        "",
    ]
    for name, model in ALL_TABLES.items():
        parts += [
            f"## `{name}`",
            "",
            model.__doc__ or "",
            "",
            "| column | type | may be null | meaning |",
            "|---|---|---|---|",
        ]
        for column, kind, is_nullable, meaning in describe(name):
            parts.append(f"| `{column}` | {SQL_NAMES[kind]} | {'yes' if is_nullable else 'no'} | {meaning} |")
        parts.append("")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(tables_page(), encoding="utf-8")
