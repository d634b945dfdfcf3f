"""YAML files that people write: read and checked strictly, with errors of one sentence that names the key."""

from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from health_assets.errors import HealthAssetsError

Model = TypeVar("Model", bound=BaseModel)
MERGE_TAG = "tag:yaml.org,2002:merge"


def read_yaml(path: Path, name: str) -> Any:
    """The content of a YAML file, whose keys are the names as they are written, each once.

    Args:
        path: the file.
        name: what the file is, for errors, like `targets file`.

    Raises:
        HealthAssetsError: the file cannot be read or is not such YAML.
    """
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=_UniqueKeyLoader)
    except OSError as error:
        raise HealthAssetsError(f"cannot read the {name} {path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        detail = " ".join(str(error).split())
        raise HealthAssetsError(f"the {name} {path} is not valid YAML: {detail}") from error


def mapping(path: Path, name: str, value: object, *, is_secret: bool = False) -> dict[str, Any]:
    """A part of a file that has keys; one that is left empty has none.

    Args:
        path: the file, for errors.
        name: what the part is, for errors.
        value: the part.
        is_secret: whether no error may repeat the value.

    Raises:
        HealthAssetsError: the part is something else.
    """
    if value is None:
        return {}
    if not isinstance(value, dict):
        found = "" if is_secret else f", not {value!r}"
        raise HealthAssetsError(f"{path}: {name} must be a mapping of keys to values{found}")
    return value


def validated(path: Path, owner: str, kind: type[Model], values: dict[str, Any], *, is_secret: bool = False) -> Model:
    """A part of a file as a model.

    Args:
        path: the file, for errors.
        owner: whose values they are, for errors.
        kind: the model.
        values: its values.
        is_secret: whether one may be a secret that stands in the wrong place, so that no error may repeat it.

    Raises:
        HealthAssetsError: a key is unknown or missing, or its value impossible.
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_context=False)[0]
    # outside of the handler: the library's error would hold its own traceback, and all in it, to the end of the process
    message = first["msg"].removeprefix("Value error, ")
    if not first["loc"]:
        raise HealthAssetsError(f"{path}: {owner}: {message}")
    key = first["loc"][0]
    if first["type"] == "extra_forbidden":
        raise HealthAssetsError(f"{path}: {owner}: {key}: unknown key")  # its value may be a secret
    if first["type"] == "missing":
        raise HealthAssetsError(f"{path}: {owner}: {key}: must be given")
    found = "" if is_secret else f", got {values.get(str(key))!r}"
    raise HealthAssetsError(f"{path}: {owner}: {key}: {message}{found}")


_FastestLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The C parser where PyYAML was built with it: five times as fast, which a registry of 100,000 agents shows."""


class _UniqueKeyLoader(_FastestLoader):
    """Keys are names, as they are written (`no` is not false), and a name that stands twice is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key must be a name", key.start_mark)
            if key.tag == MERGE_TAG:
                continue
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"duplicate key {key.value!r}", key.start_mark)
            seen.add(key.value)
            key.tag = "tag:yaml.org,2002:str"
        return super().construct_mapping(node, deep)
