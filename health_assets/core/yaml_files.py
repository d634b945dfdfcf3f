"""YAML files that people write: read and checked strictly, with errors of one sentence that names the key.

A file may be broken, or made to break its reader. So its size, depth, aliases and numbers are looked at before anything
is built of it, and no error repeats a text that is a value: it may be a secret that stands in the wrong place. Names,
such as those of keys and agents, are shown, and addresses without a password.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError

from health_assets.core.errors import HealthAssetsError
from health_assets.core.formatting import counted, nearest
from health_assets.core.terminal import printable

Model = TypeVar("Model", bound=BaseModel)
TAGS = "tag:yaml.org,2002:"
MERGE_TAG = f"{TAGS}merge"
KNOWN_TAGS = frozenset(f"{TAGS}{name}" for name in ("str", "int", "float", "bool", "null", "timestamp", "map", "seq"))

MOST_BYTES = 64 * 1024 * 1024
"""A registry of 400,000 agents."""
MOST_DEPTH = 20
MOST_REPEATED = 100_000
"""Nodes that aliases may add, each counted as often as it is repeated."""
MOST_DIGITS = 100
VALUE_SHOWN = 60
NO_FLAG = "YAML reads yes, on and true as a flag, which this is not; write a number, or a text in quotes"
_IN_SIXTIES = re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?")
_OCTAL = re.compile(r"[-+]?0[0-7_]+")
_NUMBER = re.compile(r"[-+.0-9][-+.:_0-9a-fA-FxoeE]*")


def read_yaml(path: Path, name: str) -> Any:
    """The content of a YAML file, whose keys are the names as they are written, each once.

    Args:
        path: the file.
        name: kind of file, for errors, like `targets file`.

    Raises:
        HealthAssetsError: the file cannot be read or is not such YAML, or it is too large, nested too deeply, repeats
            itself too often by aliases or has a number of too many digits.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise HealthAssetsError(f"cannot read the {name} {path}: {error.strerror}") from error
    if len(content) > MOST_BYTES:
        raise HealthAssetsError(f"the {name} {path} is larger than {MOST_BYTES // 1024**2} MiB")
    try:
        text = content.decode("utf-8")
        _require_tame(text)
        return yaml.load(text, Loader=_UniqueKeyLoader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        detail = _fault(error)
    # outside of the handler: the library's error may hold a piece of the file
    raise HealthAssetsError(f"the {name} {path} is not valid YAML: {detail}")


def _fault(error: yaml.YAMLError | UnicodeDecodeError) -> str:
    """The fault and its place, without the library's quotes of the file."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return printable(" ".join(str(error).split()))
    said = [error.context, error.problem]
    if not isinstance(error, _Untamed):
        said = [re.sub(r"'[^']{2,}'", "'…'", part or "") for part in said]
    mark = error.problem_mark or error.context_mark
    where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    return printable(", ".join(part for part in (*said, where) if part))


def shown(name: object) -> str:
    """A name as an error may show it: its beginning, or what stands there instead of one."""
    return repr(printable(name, VALUE_SHOWN)) if isinstance(name, str) else described(name)


def described(value: object) -> str:
    """A value as an error may show it: a text, which may be a secret, or what has parts only by what it is."""
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    if isinstance(value, str):
        return f"a text of {counted(len(value), 'character')}"
    return printable(repr(value), VALUE_SHOWN)


def mapping(path: Path, name: str, value: object, *, is_secret: bool = False) -> dict[str, Any]:
    """A part of a file that has keys; one that is left empty has none.

    Args:
        path: the file, for errors.
        name: name of the part, for errors.
        value: the part.
        is_secret: whether no error may repeat the value.

    Raises:
        HealthAssetsError: the part is something else.
    """
    if value is None:
        return {}
    if not isinstance(value, dict):
        found = "" if is_secret else f", not {described(value)}"
        raise HealthAssetsError(f"{path}: {name} must be a mapping of keys to values{found}")
    return value


def line_of(path: Path, *keys: str | int) -> str:
    """The line of a key of a file that was read, for errors, like `, line 7`.

    Args:
        path: the file.
        keys: keys and places from the outermost on.

    Returns:
        Nothing where an alias or a merge put the key there.
    """
    node, mark = yaml.compose(path.read_text("utf-8"), Loader=_FastestLoader), None
    for key in keys:
        parts = node.value if isinstance(node, yaml.MappingNode | yaml.SequenceNode) else []
        if isinstance(node, yaml.SequenceNode):
            parts = [(item, item) for item in parts[int(key) :]]
        found = next((part for part in parts if isinstance(key, int) or part[0].value == key), None)
        if found is None:
            return ""
        mark, node = found[0].start_mark, found[1]
    return f", line {mark.line + 1}" if mark else ""


def validated(
    path: Path,
    owner: str,
    kind: type[Model],
    values: dict[str, Any],
    *,
    is_secret: bool = False,
    keys: Sequence[str | int] = (),
) -> Model:
    """A part of a file as a model.

    Args:
        path: the file, for errors.
        owner: owner of the values, for errors.
        kind: the model.
        values: its values.
        is_secret: whether one may be a secret that stands in the wrong place, so that no error may repeat it.
        keys: the keys that lead to the part, from the outermost on; the line of an unknown key is named then.

    Raises:
        HealthAssetsError: a key is unknown or missing, or its value impossible.
    """
    if key := flag_for_something_else(kind, values):
        raise HealthAssetsError(f"{path}: {owner}: {key}: {NO_FLAG}")
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_context=False)[0]
    # outside of the handler: the library's error would hold its own traceback, and all in it, to the end of the process
    message = first["msg"].removeprefix("Value error, ")
    if not first["loc"]:
        raise HealthAssetsError(f"{path}: {owner}: {message}")
    places = [part if isinstance(part, int) else str(part) for part in first["loc"]]
    key = printable(".".join(map(str, places)), VALUE_SHOWN)
    if first["type"] == "extra_forbidden":
        line = line_of(path, *keys, *places) if keys else ""
        hint = nearest(key, kind.model_fields) if len(places) == 1 else ""
        raise HealthAssetsError(f"{path}{line}: {owner}: {key}: unknown key{hint}")  # its value may be a secret
    if first["type"] == "missing":
        raise HealthAssetsError(f"{path}: {owner}: {key}: must be given")
    found = "" if is_secret else f", got {described(first['input'])}"
    raise HealthAssetsError(f"{path}: {owner}: {key}: {message}{found}")


def entries(path: Path, section: str, kind: type[Model], document: dict[str, Any], form: str = "") -> list[Model]:
    """The entries of a section that is a list, as models in their order.

    Args:
        path: the file, for errors.
        section: the key of the list.
        kind: the model of an entry.
        document: the file's content.
        form: what an entry looks like, for the error of a section that is no list.

    Raises:
        HealthAssetsError: the section is no list, or as of `validated`.
    """
    found = document.get(section) or []
    if not isinstance(found, list):
        raise HealthAssetsError(f"{path}: {section} must be a list{f' of {form}' if form else ''}")
    made = []
    for place, one in enumerate(found):
        owner = f"{section}, entry {place + 1}"
        made.append(validated(path, owner, kind, mapping(path, owner, one), keys=[section, place]))
    return made


def flag_for_something_else(kind: type[BaseModel], values: Mapping[str, Any]) -> str | None:
    """The first key with yes or no where the model takes something else, of which it would make 1 or 0."""
    if kind.model_config.get("strict"):  # which refuses it itself
        return None
    for key, field in kind.model_fields.items():
        takes = {field.annotation, *get_args(field.annotation)}
        if isinstance(values.get(key), bool) and not takes & {bool, Any}:
            return key
    return None


def refuse_misread_numbers(path: Path, of_type: str) -> None:
    """Refuse numbers that YAML reads otherwise than they are written, in a file that another program has read.

    Args:
        path: the file, of one or several documents.
        of_type: end of the `type` of the documents to look at.

    Raises:
        HealthAssetsError: a value is such a number.
    """
    try:
        for document in yaml.compose_all(path.read_text("utf-8"), Loader=_FastestLoader):
            parts = {key.value: value for key, value in getattr(document, "value", ())}
            if "type" in parts and str(parts["type"].value).endswith(of_type):
                _refuse_misread_below(document)
        return
    except yaml.MarkedYAMLError as error:
        detail = _fault(error)
    # outside of the handler: the library's error may hold a piece of the file
    raise HealthAssetsError(f"{path}: {detail}")


def _refuse_misread_below(document: yaml.Node) -> None:
    left, seen = [document], set[int]()
    while left:
        node = left.pop()
        if id(node) in seen:  # by an alias
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            left += [value for _, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            left += node.value
        elif node.tag in (f"{TAGS}int", f"{TAGS}float"):
            _refuse_misread(node)


def _refuse_misread(node: yaml.ScalarNode) -> None:
    if _IN_SIXTIES.fullmatch(node.value):
        raise _Untamed(
            "YAML reads digits between colons as a number in sixties, 1:30 as 90; write the number itself, or a text "
            "in quotes",
            node.start_mark,
        )
    _refuse_octal(node)


_FastestLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The C parser where PyYAML was built with it: five times as fast, which a registry of 100,000 agents shows."""


class _Untamed(yaml.MarkedYAMLError):
    """A file that would break its reader, or that says something twice; it quotes no value."""

    def __init__(self, problem: str, mark: Any) -> None:
        super().__init__(None, None, problem, mark)


def _require_tame(text: str) -> None:
    """Refuse what would take its reader too long, too deep or too much memory.

    The library's events come one by one, without recursion, and nothing is built of them.
    """
    guard = _Guard()
    for event in yaml.parse(text, Loader=_FastestLoader):
        guard.take(event)


class _Guard:
    """Counts what is open, how deep and how large each part with an anchor is, and what aliases repeat."""

    def __init__(self) -> None:
        self._open: list[tuple[str | None, int]] = []  # anchor, and nodes that were there before
        self._nodes = 0
        self._repeated = 0
        self._anchored: dict[str, tuple[int, int] | None] = {}  # nodes and depth; None while it is open
        self._depths: list[int] = []  # by open part, the deepest below it

    def take(self, event: yaml.Event) -> None:
        """Look at the next event."""
        if isinstance(event, yaml.AliasEvent):
            self._repeat(event)
        elif isinstance(event, yaml.ScalarEvent):
            self._require_known(event)
            if _is_long_number(event):
                raise _Untamed(f"a number has more than {MOST_DIGITS} digits", event.start_mark)
            self._add(event, 0)
            if event.anchor is not None:
                self._anchored[event.anchor] = (1, 0)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._require_known(event)
            self._add(event, 1)
            self._open.append((event.anchor, self._nodes - 1))
            self._depths.append(0)
            if event.anchor is not None:
                self._anchored[event.anchor] = None
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = self._open.pop()
            depth = self._depths.pop() + 1
            if self._depths:
                self._depths[-1] = max(self._depths[-1], depth)
            if anchor is not None:
                self._anchored[anchor] = (self._nodes - before, depth)

    def _add(self, event: yaml.Event, depth: int, nodes: int = 1) -> None:
        self._nodes += nodes
        if len(self._open) + depth > MOST_DEPTH:
            raise _Untamed(f"it is nested more than {MOST_DEPTH} levels deep", event.start_mark)
        if self._depths:
            self._depths[-1] = max(self._depths[-1], depth)

    def _repeat(self, event: yaml.AliasEvent) -> None:
        known = self._anchored.get(event.anchor)
        if known is None:
            fault = "repeats what it is a part of" if event.anchor in self._anchored else "stands for nothing"
            raise _Untamed(f"an alias {fault}", event.start_mark)
        nodes, depth = known
        self._repeated += nodes
        if self._repeated > MOST_REPEATED:
            raise _Untamed(f"its aliases repeat more than {MOST_REPEATED:,} values", event.start_mark)
        self._add(event, depth, nodes)

    @staticmethod
    def _require_known(event: yaml.ScalarEvent | yaml.CollectionStartEvent) -> None:
        if event.tag not in (None, "!") and event.tag not in KNOWN_TAGS:
            raise _Untamed("a tag is none of text, numbers, times, lists and mappings", event.start_mark)


def _is_long_number(event: yaml.ScalarEvent) -> bool:
    """Whether a text is so long, and may be taken for a number."""
    if len(event.value) <= MOST_DIGITS:
        return False
    is_typed = event.tag not in (None, "!", f"{TAGS}str")
    return is_typed or (event.implicit[0] and _NUMBER.fullmatch(event.value) is not None)


class _UniqueKeyLoader(_FastestLoader):
    """Keys are names, as they are written (`no` is not false), and a name that stands twice is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _Untamed("a key must be a name", key.start_mark)
            if key.tag == MERGE_TAG:
                continue
            if key.value in seen:
                raise _Untamed(f"duplicate key {printable(key.value, VALUE_SHOWN)!r}", key.start_mark)
            seen.add(key.value)
            key.tag = f"{TAGS}str"
        return super().construct_mapping(node, deep)


def _checked(construct: Callable[[Any, Any], Any], what: str) -> Callable[[Any, Any], Any]:
    """A constructor of the library, whose Python errors become YAML's."""

    def constructed(loader: Any, node: yaml.ScalarNode) -> Any:
        if _IN_SIXTIES.fullmatch(node.value) and not node.tag.endswith(":timestamp"):
            return node.value  # YAML 1.1 reads 1:30 as 90; a text is what is written, and no number by accident
        _refuse_octal(node)
        try:
            return construct(loader, node)
        except (ValueError, LookupError, AttributeError, ArithmeticError):
            fault = _Untamed(f"this is no {what} that there is", node.start_mark)
        raise fault  # outside of the handler: the library's error repeats the value

    return constructed


def _refuse_octal(node: yaml.ScalarNode) -> None:
    """Refuse a value that YAML 1.1 reads as another number than the one that is written."""
    if _OCTAL.fullmatch(node.value):
        raise _Untamed(
            "YAML reads digits after a 0 as an octal number, 0777 as 511; write it without the 0, or a text in quotes",
            node.start_mark,
        )


_WHATS = {"int": "whole number", "float": "number", "bool": "yes or no", "timestamp": "date or time"}
for _name, _what in _WHATS.items():
    _construct = yaml.SafeLoader.yaml_constructors[f"{TAGS}{_name}"]
    _UniqueKeyLoader.add_constructor(f"{TAGS}{_name}", _checked(_construct, _what))
