"""Private parts of dependencies stand in the modules that ruff leaves them to, and a test of its own watches each."""

import re
import tomllib

import pytest

from health_assets_tests.support.projects import REPOSITORY

SOURCES, TESTS = REPOSITORY / "health_assets", REPOSITORY / "health_assets_tests"
LINT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ruff"]["lint"]
EXCEPTED = [pattern for pattern, rules in LINT["per-file-ignores"].items() if "TID251" in rules]
TESTED_AS = {"protocol": "uvicorn_protocol"}


def modules() -> list[str]:
    """The modules that may have private parts; a pattern `{a,b}.py` names two."""
    found = []
    for pattern in EXCEPTED:
        folder, _, names = pattern.rpartition("/")
        if folder.startswith("health_assets/"):
            found += [f"{folder}/{name}.py" for name in names.removesuffix(".py").strip("{}").split(",")]
    return found


@pytest.mark.parametrize("module", modules())
def test_a_module_with_private_parts_has_a_test_that_it_names_and_says_for_which_version(module: str) -> None:
    path = REPOSITORY / module
    name = f"test_{TESTED_AS.get(path.stem, path.stem)}"
    assert list(TESTS.rglob(f"{name}.py")), f"{name} watches what {module} takes from others"
    head = path.read_text(encoding="utf-8").split('"""')[1]
    assert f"`{name}`" in head and re.search(r"\d+\.\d+", head), "its docstring names the version and the test"


def test_no_other_module_reaches_into_what_is_private() -> None:
    silent = {path.relative_to(REPOSITORY).as_posix() for path in SOURCES.rglob("*.py") if "SLF001" in path.read_text()}
    assert silent <= set(modules())
    assert "SLF" in LINT["select"]
    assert not [
        pattern for pattern, rules in LINT["per-file-ignores"].items() if "SLF001" in rules and "tests" not in pattern
    ]


def test_every_private_part_that_ruff_keeps_away_names_the_module_that_it_belongs_in() -> None:
    known = {module.removesuffix(".py").replace("/", ".") for module in modules()}
    for banned in LINT["flake8-tidy-imports"]["banned-api"].values():
        assert banned["msg"].rsplit(" ", 1)[1] in known
