"""The tables of the warehouse as sources of a dbt project, and what is made of them as its exposures."""

from collections.abc import Mapping
from typing import Any

import yaml

from health_assets.schema import bookkeeping
from health_assets.schema.catalog import ALL_TABLES, describe, description_of
from health_assets.schema.column_types import SQL_NAMES

SOURCE = "health_assets"
SCHEMA = "{{ var('health_assets_schema', 'main') }}"
"""`main` is that of a DuckDB file, `public` usually that of PostgreSQL."""
USES: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "health_endpoint": (
        "application",
        "Health documents, scores and pages of `health-assets serve`.",
        ("agent_health", "agent_health_state", "agent_now", "system_health", "session_scores"),
    ),
    "health_alerts": (
        "application",
        "Messages of `health-assets run` and of Dagster's sensor to channels.",
        ("agent_health", "agent_now", "error_budget", "model_health", "drift", "release_comparison"),
    ),
    "health_dashboards": (
        "dashboard",
        "The dashboards for Grafana.",
        ("agent_health", "agent_now", "system_health", "error_budget", "tool_health", "agent_usage", "model_health"),
    ),
}
"""Exposures: type, description, and the tables that each reads most."""


def dbt_file() -> str:
    """The YAML of a dbt project's properties file."""
    content = {"version": 2, "sources": [_source()], "exposures": [_exposure(name) for name in USES]}
    body = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=140)
    return f"# Written by `make docs` from the tables' classes; edit those, not this.\n{body}"


def published_tables() -> list[str]:
    """Tables for others to read; those of bookkeeping are not."""
    own = {table.__tablename__ for table in bookkeeping.TABLES}
    return [name for name in ALL_TABLES if name not in own]


def _source() -> dict[str, Any]:
    return {
        "name": SOURCE,
        "description": "The health of AI agents by hour, as Health Assets makes it from their logs.",
        "schema": SCHEMA,
        "tables": [_table(name) for name in published_tables()],
    }


def _table(name: str) -> dict[str, Any]:
    columns = [
        {"name": column, "data_type": SQL_NAMES[kind].lower(), "description": meaning}
        for column, kind, _, meaning in describe(name)
    ]
    return {"name": name, "description": description_of(name), "columns": columns}


def _exposure(name: str) -> dict[str, Any]:
    kind, description, tables = USES[name]
    return {
        "name": name,
        "type": kind,
        "description": description,
        "owner": {"name": "Health Assets"},
        "depends_on": [f"source('{SOURCE}', '{table}')" for table in tables],
    }
