"""A name means one thing in the whole package, and what has many fields is built by their names."""

import ast
from collections import defaultdict

from health_assets_tests.support.projects import REPOSITORY

SOURCES = REPOSITORY / "health_assets"
PARTS_OF_A_PATTERN = {
    "__init__", "__main__", "tables", "names", "assets", "batches", "expectations", "report", "store", "sql",
}  # fmt: skip
"""Modules that every system, or every engine, has of its own."""
MOST_BY_PLACE = 3


def test_no_two_modules_have_one_name() -> None:
    places = defaultdict(list)
    for path in SOURCES.rglob("*.py"):
        places[path.stem].append(path.relative_to(SOURCES).as_posix())
    assert {name: found for name, found in places.items() if len(found) > 1 and name not in PARTS_OF_A_PATTERN} == {}


def test_a_dataclass_with_many_fields_is_built_by_their_names() -> None:
    by_place = []
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ClassDef):
                continue
            decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
            fields = [
                part for part in node.body if isinstance(part, ast.AnnAssign) and "ClassVar" not in ast.unparse(part)
            ]
            if any(each.startswith("dataclass") and "kw_only=True" not in each for each in decorators):
                by_place += [f"{path.relative_to(SOURCES)}: {node.name}"] if len(fields) > MOST_BY_PLACE else []
    assert by_place == []
