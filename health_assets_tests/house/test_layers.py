"""The house: what the layers' check in pyproject.toml knows is what there is, and SQL stands in its folders."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

from health_assets.core.systems import SYSTEM_NAMES, parts
from health_assets_tests.support.projects import REPOSITORY

CONTRACTS = {
    contract["name"]: contract
    for contract in tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
}
SOURCES = REPOSITORY / "health_assets"
SYSTEMS = SOURCES / "systems"


def test_every_system_is_kept_apart_from_the_others_whatever_their_names() -> None:
    contract = CONTRACTS["A scoring system imports no other"]
    assert contract["modules"] == ["health_assets.systems.*"]
    excepted = {arrow.split(".")[2].split(" ")[0] for arrow in contract["ignore_imports"]}
    assert excepted & set(SYSTEM_NAMES) == set()


def test_every_folder_of_a_system_is_named_in_the_list_of_systems() -> None:
    assert {path.parent.name for path in SYSTEMS.glob("*/__init__.py")} == set(SYSTEM_NAMES)


def test_every_system_has_tables_expectations_and_a_block_or_explains_another() -> None:
    assert set(parts("tables")) == set(parts("expectations")) == set(SYSTEM_NAMES)
    assert set(SYSTEM_NAMES) - set(parts("report")) == {"explanations"}, "which one agent's report shows"
    assert set(SYSTEM_NAMES) - set(parts("assets")) == {"survey"}, "which is no function of logs"


# -- SQL -----------------------------------------------------------------------------------------------------------------

STATEMENT = re.compile(
    r"\s*(SELECT\s|INSERT\s+INTO\s|UPDATE\s+\S+\s+SET\s|UPDATE\s$|DELETE\s+FROM\s|WITH\s+\w+\s+AS\s|"
    r"(CREATE|DROP|ALTER)\s+(TEMP\s+)?(TABLE|VIEW|MACRO|FUNCTION|INDEX)\s|COPY\s+\()"
)
WHERE_SQL_STANDS = ("health_assets/warehouse/", "health_assets/logs/")
PATTERNS = {f"health_assets/core/{name}.py" for name in ("agent_names", "duckdb_errors", "evaluators", "redaction")}
"""Patterns of the targets file: the DuckDB that the parser applies them with also says, while the file is read, whether it
can. So the SQL of a pattern stands beside what a pattern is; no table is read."""


def statements_in(path: Path) -> list[str]:
    """The string constants of a module that begin as SQL does."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [text for text in texts if STATEMENT.match(text)]


def test_sql_stands_in_the_warehouse_and_in_the_parser_alone() -> None:
    found = {path.relative_to(REPOSITORY).as_posix(): statements_in(path) for path in SOURCES.rglob("*.py")}
    outside = {
        name
        for name, texts in found.items()
        if texts and not name.startswith(WHERE_SQL_STANDS) and name not in PATTERNS
    }
    assert outside == set(), {name: found[name] for name in outside}


@pytest.mark.parametrize("text", ["SELECT 1", "\n  SELECT\n a", "WITH a AS (SELECT 1)", "UPDATE t SET a = 1", "DELETE FROM t",
                                  "INSERT INTO t VALUES (1)", "CREATE TEMP TABLE t AS", "DROP TABLE t"])  # fmt: skip
def test_a_string_that_begins_as_sql_does_is_found(text: str, tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(f"def f(session):\n    return session.query({text!r} + f'{{1}}')\n", encoding="utf-8")
    assert statements_in(module) == [text]
    module.write_text(
        "'''Select what to drop; with windows as they are.'''\nprint('Delete from the list')\n", encoding="utf-8"
    )
    assert statements_in(module) == []
