"""The file for dbt projects: dbt takes no name twice, no Jinja in a description, and no exposure of an unknown table."""

import re
from typing import Any

import pytest
import yaml

from health_assets.schema.catalog import ALL_TABLES, columns_of
from health_assets.schema.dbt_sources import SCHEMA, published_tables
from health_assets_tests.support.projects import REPOSITORY

TEXT = (REPOSITORY / "docs" / "dbt" / "health_assets.yml").read_text(encoding="utf-8")
FILE: dict[str, Any] = yaml.safe_load(TEXT)
[SOURCE] = FILE["sources"]
TABLES = {table["name"]: table for table in SOURCE["tables"]}


@pytest.mark.parametrize("name", published_tables())
def test_every_published_table_is_a_source_with_its_columns_in_order(name: str) -> None:
    table = TABLES[name]
    assert [column["name"] for column in table["columns"]] == columns_of(name)
    assert all(column["description"] and column["data_type"] for column in table["columns"])
    assert table.keys() == {"name", "description", "columns"}


def test_the_tables_of_bookkeeping_are_no_sources() -> None:
    assert TABLES.keys() == {*published_tables()} and len(TABLES) == len(SOURCE["tables"])
    assert ALL_TABLES.keys() - TABLES.keys() == {
        "raw_files", "raw_file_notes", "raw_roots", "digest_salt", "partition_states", "warehouse_version",
    }  # fmt: skip


def test_an_exposure_depends_on_sources_of_the_file() -> None:
    assert len({exposure["name"] for exposure in FILE["exposures"]}) == len(FILE["exposures"])
    for exposure in FILE["exposures"]:
        assert exposure["type"] in {"dashboard", "notebook", "analysis", "ml", "application"}
        assert exposure["owner"]["name"]
        named = [re.fullmatch(r"source\('health_assets', '(\w+)'\)", one) for one in exposure["depends_on"]]
        assert {match[1] for match in named if match} <= TABLES.keys() and all(named)


def test_the_schema_is_the_only_jinja() -> None:
    assert SOURCE["schema"] == SCHEMA
    assert len(re.findall(r"{[{%#]", TEXT)) == 1
