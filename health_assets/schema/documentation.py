"""The tables as a page of the documentation, written from their classes by `make docs`."""

from pathlib import Path

from health_assets.schema.catalog import ALL_TABLES, describe

PAGE = Path("docs/tables.md")


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
        for column, sql_type, is_nullable, meaning in describe(name):
            parts.append(f"| `{column}` | {sql_type} | {'yes' if is_nullable else 'no'} | {meaning} |")
        parts.append("")
    return "\n".join(parts)


def main() -> None:
    """Write the page, in the folder of the project."""
    PAGE.write_text(tables_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
