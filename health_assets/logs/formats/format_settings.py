"""Settings of formats: declarations for logs of one's own (`HEALTH_FORMATS`), and how agents of sessions are called.

What belongs here: finding the declarations, and whether settings are others than before. What does not: what a
declaration says (`declaration`).
"""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

from health_assets.core.errors import HealthAssetsError
from health_assets.core.settings import Settings
from health_assets.logs.formats.declaration import Declaration, load_declaration
from health_assets.logs.stores import RawFile

PATTERNS = ("*.yaml", "*.yml")


@dataclass(frozen=True)
class FormatSettings:
    """Settings of formats.

    Args:
        own: formats that the installation declares.
        by_project: whether the agent of a coding agent's session is called by its project, too.
    """

    own: tuple[Declaration, ...] = ()
    by_project: bool = False

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The settings of an installation.

        Raises:
            HealthAssetsError: as of `own_formats`.
        """
        return cls(own_formats(settings.formats), settings.sessions_by_project)

    @cached_property
    def digest(self) -> str:
        """A digest of these settings."""
        told = [str(self.by_project), *(one.model_dump_json() for one in self.own)]
        return hashlib.sha256("\n".join(told).encode()).hexdigest()[:32]


DEFAULT = FormatSettings()


def settings_of(file: RawFile) -> FormatSettings:
    """The settings of formats that a file was listed with, or else the defaults."""
    return file.format_settings or DEFAULT


def own_formats(path: Path | None) -> tuple[Declaration, ...]:
    """The declarations in a file, or in the files of a folder; none where nothing is named.

    Raises:
        HealthAssetsError: there is no such file, or one is no declaration, or two have one name.
    """
    if path is None:
        return ()
    files = sorted(found for pattern in PATTERNS for found in path.glob(pattern)) if path.is_dir() else [path]
    found: dict[str, Path] = {}
    declared = [load_declaration(file) for file in files]
    for file, declaration in zip(files, declared, strict=True):
        if (other := found.setdefault(declaration.name, file)) != file:
            raise HealthAssetsError(f"{file}: {other} declares a format of the name {declaration.name!r}, too")
    return tuple(declared)
