"""The registry: a YAML list of the agents that are surveyed, each with a name, a platform and a URL."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError
from pydantic_core import ErrorDetails

from health_assets.consumer.fetching import health_url
from health_assets.core.errors import HealthAssetsError
from health_assets.core.terminal import printable
from health_assets.core.yaml_files import VALUE_SHOWN, described, read_yaml, shown
from health_assets.systems.survey.names import ALL_PLATFORMS

MOST_CHARACTERS = 2048
Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MOST_CHARACTERS)]


class RegisteredAgent(BaseModel):
    """An agent that is surveyed.

    Args:
        name: its name among people.
        platform: where it runs; the summary counts by it.
        url: its base address, or the address of its health document.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    name: Line
    platform: Line
    url: Line

    @cached_property
    def health_url(self) -> str:
        """The address of its health document."""
        return health_url(self.url)


def load_registry(path: Path) -> list[RegisteredAgent]:
    """Read a registry.

    Raises:
        HealthAssetsError: the file cannot be read, an entry lacks a key or has another one, a value is impossible, or
            two entries name the same health document. The sentence names the entry, counted from 1, and the key.
    """
    entries = read_yaml(path, "registry")
    if not isinstance(entries, list):
        raise HealthAssetsError(f"{path}: a registry must be a list of agents, each with name, platform and url")
    agents = [_validated(path, place, entry) for place, entry in enumerate(entries, start=1)]
    _require_different(path, agents)
    return agents


def _validated(path: Path, place: int, entry: Any) -> RegisteredAgent:
    if not isinstance(entry, dict):
        raise HealthAssetsError(f"{path}: entry {place}: must have name, platform and url, not be {described(entry)}")
    owner = f"{path}: entry {place}" + (f" ({shown(entry['name'])})" if entry.get("name") else "")
    try:
        agent = RegisteredAgent.model_validate(entry)
        _ = agent.health_url  # that there is one
    except ValidationError as error:
        first = error.errors()[0]
        key = printable(str(first["loc"][0]), VALUE_SHOWN)
        if first["type"] == "missing":
            raise HealthAssetsError(f"{owner}: {key}: is missing") from error
        if first["type"] == "extra_forbidden":
            raise HealthAssetsError(f"{owner}: {key}: unknown key; use name, platform and url") from error
        raise HealthAssetsError(f"{owner}: {key}: {_expected(first)}, got {described(first['input'])}") from None
    except HealthAssetsError as error:
        raise HealthAssetsError(f"{owner}: url: {error}") from error
    if agent.platform == ALL_PLATFORMS:
        raise HealthAssetsError(f"{owner}: platform: {ALL_PLATFORMS!r} stands for the whole registry; name another")
    return agent


def _expected(fault: ErrorDetails) -> str:
    """The form that a value must have, in words."""
    if fault["type"] == "string_too_long":
        return f"must have at most {MOST_CHARACTERS:,} characters"
    return "must be text of Unicode characters" if fault["type"] == "string_unicode" else "must be text"


def _require_different(path: Path, agents: Sequence[RegisteredAgent]) -> None:
    seen: dict[str, int] = {}
    for place, agent in enumerate(agents, start=1):
        first = seen.setdefault(agent.health_url, place)
        if first != place:
            raise HealthAssetsError(
                f"{path}: entry {place} ({shown(agent.name)}): url: {printable(agent.url)} is asked already, "
                f"by entry {first} ({shown(agents[first - 1].name)})"
            )
