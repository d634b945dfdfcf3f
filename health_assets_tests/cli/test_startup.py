"""How much the commands import before they do anything."""

import subprocess
import sys

import pytest

from health_assets_tests.support.projects import REPOSITORY

HEAVY = {
    "dagster", "duckdb", "fastapi", "great_expectations", "httpx", "ibis", "numpy", "pandas", "pyarrow", "pydantic_settings",
    "scipy", "sqlalchemy", "sqlglot", "sqlmodel",
}  # fmt: skip
"""Packages of which each takes 0.05 s or more to import."""
PROGRAM = """
import sys
from health_assets.__main__ import main
try:
    main()
finally:
    print(*sys.modules, sep="\\n", file=sys.stderr)
"""


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["materialize", "--help"], ["alerts", "--help"]])
def test_help_and_version_import_no_large_package(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    imported = {name.partition(".")[0] for name in done.stderr.split()}
    assert "typer" in imported
    assert imported & HEAVY == set()
