"""Docstrings name modules that exist."""

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from health_assets.schema.catalog import ALL_TABLES

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "health_assets"
LAYERS = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
DOTTED = re.compile(r"`((?:[a-z_][a-z0-9_]*\.)+[A-Za-z_][A-Za-z0-9_]*)`")
ELSEWHERE = re.compile(r"does\snot\b.*?(?:\n\n|\Z)", re.S)
IN_BRACKETS = re.compile(r"\(((?:`[a-z_][a-z0-9_.]*`(?:,\s|\sand\s)?)+)\)")
"""Names in brackets behind "does not belong here": where such a thing lives instead."""

FILES = (".yaml", ".yml", ".toml", ".md", ".jsonl")


class Docstring(NamedTuple):
    """A docstring, where it stands."""

    module: str
    name: str
    text: str

    def __str__(self) -> str:
        return f"{self.module}:{self.name}"


def _docstrings() -> Iterator[Docstring]:
    for path in sorted(PACKAGE.rglob("*.py")):
        module = _module(path)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if text := ast.get_docstring(node):
                yield Docstring(module, getattr(node, "name", ""), text)


def _module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


@cache
def _names_in(module: str) -> frozenset[str] | None:
    """Names that a module of the house defines at its top; None where there is no such module."""
    path = ROOT.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    if not file.exists():
        return None
    body = ast.parse(file.read_text(encoding="utf-8")).body
    targets = [t for node in body if isinstance(node, ast.Assign) for t in node.targets]
    targets += [node.target for node in body if isinstance(node, ast.AnnAssign)]
    defined = {node.name for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)}
    return frozenset(defined | {target.id for target in targets if isinstance(target, ast.Name)})


def _is_there(name: str) -> bool:
    """Whether a full name is a module, or something that a module defines."""
    module, _, last = name.rpartition(".")
    return _names_in(name) is not None or last in (_names_in(module) or ())


def _places(module: str, name: str) -> list[str]:
    """Full names that a name in a docstring may stand for: from the top, beside the module, and in it."""
    folder = module.removesuffix(".__init__").rsplit(".", 0 if module.endswith("__init__") else 1)[0]
    return [name, f"health_assets.{name}", f"{folder}.{name}"]


def _is_ours(docstring: Docstring, name: str) -> bool:
    first = name.split(".")[0]
    if name.endswith(FILES):
        return False
    return first == "health_assets" or first in LAYERS or _is_there(_places(docstring.module, first)[-1])


def _unknown(docstring: Docstring, names: Iterable[str]) -> list[str]:
    """Names of which nothing in the house is called so, each behind its docstring."""
    return [f"{docstring}: {name}" for name in names if not any(map(_is_there, _places(docstring.module, name)))]


def test_every_dotted_module_that_a_docstring_names_exists() -> None:
    wrong = []
    for each in _docstrings():
        wrong += _unknown(each, (name for name in DOTTED.findall(each.text) if _is_ours(each, name)))
    assert wrong == []


def test_every_module_that_a_module_points_to_exists() -> None:
    wrong = []
    for each in _docstrings():
        elsewhere = "".join(ELSEWHERE.findall(each.text)) if not each.name else ""
        pointed = " ".join(IN_BRACKETS.findall(elsewhere))
        wrong += _unknown(each, (name for name in re.findall(r"`([a-z0-9_.]+)`", pointed) if name not in ALL_TABLES))
    assert wrong == []
