"""YAML files that people write: read strictly, with errors of one sentence."""

from pathlib import Path
from typing import Any

import yaml

from health_assets.errors import HealthAssetsError

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
