"""Dataclasses with many fields are built by their names."""

import ast

from health_assets_tests.support.projects import REPOSITORY

SOURCES = REPOSITORY / "health_assets"
MOST_BY_PLACE = 3


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
