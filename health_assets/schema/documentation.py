"""Files of the documentation that follow from the code: tables, settings, record types, dbt."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from health_assets.core.settings import Settings
from health_assets.schema.catalog import ALL_TABLES, describe, description_of
from health_assets.schema.column_types import SQL_NAMES
from health_assets.schema.dbt_sources import dbt_file
from health_assets.schema.log_fields import Choice, LogField
from health_assets.schema.records import LINE_TYPES, RecordType

TABLES = Path("docs/tables.md")
SETTINGS = Path("docs/settings.md")
LOG_FORMAT = Path("docs/log-format.md")
DBT = Path("docs/dbt/health_assets.yml")
BEGIN = "<!-- record types, written by `make docs` from `health_assets/schema/records.py` -->\n"
END = "<!-- end of the record types -->\n"

PARTS = {
    "raw": "Logs, targets, warehouse and windows",
    "lock_timeout_s": "Runs, schedules and retention",
    "model_window_calls": "Models and sessions",
    "evaluation_window_hours": "Reliability evaluation and its judge",
    "registry": "Survey",
    "alerts": "Alerts",
    "host_agent": "Endpoint and logs of processes",
    "collect_host": "Collector",
}
"""Headings of the page of settings, each by the setting that begins its part."""

LIMITS = {"gt": "above", "ge": "from", "le": "to", "lt": "below"}


def tables_page() -> str:
    """Markdown of every table: what a row is, and each column's type and meaning."""
    parts = [
        "# Tables",
        "",
        "Written by `make docs` from the tables' classes, in `health_assets/schema/` and in the `tables.py` of each "
        "system; edit those, not this. By comments and NOT NULL "
        "[the database says the same](postgresql.md#what-the-database-says-of-its-tables).",
        "",
    ]
    for name in ALL_TABLES:
        parts += [
            f"## `{name}`",
            "",
            description_of(name),
            "",
            "| column | type | may be null | meaning |",
            "|---|---|---|---|",
        ]
        for column, kind, is_nullable, meaning in describe(name):
            parts.append(f"| `{column}` | {SQL_NAMES[kind]} | {'yes' if is_nullable else 'no'} | {meaning} |")
        parts.append("")
    return "\n".join(parts)


def settings_page() -> str:
    """Markdown of every setting: its variable, default, values and meaning."""
    parts = [
        "# Settings",
        "",
        "Written by `make docs` from `health_assets/core/settings.py`; edit that, not this.",
        "",
        "Every setting is an environment variable. One that is there and empty is not set. The flags of a command win "
        "over settings. Names end in their unit: `_HOURS`, `_S` (seconds), `_GIB`.",
        "",
    ]
    for name, field in Settings.model_fields.items():
        if name in PARTS:
            parts += [f"## {PARTS[name]}", "", "| setting | default | values | meaning |", "|---|---|---|---|"]
        cells = (f"`HEALTH_{name.upper()}`", _default(field.default), _values(field), field.description)
        parts.append(f"| {' | '.join(map(str, cells))} |")
        if _ends_a_part(name):
            parts.append("")
    return "\n".join(parts)


def _ends_a_part(name: str) -> bool:
    names = [*Settings.model_fields]
    following = names[names.index(name) + 1 :]
    return not following or following[0] in PARTS


def _default(value: Any) -> str:
    if value in (None, "", ()):
        return "–"
    if isinstance(value, tuple):
        value = ",".join(map(str, value))
    if isinstance(value, bool):
        value = "on" if value else "off"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def _values(field: FieldInfo) -> str:
    """The values that are allowed, as far as they are a range or a list of words."""
    words = [word for kind in (field.annotation, *get_args(field.annotation)) for word in _words(kind)]
    if bool in (field.annotation, *get_args(field.annotation)):
        words = ["on", "off"]
    return ", ".join(f"`{word}`" for word in words) if words else " ".join(_range(field))


def _words(kind: Any) -> tuple[str, ...]:
    return get_args(kind) if get_origin(kind) is Literal else ()


def _range(field: FieldInfo) -> Iterator[str]:
    for limit in field.metadata:
        for name, word in LIMITS.items():
            if (value := getattr(limit, name, None)) is not None:
                yield f"{word} {value:,}"


def log_format_page() -> str:
    """The page of the log format with the record types as they are declared."""
    before, _, others = LOG_FORMAT.read_text(encoding="utf-8").partition(BEGIN)
    return before + BEGIN + _record_types() + END + others.partition(END)[2]


def _record_types() -> str:
    samples = [json.dumps({"type": record.name} | _least(record)) for record in LINE_TYPES.values()]
    rows = [
        f"| `{record.name}` | {', '.join(_must_have(record))} | {', '.join(_may_have(record))} |"
        for record in LINE_TYPES.values()
    ]
    table = ["| type | must have | may have |", "|---|---|---|", *rows]
    return "\n".join(["", "```json", *samples, "```", "", *table, "", ""])


def _least(record: RecordType) -> dict[str, Any]:
    """A line with the fields that it must have, and the first of those of which one must be there."""
    return {own.name: own.example for own in record.fields if own.is_required or own.name in record.any_of[:1]}


def _must_have(record: RecordType) -> Iterator[str]:
    yield from (_field(own) for own in record.fields if own.is_required)
    if record.any_of:
        yield f"one of {', '.join(f'`{name}`' for name in record.any_of)}"


def _may_have(record: RecordType) -> list[str]:
    return [_field(own) for own in record.fields if not own.is_required and own.name not in record.any_of]


def _field(own: LogField) -> str:
    words = f" ({', '.join(f'`{word}`' for word in own.words)})" if isinstance(own, Choice) else ""
    return f"`{own.name}`{words}"


PAGES: Mapping[Path, Any] = {TABLES: tables_page, SETTINGS: settings_page, LOG_FORMAT: log_format_page, DBT: dbt_file}


def main() -> None:
    """Write the pages, in the folder of the project."""
    for path, page in PAGES.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
